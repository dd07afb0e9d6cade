"""NodeVolumeLimits: how many volumes of a CSI driver a node takes.

Volumes are counted once however many pods share them; those that are only attached count too.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np

from tutti.cluster.cluster import Cluster
from tutti.cluster.columns import Rows
from tutti.cluster.events import Event
from tutti.engine.plugins import volumes
from tutti.engine.plugins.base import ClusterPlugin, IncomingPod, PreparedPlugin, Selection
from tutti.engine.plugins.verdict import Reason, Refusal, Variants
from tutti.engine.plugins.volumes import CsiVolume
from tutti.kube.objects import CSIDriver, CSINode, PersistentVolumeClaim, Pod, Volume, VolumeAttachment


class NodeVolumeLimits(ClusterPlugin):
    """See the module."""

    name = "NodeVolumeLimits"
    cures = frozenset((Event.NODE_ADDED, Event.POD_GONE, Event.VOLUMES))
    refusals = (
        Refusal("node(s) exceed max volume count", resolvable=True),
        Refusal("CSI driver is not installed on the node", resolvable=True),
        Refusal("persistentvolumeclaim not found", resolvable=False),
    )

    def concerns(self, incoming: IncomingPod) -> bool:
        """Only pods with volumes."""
        return bool(incoming.spec.volumes)

    def prepare(self, incoming: IncomingPod) -> PreparedPlugin | None:
        """Look at pods with volumes that CSI drivers could be behind."""
        if not any(v.persistent_volume_claim or v.ephemeral or volumes.in_tree(v) for v in incoming.spec.volumes):
            return None
        return _Limited(incoming)

    def reason(self, incoming: IncomingPod, row: int, variant: int) -> Reason:
        """Name the driver that is not installed, or the claim that is not there."""
        if variant == 3:
            return Reason(self.name, (_Limited(incoming).missing_claim,), resolvable=False)
        if variant == 2:
            driver = _Limited(incoming).missing_driver(row)
            return Reason(self.name, (f"{driver} CSI driver is not installed on the node",), resolvable=True)
        return super().reason(incoming, row, variant)

    def tally(self, incoming: IncomingPod, rows: Rows, variant: int) -> dict[str, int]:
        """Count by the driver that is missing."""
        counts: dict[str, int] = {}
        for row in rows.tolist():
            for message in self.reason(incoming, row, variant).messages:
                counts[message] = counts.get(message, 0) + 1
        return counts


class _Limited(PreparedPlugin):
    """The volumes of one pod, as CSI drivers count them."""

    def __init__(self, incoming: IncomingPod) -> None:
        self._incoming, self._cluster = incoming, incoming.cluster

    @cached_property
    def missing_claim(self) -> str:
        """Which claim is not there; empty when all are, or when another one before it cannot be used at all."""
        pod, namespace = self._incoming.pod, self._incoming.spec.namespace
        for volume in self._incoming.spec.volumes:
            name = volumes.claim_name(pod, volume)
            wish = volumes.claim(self._cluster, namespace, name) if name is not None else None
            if name is not None and wish is None:
                return f'looking up PVC {namespace}/{name}: persistentvolumeclaim "{name}" not found'
            if wish is not None and volume.ephemeral is not None and volumes.not_created_for(pod, wish):
                return ""
        return ""

    @cached_property
    def _plain(self) -> set[CsiVolume]:
        """The volumes on a node whose CSI drivers are not known: in-tree disks do not count there."""
        return pod_disks(self._cluster, self._incoming.pod, self._incoming.spec.volumes, csi=False)

    @cached_property
    def _csi(self) -> set[CsiVolume]:
        return pod_disks(self._cluster, self._incoming.pod, self._incoming.spec.volumes, csi=True)

    @cached_property
    def _attached(self) -> dict[str, set[CsiVolume]]:
        return _attached(self._cluster)

    def filter(self, rows: Selection) -> Variants:
        """Refuse nodes that would go over a limit (1), or lack a driver that insists on being there (2).

        A claim that is missing refuses all (3); VolumeBinding, where it is on, has done so before.
        """
        numbers = range(self._cluster.nodes.size)[rows] if isinstance(rows, slice) else rows.tolist()
        if self.missing_claim:
            return np.full(len(numbers), 3, dtype=np.uint8)
        if not self._csi:
            return np.zeros(len(numbers), dtype=np.uint8)
        strict = any(_insists(self._cluster, disk.driver) for disk in self._csi)
        if not strict and not self._cluster.objects["CSINode"]:
            return np.zeros(len(numbers), dtype=np.uint8)
        return np.fromiter((self._answer(row) for row in numbers), np.uint8, len(numbers))

    def _answer(self, row: int) -> int:
        name = self._cluster.nodes.names[row]
        node = volumes.csi_node(self._cluster, name)
        new = self._plain if node is None else self._csi
        if not new:
            return 0
        if self._missing(new, node) is not None:
            return 2
        limits = {d.name: d.allocatable.count for d in (node.spec.drivers or ()) if d.allocatable} if node else {}
        limits = {driver: count for driver, count in limits.items() if count is not None}
        if not limits:
            return 0
        there: set[CsiVolume] = set()
        for pod in self._cluster.occupancy.volume_pods.get(row, ()):
            obj = self._cluster.pods.objects[pod]
            assert obj is not None
            there |= pod_disks(self._cluster, obj, self._cluster.spec_of(pod).volumes, csi=True)
        added = new - there
        there |= self._attached.get(name, set())
        for driver in {disk.driver for disk in added}:
            limit = limits.get(driver)
            count = sum(d.driver == driver for d in there) + sum(d.driver == driver for d in added)
            if limit is not None and count > limit:
                return 1
        return 0

    def _missing(self, new: set[CsiVolume], node: CSINode | None) -> str | None:
        installed = {d.name for d in (node.spec.drivers or ())} if node is not None else set()
        for driver in sorted({disk.driver for disk in new}):
            if driver not in installed and _insists(self._cluster, driver):
                return driver
        return None

    def missing_driver(self, row: int) -> str:
        """Give the driver that a row lacks."""
        node = volumes.csi_node(self._cluster, self._cluster.nodes.names[row])
        return self._missing(self._plain if node is None else self._csi, node) or ""


def _insists(cluster: Cluster, driver: str) -> bool:
    """Say whether a driver wants pods only where it is installed."""
    found = cluster.objects["CSIDriver"].get(driver)
    return isinstance(found, CSIDriver) and bool(found.spec.prevent_pod_scheduling_if_missing)


def pod_disks(cluster: Cluster, pod: Pod, wanted: tuple[Volume, ...], *, csi: bool) -> set[CsiVolume]:
    """Give a pod's volumes as CSI drivers count them; `csi` says that the node's drivers are known."""
    disks: set[CsiVolume] = set()
    for volume in wanted:
        name = volumes.claim_name(pod, volume)
        disk: CsiVolume | None = None
        if name is None:
            disk = volumes.migrated_disk(volume) if csi else None
        else:
            wish = volumes.claim(cluster, pod.metadata.namespace or "default", name)
            if wish is None:
                continue
            if volume.ephemeral is not None:
                volumes.owned_or_error(pod, wish)
            disk = _claim_disk(cluster, wish, csi=csi)
        if disk is not None and disk.driver and disk.handle:
            disks.add(disk)
    return disks


def _claim_disk(cluster: Cluster, wish: PersistentVolumeClaim, *, csi: bool) -> CsiVolume | None:
    """Give the disk behind a claim; one that is still to be made counts under a name of its own."""
    found = volumes.volume(cluster, wish.spec.volume_name) if wish.spec.volume_name else None
    if found is not None:
        if found.spec.csi is not None:
            return CsiVolume(found.spec.csi.driver, found.spec.csi.volume_handle)
        return volumes.migrated_disk(found.spec, found.metadata.labels) if csi else None
    made_by = volumes.storage_class(cluster, volumes.class_name(wish))
    if made_by is None:
        return None
    handle = f"(to be made)-{wish.key}"
    moved = volumes.MIGRATED.get(made_by.provisioner)
    if moved is not None:
        return CsiVolume(moved.driver, handle) if csi else None
    return CsiVolume(made_by.provisioner, handle)


def _attached(cluster: Cluster) -> dict[str, set[CsiVolume]]:
    """Give the CSI volumes that are attached, by node."""
    disks: dict[str, set[CsiVolume]] = {}
    for attachment in cluster.objects["VolumeAttachment"].values():
        assert isinstance(attachment, VolumeAttachment)
        spec = attachment.spec
        if not spec.attacher or not spec.source.persistent_volume_name:
            continue
        found = volumes.volume(cluster, spec.source.persistent_volume_name)
        if found is not None and found.spec.csi is not None:
            disks.setdefault(spec.node_name, set()).add(CsiVolume(spec.attacher, found.spec.csi.volume_handle))
    return disks
