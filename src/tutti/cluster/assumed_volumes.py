"""Assumed volumes: PersistentVolumes and claims, shown as the bindings of our pods will change them.

A pod that gets a node takes its volumes: an available volume gets a reference to the claim (`bound_to_claim`), and a
claim to provision gets the node (`with_selected_node`). `AssumeVolume` shows this change before a watch reports it.

Contract:
- `Cluster.objects` has the assumed object; this module has the last reported one, and the pods that it is assumed for.
- When a pod leaves its node, its assumptions end, and the last reported object is shown again; only what-ifs let a
  pending pod keep its volumes (`Unbind`). Pods that share a claim share its assumption, which ends with the last pod.
- A reported update that binds the object like the last report keeps the assumption: the change is made on top of it.
  Any other report (our own change, another one, another uid, a removal) is the truth and ends the assumption.
Only the cluster's edits call this module.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from msgspec.structs import replace

from tutti.cluster.edits import AssumeVolume, Edit, Put
from tutti.cluster.events import Event
from tutti.cluster.object_versions import is_other_object
from tutti.cluster.pod_table import PodTable
from tutti.cluster.undo_log import UndoLog
from tutti.exceptions import ConflictError, NotFoundError
from tutti.kube.objects import Object, ObjectReference, PersistentVolume, PersistentVolumeClaim

SELECTED_NODE = "volume.kubernetes.io/selected-node"
BOUND_BY_CONTROLLER = "pv.kubernetes.io/bound-by-controller"

ObjectName = tuple[str, str]
"""The kind and the key of an object."""


def bound_to_claim(volume: PersistentVolume, reference: ObjectReference) -> PersistentVolume:
    """Return a volume with a reference to a claim."""
    meta = volume.metadata
    if volume.spec.claim_ref is None:  # a volume that a user has reserved is not bound by a controller
        meta = replace(meta, annotations={**(meta.annotations or {}), BOUND_BY_CONTROLLER: "yes"})
    return replace(volume, metadata=meta, spec=replace(volume.spec, claim_ref=reference))


def with_selected_node(claim: PersistentVolumeClaim, node: str) -> PersistentVolumeClaim:
    """Return a claim whose volume is to be provisioned for a node."""
    annotations = {**(claim.metadata.annotations or {}), SELECTED_NODE: node}
    return replace(claim, metadata=replace(claim.metadata, annotations=annotations))


class _Assumption(NamedTuple):
    reported: Object
    """The object as it was last reported."""
    pods: tuple[str, ...]
    """The pods that the object is assumed for."""


class AssumedVolumes:
    """See the module's docstring."""

    def __init__(
        self, objects: dict[str, dict[str, Object]], pods: PodTable, *, events: list[int], undo: UndoLog
    ) -> None:
        self._objects, self._pods, self._events, self._undo = objects, pods, events, undo
        self._by_object: dict[ObjectName, _Assumption] = {}
        self.by_pod: dict[str, list[ObjectName]] = {}
        """The assumed objects of each pod that has some; empty if nothing is assumed."""

    def copy_from(self, other: AssumedVolumes) -> None:
        """Take over the assumptions of the cluster from which this cluster is copied."""
        self._by_object = dict(other._by_object)
        self.by_pod = {pod: list(names) for pod, names in other.by_pod.items()}

    def reported(self, shown: Object) -> Object:
        """Return the last reported version of an object of the cluster."""
        known = self._by_object.get((shown.KIND, shown.key)) if self._by_object else None
        return known.reported if known is not None else shown

    def edits(self) -> Iterator[Edit]:
        """Yield the edits that make the same assumptions about the reported objects."""
        for (kind, key), known in self._by_object.items():
            yield from (AssumeVolume(self._objects[kind][key], pod) for pod in known.pods)

    def inverse_edits(self, shown: Object) -> Iterator[Edit]:
        """Yield the edits that restore an object and its assumption, the last one first, as the undo log wants them."""
        known = self._by_object.get((shown.KIND, shown.key))
        if known is not None:
            yield from (AssumeVolume(shown, pod) for pod in reversed(known.pods))
        yield Put(self.reported(shown))

    # Changes ----------------------------------------------------------------------------------------------------------

    def assume(self, edit: AssumeVolume) -> None:
        """Show an object as the binding of a pod will change it; an object that is changed already stays as it is."""
        kind, key, pod = edit.obj.KIND, edit.obj.key, edit.pod
        shown = self._objects.get(kind, {}).get(key)
        if shown is None or pod not in self._pods.row_of:
            raise NotFoundError(f"{kind} {key!r} cannot be assumed for pod {pod!r}: one of them is not in the cluster")
        known = self._by_object.get((kind, key)) or _Assumption(shown, ())
        assumed = _with_change_of(edit.obj, known.reported)
        if known.pods and assumed != shown:
            raise ConflictError(f"{kind} {key} is already assumed otherwise for pod {known.pods[0]}")
        if assumed == known.reported or pod in known.pods:
            return
        self._undo.add_all(self.inverse_edits(shown))
        self._by_object[kind, key] = known._replace(pods=(*known.pods, pod))
        self.by_pod.setdefault(pod, []).append((kind, key))
        if not known.pods:
            self._objects[kind][key] = assumed
            self._events[Event.VOLUMES] += 1

    def update(self, new: Object) -> Object:
        """Take over a newly reported object; return how it is shown. An undo restores the object without assumption."""
        name = (new.KIND, new.key)
        known = self._by_object.get(name)
        if known is None:
            return new
        old = known.reported
        if (
            self._undo.is_undoing
            or is_other_object(new.metadata, old.metadata.uid)
            or _binding_of(new) != _binding_of(old)
        ):
            self.drop(name)
            return new
        self._by_object[name] = known._replace(reported=new)
        return _with_change_of(self._objects[new.KIND][new.key], new)

    def drop(self, name: ObjectName) -> None:
        """End the assumption about an object that the caller replaces or removes."""
        known = self._by_object.pop(name, None)
        for pod in known.pods if known is not None else ():
            self.by_pod[pod].remove(name)
            if not self.by_pod[pod]:
                del self.by_pod[pod]

    def end(self, pod: str) -> None:
        """End the assumptions for a pod that leaves its node, and show the reported objects again.

        Call this before the pod leaves: an undo assumes the volumes after it has restored the pod. An undo itself has
        an edit for each assumption that it ends.
        """
        if self._undo.is_undoing:
            return
        for kind, key in self.by_pod.pop(pod, ()):
            known = self._by_object[kind, key]
            self._undo.add_all(self.inverse_edits(self._objects[kind][key]))
            if len(known.pods) > 1:
                self._by_object[kind, key] = known._replace(pods=tuple(each for each in known.pods if each != pod))
                continue
            del self._by_object[kind, key]
            self._objects[kind][key] = known.reported
            self._events[Event.VOLUMES] += 1


def _binding_of(obj: Object) -> object:
    """Return what says whether, and to what, a volume or a claim is bound."""
    if isinstance(obj, PersistentVolume):
        return obj.spec.claim_ref
    assert isinstance(obj, PersistentVolumeClaim)
    return obj.spec.volume_name, (obj.metadata.annotations or {}).get(SELECTED_NODE)


def _with_change_of(assumed: Object, reported: Object) -> Object:
    """Return a reported object with the change that the assumed object has."""
    if isinstance(assumed, PersistentVolume) and isinstance(reported, PersistentVolume):
        if assumed.spec.claim_ref is not None:
            return bound_to_claim(reported, assumed.spec.claim_ref)
    elif isinstance(assumed, PersistentVolumeClaim) and isinstance(reported, PersistentVolumeClaim):
        node = (assumed.metadata.annotations or {}).get(SELECTED_NODE)
        if node is not None:
            return with_selected_node(reported, node)
    raise ConflictError(f"{assumed.KIND} {assumed.key} has nothing to assume: no claimRef, and no selected node")
