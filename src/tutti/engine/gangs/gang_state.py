"""The state of a gang: which of its pods run, which wait, and how many pods it still needs.

Contract: frozen records, made by `cluster_gangs`. Rows are rows of the cluster's pod table.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum

import msgspec
from msgspec.structs import replace

from tutti.kube.gangs.gang import Gang, GangPart, GangTopology


class Need(msgspec.Struct, frozen=True, gc=False):
    """The pods that a gang, or a part of it, still needs: how many, which waiting pods, and near which running pods.

    A need is a tree like the gang: the needs of parts are `parts`.
    """

    name: str
    missing: int
    """How many more pods reach the minimum, pods of parts included."""
    waiting: tuple[int, ...]
    """The waiting pods that belong to no part."""
    running: tuple[int, ...]
    """All running pods, those of parts included."""
    topology: GangTopology = GangTopology()
    parts: tuple[Need, ...] = ()
    parts_needed: int = 0
    """How many of the parts that still need pods must reach their minimum."""

    @property
    def least(self) -> int:
        """The lowest number of pods that meets this need and the needs of its parts."""
        if not self.parts:
            return self.missing
        part_minimums = sorted(part.least for part in self.parts if part.least)
        return max(self.missing, sum(part_minimums[: self.parts_needed]))

    @property
    def all_waiting(self) -> tuple[int, ...]:
        """All waiting pods, those of parts included."""
        if not self.parts:
            return self.waiting
        return (*self.waiting, *(row for part in self.parts for row in part.all_waiting))

    @property
    def has_enough_pods(self) -> bool:
        """Whether enough pods wait, also in every part that must reach its minimum."""
        if not self.parts:
            return self.missing <= len(self.waiting)
        ready = sum(1 for part in self.parts if part.least and part.has_enough_pods)
        return self.missing <= len(self.all_waiting) and ready >= self.parts_needed

    @property
    def has_preferences(self) -> bool:
        """Whether the gang or a part of it has a preferred topology."""
        return bool(self.topology.preferred) or any(part.has_preferences for part in self.parts)

    @property
    def needs_every_part(self) -> bool:
        """Whether every part that still needs pods must reach its minimum."""
        return self.parts_needed >= sum(1 for part in self.parts if part.least)


class GangPhase(StrEnum):
    """How far a gang has come; every question whether a gang runs has its answer here."""

    PROBLEM = "problem"
    """Its declaration is invalid, so that its minimum is not known."""
    WAITING = "waiting"
    """None of its pods runs, and it needs some."""
    PARTIAL = "partial"
    """Some of its pods run, but fewer than a minimum."""
    WHOLE = "whole"
    """It has reached all its minimums, with members that run or have succeeded."""


class GangState(msgspec.Struct, frozen=True, gc=False):
    """A gang and its pods at one moment."""

    gang: Gang
    running: tuple[int, ...]
    """Pods on nodes that are not terminating."""
    waiting: tuple[int, ...]
    """Pending pods that may start, in the order in which they are placed."""
    part_of: dict[int, str]
    succeeded: tuple[str, ...] = ()
    """The parts of the members that have succeeded, one entry each: they count towards stated minimums."""

    @property
    def phase(self) -> GangPhase:
        """Return how far the gang has come."""
        if self.gang.problem is not None:
            return GangPhase.PROBLEM
        if self.is_short:
            return GangPhase.PARTIAL if self.running else GangPhase.WAITING
        return GangPhase.WHOLE if self.running or self.succeeded else GangPhase.WAITING

    @property
    def is_short(self) -> bool:
        """Whether fewer members than a minimum of the gang, or of a part of it, run or have succeeded."""
        if not self.gang.parts:
            return self.present < self.gang.minimum
        return self.need().least > 0

    @property
    def present(self) -> int:
        """How many members count towards the minimum: those that run and those that have succeeded."""
        return len(self.running) + len(self.succeeded)

    def with_more_running(self, rows: Iterable[int]) -> GangState:
        """Return the state once pods in these rows run as well, and no pod waits."""
        return replace(self, running=(*self.running, *rows), waiting=())

    def without(self, rows: Iterable[int]) -> GangState:
        """Return the state once running pods in these rows have left."""
        left = set(rows)
        return replace(self, running=tuple(row for row in self.running if row not in left))

    def need(self) -> Need:
        """Return the pods that the gang still needs to reach its minimums."""
        gang = self.gang
        whole = GangPart(gang.key, gang.minimum, gang.topology, gang.parts, gang.parts_needed)
        return self._need(whole, is_whole_gang=True)

    def _need(self, part: GangPart, *, is_whole_gang: bool = False) -> Need:
        """Return the pods that a part, or the whole gang, still needs."""
        part_needs = tuple(self._need(each) for each in part.parts)
        below = set(names_below(part))
        if is_whole_gang:
            running = self.running
            waiting = tuple(row for row in self.waiting if self.part_of[row] not in below) if below else self.waiting
        else:
            running = tuple(row for row in self.running if self.part_of[row] == part.name or self.part_of[row] in below)
            waiting = tuple(row for row in self.waiting if self.part_of[row] == part.name)
        parts_to_reach = len(part_needs) if part.parts_needed is None else part.parts_needed
        parts_needed = max(parts_to_reach - sum(1 for each in part_needs if not each.least), 0)
        done = len(self.succeeded) if is_whole_gang else sum(p == part.name or p in below for p in self.succeeded)
        missing = max(part.minimum - len(running) - done, 0)
        return Need(part.name, missing, waiting, running, part.topology, part_needs, parts_needed)

    def need_of_one_more(self, row: int) -> Need:
        """Return the need for one more pod, within the topology of its gang and parts."""
        gang, inner = self.gang, None
        for part in reversed(_path(gang.parts, self.part_of[row])):
            below = {part.name, *names_below(part)}
            running = tuple(r for r in self.running if self.part_of[r] in below)
            if inner is None:
                inner = Need(part.name, 1, (row,), running, part.topology)
            else:
                inner = Need(part.name, 0, (), running, part.topology, (inner,), 1)
        if inner is None:
            return Need(gang.key, 1, (row,), self.running, gang.topology)
        return Need(gang.key, 0, (), self.running, gang.topology, (inner,), 1)

    def need_of_all_waiting(self) -> Need:
        """Return the need for all waiting pods, whatever the minimums."""
        return _for_all(self.need())

    @property
    def surplus(self) -> int:
        """How many more pods may start once the minimums are reached."""
        most = self.gang.maximum
        return len(self.waiting) if most is None else max(most - len(self.running), 0)


def _path(parts: Iterable[GangPart], name: str) -> list[GangPart]:
    """Return the parts from the outermost part to the part with this name; empty if there is no such part."""
    for part in parts:
        if part.name == name:
            return [part]
        below = _path(part.parts, name)
        if below:
            return [part, *below]
    return []


def _for_all(need: Need) -> Need:
    """Return a need that takes all waiting pods."""
    parts = tuple(_for_all(part) for part in need.parts)
    missing = len(need.all_waiting)
    parts_needed = sum(1 for part in parts if part.least)
    return Need(need.name, missing, need.waiting, need.running, need.topology, parts, parts_needed)


def names_below(part: GangPart) -> Iterable[str]:
    """Yield the names of all parts within a part."""
    for each in part.parts:
        yield each.name
        yield from names_below(each)
