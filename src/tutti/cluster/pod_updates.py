"""How edits change a pod: put, removed, bound, held, finished, restored.

A pod has a place and a life. Its place is *pending* (*gated* while it has scheduling gates), *assumed* (bound by
`Bind`, not yet seen bound) or *bound* (its object names the node). Its life is live, *evicted* (terminating by `Evict`,
not yet seen terminating), terminating or finished; a finished pod has no row, only a record that keeps late updates
from bringing it back and lets its gang count it.

Contract:
- A malformed pod raises `InputError` before anything changes.
- A stale or repeated update changes nothing (`object_versions`).
- An update that leaves a pod on its node, such as the confirmation of our own binding, counts as no event unless the
  pod begins to terminate, its usage shrinks (both free room) or its labels change.
- A start time that the object does not have yet is that of the binding.
- A pod that leaves its node gives back its assumed volumes (`assumed_volumes`).
Only the cluster's edits call this module.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from msgspec.structs import replace

from tutti.cluster.assignments import Assignments
from tutti.cluster.assumed_volumes import AssumedVolumes
from tutti.cluster.counters.label_classes import LabelRegistry
from tutti.cluster.edits import (
    Bind,
    Edit,
    Evict,
    FinishedPod,
    Hold,
    Put,
    Release,
    Remove,
    RestorePod,
    SetFinished,
    SetStart,
    Unbind,
    Unevict,
)
from tutti.cluster.events import Event
from tutti.cluster.indexes.groups import NO_GROUP, GroupIndex
from tutti.cluster.indexes.holds import Holds
from tutti.cluster.object_versions import (
    is_older,
    is_other_object,
    is_same_member,
    is_status_update,
    version_of,
)
from tutti.cluster.pod_table import NO_DURATION, NOT_STARTED, PodTable, UsageTable
from tutti.cluster.spec_classes import SpecRegistry
from tutti.cluster.undo_log import UndoLog
from tutti.exceptions import ConflictError, InputError, NotFoundError
from tutti.kube.durations import parse_duration
from tutti.kube.gangs.reader import membership
from tutti.kube.gangs.tutti_annotations import DURATION
from tutti.kube.objects import Condition, Pod
from tutti.kube.resources import placed_requests
from tutti.kube.times import micros

FINISHED_PHASES = frozenset(("Succeeded", "Failed"))
_MAX_DURATION = 2**61
_PREEMPTED = Condition(type="DisruptionTarget", status="True", reason="PreemptionByScheduler")
"""The condition that kube-scheduler sets on its victims, and checks before it evicts more pods for the same pod."""


class _PodColumns(NamedTuple):
    """The values of a pod's columns, read from its object."""

    spec: int
    usage: int
    labels: int
    terminating: bool
    priority: int
    start: int
    duration: int


class PodUpdates:
    """See the module's docstring."""

    def __init__(
        self,
        pods: PodTable,
        assignments: Assignments,
        *,
        specs: SpecRegistry,
        usages: UsageTable,
        labels: LabelRegistry,
        groups: GroupIndex,
        holds: Holds,
        volumes: AssumedVolumes,
        events: list[int],
        undo: UndoLog,
    ) -> None:
        self._pods, self._assignments, self._specs, self._usages = pods, assignments, specs, usages
        self._labels, self._groups, self._holds, self._volumes = labels, groups, holds, volumes
        self._events, self._undo = events, undo
        self._usage_of_spec: dict[int, int] = {}
        self.finished: dict[str, FinishedPod] = {}
        """Finished pods whose objects still exist, by key."""
        self.evicted: dict[str, Pod] = {}
        """The last reported objects of pods that terminate by `Evict`, by key."""

    def copy_from(self, other: PodUpdates) -> None:
        """Take over the finished pods of the cluster from which this cluster is copied."""
        self._usage_of_spec, self.finished = dict(other._usage_of_spec), dict(other.finished)
        self.evicted = dict(other.evicted)

    def drop_specs(self, numbers: Iterable[int]) -> None:
        """Give back the usages of spec classes that no pod has."""
        for number in numbers:
            usage = self._usage_of_spec.pop(number, None)
            if usage is not None:
                self._usages.give_back(usage)

    # Objects ----------------------------------------------------------------------------------------------------------

    def put(self, pod: Pod) -> None:
        """Add a pod, or update it."""
        key = pod.key
        row = self._pods.row_of.get(key)
        old = self._pods.objects[row] if row is not None else None
        if self._is_outdated(pod, old):
            return
        if pod.status.phase in FINISHED_PHASES:
            self._finish(pod)
        elif row is None or old is None or is_other_object(pod.metadata, old.metadata.uid):
            self._replace(pod)
        else:
            self._update(row, pod, old)

    def _is_outdated(self, pod: Pod, old: Pod | None) -> bool:
        """Return whether an update is older than the known pod, or is of a pod that has already finished."""
        if old is not None:
            return is_older(pod.metadata, version_of(old.metadata))
        finished = self.finished.get(pod.key)
        if finished is None:
            return False
        is_same = finished.uid is not None and finished.uid == pod.metadata.uid
        return (is_same and pod.status.phase not in FINISHED_PHASES) or is_older(pod.metadata, finished.version)

    def _replace(self, pod: Pod) -> None:
        """Add a pod that is not in the cluster; another pod of the same name has gone."""
        key, columns = pod.key, self._read(pod)
        self.remove(key)
        self._undo.add(Remove("Pod", key))
        row = self._pods.take_row(key)
        self._write(row, pod, columns)
        if pod.spec.node_name:
            self._assignments.assign(row, pod.spec.node_name)
        elif pod.status.nominated_node_name:
            self._holds.put(Hold(key, pod.status.nominated_node_name))

    def _update(self, row: int, pod: Pod, old: Pod) -> None:
        pods, reported = self._pods, pod
        if pod.key in self.evicted and pod.metadata.deletion_timestamp is None:
            pod = _terminating(pod, old.metadata.deletion_timestamp or "")
        current = pods.node_names[row]
        is_assumed = current is not None and not old.spec.node_name
        node = pod.spec.node_name or (current if is_assumed else None)
        if node == current and is_status_update(old, pod):
            start = _start_time(pod)
            self._log_restore(row, old)
            self._note_reported(reported, pod)
            pods.objects[row] = pod
            pods.start[row] = start if start != NOT_STARTED or node is None else pods.start[row]
            if pods.group[row] != NO_GROUP and has_started(pod) and not has_started(old):
                pods.touched.add(row)  # the gang may run whole by now
            return
        columns = self._read(pod)
        if node != current and self._volumes.by_pod:
            self._volumes.end(pod.key)
        self._log_restore(row, old)
        self._note_reported(reported, pod)
        if node is not None and node == current:
            if columns.start == NOT_STARTED:
                columns = columns._replace(start=int(pods.start[row]))
            self._rewrite_on_node(row, pod, columns)
            return
        if current is not None:
            self._assignments.unassign(row)
        self._write(row, pod, columns)
        if node is not None:
            self._free_hold(pod.key)
            self._assignments.assign(row, node)
        else:
            self._holds.owner_changed(pod.key)
            self._update_nomination(old, pod)

    def _note_reported(self, reported: Pod, kept: Pod) -> None:
        """Remember the reported object of an evicted pod; forget it if the object itself says that it terminates."""
        if reported is not kept:
            self.evicted[kept.key] = reported
        else:
            self.evicted.pop(kept.key, None)

    def evict(self, edit: Evict) -> None:
        """Let a pod terminate that is not terminating yet."""
        row = self.row(edit.pod)
        pod = self._pods.objects[row]
        assert pod is not None
        if pod.metadata.deletion_timestamp is None:
            self._log_restore(row, pod)
            self.evicted[pod.key] = pod
            self._rewrite(row, _terminating(pod, edit.since))

    def unevict(self, edit: Unevict) -> None:
        """Let an evicted pod live; room that was expected is not coming, which counts as a pod placed."""
        reported = self.evicted.get(edit.pod)
        if reported is None or (edit.uid is not None and reported.metadata.uid != edit.uid):
            return
        row = self.row(edit.pod)
        old = self._pods.objects[row]
        assert old is not None
        self._log_restore(row, old)
        del self.evicted[edit.pod]
        self._rewrite(row, reported)
        self._events[Event.POD_PLACED] += 1

    def _rewrite(self, row: int, pod: Pod) -> None:
        """Write a pod that stays where it is, with the start time that it has."""
        columns = self._read(pod)._replace(start=int(self._pods.start[row]))
        if self._pods.node_names[row] is not None:
            self._rewrite_on_node(row, pod, columns)
        else:
            self._write(row, pod, columns)

    def _rewrite_on_node(self, row: int, pod: Pod, columns: _PodColumns) -> None:
        """Write a pod that stays on its node; count it again only if what is counted changes."""
        pods, events = self._pods, self._events
        node = int(pods.node[row])
        before = int(pods.spec[row]), int(pods.usage[row]), int(pods.labels[row]), bool(pods.terminating[row])
        if before == columns[:4] or node < 0:
            self._write(row, pod, columns)
            return
        self._assignments.count(row, node, -1)
        self._write(row, pod, columns)
        self._assignments.count(row, node, 1)
        usages = self._usages.matrix
        events[Event.POD_REMOVED] += bool((usages[columns.usage] < usages[before[1]]).any())
        events[Event.POD_PLACED] += columns.labels != before[2]

    def _update_nomination(self, old: Pod, pod: Pod) -> None:
        """Change the hold of a pending pod if its nomination has changed to another node than that of the hold."""
        nominated, hold = pod.status.nominated_node_name, self._holds.by_owner.get(pod.key)
        if nominated == old.status.nominated_node_name or (hold is not None and nominated == hold.node):
            return
        if nominated:
            self._holds.put(Hold(pod.key, nominated))
        else:
            self._free_hold(pod.key)

    def remove(self, key: str) -> None:
        """Remove a pod, or the record that it has finished."""
        row = self._pods.row_of.get(key)
        if row is None:
            if key in self.finished:
                self.set_finished(key, None)
            return
        if self._volumes.by_pod:
            self._volumes.end(key)
        old = self._pods.objects[row]
        if old is not None:
            self._log_restore(row, old)
        self.evicted.pop(key, None)
        if self._pods.node_names[row] is not None:
            self._assignments.unassign(row)
        else:
            self._free_hold(key)
        if self._pods.group[row] != NO_GROUP:
            self._groups.drop(row, int(self._pods.group[row]))
        self._pods.drop_row(row)

    def _finish(self, pod: Pod) -> None:
        meta = pod.metadata
        finished = FinishedPod(pod.status.phase == "Succeeded", meta.uid, version_of(meta), membership(pod))
        if self.finished.get(pod.key) != finished:
            if pod.key in self._pods.row_of:
                self.remove(pod.key)
            self.set_finished(pod.key, finished)

    def set_finished(self, key: str, finished: FinishedPod | None) -> None:
        """Record that a pod has finished, or forget its record."""
        old = self.finished.pop(key, None)
        self._undo.add(SetFinished(key, old))
        if old is not None and old.membership is not None:
            self._groups.drop_finished(key, old.membership)
        if finished is not None:
            self.finished[key] = finished
            if finished.membership is not None and finished.succeeded:
                self._groups.put_finished(key, finished.membership)

    # Reading and writing the columns ----------------------------------------------------------------------------------

    def _read(self, pod: Pod) -> _PodColumns:
        """Return the columns of a pod; raise `InputError` if a field is malformed."""
        meta = pod.metadata
        if meta.creation_timestamp:
            micros(meta.creation_timestamp)
        start = _start_time(pod)
        spec = self._specs.class_of(pod)
        usage = self._usage_of_spec.get(spec.number)
        if usage is None:
            usage = self._usage_of_spec[spec.number] = self._usages.take(placed_requests(spec.pod))
            self._assignments.fit_resources()
        labels = self._labels.class_of(meta.namespace or "default", meta.labels).number
        terminating = meta.deletion_timestamp is not None
        return _PodColumns(spec.number, usage, labels, terminating, pod.spec.priority or 0, start, _duration(pod))

    def _write(self, row: int, pod: Pod, columns: _PodColumns) -> None:
        pods = self._pods
        old = pods.objects[row]
        pods.objects[row] = pod
        pods.touched.add(row)
        pods.spec[row], pods.usage[row], pods.labels[row] = columns.spec, columns.usage, columns.labels
        pods.priority[row], pods.start[row], pods.duration[row] = columns.priority, columns.start, columns.duration
        if columns.terminating and not pods.terminating[row]:
            self._events[Event.POD_REMOVED] += 1
        pods.terminating[row] = columns.terminating
        if old is None or not is_same_member(old, pod):
            pods.group[row] = self._groups.put(row, pod, before=int(pods.group[row]))

    def _log_restore(self, row: int, old: Pod) -> None:
        if self._undo.marks:
            pods, hold, evicted = self._pods, self._holds.by_owner.get(old.key), self.evicted.get(old.key)
            place = pods.node_names[row], int(pods.start[row]), int(pods.order[row])
            self._undo.add(RestorePod(old, *place, hold, None if evicted is None else Put(evicted)))

    def restore(self, edit: RestorePod) -> None:
        """Restore a pod as it was."""
        pod, pods = edit.obj, self._pods
        assert isinstance(pod, Pod)
        columns = self._read(pod)._replace(start=edit.start)
        row = pods.row_of.get(pod.key)
        if row is None:
            row = pods.take_row(pod.key)
        current = pods.node_names[row]
        if current is not None and current == edit.node:
            self._rewrite_on_node(row, pod, columns)
        else:
            if current is not None:
                self._assignments.unassign(row)
            self._write(row, pod, columns)
            if edit.node is not None:
                self._assignments.assign(row, edit.node)
        pods.order[row] = edit.order
        self.evicted.pop(pod.key, None)
        if edit.evicted is not None:
            assert isinstance(edit.evicted.obj, Pod)
            self.evicted[pod.key] = edit.evicted.obj
        self._holds.take(pod.key)
        if edit.hold is not None:
            self._holds.put(edit.hold)

    # Binding and holding ----------------------------------------------------------------------------------------------

    def bind(self, edit: Bind) -> None:
        """Bind a pending pod to a node."""
        key = edit.pod
        row = self._pods.row_of.get(key)
        if row is None:
            row = self.row(key)  # raises
        if self._pods.node_names[row] is not None:
            raise ConflictError(f"pod {key} is already on node {self._pods.node_names[row]}")
        if key in self._holds.by_owner:
            self.release(key)
        if self._undo.marks:  # the hottest path: make no edit that is not logged
            self._undo.add(Unbind(key))
        if edit.start is not None:
            self._pods.start[row] = edit.start
        self._assignments.assign(row, edit.node)

    def unbind(self, key: str, uid: str | None = None, *, keep_volumes: bool = False) -> None:
        """Remove a pod from its node; with a uid, only if this pod is assumed."""
        if uid is not None and not self._is_assumed(key, uid):
            return
        row = self.row(key)
        name = self._pods.node_names[row]
        if self._volumes.by_pod and not keep_volumes:
            self._volumes.end(key)
        if name is None:
            return
        start = int(self._pods.start[row])
        self._undo.add(Bind(key, name, None if start == NOT_STARTED else start))
        self._assignments.unassign(row)
        pod = self._pods.objects[row]
        assert pod is not None
        self._pods.start[row] = _start_time(pod)

    def _is_assumed(self, key: str, uid: str) -> bool:
        row = self._pods.row_of.get(key)
        pod = self._pods.objects[row] if row is not None else None
        return pod is not None and pod.metadata.uid == uid and not pod.spec.node_name

    def set_start(self, edit: SetStart) -> None:
        """Set the start time of a bound pod."""
        row = self.row(edit.pod)
        self._undo.add(SetStart(edit.pod, int(self._pods.start[row])))
        self._pods.start[row] = edit.start

    def hold(self, hold: Hold) -> None:
        """Keep room for an owner."""
        old = self._holds.by_owner.get(hold.owner)
        if old == hold:
            return
        if not hold.amounts:
            self.row(hold.owner)
        self._undo.add(old if old is not None else Release(hold.owner))
        old_priority = self._holds.priority_of(hold.owner) if old is not None else None
        self._holds.put(hold)
        if old is not None and old_priority is not None:
            # Other pods may use the room that was held, as if it had been released.
            is_freed = old.node != hold.node or self._holds.priority_of(hold.owner) < old_priority
            self._events[Event.POD_REMOVED] += is_freed

    def release(self, key: str, *, announce: bool = True) -> None:
        """Release the hold of an owner."""
        hold = self._holds.take(key)
        if hold is not None:
            self._events[Event.POD_REMOVED] += announce
            self._undo.add(hold)

    def _free_hold(self, key: str) -> None:
        """Release the hold of a pod whose whole state the undo log has already."""
        if self._holds.take(key) is not None:
            self._events[Event.POD_REMOVED] += 1

    def row(self, key: str) -> int:
        """Return the row of a pod; raise `NotFoundError` for an unknown key."""
        row = self._pods.row_of.get(key)
        if row is None:
            raise NotFoundError(f"pod {key!r} is not in the cluster")
        return row

    def edits_since_put(self, row: int, pod: Pod) -> list[Edit]:
        """Return the edits that changed a pod's node, start time or hold since its object was put."""
        pods, key = self._pods, self._pods.keys[row]
        node, start, hold = pods.node_names[row], int(pods.start[row]), self._holds.by_owner.get(key)
        edits: list[Edit] = []
        if key in self.evicted:
            edits.append(Evict(key, pod.metadata.deletion_timestamp or ""))
        if node != (pod.spec.node_name or None) or start != _start_time(pod):
            if pod.spec.node_name:
                edits.append(Unbind(key))
            if node:
                edits.append(Bind(key, node, None if start == NOT_STARTED else start))
        nominated = pod.status.nominated_node_name
        if not node and hold != (Hold(key, nominated) if nominated and not pod.spec.node_name else None):
            edits.append(hold if hold is not None else Release(key))
        return edits


def _terminating(pod: Pod, since: str) -> Pod:
    """Return a pod as if its object said that it has been terminating since a time, evicted by the scheduler."""
    status = replace(pod.status, conditions=[*(pod.status.conditions or ()), _PREEMPTED])
    return replace(pod, metadata=replace(pod.metadata, deletion_timestamp=since), status=status)


def _duration(pod: Pod) -> int:
    """Return how long a pod states that it runs, in microseconds; an invalid statement counts as none."""
    text = (pod.metadata.annotations or {}).get(DURATION)
    if not text:
        return NO_DURATION
    try:
        return min(parse_duration(text), _MAX_DURATION)
    except InputError:
        return NO_DURATION


def has_started(pod: Pod) -> bool:
    """Return whether the kubelet of a pod's node has taken the pod."""
    return bool(pod.status.start_time) or pod.status.phase == "Running"


def _start_time(pod: Pod) -> int:
    """Return a pod's start time in microseconds, `NOT_STARTED` if it has none."""
    return micros(pod.status.start_time) if pod.status.start_time else NOT_STARTED
