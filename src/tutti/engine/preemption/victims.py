"""Victims: what may be evicted together, and which of two sets is the lesser loss.

A unit is what goes together: a pod on its own, a member of a gang that may be evicted pod by pod, a member above the
minimum of one that may not, or a whole gang. Of two sets the better one breaks fewer disruption budgets; then has the
lower highest priority; then breaks fewer gangs; then has fewer pods; then the lower sum of priorities; then the later
start, as kube-scheduler counts it; then the first names, so that the answer is always the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain

import msgspec
import numpy as np

from tutti.cluster.cluster import Cluster
from tutti.cluster.columns import Bools, Ints, Rows
from tutti.cluster.groups import NO_GROUP
from tutti.engine.gangs.gang_state import Gangs, names_below
from tutti.engine.plugins.attached_cache import AttachedCache
from tutti.engine.preemption.disruption_budgets import Budgets
from tutti.kube.gangs.gang import DisruptionMode, Gang, GangPart

Loss = tuple[int, int, int, int, int, int, tuple[str, ...]]
"""How much a set of victims matters: see the module."""


class EvictionUnit(msgspec.Struct, frozen=True, eq=False, gc=False):
    """Pods that are evicted together."""

    rows: tuple[int, ...]
    priority: int
    gang: str | None = None
    whole: bool = True
    """Whether this is a gang with all of its pods, or a pod on its own."""


class RunningGang(msgspec.Struct, frozen=True, eq=False, gc=False):
    """A gang that runs: how many of its pods could go without breaking it."""

    gang: Gang
    rows: list[int]
    gangs: Gangs

    @property
    def spare(self) -> int:
        """How many pods run above the minimum."""
        return len(self.rows) - self.gang.minimum

    def broken_without(self, gone: Iterable[int]) -> bool:
        """Say whether the gang falls below a minimum without some pods."""
        left = set(self.rows) - set(gone)
        if len(left) < self.gang.minimum or not self.gang.parts:
            return len(left) < self.gang.minimum
        parts = self.gangs.parts_of(self.gang.key)
        whole = GangPart("", 0, self.gang.topology, self.gang.parts, self.gang.parts_needed)
        return _falls_short(whole, [parts[row] for row in left])


class _KnownUnits:
    """The units of running gangs, each until its gang changes."""

    def __init__(self, gangs: Gangs) -> None:
        self._gangs = gangs
        self._known: dict[str, tuple[list[int], Gang, int, RunningGang, list[EvictionUnit]]] = {}
        """By gang: the rows, the record and the priority of which the rest was made."""
        gangs.watch(self._forget)

    def _forget(self, key: str) -> None:
        self._known.pop(key, None)

    def of(self, gang: Gang, rows: list[int], priority: int) -> tuple[RunningGang, list[EvictionUnit]]:
        """Give the units of a gang that runs with these pods."""
        known = self._known.get(gang.key)
        if known is not None and known[0] == rows and known[1] is gang and known[2] == priority:
            return known[3], known[4]
        running = RunningGang(gang, rows, self._gangs)
        single = gang.disruption is DisruptionMode.SINGLE
        units: list[EvictionUnit] = []
        if single or (gang.disruption is DisruptionMode.WHOLE and running.spare > 0):
            units += [EvictionUnit((row,), priority, gang.key, whole=False) for row in rows]
        if not single:
            units.append(EvictionUnit(tuple(rows), priority, gang.key))
        self._known[gang.key] = rows, gang, priority, running, units
        return running, units


_KNOWN_UNITS: AttachedCache[Gangs, _KnownUnits] = AttachedCache(_KnownUnits)


def _falls_short(part: GangPart, running: list[str]) -> bool:
    """Say whether a part falls below its minimum with pods running in the parts of these names."""
    names = {part.name, *names_below(part)}
    if sum(name in names for name in running) < part.minimum:
        return True
    reached = sum(not _falls_short(each, running) for each in part.parts)
    return reached < (len(part.parts) if part.parts_needed is None else part.parts_needed)


class EvictionUnits:
    """All units of a cluster that matter less than a priority."""

    def __init__(
        self, cluster: Cluster, gangs: Gangs, budgets: Budgets, below: int, *, equals: bool = False, but: str = ""
    ) -> None:
        """Find the units; `but` is the gang that they are to make room for, which is no victim of its own."""
        self.cluster, self._budgets, self._but = cluster, budgets, but
        self.running: dict[str, RunningGang] = {}
        self.units: list[EvictionUnit] = []
        pods, length = cluster.pods, cluster.pods.length
        limit = below + 1 if equals else below
        live = (pods.node[:length] >= 0) & ~pods.terminating[:length]
        live[live] = cluster.nodes.on[pods.node[:length][live]]
        alone = np.flatnonzero(live & (pods.group[:length] == NO_GROUP) & (pods.priority[:length] < limit))
        for row, priority in zip(alone.tolist(), pods.priority[alone].tolist(), strict=True):
            self.units.append(EvictionUnit((row,), priority))
        self._add_gangs(gangs, np.flatnonzero(live & (pods.group[:length] != NO_GROUP)), limit)
        # In the order of their names, so that ties do not depend on the order in which pods came.
        self.units.sort(key=lambda unit: (unit.gang or pods.keys[unit.rows[0]], unit.whole, pods.keys[unit.rows[0]]))
        self._count()

    def _add_gangs(self, gangs: Gangs, rows: Rows, limit: int) -> None:
        if not len(rows):
            return
        priorities = self.cluster.pods.priority
        roots = gangs.roots_of(self.cluster.pods.group[rows])
        order = np.argsort(roots, kind="stable")
        rows, roots = rows[order], roots[order]
        starts = np.flatnonzero(np.r_[True, roots[1:] != roots[:-1]])
        highest = np.maximum.reduceat(self.cluster.pods.priority[rows], starts).tolist()
        ends = [*starts[1:].tolist(), len(rows)]
        listed = rows.tolist()
        waiting, known = self._waiting(gangs), _KNOWN_UNITS.of(gangs)
        records = gangs.records(roots[starts].tolist())
        for start, end, top, gang in zip(starts.tolist(), ends, highest, records, strict=True):
            key, mine = gang.key, listed[start:end]
            if gang.priority is None and top < limit and roots[start] in waiting:
                top = int(priorities[gangs.rows(key)].max())  # members that wait count as well
            priority = gang.priority if gang.priority is not None else top
            if priority >= limit or key == self._but:
                continue
            self.running[key], units = known.of(gang, mine, priority)
            self.units += units

    def _waiting(self, gangs: Gangs) -> set[int]:
        """Give the gangs, by their places, of which pods wait."""
        pods, length = self.cluster.pods, self.cluster.pods.length
        rows = np.flatnonzero((pods.node[:length] < 0) & (pods.group[:length] != NO_GROUP))
        return set(gangs.roots_of(pods.group[rows]).tolist())

    def _count(self) -> None:
        """Put what matters about units into columns."""
        pods = self.cluster.pods
        self.pods: Rows = np.array(list(chain.from_iterable(unit.rows for unit in self.units)), dtype=np.intp)
        """The pods of all units, one unit after the other."""
        self.counts: Ints = np.array([len(unit.rows) for unit in self.units], dtype=np.int64)
        self.owner: Rows = np.repeat(np.arange(len(self.units)), self.counts)
        """The unit of each of the pods."""
        self.priorities: Ints = np.array([unit.priority for unit in self.units], dtype=np.int64)
        first = np.cumsum(self.counts) - self.counts
        self.sums: Ints = np.add.reduceat(pods.priority[self.pods], first) if len(first) else first
        """The sum of the priorities of each unit's pods."""
        self.starts: Ints = np.minimum.reduceat(pods.start[self.pods], first) if len(first) else first
        """When the first pod of each unit started."""

    @property
    def breaking(self) -> Ints:
        """Which units, evicted alone, end a gang (1), and which do not (0)."""
        return np.array(
            [unit.whole or (unit.gang is not None and self.running[unit.gang].spare <= 0) for unit in self.units],
            dtype=np.int64,
        )

    @property
    def violating(self) -> Bools:
        """Which units, evicted alone, break a disruption budget."""
        if not self._budgets:
            return np.zeros(len(self.units), dtype=bool)
        return np.array([self.protected(u) and self.violations((u,)) > 0 for u in self.units], dtype=bool)

    def __len__(self) -> int:
        return len(self.units)

    def is_allowed(self, units: Sequence[EvictionUnit]) -> bool:
        """Say whether units may be evicted together: a gang goes whole or without its surplus, not half."""
        by_gang: dict[str, list[EvictionUnit]] = {}
        for unit in units:
            if unit.gang is not None:
                by_gang.setdefault(unit.gang, []).append(unit)
        for key, mine in by_gang.items():
            running = self.running[key]
            if running.gang.disruption is DisruptionMode.SINGLE:
                continue
            if len(mine) > 1 and any(unit.whole for unit in mine):
                return False
            if not mine[0].whole and running.broken_without(row for unit in mine for row in unit.rows):
                return False
        return True

    def rows(self, units: Iterable[EvictionUnit]) -> list[int]:
        """Give the pods of units, the most important first."""
        pods = self.cluster.pods
        rows = {row for unit in units for row in unit.rows}
        return sorted(rows, key=lambda row: (-int(pods.priority[row]), int(pods.start[row]), pods.keys[row]))

    def names(self, unit: EvictionUnit) -> tuple[str, ...]:
        """Give the names of a unit's pods."""
        return tuple(sorted(self.cluster.pods.keys[row] for row in unit.rows))

    def protected(self, unit: EvictionUnit) -> bool:
        """Say whether a disruption budget covers a pod of a unit."""
        return bool(self._budgets) and self._budgets.protects(unit.rows)

    def violations(self, units: Iterable[EvictionUnit]) -> int:
        """Count the evictions that break a disruption budget."""
        return len(self._budgets.violating(self.rows(units))) if self._budgets else 0

    def broken(self, units: Iterable[EvictionUnit]) -> int:
        """Count the gangs, those of one pod included, that do not go on."""
        total = 0
        gone: dict[str, list[int]] = {}
        for unit in units:
            if unit.gang is None:
                total += 1
            else:
                gone.setdefault(unit.gang, []).extend(unit.rows)
        return total + sum(self.running[key].broken_without(rows) for key, rows in gone.items())

    def loss(self, units: Sequence[EvictionUnit]) -> Loss:
        """Say how much a set of victims matters."""
        pods = self.cluster.pods
        rows = self.rows(units)
        priorities = [int(pods.priority[row]) for row in rows]
        highest = max((unit.priority for unit in units), default=-(2**63))
        top = max(priorities, default=0)
        first = min((int(pods.start[r]) for r, p in zip(rows, priorities, strict=True) if p == top), default=0)
        names = tuple(sorted(pods.keys[row] for row in rows))
        return self.violations(units), highest, self.broken(units), len(rows), sum(priorities), -first, names
