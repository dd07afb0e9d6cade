"""Evictions: was each pod that the scheduler evicted told so, and evicted for somebody?

Every victim has the condition DisruptionTarget. A victim of preemption has a beneficiary (`beneficiaries`). A pod whose
gang was partial before the first of its evictions is a member that the scheduler undoes, and so is a pod whose
condition has another reason or names its own gang; then the beneficiary is the victim's own gang, whose replacements
wait again. A beneficiary must start, be told after the eviction why it waits, or have been deleted by its user; and
until it starts, only so many pods are evicted for it.

Contract: pure functions of a history.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable

import msgspec

from tests.controlplane.faults.checks.beneficiaries import NOTICE, Beneficiaries
from tests.controlplane.faults.checks.history import AuditedWrite, History, PodChange
from tests.controlplane.faults.checks.intervals import Interval
from tests.controlplane.faults.checks.partial_gangs import partial_gangs

PREEMPTED = "PreemptionByScheduler"
_MOST_EVICTIONS = 32
"""How many pods may be evicted for a beneficiary that has not started since: four times the largest gangs."""


class UselessEviction(msgspec.Struct, frozen=True):
    """An eviction without a beneficiary."""

    time: float
    pod: str
    gang: str
    problem: str


def useless_evictions(history: History) -> list[UselessEviction]:
    """Return the evictions of which nobody had a benefit, or not enough."""
    return _Evictions(history).useless()


def preempted_pods(history: History) -> int:
    """Return how many pods were victims of preemption."""
    return len({pod.uid for pod in history.pods if pod.disruption == PREEMPTED})


class _Evictions:
    """All evictions of a history."""

    def __init__(self, history: History) -> None:
        self._beneficiaries = Beneficiaries(history)
        self._evictions = [
            (write, victim)
            for write in history.writes
            if write.verb in ("evict", "delete")
            and (victim := _victim(self._beneficiaries.life(write.uid, write.name))) is not None
            and victim.node
        ]
        self._undone = _undone_times(history, self._evictions)
        self._times: dict[str, list[float]] = defaultdict(list)
        """When pods were evicted, by beneficiary."""

    def useless(self) -> list[UselessEviction]:
        problems = ((write, victim, self._problem(write, victim)) for write, victim in self._evictions)
        return [UselessEviction(write.time, victim.name, victim.gang, text) for write, victim, text in problems if text]

    def _problem(self, write: AuditedWrite, victim: PodChange) -> str:
        if not victim.disruption:
            return "it has no condition DisruptionTarget"
        if self._is_undone(write, victim):
            gang = self._beneficiaries.gang(victim.gang, without=victim.uid)
            if not victim.gang or self._beneficiaries.is_served(gang, write.time):
                return ""
            return "its gang has neither started nor been told why it waits"
        beneficiary = self._beneficiaries.of(victim, write.time)
        if not beneficiary.pods:
            return "no pod of a higher priority waited"
        if not self._beneficiaries.is_served(beneficiary, write.time):
            return f"{beneficiary.name or 'each pod that waited'} has neither started nor been told why it waits"
        return self._excess(beneficiary.name, self._beneficiaries.starts(beneficiary), write.time)

    def _is_undone(self, write: AuditedWrite, victim: PodChange) -> bool:
        if victim.disruption != PREEMPTED:
            return True
        named = self._beneficiaries.named(victim.disruption_message)
        if named is not None:
            return named.name == victim.gang
        return _is_within(write.time, self._undone.get(victim.gang, ()))

    def _excess(self, name: str, starts: list[float], time: float) -> str:
        """Return a problem if too many pods were evicted for a known beneficiary since its last start."""
        if not name:
            return ""
        times = self._times[name]
        times.append(time)
        started = starts[: bisect_left(starts, time)]
        count = sum(each > started[-1] for each in times) if started else len(times)
        return f"{count} pods were evicted for {name}, which has not started" if count > _MOST_EVICTIONS else ""


def _undone_times(history: History, evictions: list[tuple[AuditedWrite, PodChange]]) -> dict[str, list[Interval]]:
    """Return the periods in which gangs were partial, if no eviction of their pods had begun them."""
    times: dict[str, list[Interval]] = defaultdict(list)
    for period in partial_gangs(history, [], {}):
        earlier = (period.start - NOTICE, period.start)
        if not any(victim.gang == period.gang and _is_within(write.time, [earlier]) for write, victim in evictions):
            times[period.gang].append((period.start, period.end))
    return times


def _is_within(time: float, intervals: Iterable[Interval]) -> bool:
    return any(start <= time <= end for start, end in intervals)


def _victim(life: list[PodChange]) -> PodChange | None:
    """Return the victim as it was before it was deleted, with its condition at the end."""
    before = [pod for pod in life if not pod.deleting and not pod.gone]
    if not before:
        return None
    told = next(pod for pod in reversed(life) if not pod.gone)
    return msgspec.structs.replace(before[-1], disruption=told.disruption, disruption_message=told.disruption_message)
