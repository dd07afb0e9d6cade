"""When the scheduler could act: it had a leader, the leader's watches were fresh, and its writes were accepted.

A gang may be partial while nobody can complete or undo it, so the checks count only the times that `able_intervals`
returns, less those of `refused_intervals`: a refused write excuses only the gang whose pod it names. An excuse ends
with its cause: the next start of a process, renewal of the lease, byte of a watch, or attempt to write is up to the
scheduler.

Contract: pure functions of a history.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from itertools import pairwise

from tests.controlplane.faults.checks.history import AuditedWrite, Fault, History, ProcessChange
from tests.controlplane.faults.checks.intervals import Interval, intersected, merged, without

WATCHED = ("pods", "nodes", "podgroups")
"""Kinds without which a scheduler cannot place a gang."""
RENEW_SHARE = 2 / 3
"""A leader may act until this share of the lease's duration has passed since its last renewal."""
_WRITES = ("bind", "write")


def able_intervals(history: History) -> list[Interval]:
    """Return the times at which some replica could complete or undo a gang."""
    leading = leading_intervals(history)
    able: list[Interval] = []
    for replica, times in leading.items():
        cut_off = merged((fault.time, fault.end) for fault in _faults(history, replica) if fault.kind == "partition")
        able += without(intersected(times, fresh_intervals(history, replica)), cut_off)
    return merged(able)


def running_intervals(history: History) -> dict[int, list[Interval]]:
    """Return when each replica's process ran and was not frozen."""
    running: dict[int, list[Interval]] = defaultdict(list)
    changes: dict[int, list[ProcessChange]] = defaultdict(list)
    for change in history.processes:
        changes[change.replica].append(change)
    for replica, events in changes.items():
        since: float | None = None
        for change in events:
            if since is not None:
                running[replica].append((since, change.time))
            since = change.time if change.event in ("start", "thaw") else None
        if since is not None:
            running[replica].append((since, history.end))
        running[replica] = merged(running[replica])
    return running


def leading_intervals(history: History) -> dict[int, list[Interval]]:
    """Return when each replica led; without leases, every replica leads while it runs."""
    running = running_intervals(history)
    renewals = [write for write in history.writes if write.verb == "lease"]
    if not renewals:
        return running
    held: dict[int, list[Interval]] = defaultdict(list)
    for index, renewal in enumerate(renewals):
        end = min(renewal.time + RENEW_SHARE * renewal.duration, history.end)
        if index + 1 < len(renewals):
            following = renewals[index + 1]
            if following.replica != renewal.replica or not following.holder:
                end = min(end, following.time)
        end = min([end, *(each.time for each in history.processes if _ends(each, renewal))])
        if renewal.holder:
            held[renewal.replica].append((renewal.time, end))
    return {replica: intersected(merged(times), running.get(replica, [])) for replica, times in held.items()}


def fresh_intervals(history: History, replica: int) -> list[Interval]:
    """Return when all watches that a replica needs were open and not held back."""
    opened: dict[str, list[Interval]] = defaultdict(list)
    for watch in history.watches:
        if watch.replica == replica and watch.resource in WATCHED:
            opened[watch.resource].append((watch.time, watch.end))
    fresh = [(history.start, history.end)] if opened else []
    for times in opened.values():
        fresh = intersected(fresh, merged(times))
    held = (f for f in _faults(history, replica) if f.kind == "held-watch" and _is_watched(f.path))
    return without(fresh, merged((fault.time, fault.end) for fault in held))


def refused_intervals(history: History) -> dict[str, list[Interval]]:
    """Return when writes to the pods of each gang met a fault, or had to wait after one."""
    gangs = {pod.name: pod.gang for pod in history.pods}
    refused: dict[str, list[Interval]] = defaultdict(list)
    for fault in history.faults:
        _, _, name = fault.path.partition("/pods/")
        gang = gangs.get(name.partition("/")[0], "")
        if gang and fault.request in _WRITES:
            refused[gang].append((fault.time, fault.end + fault.retry_after))
    return {gang: merged(times) for gang, times in refused.items()}


def leader_changes(history: History) -> int:
    """Return how often the lease passed from one process to another."""
    holders = [write.holder for write in history.writes if write.verb == "lease" and write.holder]
    return sum(left != right for left, right in pairwise(holders))


def _ends(change: ProcessChange, renewal: AuditedWrite) -> bool:
    """Return whether a change ends the process that renewed the lease, or a later one of its replica."""
    is_end = change.event in ("kill", "exit") and change.replica == renewal.replica
    return is_end and change.time >= renewal.time


def _faults(history: History, replica: int) -> Iterable[Fault]:
    return (fault for fault in history.faults if fault.replica == replica)


def _is_watched(path: str) -> bool:
    return path.rstrip("/").rpartition("/")[2] in WATCHED
