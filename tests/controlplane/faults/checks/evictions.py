"""Evictions: was each pod that the scheduler evicted evicted for somebody?

A victim of preemption has a beneficiary: a gang of a higher priority that waited at that moment or shortly before; if
pods were nominated to the victim's node, they are the candidates. A pod whose gang was partial before the first of its
evictions is a member that the scheduler undoes, and so is a pod that was not told of a preemption; then the beneficiary
is the victim's own gang, whose replacements wait again. A beneficiary must start, be told why it waits, or have been
deleted by its user.

Contract: pure functions of a history.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

import msgspec

from tests.controlplane.faults.checks.history import AuditedWrite, History, PodChange
from tests.controlplane.faults.checks.intervals import Interval
from tests.controlplane.faults.checks.partial_gangs import partial_gangs

PREEMPTED = "PreemptionByScheduler"
_NOTICE = 1.0
"""Seconds in which the recorder sees the effect of an eviction."""
_LATE = 10.0
"""Seconds by which faults may delay the last eviction for a gang."""
_NOMINATION_WINDOW = 5.0
"""Seconds around an eviction in which a nomination to the victim's node names the beneficiary."""


class UselessEviction(msgspec.Struct, frozen=True):
    """An eviction without a beneficiary."""

    time: float
    pod: str
    gang: str
    problem: str


def useless_evictions(history: History) -> list[UselessEviction]:
    """Return the evictions of which nobody had a benefit."""
    lives: dict[str, list[PodChange]] = defaultdict(list)
    names: dict[str, str] = {}
    for pod in history.pods:
        lives[pod.uid].append(pod)
        names[pod.name] = pod.uid
    ended = {gang.name for gang in history.gangs if gang.ended}
    evictions = [
        (write, victim)
        for write in history.writes
        if write.verb in ("evict", "delete")
        and (victim := _victim(lives.get(write.uid or names.get(write.name, ""), []))) is not None
        and victim.node
    ]
    undone = _undone_times(history, evictions)
    found = []
    for write, victim in evictions:
        is_undone = victim.disruption != PREEMPTED or _is_within(write.time, undone.get(victim.gang, ()))
        problem = _problem(write, victim, lives, ended, is_undone=is_undone)
        if problem:
            found.append(UselessEviction(write.time, victim.name, victim.gang, problem))
    return found


def preempted_pods(history: History) -> int:
    """Return how many pods were victims of preemption."""
    return len({pod.uid for pod in history.pods if pod.disruption == PREEMPTED})


def _undone_times(history: History, evictions: list[tuple[AuditedWrite, PodChange]]) -> dict[str, list[Interval]]:
    """Return the periods in which gangs were partial, if no eviction of their pods had begun them."""
    times: dict[str, list[Interval]] = defaultdict(list)
    for period in partial_gangs(history, [], {}):
        earlier = (period.start - _NOTICE, period.start)
        if not any(victim.gang == period.gang and _is_within(write.time, [earlier]) for write, victim in evictions):
            times[period.gang].append((period.start, period.end))
    return times


def _is_within(time: float, intervals: Iterable[Interval]) -> bool:
    return any(start <= time <= end for start, end in intervals)


def _victim(life: list[PodChange]) -> PodChange | None:
    """Return the victim as it was before it was deleted, with the last condition it was given."""
    before = [pod for pod in life if not pod.deleting and not pod.gone]
    if not before:
        return None
    disruption = next((pod.disruption for pod in reversed(life) if pod.disruption), "")
    return msgspec.structs.replace(before[-1], disruption=disruption)


def _problem(
    write: AuditedWrite, victim: PodChange, lives: dict[str, list[PodChange]], ended: set[str], *, is_undone: bool
) -> str:
    if not is_undone:
        waiting = {
            uid for uid, life in lives.items() if life[0].priority > victim.priority and _waited(life, write.time)
        }
        nominated = {uid for uid in waiting if _is_nominated(lives[uid], victim.node, write.time)}
        candidates = nominated or waiting
        if not candidates:
            return "no pod of a higher priority waited"
    else:
        candidates = {uid for uid, life in lives.items() if life[0].gang == victim.gang and uid != victim.uid}
        if victim.gang in ended or not victim.gang:
            return ""
    if any(_is_served(lives[uid], write.time, ended) for uid in candidates):
        return ""
    return "no beneficiary has started or knows why it waits"


def _waited(life: list[PodChange], time: float) -> bool:
    """Return whether a pod waited at a time, or shortly before: an eviction may be late because it was refused."""
    before = [pod for pod in life if pod.time <= time]
    first = next((index for index, pod in enumerate(before) if pod.time > time - _LATE), len(before))
    return any(pod.is_pending for pod in before[max(first - 1, 0) :])


def _is_nominated(life: list[PodChange], node: str, time: float) -> bool:
    return any(pod.nominated == node and abs(pod.time - time) <= _NOMINATION_WINDOW for pod in life)


def _is_served(life: list[PodChange], time: float, ended: set[str]) -> bool:
    """Return whether a pod started or left after a time, or says at the end why it waits."""
    last = life[-1]
    if last.gang in ended or last.gone or last.deleting:
        return last.time >= time or last.gang in ended
    return bool(last.node) or bool(last.message)
