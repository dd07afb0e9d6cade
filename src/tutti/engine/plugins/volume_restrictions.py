"""VolumeRestrictions: disks that only one pod may mount, and claims that only one pod may use."""

from __future__ import annotations

import numpy as np

from tutti.cluster.events import Event
from tutti.cluster.spec_classes import SpecClass
from tutti.engine.plugins import volumes
from tutti.engine.plugins.base import ClusterPlugin, IncomingPod, PreparedPlugin, Selection
from tutti.engine.plugins.verdict import Reason, Refusal, Variants
from tutti.kube.objects import GceDisk, IscsiDisk, Pod, RbdDisk, Volume


class VolumeRestrictions(ClusterPlugin):
    """See the module."""

    name = "VolumeRestrictions"
    cures = frozenset((Event.NODE_ADDED, Event.POD_GONE, Event.VOLUMES))
    refusals = (
        Refusal("node(s) had no available disk", resolvable=True),
        Refusal(
            "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already in-use by "
            "another pod",
            resolvable=True,
        ),
    )

    def concerns(self, incoming: IncomingPod) -> bool:
        """Only pods with volumes."""
        return bool(incoming.spec.volumes)

    def prepare(self, incoming: IncomingPod) -> PreparedPlugin | Reason | None:
        """Find the pod's disks and single-use claims; a claim that does not exist ends the attempt."""
        cluster, namespace = incoming.cluster, incoming.spec.namespace
        single: set[str] = set()
        for volume in incoming.spec.volumes:
            if volume.persistent_volume_claim is None:
                continue
            name = volume.persistent_volume_claim.claim_name
            wish = volumes.claim(cluster, namespace, name)
            if wish is None:
                return Reason(self.name, (f'persistentvolumeclaim "{name}" not found',), resolvable=False)
            if "ReadWriteOncePod" in (wish.spec.access_modes or ()):
                single.add(name)
        disks = [v for v in incoming.spec.volumes if _is_disk(v)]
        users = sum(f"{namespace}/{name}" in cluster.occupancy.claim_users for name in single)
        return _Restricted(incoming, disks, single, users) if disks or users else None


def _is_disk(volume: Volume) -> bool:
    return any((volume.gce_persistent_disk, volume.aws_elastic_block_store, volume.iscsi, volume.rbd))


class _Restricted(PreparedPlugin):
    """The disks and single-use claims of one pod."""

    def __init__(self, incoming: IncomingPod, disks: list[Volume], single: set[str], users: int) -> None:
        self._incoming, self._disks, self._single, self._users = incoming, disks, single, users

    def filter(self, rows: Selection) -> Variants:
        """Refuse nodes where a disk is mounted (1), and all nodes while a single-use claim is in use (2)."""
        cluster = self._incoming.cluster
        answers = np.full(len(cluster.nodes.on[rows]), 2 if self._users > 0 else 0, dtype=np.uint8)
        if self._disks:
            taken = np.zeros(cluster.nodes.size, dtype=bool)
            for row, pods in cluster.occupancy.volume_pods.items():
                taken[row] = any(
                    _conflict(mine, theirs)
                    for pod in pods
                    for theirs in cluster.spec_of(pod).volumes
                    for mine in self._disks
                )
            answers[taken[rows]] = 1
        return answers

    def fork(self) -> _Restricted:
        """Copy the count."""
        return _Restricted(self._incoming, self._disks, self._single, self._users)

    def moved(self, pod: Pod, spec: SpecClass, row: int, number: int) -> None:
        """Count the uses of a claim of that name; kube-scheduler does not look at the namespace here."""
        for volume in spec.volumes:
            if volume.persistent_volume_claim and volume.persistent_volume_claim.claim_name in self._single:
                self._users += number


def _conflict(mine: Volume, theirs: Volume) -> bool:
    """Say whether two volumes are one disk that both cannot mount."""
    return bool(
        (
            mine.gce_persistent_disk
            and theirs.gce_persistent_disk
            and _same_gce(mine.gce_persistent_disk, theirs.gce_persistent_disk)
        )
        or (mine.aws_elastic_block_store and mine.aws_elastic_block_store.volume_id == _aws(theirs))
        or (mine.iscsi and theirs.iscsi and _same_iscsi(mine.iscsi, theirs.iscsi))
        or (mine.rbd and theirs.rbd and _same_image(mine.rbd, theirs.rbd))
    )


def _aws(volume: Volume) -> str | None:
    return volume.aws_elastic_block_store.volume_id if volume.aws_elastic_block_store else None


def _same_gce(mine: GceDisk, theirs: GceDisk) -> bool:
    return mine.pd_name == theirs.pd_name and not (mine.read_only and theirs.read_only)


def _same_iscsi(mine: IscsiDisk, theirs: IscsiDisk) -> bool:
    return mine.iqn == theirs.iqn and not (mine.read_only and theirs.read_only)


def _same_image(mine: RbdDisk, theirs: RbdDisk) -> bool:
    shared = not set(mine.monitors or ()).isdisjoint(theirs.monitors or ())
    same = (mine.pool or "rbd") == (theirs.pool or "rbd") and mine.image == theirs.image
    return shared and same and not (mine.read_only and theirs.read_only)
