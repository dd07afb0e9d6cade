"""Which update of an object is newer, and which changes nothing.

Contract: pure, except for `RemovedUids`, which remembers. An API server gives every object a uid, and every change of
the object a resourceVersion that is larger than all earlier ones of its kind. A watch may deliver an update twice,
late, or after the removal of its object; none of these may change a cluster. Objects without a uid or a version, as in
files, are always new.
"""

from __future__ import annotations

from msgspec.structs import replace

from tutti.kube.objects import Object, ObjectMeta, Pod

_MAX_REMOVED = 10_000
_TOPOLOGY = "topology.kubernetes.io/"


def version_of(metadata: ObjectMeta) -> int | None:
    """Return the resourceVersion as a number; None if the object has none that can be compared."""
    text = metadata.resource_version
    return int(text) if text is not None and text.isdecimal() else None


def is_older(new: ObjectMeta, version: int | None) -> bool:
    """Return whether an update is older than the version that is known already."""
    new_version = version_of(new)
    return version is not None and new_version is not None and new_version < version


def is_other_object(new: ObjectMeta, uid: str | None) -> bool:
    """Return whether an object is not the one with this uid, but another of the same name."""
    return uid is not None and new.uid is not None and new.uid != uid


def has_same_content(old: Object, new: Object) -> bool:
    """Return whether two versions of an object differ at most in their resourceVersion."""
    if old == new:
        return True
    if old.metadata.resource_version == new.metadata.resource_version:
        return False
    metadata = replace(new.metadata, resource_version=old.metadata.resource_version)
    return bool(replace(new, metadata=metadata) == old)


def is_status_update(old: Pod, new: Pod) -> bool:
    """Return whether an update of a pod changes nothing that the scheduler reads, such as most status updates."""
    old_meta, new_meta = old.metadata, new.metadata
    return (
        (old_meta.deletion_timestamp is None) == (new_meta.deletion_timestamp is None)
        and old_meta.labels == new_meta.labels
        and old_meta.annotations == new_meta.annotations
        and old.status.nominated_node_name == new.status.nominated_node_name
        and old.spec == new.spec
        and old_meta.owner_references == new_meta.owner_references
        and old_meta.creation_timestamp == new_meta.creation_timestamp
        and resized_amounts(old) == resized_amounts(new)
    )


def is_same_member(old: Pod, new: Pod) -> bool:
    """Return whether an update of a pod changes nothing that its gang reads.

    Labels that the API server adds when it binds a pod (zone and region of the node) do not count.
    """
    old_meta, new_meta = old.metadata, new.metadata
    return (
        (old_meta.deletion_timestamp is None) == (new_meta.deletion_timestamp is None)
        and old_meta.annotations == new_meta.annotations
        and (old_meta.labels == new_meta.labels or _own_labels(old_meta) == _own_labels(new_meta))
        and old_meta.owner_references == new_meta.owner_references
        and old_meta.creation_timestamp == new_meta.creation_timestamp
        and (old.spec == new.spec or replace(old.spec, node_name=new.spec.node_name) == new.spec)
    )


def _own_labels(metadata: ObjectMeta) -> dict[str, str]:
    return {key: value for key, value in (metadata.labels or {}).items() if not key.startswith(_TOPOLOGY)}


def resized_amounts(pod: Pod) -> object:
    """Return the resources that the status of a pod reports, which count beside those of its spec (in-place resize)."""
    status = pod.status
    if not (status.container_statuses or status.resources or status.allocated_resources):
        return None
    statuses = (*(status.container_statuses or ()), *(status.init_container_statuses or ()))
    containers = [each for each in statuses if each.allocated_resources is not None or each.resources is not None]
    if not (containers or status.resources or status.allocated_resources):
        return None
    pending = next((c.reason or "" for c in status.conditions or () if c.type == "PodResizePending"), "")
    return containers, status.allocated_resources, status.resources, pending


class RemovedUids:
    """The uids of objects that a watch has reported as removed: a late update must not bring them back.

    Only the latest removals are remembered, between `_MAX_REMOVED` and twice as many.
    """

    def __init__(self) -> None:
        self._latest: set[str] = set()
        self._earlier: set[str] = set()

    def add(self, uid: str) -> None:
        """Remember a removed object."""
        if len(self._latest) >= _MAX_REMOVED:
            self._latest, self._earlier = set(), self._latest
        self._latest.add(uid)

    def __contains__(self, uid: str | None) -> bool:
        return uid in self._latest or uid in self._earlier

    def copy(self) -> RemovedUids:
        """Copy the uids."""
        clone = RemovedUids()
        clone._latest, clone._earlier = set(self._latest), set(self._earlier)
        return clone
