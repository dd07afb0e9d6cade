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
from tutti.cluster.follower import Follower
from tutti.cluster.groups import NO_GROUP, GroupIndex
from tutti.cluster.holds import Holds
from tutti.cluster.node_table import NodeTable
from tutti.cluster.occupancy import Occupancy
from tutti.cluster.pod_table import NOT_STARTED, PodTable, UsageTable
from tutti.cluster.services import ServiceIndex
from tutti.cluster.spec_classes import SpecClass, SpecRegistry
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
        self.pods_on_row: list[set[int]] = []
        """The pod rows on each node row."""
        self.pods_on_missing_nodes: dict[str, set[int]] = {}
        """Node name -> rows of pods bound to a node that is not in the cluster. They count nowhere until the node is
        added."""
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
        self._undo: list[Edit] = []
        self._marks: list[list[int]] = []
        """The event counts at each mark."""
        self._followers: list[Follower] = []
        self._edit_start = self._arrivals = 0
        self._grow_rows()
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
        clone.pods_on_row = [set(pods) for pods in self.pods_on_row]
        clone.pods_on_missing_nodes = {node: set(pods) for node, pods in self.pods_on_missing_nodes.items()}
        clone.touched, clone.events = self.touched.copy(), list(self.events)
        clone.caches, clone._undo, clone._marks, clone._spec_usage = {}, [], [], dict(self._spec_usage)
        clone._followers = []
        return clone

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
        self._edit_start = len(self._undo)
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
        if self._marks:
            raise ConflictError("a follower cannot be attached between a mark and its rollback")
        self._followers.append(follower)

    def mark(self) -> int:
        """Return a mark for the current state; the caller must roll back or commit every mark."""
        self._marks.append(self.events.copy())
        for follower in self._followers:
            follower.mark()
        return len(self._undo)

    def rollback(self, mark: int) -> None:
        """Undo all edits since the mark."""
        undo = self._undo
        events = self._marks.pop()
        while len(undo) > mark:
            edit = undo.pop()
            length = len(undo)
            self.apply(edit)
            del undo[length:]  # drop the inverse edits that the undo itself logged
        self.events = events
        for follower in self._followers:
            follower.rollback()

    def commit(self, mark: int) -> None:
        """Keep the edits since the mark; an outer mark can still undo them."""
        self._marks.pop()
        if not self._marks:
            del self._undo[mark:]
        for follower in self._followers:
            follower.commit()

    def _undo_with(self, edit: Edit) -> None:
        if self._marks:
            self._undo.append(edit)

    def _undo_last(self, edit: Edit) -> None:
        """Log an inverse edit that runs after all other inverse edits of the current edit."""
        self._undo.insert(self._edit_start, edit)
        self._edit_start += 1

    # Objects ----------------------------------------------------------------------------------------------------------

    def _put(self, obj: Object) -> None:
        if isinstance(obj, Pod):
            self._put_pod(obj)
        elif isinstance(obj, Node):
            self._put_node(obj, on=None)
        else:
            kind = obj.KIND
            old = self.objects[kind].get(obj.key)
            self._undo_with(Put(old) if old is not None else Remove(kind, obj.key))
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
                self._undo_with(Put(old))
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
                self._undo_with(Put(old))
                for change in node_change_events(old, obj):
                    self.events[change] += 1
            self.touched.add(self.nodes.put(obj))
            self.fit_resources()
            return
        self._undo_with(Remove("Node", name))
        row = self.nodes.put(obj, on=on is not False)
        self.events[Event.NODE_ADDED] += on is not False
        self.touched.add(row)
        self.fit_resources()
        self._grow_rows()
        for pod in sorted(self.pods_on_missing_nodes.pop(name, ())):
            self._add_to_row(pod, row)

    def _remove_node(self, name: str) -> None:
        row = self.nodes.row_of.get(name)
        if row is None:
            return
        node = self.nodes.objects[row]
        if node is not None:
            if not self.nodes.on[row]:
                self._undo_with(Switch(name, on=False))
            self._undo_with(Put(node))
        for pod in sorted(self.pods_on_row[row]):
            self._remove_from_row(pod)
            self.pods_on_missing_nodes.setdefault(name, set()).add(pod)
        self.touched.add(self.nodes.remove(name))
        self.events[Event.NODE_REMOVED] += 1

    def _switch(self, edit: Switch) -> None:
        row = self.node_row(edit.node)
        if bool(self.nodes.on[row]) != edit.on:
            self._undo_with(Switch(edit.node, on=not edit.on))
            self.nodes.switch(row, on=edit.on)
            self.touched.add(row)
            self.events[Event.NODE_ADDED if edit.on else Event.NODE_REMOVED] += 1

    def node_row(self, name: str) -> int:
        """Return the row of a node; raise `NotFoundError` for an unknown name."""
        row = self.nodes.row_of.get(name)
        if row is None:
            raise NotFoundError(f"node {name!r} is not in the cluster")
        return row

    def _grow_rows(self) -> None:
        """Grow the per-row state to the size of the node table."""
        missing = self.nodes.size - len(self.pods_on_row)
        if missing > 0:
            self.pods_on_row += [set() for _ in range(missing)]
            self.labels.grow(self.nodes.size)

    # Pods -------------------------------------------------------------------------------------------------------------

    def _put_pod(self, pod: Pod) -> None:
        key = pod.key
        row = self.pods.row_of.get(key)
        if pod.status.phase in ("Succeeded", "Failed"):
            # kube-scheduler ignores finished pods.
            self._remove_pod(key)
            return
        if row is None:
            self._undo_with(Remove("Pod", key))
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
            self._assign_node(row, node)
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
        if not self._marks:
            return
        old = self.pods.objects[row]
        if old is not None:
            self._undo += reversed((Put(old), *self._edits_since_put(row, old)))

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

    def _assign_node(self, pod: int, node: str) -> None:
        self.pods.node_names[pod] = node
        row = self.nodes.row_of.get(node)
        if row is None:
            self.pods_on_missing_nodes.setdefault(node, set()).add(pod)
        else:
            self._add_to_row(pod, row)

    def _unassign_node(self, pod: int) -> None:
        """Remove a pod from its node, or release its hold."""
        name = self.pods.node_names[pod]
        if name is None:
            self._release(self.pods.keys[pod], undo=False)
            return
        if self.pods.node[pod] >= 0:
            self._remove_from_row(pod)
        else:
            pods = self.pods_on_missing_nodes[name]
            pods.discard(pod)
            if not pods:
                del self.pods_on_missing_nodes[name]
        self.pods.node_names[pod] = None

    def _add_to_row(self, pod: int, row: int) -> None:
        self.pods.node[pod] = row
        self.pods_on_row[row].add(pod)
        self._arrivals += 1
        self.pods.order[pod] = self._arrivals
        self.events[Event.POD_PLACED] += 1
        self._count_pod(pod, row, 1)

    def _remove_from_row(self, pod: int) -> None:
        row = int(self.pods.node[pod])
        if self._marks:
            self._undo_last(SetArrivalOrder(self.pods.keys[pod], int(self.pods.order[pod])))
        self.pods.node[pod] = -1
        self.events[Event.POD_REMOVED] += 1
        self.pods_on_row[row].discard(pod)
        self._count_pod(pod, row, -1)

    def _count_pod(self, pod: int, row: int, number: int) -> None:
        """Add a pod to (1) or remove it from (-1) all usage sums and counters of a row."""
        pods = self.pods
        usage = self.usages.matrix[pods.usage[pod]]
        if number > 0:
            self.nodes.used[:, row] += usage
        else:
            self.nodes.used[:, row] -= usage
        self.pod_counters.move(pod, row, number)
        spec = self.specs.classes[pods.spec[pod]]
        if spec.ports or spec.volumes:
            if self._marks and spec.ports:
                for edit in self.occupancy.port_edits(row, spec):
                    self._undo_last(edit)
            self.occupancy.move(row, pod, spec, number)
        self.touched.add(row)

    # Binding and holding ----------------------------------------------------------------------------------------------

    def _bind(self, edit: Bind) -> None:
        key = edit.pod
        row = self.pod_row(key)
        if self.pods.node_names[row] is not None:
            raise ConflictError(f"pod {key} is already on node {self.pods.node_names[row]}")
        if key in self.holds:
            self._release(key)
        if self._marks:
            self._undo.append(Unbind(key))
        if edit.start is not None:
            self.pods.start[row] = edit.start
        self._assign_node(row, edit.node)

    def _unbind(self, key: str) -> None:
        row = self.pod_row(key)
        name = self.pods.node_names[row]
        if name is None:
            return
        start = int(self.pods.start[row])
        self._undo_with(Bind(key, name, None if start == NOT_STARTED else start))
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
            self._undo_with(old if old is not None else Release(hold.pod))
        self.hold_index.put(hold)

    def _release(self, key: str, *, undo: bool = True, announce: bool = True) -> None:
        hold = self.hold_index.take(key)
        if hold is not None:
            self.events[Event.POD_REMOVED] += announce
            if undo:
                self._undo_with(hold)

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
