"""VolumeRestrictions: disks that only one pod may mount, and ReadWriteOncePod claims."""

from __future__ import annotations

import numpy as np

from tutti.cluster.events import Event
from tutti.cluster.spec_classes import SpecClass
from tutti.engine.plugins import volumes
from tutti.engine.plugins.base import ClusterPlugin, IncomingPod, PreFilterState, Selection
from tutti.engine.plugins.verdict import Reason, Refusal, StatusCodes
from tutti.kube.objects import GceDisk, IscsiDisk, Pod, RbdDisk, Volume


class VolumeRestrictions(ClusterPlugin):
    """kube-scheduler's VolumeRestrictions: PreFilter and filter."""

    name = "VolumeRestrictions"
    events_to_register = frozenset((Event.NODE_ADDED, Event.POD_REMOVED, Event.VOLUMES))
    refusals = (
        Refusal("node(s) had no available disk", resolvable=True),
        Refusal(
            "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already in-use by "
            "another pod",
            resolvable=True,
        ),
    )

    def applies_to(self, incoming: IncomingPod) -> bool:
        """Return whether the pod has volumes."""
        return bool(incoming.spec.volumes)

    def pre_filter(self, incoming: IncomingPod) -> PreFilterState | Reason | None:
        """Collect the pod's disks and ReadWriteOncePod claims; a missing claim refuses all nodes."""
        cluster, namespace = incoming.cluster, incoming.spec.namespace
        once_pod_claims: set[str] = set()
        for volume in incoming.spec.volumes:
            if volume.persistent_volume_claim is None:
                continue
            name = volume.persistent_volume_claim.claim_name
            claim = volumes.find_claim(cluster, namespace, name)
            if claim is None:
                return Reason(self.name, (f'persistentvolumeclaim "{name}" not found',), resolvable=False)
            if "ReadWriteOncePod" in (claim.spec.access_modes or ()):
                once_pod_claims.add(name)
        disks = [v for v in incoming.spec.volumes if _is_disk(v)]
        users = sum(f"{namespace}/{name}" in cluster.occupancy.claim_users for name in once_pod_claims)
        return _RestrictionState(incoming, disks, once_pod_claims, users) if disks or users else None


def _is_disk(volume: Volume) -> bool:
    return any((volume.gce_persistent_disk, volume.aws_elastic_block_store, volume.iscsi, volume.rbd))


class _RestrictionState(PreFilterState):
    """The disks and ReadWriteOncePod claims of one pod."""

    def __init__(self, incoming: IncomingPod, disks: list[Volume], once_pod_claims: set[str], users: int) -> None:
        self._incoming, self._disks, self._once_pod_claims, self._users = incoming, disks, once_pod_claims, users

    def filter(self, rows: Selection) -> StatusCodes:
        """Refuse nodes where a disk is mounted (1), and all nodes while a ReadWriteOncePod claim is in use (2)."""
        cluster = self._incoming.cluster
        codes = np.full(len(cluster.nodes.on[rows]), 2 if self._users > 0 else 0, dtype=np.uint8)
        if self._disks:
            in_use = np.zeros(cluster.nodes.size, dtype=bool)
            for row, pods in cluster.occupancy.volume_pods.items():
                in_use[row] = any(
                    _conflict(ours, theirs)
                    for pod in pods
                    for theirs in cluster.spec_of(pod).volumes
                    for ours in self._disks
                )
            codes[in_use[rows]] = 1
        return codes

    def clone(self) -> _RestrictionState:
        """Copy the number of users."""
        return _RestrictionState(self._incoming, self._disks, self._once_pod_claims, self._users)

    def update_with_pod(self, pod: Pod, spec: SpecClass, row: int, number: int) -> None:
        """Add (1) or remove (-1) a user of a claim name; like kube-scheduler, ignore the namespace here."""
        for volume in spec.volumes:
            if volume.persistent_volume_claim and volume.persistent_volume_claim.claim_name in self._once_pod_claims:
                self._users += number


def _conflict(ours: Volume, theirs: Volume) -> bool:
    """Return whether two volumes are the same disk and cannot both be mounted."""
    return bool(
        (
            ours.gce_persistent_disk
            and theirs.gce_persistent_disk
            and _same_gce(ours.gce_persistent_disk, theirs.gce_persistent_disk)
        )
        or (ours.aws_elastic_block_store and ours.aws_elastic_block_store.volume_id == _aws(theirs))
        or (ours.iscsi and theirs.iscsi and _same_iscsi(ours.iscsi, theirs.iscsi))
        or (ours.rbd and theirs.rbd and _same_image(ours.rbd, theirs.rbd))
    )


def _aws(volume: Volume) -> str | None:
    return volume.aws_elastic_block_store.volume_id if volume.aws_elastic_block_store else None


def _same_gce(ours: GceDisk, theirs: GceDisk) -> bool:
    return ours.pd_name == theirs.pd_name and not (ours.read_only and theirs.read_only)


def _same_iscsi(ours: IscsiDisk, theirs: IscsiDisk) -> bool:
    return ours.iqn == theirs.iqn and not (ours.read_only and theirs.read_only)


def _same_image(ours: RbdDisk, theirs: RbdDisk) -> bool:
    shared = not set(ours.monitors or ()).isdisjoint(theirs.monitors or ())
    same = (ours.pool or "rbd") == (theirs.pool or "rbd") and ours.image == theirs.image
    return shared and same and not (ours.read_only and theirs.read_only)
