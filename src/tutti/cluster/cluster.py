"""The cluster: one picture of nodes, pods, volumes and the objects around them at one moment.

Contract:
- `apply(edit)` is the only way to change it, and costs what it changes.
- `mark()` and `rollback(mark)` nest: a rollback undoes everything since the mark by applying inverse edits.
- After any sequence of edits it answers as one built from scratch from the same objects.
- Registries (classes, selectors, numbered names) only grow and survive a rollback. `copy()` copies state, and shares
  the parsed objects.
Not for several threads at once: whoever borrows a cluster has it alone.
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
from tutti.cluster.events import Event, is_no_news, node_changes, object_change
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

_OWNERS = frozenset(("ReplicaSet", "StatefulSet", "ReplicationController"))
_OWN_GROUP = frozenset(kind for kind in GROUP_KINDS if kind.startswith("PodGroup"))
"""Kinds that say something about the group of their own name."""
_ANY_GROUP = frozenset((*GROUP_KINDS, "PriorityClass")) - _OWN_GROUP


class Cluster:
    """See the module's contract."""

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
        self.held = Holds()
        self.holds, self.held_on = self.held.by_pod, self.held.by_node
        """What is held, by pod; and by node name and pod."""
        self.on_node: list[set[int]] = []
        """The pods on each row."""
        self.absent: dict[str, set[int]] = {}
        """Pods whose node is not there: they count nowhere until it comes (back)."""
        self.touched = RowLog()
        """Rows on which a pod came or went, or the node itself changed."""
        self.workloads_version = 0
        """Moves when services or owners change."""
        self.events = [0] * len(Event)
        """How often each kind of event has happened."""
        self.caches: dict[Any, Any] = {}
        """The values of attached caches (`engine.plugins.attached_cache`); a copy starts without."""
        self.meter = meter or Meter()
        """Counts what is done; shared with copies."""
        self._spec_usage: dict[int, int] = {}
        self._undo: list[Edit] = []
        self._marks: list[list[int]] = []
        """What had happened at each mark."""
        self._followers: list[Follower] = []
        self._edit_start = self._arrivals = 0
        self._fit_rows()
        for obj in objects:
            self.meter.count += OBJECT
            self._put(obj)

    def copy(self) -> Cluster:
        """Give a cluster of its own with the same picture, and without marks; objects and parsed specs are shared."""
        twin = copy(self)
        twin.resources = self.resources.copy()
        twin.nodes = self.nodes.copy(twin.resources)
        twin.pods, twin.usages = self.pods.copy(), self.usages.copy(twin.resources)
        twin.objects = {kind: dict(objects) for kind, objects in self.objects.items()}
        twin.labels = self.labels.copy(twin.namespace_labels)
        twin.pod_counters = self.pod_counters.copy(twin.nodes, twin.pods, labels=twin.labels)
        twin.occupancy = self.occupancy.copy()
        twin.services, twin.groups = self.services.copy(), self.groups.copy()
        twin.held = self.held.copy()
        twin.holds, twin.held_on = twin.held.by_pod, twin.held.by_node
        twin.on_node = [set(pods) for pods in self.on_node]
        twin.absent = {node: set(pods) for node, pods in self.absent.items()}
        twin.touched, twin.events = self.touched.copy(), list(self.events)
        twin.caches, twin._undo, twin._marks, twin._spec_usage = {}, [], [], dict(self._spec_usage)
        twin._followers = []
        return twin

    def edits(self) -> Iterator[Edit]:
        """Give edits that build this picture from nothing."""
        for objects in self.objects.values():
            yield from map(Put, objects.values())
        for name in sorted(self.nodes.row_of):
            row = self.nodes.row_of[name]
            node = self.nodes.objects[row]
            if node is not None:
                yield Put(node) if self.nodes.on[row] else PutTemplate(node)
        # In the order in which they came to their nodes, which decides between equally important pods.
        for row in sorted(self.pods.row_of.values(), key=lambda row: (int(self.pods.order[row]), self.pods.keys[row])):
            pod = self.pods.objects[row]
            if pod is not None:
                yield Put(pod)
                yield from self._since_put(row, pod)

    # Edits ------------------------------------------------------------------------------------------------------------

    def apply(self, edit: Edit) -> None:
        """Carry out one edit."""
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
        """Let a follower be marked, rolled back and committed together with this cluster."""
        if self._marks:
            raise ConflictError("a follower cannot be attached between a mark and its rollback")
        self._followers.append(follower)

    def detach(self, follower: Follower) -> None:
        """Let a follower go its own way."""
        self._followers.remove(follower)

    def mark(self) -> int:
        """Remember this moment; every mark is to be rolled back or committed."""
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
            del undo[length:]  # undoing is not to be undone
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
        """Log what is to be set right when everything else of this edit has been undone."""
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
            self._object_changed(obj, there=True)

    def _remove(self, kind: str, key: str) -> None:
        if kind == "Pod":
            self._remove_pod(key)
        elif kind == "Node":
            self._remove_node(key)
        else:
            old = self.objects[kind].pop(key, None)
            if old is not None:
                self._undo_with(Put(old))
                self._object_changed(old, there=False)

    def _object_changed(self, obj: Object, *, there: bool) -> None:
        self.events[object_change(kind := obj.KIND)] += 1
        if kind in _OWN_GROUP:
            self.groups.object_changed(obj.key)
        elif kind in _ANY_GROUP:
            self.groups.objects_version += 1
        if isinstance(obj, Service):
            # Default spreading asks which services select a pod: pods must differ where a service can tell them apart.
            self.workloads_version += 1
            if there:
                self.services.put(obj)
                self.pod_counters.watch(obj.spec.selector or ())
            else:
                self.services.remove(obj)
        elif kind in _OWNERS:
            self.workloads_version += 1
        elif isinstance(obj, Namespace):
            self.labels.namespaces_changed(self.pod_counters.fill)

    def namespace_labels(self, name: str) -> Mapping[str, str] | None:
        """Give the labels of a namespace, None if there is no such namespace."""
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
                raise ConflictError(f"node {name} is there already: it cannot become a template")
            if old is not None:
                self._undo_with(Put(old))
                for change in node_changes(old, obj):
                    self.events[change] += 1
            self.touched.add(self.nodes.put(obj))
            self.fit_resources()
            return
        self._undo_with(Remove("Node", name))
        row = self.nodes.put(obj, on=on is not False)
        self.events[Event.NODE_ADDED] += on is not False
        self.touched.add(row)
        self.fit_resources()
        self._fit_rows()
        for pod in sorted(self.absent.pop(name, ())):
            self._attach(pod, row)

    def _remove_node(self, name: str) -> None:
        row = self.nodes.row_of.get(name)
        if row is None:
            return
        node = self.nodes.objects[row]
        if node is not None:
            if not self.nodes.on[row]:
                self._undo_with(Switch(name, on=False))
            self._undo_with(Put(node))
        for pod in sorted(self.on_node[row]):
            self._detach(pod)
            self.absent.setdefault(name, set()).add(pod)
        self.touched.add(self.nodes.remove(name))
        self.events[Event.NODE_GONE] += 1

    def _switch(self, edit: Switch) -> None:
        row = self.node_row(edit.node)
        if bool(self.nodes.on[row]) != edit.on:
            self._undo_with(Switch(edit.node, on=not edit.on))
            self.nodes.switch(row, on=edit.on)
            self.touched.add(row)
            self.events[Event.NODE_ADDED if edit.on else Event.NODE_GONE] += 1

    def node_row(self, name: str) -> int:
        """Give the row of a node."""
        row = self.nodes.row_of.get(name)
        if row is None:
            raise NotFoundError(f"node {name!r} is not in the cluster")
        return row

    def _fit_rows(self) -> None:
        """Follow the node table when it has grown."""
        missing = self.nodes.size - len(self.on_node)
        if missing > 0:
            self.on_node += [set() for _ in range(missing)]
            self.labels.grow(self.nodes.size)

    # Pods -------------------------------------------------------------------------------------------------------------

    def _put_pod(self, pod: Pod) -> None:
        key = pod.key
        row = self.pods.row_of.get(key)
        if pod.status.phase in ("Succeeded", "Failed"):
            # The scheduler does not see finished pods.
            self._remove_pod(key)
            return
        if row is None:
            self._undo_with(Remove("Pod", key))
            row = self.pods.take_row(key)
        else:
            self._undo_pod(row)
            old = self.pods.objects[row]
            if old is not None and self.pods.node_names[row] == (pod.spec.node_name or None) and is_no_news(old, pod):
                self.pods.objects[row], self.pods.start[row] = pod, _started(pod)
                return
            self._leave(row)
        self._write_pod(row, pod)
        node = pod.spec.node_name
        if node:
            self._arrive(row, node)
        elif pod.status.nominated_node_name:
            self._hold(Hold(key, pod.status.nominated_node_name), undo=False)

    def _remove_pod(self, key: str) -> None:
        row = self.pods.row_of.get(key)
        if row is None:
            return
        self._undo_pod(row)
        self._leave(row)
        if self.pods.group[row] != NO_GROUP:
            self.groups.drop(row, int(self.pods.group[row]))
        self.pods.drop_row(row)

    def _undo_pod(self, row: int) -> None:
        """Log how to bring a pod back as it is now: its object, its place, and what is held for it."""
        if not self._marks:
            return
        old = self.pods.objects[row]
        if old is not None:
            self._undo += reversed((Put(old), *self._since_put(row, old)))

    def _since_put(self, row: int, pod: Pod) -> list[Edit]:
        """Give the edits that have moved a pod, or what is held for it, away from what its object says."""
        key, node, hold = self.pods.keys[row], self.pods.node_names[row], self.holds.get(self.pods.keys[row])
        start = int(self.pods.start[row])
        edits: list[Edit] = []
        if node != (pod.spec.node_name or None) or start != _started(pod):
            if pod.spec.node_name:
                edits.append(Unbind(key))
            if node:
                edits.append(Bind(key, node, None if start == NOT_STARTED else start))
        if not node and hold != self._own_hold(pod):
            edits.append(hold if hold is not None else Release(key))
        return edits

    @staticmethod
    def _own_hold(pod: Pod) -> Hold | None:
        nominated = pod.status.nominated_node_name
        return Hold(pod.key, nominated) if nominated and not pod.spec.node_name else None

    def _write_pod(self, row: int, pod: Pod) -> None:
        pods, meta = self.pods, pod.metadata
        spec = self.specs.of(pod)
        usage = self._spec_usage.get(spec.number)
        if usage is None:
            usage = self._spec_usage[spec.number] = self.usages.number(placed_requests(spec.pod))
            self.fit_resources()
        pods.objects[row] = pod
        pods.spec[row], pods.usage[row] = spec.number, usage
        pods.priority[row] = pod.spec.priority or 0
        pods.start[row] = _started(pod)
        terminating = meta.deletion_timestamp is not None
        if terminating and not pods.terminating[row]:
            self.events[Event.POD_GONE] += 1
        pods.terminating[row] = terminating
        pods.group[row] = self.groups.put(row, pod, before=int(pods.group[row]))
        pods.labels[row] = self.labels.of(meta.namespace or "default", meta.labels).number

    def _arrive(self, pod: int, node: str) -> None:
        self.pods.node_names[pod] = node
        row = self.nodes.row_of.get(node)
        if row is None:
            self.absent.setdefault(node, set()).add(pod)
        else:
            self._attach(pod, row)

    def _leave(self, pod: int) -> None:
        """Take a pod off its node, or give up what is held for it."""
        name = self.pods.node_names[pod]
        if name is None:
            self._release(self.pods.keys[pod], undo=False)
            return
        if self.pods.node[pod] >= 0:
            self._detach(pod)
        else:
            waiting = self.absent[name]
            waiting.discard(pod)
            if not waiting:
                del self.absent[name]
        self.pods.node_names[pod] = None

    def _attach(self, pod: int, row: int) -> None:
        self.pods.node[pod] = row
        self.on_node[row].add(pod)
        self._arrivals += 1
        self.pods.order[pod] = self._arrivals
        self.events[Event.POD_PLACED] += 1
        self._move(pod, row, 1)

    def _detach(self, pod: int) -> None:
        row = int(self.pods.node[pod])
        if self._marks:
            self._undo_last(SetArrivalOrder(self.pods.keys[pod], int(self.pods.order[pod])))
        self.pods.node[pod] = -1
        self.events[Event.POD_GONE] += 1
        self.on_node[row].discard(pod)
        self._move(pod, row, -1)

    def _move(self, pod: int, row: int, number: int) -> None:
        """Count a pod on a row (1), or no longer (-1), in everything that is counted."""
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
                for taken in self.occupancy.taken(row, spec):
                    self._undo_last(taken)
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
        self._arrive(row, edit.node)

    def _unbind(self, key: str) -> None:
        row = self.pod_row(key)
        name = self.pods.node_names[row]
        if name is None:
            return
        start = int(self.pods.start[row])
        self._undo_with(Bind(key, name, None if start == NOT_STARTED else start))
        self._leave(row)
        pod = self.pods.objects[row]
        assert pod is not None
        self.pods.start[row] = _started(pod)

    def _hold(self, hold: Hold, *, undo: bool = True) -> None:
        old = self.holds.get(hold.pod)
        if old == hold:
            return
        if undo:
            self.pod_row(hold.pod)
            self._undo_with(old if old is not None else Release(hold.pod))
        self.held.put(hold)

    def _release(self, key: str, *, undo: bool = True, announce: bool = True) -> None:
        hold = self.held.take(key)
        if hold is not None:
            self.events[Event.POD_GONE] += announce
            if undo:
                self._undo_with(hold)

    # Questions --------------------------------------------------------------------------------------------------------

    def pod_row(self, key: str) -> int:
        """Give the row of a pod."""
        row = self.pods.row_of.get(key)
        if row is None:
            raise NotFoundError(f"pod {key!r} is not in the cluster")
        return row

    def pod(self, key: str) -> Pod:
        """Give a pod's object, as it was put."""
        pod = self.pods.objects[self.pod_row(key)]
        assert pod is not None
        return pod

    def fit_resources(self) -> None:
        """Make room in all columns for resources that were numbered since."""
        self.nodes.fit_resources()
        self.usages.fit_resources()

    def spec_of(self, pod: int) -> SpecClass:
        """Give the spec class of the pod in a row."""
        spec: SpecClass = self.specs.classes[self.pods.spec[pod]]
        return spec


def _started(pod: Pod) -> int:
    """Give when a pod started, in microseconds."""
    return micros(pod.status.start_time) if pod.status.start_time else NOT_STARTED
