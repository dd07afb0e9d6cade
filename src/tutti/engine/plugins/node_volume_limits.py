"""NodeVolumeLimits: the maximum number of volumes of a CSI driver per node.

A volume that several pods share counts once. Attached volumes count even if no pod on the node uses them.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np

from tutti.cluster.cluster import Cluster
from tutti.cluster.columns import Rows
from tutti.cluster.events import Event
from tutti.engine.plugins import volumes
from tutti.engine.plugins.base import ClusterPlugin, IncomingPod, PreFilterState, Selection
from tutti.engine.plugins.verdict import Reason, Refusal, StatusCodes
from tutti.engine.plugins.volumes import CsiVolume
from tutti.kube.objects import CSIDriver, CSINode, PersistentVolumeClaim, Pod, Volume, VolumeAttachment


class NodeVolumeLimits(ClusterPlugin):
    """kube-scheduler's NodeVolumeLimits: PreFilter and filter."""

    name = "NodeVolumeLimits"
    events_to_register = frozenset((Event.NODE_ADDED, Event.POD_REMOVED, Event.VOLUMES))
    refusals = (
        Refusal("node(s) exceed max volume count", resolvable=True),
        Refusal("CSI driver is not installed on the node", resolvable=True),
        Refusal("persistentvolumeclaim not found", resolvable=False),
    )

    def applies_to(self, incoming: IncomingPod) -> bool:
        """Return whether the pod has volumes."""
        return bool(incoming.spec.volumes)

    def pre_filter(self, incoming: IncomingPod) -> PreFilterState | None:
        """Return a state for pods with claims, ephemeral volumes or migrated in-tree disks; skip other pods."""
        if not any(
            v.persistent_volume_claim or v.ephemeral or volumes.migrated_driver(v) for v in incoming.spec.volumes
        ):
            return None
        return _LimitState(incoming)

    def reason(self, incoming: IncomingPod, row: int, code: int) -> Reason:
        """Return the reason, with the name of the missing driver or the missing claim."""
        if code == 3:
            return Reason(self.name, (_LimitState(incoming).missing_claim,), resolvable=False)
        if code == 2:
            driver = _LimitState(incoming).missing_driver(row)
            return Reason(self.name, (f"{driver} CSI driver is not installed on the node",), resolvable=True)
        return super().reason(incoming, row, code)

    def count_messages(self, incoming: IncomingPod, rows: Rows, code: int) -> dict[str, int]:
        """Return how many rows have each message."""
        counts: dict[str, int] = {}
        for row in rows.tolist():
            for message in self.reason(incoming, row, code).messages:
                counts[message] = counts.get(message, 0) + 1
        return counts


class _LimitState(PreFilterState):
    """The volumes of one pod, as CSI drivers count them."""

    def __init__(self, incoming: IncomingPod) -> None:
        self._incoming, self._cluster = incoming, incoming.cluster

    @cached_property
    def missing_claim(self) -> str:
        """The message for the first missing claim; empty if no claim is missing before a claim that belongs to another
        pod.
        """
        pod, namespace = self._incoming.pod, self._incoming.spec.namespace
        for volume in self._incoming.spec.volumes:
            name = volumes.claim_name(pod, volume)
            claim = volumes.find_claim(self._cluster, namespace, name) if name is not None else None
            if name is not None and claim is None:
                return f'looking up PVC {namespace}/{name}: persistentvolumeclaim "{name}" not found'
            if claim is not None and volume.ephemeral is not None and volumes.ownership_error(pod, claim):
                return ""
        return ""

    @cached_property
    def _without_csi_node(self) -> set[CsiVolume]:
        """The volumes to count on a node without a CSINode object: in-tree disks do not count there."""
        return pod_disks(self._cluster, self._incoming.pod, self._incoming.spec.volumes, csi=False)

    @cached_property
    def _with_csi_node(self) -> set[CsiVolume]:
        """The volumes to count on a node with a CSINode object."""
        return pod_disks(self._cluster, self._incoming.pod, self._incoming.spec.volumes, csi=True)

    @cached_property
    def _attached(self) -> dict[str, set[CsiVolume]]:
        return _attached(self._cluster)

    def filter(self, rows: Selection) -> StatusCodes:
        """Refuse nodes that would exceed a limit (1), or that lack a driver which prevents scheduling if missing (2).

        A missing claim refuses all nodes (3); VolumeBinding, if enabled, refuses such pods before.
        """
        numbers = range(self._cluster.nodes.size)[rows] if isinstance(rows, slice) else rows.tolist()
        if self.missing_claim:
            return np.full(len(numbers), 3, dtype=np.uint8)
        if not self._with_csi_node:
            return np.zeros(len(numbers), dtype=np.uint8)
        strict = any(_prevents_scheduling_if_missing(self._cluster, disk.driver) for disk in self._with_csi_node)
        if not strict and not self._cluster.objects["CSINode"]:
            return np.zeros(len(numbers), dtype=np.uint8)
        return np.fromiter((self._status_code(row) for row in numbers), np.uint8, len(numbers))

    def _status_code(self, row: int) -> int:
        name = self._cluster.nodes.names[row]
        node = volumes.find_csi_node(self._cluster, name)
        new = self._without_csi_node if node is None else self._with_csi_node
        if not new:
            return 0
        if self._missing_required_driver(new, node) is not None:
            return 2
        limits = {d.name: d.allocatable.count for d in (node.spec.drivers or ()) if d.allocatable} if node else {}
        limits = {driver: count for driver, count in limits.items() if count is not None}
        if not limits:
            return 0
        used: set[CsiVolume] = set()
        for pod in self._cluster.occupancy.volume_pods.get(row, ()):
            obj = self._cluster.pods.objects[pod]
            assert obj is not None
            used |= pod_disks(self._cluster, obj, self._cluster.spec_of(pod).volumes, csi=True)
        added = new - used
        used |= self._attached.get(name, set())
        for driver in {disk.driver for disk in added}:
            limit = limits.get(driver)
            count = sum(d.driver == driver for d in used) + sum(d.driver == driver for d in added)
            if limit is not None and count > limit:
                return 1
        return 0

    def _missing_required_driver(self, new: set[CsiVolume], node: CSINode | None) -> str | None:
        installed = {d.name for d in (node.spec.drivers or ())} if node is not None else set()
        for driver in sorted({disk.driver for disk in new}):
            if driver not in installed and _prevents_scheduling_if_missing(self._cluster, driver):
                return driver
        return None

    def missing_driver(self, row: int) -> str:
        """Return the required driver that a row lacks."""
        node = volumes.find_csi_node(self._cluster, self._cluster.nodes.names[row])
        return (
            self._missing_required_driver(self._without_csi_node if node is None else self._with_csi_node, node) or ""
        )


def _prevents_scheduling_if_missing(cluster: Cluster, driver: str) -> bool:
    """Return whether a driver allows pods only on nodes where the driver is installed."""
    volume_object = cluster.objects["CSIDriver"].get(driver)
    return isinstance(volume_object, CSIDriver) and bool(volume_object.spec.prevent_pod_scheduling_if_missing)


def pod_disks(cluster: Cluster, pod: Pod, pod_volumes: tuple[Volume, ...], *, csi: bool) -> set[CsiVolume]:
    """Return a pod's volumes as CSI drivers count them; `csi` says that the node has a CSINode object."""
    disks: set[CsiVolume] = set()
    for volume in pod_volumes:
        name = volumes.claim_name(pod, volume)
        disk: CsiVolume | None = None
        if name is None:
            disk = volumes.migrated_disk(volume) if csi else None
        else:
            claim = volumes.find_claim(cluster, pod.metadata.namespace or "default", name)
            if claim is None:
                continue
            if volume.ephemeral is not None:
                volumes.require_ownership(pod, claim)
            disk = _claim_disk(cluster, claim, csi=csi)
        if disk is not None and disk.driver and disk.handle:
            disks.add(disk)
    return disks


def _claim_disk(cluster: Cluster, claim: PersistentVolumeClaim, *, csi: bool) -> CsiVolume | None:
    """Return the disk behind a claim; a disk that is not provisioned yet gets a unique handle."""
    volume_object = volumes.find_volume(cluster, claim.spec.volume_name) if claim.spec.volume_name else None
    if volume_object is not None:
        if volume_object.spec.csi is not None:
            return CsiVolume(volume_object.spec.csi.driver, volume_object.spec.csi.volume_handle)
        return volumes.migrated_disk(volume_object.spec, volume_object.metadata.labels) if csi else None
    storage_class = volumes.find_storage_class(cluster, volumes.claim_class_name(claim))
    if storage_class is None:
        return None
    handle = f"(to be made)-{claim.key}"
    migrated = volumes.MIGRATED.get(storage_class.provisioner)
    if migrated is not None:
        return CsiVolume(migrated.driver, handle) if csi else None
    return CsiVolume(storage_class.provisioner, handle)


def _attached(cluster: Cluster) -> dict[str, set[CsiVolume]]:
    """Return the attached CSI volumes by node."""
    disks: dict[str, set[CsiVolume]] = {}
    for attachment in cluster.objects["VolumeAttachment"].values():
        assert isinstance(attachment, VolumeAttachment)
        spec = attachment.spec
        if not spec.attacher or not spec.source.persistent_volume_name:
            continue
        volume_object = volumes.find_volume(cluster, spec.source.persistent_volume_name)
        if volume_object is not None and volume_object.spec.csi is not None:
            disks.setdefault(spec.node_name, set()).add(CsiVolume(spec.attacher, volume_object.spec.csi.volume_handle))
    return disks
