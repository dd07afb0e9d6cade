"""Volumes of which the input lacks the claim, volume or storage class: pods are placed without them.

Contract: pure. A dump without any claims (or volumes, or storage classes) does not mean that there are none, but that
nobody dumped them. A pod's volume that leads to a kind of which the input has nothing is dropped from the pod, which is
then placed by everything else it asks for; `app.missing_kinds` names the kind. A claim that is missing among other
claims is a fault of the cluster, and refuses the pod as in kube-scheduler.
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace

from tutti.kube.objects import Object, PersistentVolume, PersistentVolumeClaim, Pod, StorageClass, Volume
from tutti.kube.reading.snapshot import Snapshot


def drop_unknown_volumes(snapshot: Snapshot) -> Snapshot:
    """The snapshot with pods that have only the volumes about which it has objects."""
    known = KnownVolumes(snapshot)
    pods: list[Object] = [known.without_unknown(pod) for pod in snapshot.pods]
    return replace(snapshot, objects=snapshot.objects | {Pod.KIND: pods})


class KnownVolumes:
    """Claims of a snapshot, and which of the kinds behind a volume it lacks altogether."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._lacks = {
            kind: not snapshot.of(kind) and kind.KIND not in snapshot.present
            for kind in (PersistentVolumeClaim, PersistentVolume, StorageClass)
        }
        self._claims = {claim.key: claim for claim in snapshot.of(PersistentVolumeClaim)}
        self._all = not any(self._lacks.values())

    def without_unknown(self, pod: Pod) -> Pod:
        """The pod without the volumes that nothing is known about."""
        volumes = pod.spec.volumes
        if self._all or not volumes:
            return pod
        kept = [volume for volume in volumes if self._unknown(pod, volume) is None]
        return pod if len(kept) == len(volumes) else replace(pod, spec=replace(pod.spec, volumes=kept))

    def unknown(self, pod: Pod) -> Iterator[type[Object]]:
        """The kinds that are missing for a pod's volumes."""
        for volume in pod.spec.volumes or ():
            kind = self._unknown(pod, volume)
            if kind is not None:
                yield kind

    def _unknown(self, pod: Pod, volume: Volume) -> type[Object] | None:
        name = claim_name(pod, volume)
        if name is None:
            return None
        claim = self._claims.get(name)
        if claim is None:
            return PersistentVolumeClaim if self._lacks[PersistentVolumeClaim] else None
        if claim.spec.volume_name:
            return PersistentVolume if self._lacks[PersistentVolume] else None
        return StorageClass if claim.spec.storage_class_name and self._lacks[StorageClass] else None


def claim_name(pod: Pod, volume: Volume) -> str | None:
    """The key of the claim behind a pod's volume, if there is one."""
    namespace = pod.metadata.namespace or "default"
    if volume.persistent_volume_claim is not None:
        return f"{namespace}/{volume.persistent_volume_claim.claim_name}"
    if volume.ephemeral is not None:
        return f"{namespace}/{pod.metadata.name}-{volume.name}"
    return None
