"""Volumes whose claim, persistent volume or storage class the input does not have: pods are placed without them.

Contract: pure. If the input has no claims at all (or no volumes, or no storage classes), the kind was not dumped; the
cluster may still have such objects. A pod's volume that needs an object of such a kind is dropped, and the pod is
placed by the rest of its spec; `app.missing_kinds` tells the user the kind. If the input has other claims but not this
claim, the pod cannot be scheduled, as in kube-scheduler.
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace

from tutti.kube.objects import Object, PersistentVolume, PersistentVolumeClaim, Pod, StorageClass, Volume
from tutti.kube.reading.snapshot import Snapshot


def drop_unknown_volumes(snapshot: Snapshot) -> Snapshot:
    """Return the snapshot with pods without unknown volumes."""
    known = KnownVolumes(snapshot)
    pods: list[Object] = [known.without_unknown_volumes(pod) for pod in snapshot.pods]
    return replace(snapshot, objects=snapshot.objects | {Pod.KIND: pods})


class KnownVolumes:
    """The claims of a snapshot, and which of the three volume kinds the snapshot does not have at all."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._is_missing = {
            kind: not snapshot.objects_of(kind) and kind.KIND not in snapshot.present_kinds
            for kind in (PersistentVolumeClaim, PersistentVolume, StorageClass)
        }
        self._claims = {claim.key: claim for claim in snapshot.objects_of(PersistentVolumeClaim)}
        self._has_all_kinds = not any(self._is_missing.values())

    def without_unknown_volumes(self, pod: Pod) -> Pod:
        """Return the pod without the volumes that need an object of a missing kind."""
        volumes = pod.spec.volumes
        if self._has_all_kinds or not volumes:
            return pod
        kept = [volume for volume in volumes if self._missing_kind(pod, volume) is None]
        return pod if len(kept) == len(volumes) else replace(pod, spec=replace(pod.spec, volumes=kept))

    def missing_kinds(self, pod: Pod) -> Iterator[type[Object]]:
        """Yield the missing kinds that a pod's volumes need."""
        for volume in pod.spec.volumes or ():
            kind = self._missing_kind(pod, volume)
            if kind is not None:
                yield kind

    def _missing_kind(self, pod: Pod, volume: Volume) -> type[Object] | None:
        key = claim_key(pod, volume)
        if key is None:
            return None
        claim = self._claims.get(key)
        if claim is None:
            return PersistentVolumeClaim if self._is_missing[PersistentVolumeClaim] else None
        if claim.spec.volume_name:
            return PersistentVolume if self._is_missing[PersistentVolume] else None
        return StorageClass if claim.spec.storage_class_name and self._is_missing[StorageClass] else None


def claim_key(pod: Pod, volume: Volume) -> str | None:
    """Return the ``namespace/name`` of the claim of a pod's volume; None if the volume has no claim."""
    namespace = pod.metadata.namespace or "default"
    if volume.persistent_volume_claim is not None:
        return f"{namespace}/{volume.persistent_volume_claim.claim_name}"
    if volume.ephemeral is not None:
        return f"{namespace}/{pod.metadata.name}-{volume.name}"
    return None
