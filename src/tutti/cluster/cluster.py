"""The cluster: nodes, pods, volumes and related objects at one moment.

Contract:
- `apply(edit)` is the only way to change a cluster. Its cost depends on the change, not on the size of the cluster.
- `mark()` and `rollback(mark)` nest: a rollback undoes all edits since the mark by applying inverse edits.
- After any sequence of edits a cluster answers like a cluster built from scratch from the same objects.
- Registries (classes, selectors, numbered names) survive a rollback. Between sessions, `collect()` gives back what
  nobody refers to any more.
- `copy()` copies the state and shares the parsed objects.
- A cluster is not safe for concurrent use: one thread uses a cluster at a time.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from copy import copy
from typing import Any

from tutti.cluster.assignments import Assignments
from tutti.cluster.assumed_volumes import AssumedVolumes
from tutti.cluster.collection import Collection
from tutti.cluster.columns import ResourceNames, RowLog
from tutti.cluster.counters.label_classes import LabelRegistry
from tutti.cluster.counters.pod_counters import PodCounters
from tutti.cluster.edits import (
    AssumeVolume,
    Bind,
    Edit,
    Evict,
    Hold,
    Put,
    PutTemplate,
    Release,
    Remove,
    RestorePod,
    SetArrivalOrder,
    SetFinished,
    SetPortAddresses,
    SetStart,
    Switch,
    Unbind,
    Unevict,
)
from tutti.cluster.events import Event, node_change_events, object_change_event
from tutti.cluster.indexes.groups import GroupIndex
from tutti.cluster.indexes.holds import Holds
from tutti.cluster.indexes.occupancy import Occupancy
from tutti.cluster.indexes.services import ServiceIndex
from tutti.cluster.node_table import NodeTable
from tutti.cluster.object_versions import RemovedUids, has_same_content, is_older, is_other_object, version_of
from tutti.cluster.pod_table import PodTable, UsageTable
from tutti.cluster.pod_updates import PodUpdates
from tutti.cluster.spec_classes import SpecClass, SpecRegistry
from tutti.cluster.undo_log import Follower, UndoLog
from tutti.cluster.work.meter import COLLECTED, EDIT, OBJECT, Meter
from tutti.exceptions import ConflictError, InputError, NotFoundError
from tutti.kube.gangs.reader import GROUP_KINDS
from tutti.kube.objects import KINDS, Namespace, Node, Object, Pod, Service

_CONTROLLER_KINDS = frozenset(("ReplicaSet", "StatefulSet", "ReplicationController"))
_GROUP_KINDS = frozenset((*GROUP_KINDS, "PriorityClass"))
"""Kinds whose objects describe groups."""


class Cluster:
    """Nodes, pods and related objects at one moment; see the module's contract."""

    def __init__(self, objects: Iterable[Object] = (), *, meter: Meter | None = None) -> None:
        self.resources = ResourceNames()
        self.nodes = NodeTable(self.resources)
        self.pods = PodTable()
        self.usages = UsageTable(self.resources)
        self.specs = SpecRegistry()
        self.pod_counters = PodCounters(self.nodes, self.pods, self.specs, labels=LabelRegistry(self.namespace_labels))
        self.labels = self.pod_counters.labels
        self.occupancy = Occupancy()
        self.objects: dict[str, dict[str, Object]] = {kind: {} for kind in KINDS if kind not in ("Node", "Pod")}
        """All objects but nodes and pods, by kind and key; assumed volumes and claims are shown as they will be."""
        self.services = ServiceIndex()
        self.groups = GroupIndex()
        self.hold_index = Holds(self.nodes, self.pods, self.usages)
        self.holds, self.held_on = self.hold_index.by_owner, self.hold_index.by_node
        """All holds, by owner; and by node name, then owner."""
        self.touched = RowLog()
        """Node rows where a pod was added or removed, or where the node object changed."""
        self.workloads_version = 0
        """Changes when Services or controllers change."""
        self.events = [0] * len(Event)
        """How often each kind of event has happened."""
        self.caches: dict[Any, Any] = {}
        """Values of attached caches (`engine.plugins.attached_cache`); a copy of the cluster starts without values."""
        self.meter = meter or Meter()
        """Counts the work of this cluster; shared with copies."""
        self._undo = UndoLog()
        self.assignments = self._new_assignments()
        self.assumed_volumes = self._new_assumed_volumes()
        self.pod_updates = self._new_pod_updates()
        self._collection = self._new_collection()
        self.removed_uids = RemovedUids()
        self.set_aside: dict[tuple[str, str], str] = {}
        """Kind and key of objects that `observe` could not read, with the reason."""
        self.pods_on_row = self.assignments.pods_on_row
        """The pod rows on each node row."""
        self.pods_on_missing_nodes = self.assignments.pods_on_missing_nodes
        """Node name -> rows of pods bound to a node that is not in the cluster."""
        for obj in objects:
            self.meter.count += OBJECT
            self._put(obj)

    def copy(self) -> Cluster:
        """Return an independent cluster with the same state and no marks; objects and parsed specs are shared."""
        clone = copy(self)
        clone.resources = self.resources.copy()
        clone.nodes = self.nodes.copy(clone.resources)
        clone.pods, clone.usages, clone.specs = self.pods.copy(), self.usages.copy(clone.resources), self.specs.copy()
        clone.objects = {kind: dict(objects) for kind, objects in self.objects.items()}
        clone.labels = self.labels.copy(clone.namespace_labels)
        clone.pod_counters = self.pod_counters.copy(clone.nodes, clone.pods, clone.specs, labels=clone.labels)
        clone.occupancy = self.occupancy.copy()
        clone.services, clone.groups = self.services.copy(), self.groups.copy()
        clone.hold_index = self.hold_index.copy(clone.nodes, clone.pods, clone.usages)
        clone.holds, clone.held_on = clone.hold_index.by_owner, clone.hold_index.by_node
        clone.touched, clone.events = self.touched.copy(), list(self.events)
        clone.caches, clone._undo, clone.removed_uids = {}, UndoLog(), self.removed_uids.copy()
        clone.set_aside = dict(self.set_aside)
        clone.assignments = clone._new_assignments()
        clone.assignments.copy_from(self.assignments)
        clone.assumed_volumes = clone._new_assumed_volumes()
        clone.assumed_volumes.copy_from(self.assumed_volumes)
        clone.pod_updates = clone._new_pod_updates()
        clone.pod_updates.copy_from(self.pod_updates)
        clone._collection = clone._new_collection()
        clone.pods_on_row = clone.assignments.pods_on_row
        clone.pods_on_missing_nodes = clone.assignments.pods_on_missing_nodes
        return clone

    def _new_assignments(self) -> Assignments:
        return Assignments(
            self.nodes,
            self.pods,
            usages=self.usages,
            specs=self.specs,
            pod_counters=self.pod_counters,
            occupancy=self.occupancy,
            touched=self.touched,
            events=self.events,
            undo=self._undo,
        )

    def _new_assumed_volumes(self) -> AssumedVolumes:
        return AssumedVolumes(self.objects, self.pods, events=self.events, undo=self._undo)

    def _new_pod_updates(self) -> PodUpdates:
        return PodUpdates(
            self.pods,
            self.assignments,
            specs=self.specs,
            usages=self.usages,
            labels=self.labels,
            groups=self.groups,
            holds=self.hold_index,
            volumes=self.assumed_volumes,
            events=self.events,
            undo=self._undo,
        )

    def _new_collection(self) -> Collection:
        return Collection(
            self.nodes,
            self.pods,
            specs=self.specs,
            pod_counters=self.pod_counters,
            pod_updates=self.pod_updates,
            groups=self.groups,
            services=self.objects["Service"],
        )

    def edits(self) -> Iterator[Edit]:
        """Yield edits that build the same state in an empty cluster."""
        for objects in self.objects.values():
            yield from map(Put, map(self.assumed_volumes.reported, objects.values()))
        for name in sorted(self.nodes.row_of):
            row = self.nodes.row_of[name]
            node = self.nodes.objects[row]
            if node is not None:
                yield Put(node) if self.nodes.on[row] else PutTemplate(node)
        # In arrival order, which preemption uses to choose between equally important pods.
        for row in sorted(self.pods.row_of.values(), key=lambda row: (int(self.pods.order[row]), self.pods.keys[row])):
            pod = self.pods.objects[row]
            if pod is not None:
                yield Put(self.pod_updates.evicted.get(pod.key, pod))
                yield from self.pod_updates.edits_since_put(row, pod)
        for key, finished in self.pod_updates.finished.items():
            yield SetFinished(key, finished)
        yield from (hold for hold in self.holds.values() if hold.amounts)
        yield from self.assumed_volumes.edits()

    # Edits ------------------------------------------------------------------------------------------------------------

    def apply(self, edit: Edit) -> None:
        """Apply one edit."""
        self._undo.begin_edit()
        self.meter.count += EDIT
        match edit:
            case Bind():
                self.pod_updates.bind(edit)
            case Put():
                self._put(edit.obj)
            case Remove():
                self._remove(edit)
            case Unbind():
                self.pod_updates.unbind(edit.pod, edit.uid, keep_volumes=edit.keep_volumes)
            case Evict():
                self.pod_updates.evict(edit)
            case Unevict():
                self.pod_updates.unevict(edit)
            case Hold():
                self.pod_updates.hold(edit)
            case Release():
                self.pod_updates.release(edit.owner, announce=edit.announce)
            case AssumeVolume():
                self.assumed_volumes.assume(edit)
            case RestorePod():
                self.pod_updates.restore(edit)
            case SetFinished():
                self.pod_updates.set_finished(edit.pod, edit.finished)
            case Switch():
                self._switch(edit)
            case PutTemplate():
                self._put_node(edit.obj, on=False)
            case SetPortAddresses():
                self.occupancy.restore(edit)
            case SetStart():
                self.pod_updates.set_start(edit)
            case SetArrivalOrder():
                self.pods.order[self.pod_row(edit.pod)] = edit.order
            case _:
                raise TypeError(f"{edit!r} is not an edit")

    def observe(self, edit: Put | Remove) -> None:
        """Apply an edit that a watch reports; an object that cannot be read is set aside with the reason.

        The cluster keeps the last version of the object that it could read, until a readable version or its removal. An
        object of the same name with another uid is gone, whether the new one can be read or not.
        """
        try:
            self.apply(edit)
        except InputError as error:
            name = _object_name(edit)
            self.set_aside[name] = str(error)
            known_uid = self._uid_of(*name)
            if isinstance(edit, Put) and is_other_object(edit.obj.metadata, known_uid):
                self.apply(Remove(*name, known_uid))
        else:
            if self.set_aside:
                self.set_aside.pop(_object_name(edit), None)

    @property
    def room_version(self) -> tuple[int, int, int]:
        """Numbers that change with every change of the nodes, of the pods on them, or of the holds.

        The first and the last are the lengths of the logs of touched rows and of rows where a hold was removed.
        """
        return self.touched.length, self.hold_index.version, self.hold_index.touched.length

    def attach(self, follower: Follower) -> None:
        """Mark, roll back and commit a follower together with this cluster."""
        self._undo.attach(follower)

    def mark(self) -> int:
        """Return a mark for the current state; the caller must roll back or commit every mark."""
        return self._undo.mark(self.events)

    def rollback(self, mark: int) -> None:
        """Undo all edits since the mark."""
        self.events[:] = self._undo.rollback(mark, self.apply)

    def commit(self, mark: int) -> None:
        """Keep the edits since the mark; an outer mark can still undo them."""
        self._undo.commit(mark)

    def collect(self) -> int:
        """Give back what no pod, node or object refers to any more (`collection`); return how many entries.

        Call it between sessions, as often as you like: it costs little until there is enough to give back.
        """
        if self._undo.marks:
            raise ConflictError("a cluster with an open mark cannot be collected: roll back or commit the mark first")
        dropped = self._collection.run()
        self.meter.count += COLLECTED * dropped
        return dropped

    # Objects ----------------------------------------------------------------------------------------------------------

    def _put(self, obj: Object) -> None:
        if obj.metadata.uid is not None and obj.metadata.uid in self.removed_uids and not self._undo.is_undoing:
            return
        if isinstance(obj, Pod):
            self.pod_updates.put(obj)
        elif isinstance(obj, Node):
            self._put_node(obj, on=None)
        else:
            self._put_other(obj)

    def _put_other(self, obj: Object) -> None:
        objects = self.objects[obj.KIND]
        old = objects.get(obj.key)
        if self._is_outdated(old, obj):
            return
        if old is not None:
            self._log_object(old)
        else:
            self._undo.add(Remove(obj.KIND, obj.key))
        if self.assumed_volumes.by_pod:
            obj = self.assumed_volumes.update(obj)
        objects[obj.key] = obj
        if old is None or not has_same_content(old, obj):
            self._object_changed(obj, exists=True)

    def _log_object(self, old: Object) -> None:
        """Log the inverse edits of a change of an object other than a node or a pod."""
        if self.assumed_volumes.by_pod:
            self._undo.add_all(self.assumed_volumes.inverse_edits(old))
        else:
            self._undo.add(Put(old))

    def _is_outdated(self, old: Object | None, obj: Object) -> bool:
        """Return whether an update is older than the known object; an undo restores older objects on purpose."""
        return old is not None and not self._undo.is_undoing and is_older(obj.metadata, version_of(old.metadata))

    def _remove(self, edit: Remove) -> None:
        kind, key, uid = edit.kind, edit.key, edit.uid
        if uid is not None:
            if not self._undo.marks:  # a rollback must not leave a trace
                self.removed_uids.add(uid)
            known_uid = self._uid_of(kind, key)
            if known_uid is not None and known_uid != uid:
                return
        if kind == "Pod":
            self.pod_updates.remove(key)
        elif kind == "Node":
            self._remove_node(key)
        else:
            old = self.objects[kind].pop(key, None)
            if old is not None:
                self._log_object(old)
                self.assumed_volumes.drop((kind, key))
                self._object_changed(old, exists=False)

    def _uid_of(self, kind: str, key: str) -> str | None:
        """Return the uid of an object in the cluster, if it has one."""
        known: Object | None
        if kind == "Pod":
            row = self.pods.row_of.get(key)
            known = self.pods.objects[row] if row is not None else None
            if known is None:
                finished = self.pod_updates.finished.get(key)
                return finished.uid if finished is not None else None
        elif kind == "Node":
            row = self.nodes.row_of.get(key)
            known = self.nodes.objects[row] if row is not None else None
        else:
            known = self.objects[kind].get(key)
        return known.metadata.uid if known is not None else None

    def _object_changed(self, obj: Object, *, exists: bool) -> None:
        self.events[object_change_event(kind := obj.KIND)] += 1
        if kind in _GROUP_KINDS:
            self.groups.object_changed(kind, obj.key)
        if isinstance(obj, Service):
            # Default spreading uses the Services of a pod: label classes must differ where a Service selector differs.
            self.workloads_version += 1
            if exists:
                self.services.put(obj)
                self.pod_counters.watch(obj.spec.selector or ())
            else:
                self.services.remove(obj)
        elif kind in _CONTROLLER_KINDS:
            self.workloads_version += 1
        elif isinstance(obj, Namespace):
            self.labels.namespaces_changed(self.pod_counters.fill)

    def namespace_labels(self, name: str) -> Mapping[str, str] | None:
        """Return the labels of a namespace; None if the namespace does not exist."""
        namespace = self.objects["Namespace"].get(name)
        return None if namespace is None else namespace.metadata.labels or {}

    # Nodes ------------------------------------------------------------------------------------------------------------

    def _put_node(self, obj: Object, *, on: bool | None) -> None:
        if not isinstance(obj, Node):
            raise ConflictError(f"a template is a Node, not a {obj.KIND}")
        name = obj.metadata.name
        row = self.nodes.row_of.get(name)
        if row is not None:
            old = self.nodes.objects[row]
            if on is False and self.nodes.on[row]:
                raise ConflictError(f"node {name} already exists and cannot become a template")
            if old is None or self._is_outdated(old, obj):
                return
            changes = node_change_events(old, obj)
            if not changes and old.status.images == obj.status.images:
                self.nodes.objects[row] = obj  # a heartbeat: nothing that a plugin reads has changed
                self._undo.add(Put(old))
                return
            self.touched.add(self.nodes.put(obj))
            self._undo.add(Put(old))
            for change in changes:
                self.events[change] += 1
            self.fit_resources()
            return
        row = self.nodes.put(obj, on=on is not False)
        self._undo.add(Remove("Node", name))
        self.events[Event.NODE_ADDED] += on is not False
        self.touched.add(row)
        self.fit_resources()
        if self.nodes.size > len(self.pods_on_row):
            self.labels.grow(self.nodes.size)
        self.assignments.node_added(name, row)
        self.hold_index.node_changed(name)

    def _remove_node(self, name: str) -> None:
        row = self.nodes.row_of.get(name)
        if row is None:
            return
        node = self.nodes.objects[row]
        if node is not None:
            if not self.nodes.on[row]:
                self._undo.add(Switch(name, on=False))
            self._undo.add(Put(node))
        self.assignments.node_removed(name, row)
        self.touched.add(self.nodes.remove(name))
        self.hold_index.node_changed(name)
        self.events[Event.NODE_REMOVED] += 1

    def _switch(self, edit: Switch) -> None:
        row = self.node_row(edit.node)
        if bool(self.nodes.on[row]) != edit.on:
            self._undo.add(Switch(edit.node, on=not edit.on))
            self.nodes.switch(row, on=edit.on)
            self.touched.add(row)
            self.events[Event.NODE_ADDED if edit.on else Event.NODE_REMOVED] += 1

    def node_row(self, name: str) -> int:
        """Return the row of a node; raise `NotFoundError` for an unknown name."""
        row = self.nodes.row_of.get(name)
        if row is None:
            raise NotFoundError(f"node {name!r} is not in the cluster")
        return row

    # Lookups ----------------------------------------------------------------------------------------------------------

    def pod_row(self, key: str) -> int:
        """Return the row of a pod; raise `NotFoundError` for an unknown key."""
        return self.pod_updates.row(key)

    def pod(self, key: str) -> Pod:
        """Return a pod's object, as it was put."""
        pod = self.pods.objects[self.pod_row(key)]
        assert pod is not None
        return pod

    def fit_resources(self) -> None:
        """Grow all columns to the number of known resources."""
        self.assignments.fit_resources()

    def spec_of(self, pod: int) -> SpecClass:
        """Return the spec class of the pod in a row."""
        spec: SpecClass = self.specs.classes[self.pods.spec.item(pod)]
        return spec


def _object_name(edit: Put | Remove) -> tuple[str, str]:
    """Return the kind and the key of an edit's object."""
    return (edit.obj.KIND, edit.obj.key) if isinstance(edit, Put) else (edit.kind, edit.key)
