"""The cluster: nodes, pods, volumes and related objects at one moment.

Contract:
- `apply(edit)` is the only way to change a cluster. Its cost depends on the change, not on the size of the cluster.
- `mark()` and `rollback(mark)` nest: a rollback undoes all edits since the mark by applying inverse edits.
- After any sequence of edits a cluster answers like a cluster built from scratch from the same objects.
- Registries (classes, selectors, numbered names) only grow and survive a rollback.
- `copy()` copies the state and shares the parsed objects.
- A cluster is not safe for concurrent use: one thread uses a cluster at a time.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from copy import copy
from typing import Any

from tutti.cluster.assignments import Assignments
from tutti.cluster.columns import ResourceNames, RowLog
from tutti.cluster.counters.label_classes import LabelRegistry
from tutti.cluster.counters.pod_counters import PodCounters
from tutti.cluster.edits import (
    Bind,
    Edit,
    Hold,
    Put,
    PutTemplate,
    Release,
    Remove,
    SetArrivalOrder,
    SetPortAddresses,
    Switch,
    Unbind,
)
from tutti.cluster.events import Event, is_irrelevant_update, node_change_events, object_change_event
from tutti.cluster.indexes.groups import NO_GROUP, GroupIndex
from tutti.cluster.indexes.holds import Holds
from tutti.cluster.indexes.occupancy import Occupancy
from tutti.cluster.indexes.services import ServiceIndex
from tutti.cluster.node_table import NodeTable
from tutti.cluster.pod_table import NOT_STARTED, PodTable, UsageTable
from tutti.cluster.spec_classes import SpecClass, SpecRegistry
from tutti.cluster.undo_log import Follower, UndoLog
from tutti.cluster.work.meter import EDIT, OBJECT, Meter
from tutti.exceptions import ConflictError, NotFoundError
from tutti.kube.gangs.reader import GROUP_KINDS
from tutti.kube.objects import KINDS, Namespace, Node, Object, Pod, Service
from tutti.kube.resources import placed_requests
from tutti.kube.times import micros

_CONTROLLER_KINDS = frozenset(("ReplicaSet", "StatefulSet", "ReplicationController"))
_SINGLE_GROUP_KINDS = frozenset(kind for kind in GROUP_KINDS if kind.startswith("PodGroup"))
"""Kinds whose object describes the group of the same name."""
_SHARED_GROUP_KINDS = frozenset((*GROUP_KINDS, "PriorityClass")) - _SINGLE_GROUP_KINDS


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
        self.services = ServiceIndex()
        self.groups = GroupIndex()
        self.hold_index = Holds()
        self.holds, self.held_on = self.hold_index.by_pod, self.hold_index.by_node
        """All holds, by pod key; and by node name, then pod key."""
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
        self._spec_usage: dict[int, int] = {}
        self._undo = UndoLog()
        self.assignments = self._new_assignments()
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
        clone.pods, clone.usages = self.pods.copy(), self.usages.copy(clone.resources)
        clone.objects = {kind: dict(objects) for kind, objects in self.objects.items()}
        clone.labels = self.labels.copy(clone.namespace_labels)
        clone.pod_counters = self.pod_counters.copy(clone.nodes, clone.pods, labels=clone.labels)
        clone.occupancy = self.occupancy.copy()
        clone.services, clone.groups = self.services.copy(), self.groups.copy()
        clone.hold_index = self.hold_index.copy()
        clone.holds, clone.held_on = clone.hold_index.by_pod, clone.hold_index.by_node
        clone.touched, clone.events = self.touched.copy(), list(self.events)
        clone.caches, clone._undo, clone._spec_usage = {}, UndoLog(), dict(self._spec_usage)
        clone.assignments = clone._new_assignments()
        clone.assignments.copy_from(self.assignments)
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

    def edits(self) -> Iterator[Edit]:
        """Yield edits that build the same state in an empty cluster."""
        for objects in self.objects.values():
            yield from map(Put, objects.values())
        for name in sorted(self.nodes.row_of):
            row = self.nodes.row_of[name]
            node = self.nodes.objects[row]
            if node is not None:
                yield Put(node) if self.nodes.on[row] else PutTemplate(node)
        # In arrival order, which preemption uses to choose between equally important pods.
        for row in sorted(self.pods.row_of.values(), key=lambda row: (int(self.pods.order[row]), self.pods.keys[row])):
            pod = self.pods.objects[row]
            if pod is not None:
                yield Put(pod)
                yield from self._edits_since_put(row, pod)

    # Edits ------------------------------------------------------------------------------------------------------------

    def apply(self, edit: Edit) -> None:
        """Apply one edit."""
        self._undo.begin_edit()
        self.meter.count += EDIT
        match edit:
            case Bind():
                self._bind(edit)
            case Put():
                self._put(edit.obj)
            case Remove():
                self._remove(edit.kind, edit.key)
            case Unbind():
                self._unbind(edit.pod)
            case Hold():
                self._hold(edit)
            case Release():
                self._release(edit.pod, announce=edit.announce)
            case Switch():
                self._switch(edit)
            case PutTemplate():
                self._put_node(edit.obj, on=False)
            case SetPortAddresses():
                self.occupancy.restore(edit)
            case SetArrivalOrder():
                self.pods.order[self.pod_row(edit.pod)] = edit.order
            case _:
                raise TypeError(f"{edit!r} is not an edit")

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

    # Objects ----------------------------------------------------------------------------------------------------------

    def _put(self, obj: Object) -> None:
        if isinstance(obj, Pod):
            self._put_pod(obj)
        elif isinstance(obj, Node):
            self._put_node(obj, on=None)
        else:
            kind = obj.KIND
            old = self.objects[kind].get(obj.key)
            self._undo.add(Put(old) if old is not None else Remove(kind, obj.key))
            self.objects[kind][obj.key] = obj
            self._object_changed(obj, exists=True)

    def _remove(self, kind: str, key: str) -> None:
        if kind == "Pod":
            self._remove_pod(key)
        elif kind == "Node":
            self._remove_node(key)
        else:
            old = self.objects[kind].pop(key, None)
            if old is not None:
                self._undo.add(Put(old))
                self._object_changed(old, exists=False)

    def _object_changed(self, obj: Object, *, exists: bool) -> None:
        self.events[object_change_event(kind := obj.KIND)] += 1
        if kind in _SINGLE_GROUP_KINDS:
            self.groups.object_changed(obj.key)
        elif kind in _SHARED_GROUP_KINDS:
            self.groups.objects_version += 1
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
            if old is not None:
                self._undo.add(Put(old))
                for change in node_change_events(old, obj):
                    self.events[change] += 1
            self.touched.add(self.nodes.put(obj))
            self.fit_resources()
            return
        self._undo.add(Remove("Node", name))
        row = self.nodes.put(obj, on=on is not False)
        self.events[Event.NODE_ADDED] += on is not False
        self.touched.add(row)
        self.fit_resources()
        self.labels.grow(self.nodes.size)
        self.assignments.node_added(name, row)

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

    # Pods -------------------------------------------------------------------------------------------------------------

    def _put_pod(self, pod: Pod) -> None:
        key = pod.key
        row = self.pods.row_of.get(key)
        if pod.status.phase in ("Succeeded", "Failed"):
            # kube-scheduler ignores finished pods.
            self._remove_pod(key)
            return
        if row is None:
            self._undo.add(Remove("Pod", key))
            row = self.pods.take_row(key)
        else:
            self._undo_pod(row)
            old = self.pods.objects[row]
            if (
                old is not None
                and self.pods.node_names[row] == (pod.spec.node_name or None)
                and is_irrelevant_update(old, pod)
            ):
                self.pods.objects[row], self.pods.start[row] = pod, _start_time(pod)
                return
            self._unassign_node(row)
        self._write_pod(row, pod)
        node = pod.spec.node_name
        if node:
            self.assignments.assign(row, node)
        elif pod.status.nominated_node_name:
            self._hold(Hold(key, pod.status.nominated_node_name), undo=False)

    def _remove_pod(self, key: str) -> None:
        row = self.pods.row_of.get(key)
        if row is None:
            return
        self._undo_pod(row)
        self._unassign_node(row)
        if self.pods.group[row] != NO_GROUP:
            self.groups.drop(row, int(self.pods.group[row]))
        self.pods.drop_row(row)

    def _undo_pod(self, row: int) -> None:
        """Log edits that restore a pod: its object, its node and its hold."""
        old = self.pods.objects[row]
        if self._undo.marks and old is not None:
            self._undo.add_all(reversed((Put(old), *self._edits_since_put(row, old))))

    def _edits_since_put(self, row: int, pod: Pod) -> list[Edit]:
        """Return the edits that changed a pod's node or hold since its object was put."""
        key, node, hold = self.pods.keys[row], self.pods.node_names[row], self.holds.get(self.pods.keys[row])
        start = int(self.pods.start[row])
        edits: list[Edit] = []
        if node != (pod.spec.node_name or None) or start != _start_time(pod):
            if pod.spec.node_name:
                edits.append(Unbind(key))
            if node:
                edits.append(Bind(key, node, None if start == NOT_STARTED else start))
        if not node and hold != self._nominated_hold(pod):
            edits.append(hold if hold is not None else Release(key))
        return edits

    @staticmethod
    def _nominated_hold(pod: Pod) -> Hold | None:
        """Return the hold that `status.nominatedNodeName` of a pending pod asks for."""
        nominated = pod.status.nominated_node_name
        return Hold(pod.key, nominated) if nominated and not pod.spec.node_name else None

    def _write_pod(self, row: int, pod: Pod) -> None:
        pods, meta = self.pods, pod.metadata
        spec = self.specs.class_of(pod)
        usage = self._spec_usage.get(spec.number)
        if usage is None:
            usage = self._spec_usage[spec.number] = self.usages.number(placed_requests(spec.pod))
            self.fit_resources()
        pods.objects[row] = pod
        pods.spec[row], pods.usage[row] = spec.number, usage
        pods.priority[row] = pod.spec.priority or 0
        pods.start[row] = _start_time(pod)
        terminating = meta.deletion_timestamp is not None
        if terminating and not pods.terminating[row]:
            self.events[Event.POD_REMOVED] += 1
        pods.terminating[row] = terminating
        pods.group[row] = self.groups.put(row, pod, before=int(pods.group[row]))
        pods.labels[row] = self.labels.class_of(meta.namespace or "default", meta.labels).number

    def _unassign_node(self, pod: int) -> None:
        """Remove a pod from its node, or release its hold."""
        if self.pods.node_names[pod] is None:
            self._release(self.pods.keys[pod], undo=False)
        else:
            self.assignments.unassign(pod)

    # Binding and holding ----------------------------------------------------------------------------------------------

    def _bind(self, edit: Bind) -> None:
        key = edit.pod
        row = self.pod_row(key)
        if self.pods.node_names[row] is not None:
            raise ConflictError(f"pod {key} is already on node {self.pods.node_names[row]}")
        if key in self.holds:
            self._release(key)
        self._undo.add(Unbind(key))
        if edit.start is not None:
            self.pods.start[row] = edit.start
        self.assignments.assign(row, edit.node)

    def _unbind(self, key: str) -> None:
        row = self.pod_row(key)
        name = self.pods.node_names[row]
        if name is None:
            return
        start = int(self.pods.start[row])
        self._undo.add(Bind(key, name, None if start == NOT_STARTED else start))
        self._unassign_node(row)
        pod = self.pods.objects[row]
        assert pod is not None
        self.pods.start[row] = _start_time(pod)

    def _hold(self, hold: Hold, *, undo: bool = True) -> None:
        old = self.holds.get(hold.pod)
        if old == hold:
            return
        if undo:
            self.pod_row(hold.pod)
            self._undo.add(old if old is not None else Release(hold.pod))
        self.hold_index.put(hold)

    def _release(self, key: str, *, undo: bool = True, announce: bool = True) -> None:
        hold = self.hold_index.take(key)
        if hold is not None:
            self.events[Event.POD_REMOVED] += announce
            if undo:
                self._undo.add(hold)

    # Lookups ----------------------------------------------------------------------------------------------------------

    def pod_row(self, key: str) -> int:
        """Return the row of a pod; raise `NotFoundError` for an unknown key."""
        row = self.pods.row_of.get(key)
        if row is None:
            raise NotFoundError(f"pod {key!r} is not in the cluster")
        return row

    def pod(self, key: str) -> Pod:
        """Return a pod's object, as it was put."""
        pod = self.pods.objects[self.pod_row(key)]
        assert pod is not None
        return pod

    def fit_resources(self) -> None:
        """Grow all columns to the number of known resources."""
        self.nodes.fit_resources()
        self.usages.fit_resources()

    def spec_of(self, pod: int) -> SpecClass:
        """Return the spec class of the pod in a row."""
        spec: SpecClass = self.specs.classes[self.pods.spec[pod]]
        return spec


def _start_time(pod: Pod) -> int:
    """Return a pod's start time in microseconds, `NOT_STARTED` if it has none."""
    return micros(pod.status.start_time) if pod.status.start_time else NOT_STARTED
