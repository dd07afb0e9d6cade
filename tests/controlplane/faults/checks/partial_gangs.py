"""Partial gangs: times at which some pods of a gang had a node, and fewer than its minimum.

A pod counts from its bind until it ends, is gone, or is being deleted. A gang counts until the workload deletes it.

Contract: pure functions of a history; the order of pod changes is that of the API server.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

import msgspec

from tests.controlplane.faults.checks.history import History
from tests.controlplane.faults.checks.intervals import Interval, intersected, total, without


class PartialGang(msgspec.Struct, frozen=True):
    """One period in which a gang was partial."""

    gang: str
    start: float
    end: float
    able: float
    """Seconds of the period in which the scheduler could act."""
    was_whole: bool
    """Whether the gang had its minimum before."""
    is_open: bool
    """Whether the gang was partial when the run ended."""

    @property
    def seconds(self) -> float:
        """Return the length of the period."""
        return self.end - self.start


def partial_gangs(
    history: History, able: Sequence[Interval], refused: Mapping[str, Sequence[Interval]]
) -> list[PartialGang]:
    """Return all periods in which gangs were partial, sorted by start.

    The scheduler could act in the intervals `able`, except for those in which writes for the gang were refused.
    """
    minimums = {gang.name: gang.minimum for gang in history.gangs if not gang.ended}
    ends = {gang.name: gang.time for gang in history.gangs if gang.ended}
    members: dict[str, set[str]] = defaultdict(set)
    since: dict[str, float] = {}
    whole: set[str] = set()
    found: list[PartialGang] = []

    def close(gang: str, end: float, *, is_open: bool = False) -> None:
        start = since.pop(gang)
        if start < end:
            seconds = total(without(intersected([(start, end)], able), refused.get(gang, ())))
            found.append(PartialGang(gang, start, end, seconds, gang in whole, is_open))

    for pod in history.pods:
        minimum = minimums.get(pod.gang)
        if minimum is None:
            continue
        if pod.is_running and not pod.deleting:
            members[pod.gang].add(pod.uid)
        else:
            members[pod.gang].discard(pod.uid)
        end = ends.get(pod.gang, history.end)
        count = len(members[pod.gang])
        if 0 < count < minimum:
            if pod.time < end:
                since.setdefault(pod.gang, pod.time)
            continue
        if pod.gang in since:
            close(pod.gang, min(pod.time, end))
        if count >= minimum:
            whole.add(pod.gang)
    for gang in list(since):
        close(gang, ends.get(gang, history.end), is_open=gang not in ends)
    return sorted(found, key=lambda period: period.start)
