"""Victims: what may be evicted together, and which of two sets is the lesser loss.

A unit is what goes together: a pod on its own, a member of a gang that may be evicted pod by pod, a member above the
minimum of one that may not, or a whole gang. Of two sets the better one breaks fewer disruption budgets; then has the
lower highest priority; then breaks fewer gangs; then has fewer pods; then the lower sum of priorities; then the later
start, as kube-scheduler counts it; then the first names, so that the answer is always the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from tutti.cluster.cluster import Cluster
from tutti.cluster.columns import Ints
from tutti.cluster.groups import NO_GROUP
from tutti.engine.budgets import Budgets
from tutti.engine.standing import Gangs
from tutti.kube.gangs.gang import Disruption, Gang, Part

Loss = tuple[int, int, int, int, int, int, tuple[str, ...]]
"""How much a set of victims matters: see the module."""


class Unit:
    """Pods that are evicted together."""

    __slots__ = ("gang", "priority", "rows", "whole")

    def __init__(self, rows: tuple[int, ...], priority: int, gang: str | None = None, *, whole: bool = True) -> None:
        self.rows, self.priority, self.gang, self.whole = rows, priority, gang, whole
        """`whole` says that this is a gang with all of its pods, or a pod on its own."""


class Running:
    """A gang that runs: how many of its pods could go without breaking it."""

    __slots__ = ("gang", "part_of", "rows")

    def __init__(self, gang: Gang, rows: Sequence[int], part_of: dict[int, str]) -> None:
        self.gang, self.rows, self.part_of = gang, rows, part_of

    @property
    def spare(self) -> int:
        """How many pods run above the minimum."""
        return len(self.rows) - _least(self.gang)

    def broken_without(self, gone: Iterable[int]) -> bool:
        """Say whether the gang falls below a minimum without some pods."""
        left = set(self.rows) - set(gone)
        return len(left) < self.gang.minimum or any(self._short(part, left) for part in self.gang.parts)

    def _short(self, part: Part, left: set[int]) -> bool:
        if part.parts:
            reached = sum(not self._short(each, left) for each in part.parts)
            return reached < (len(part.parts) if part.parts_needed is None else part.parts_needed)
        return sum(self.part_of[row] == part.name for row in left) < part.minimum


def _least(gang: Gang) -> int:
    return max(gang.minimum, sum(part.minimum for part in gang.parts))


class Victims:
    """All units of a cluster that matter less than a priority."""

    def __init__(
        self, cluster: Cluster, gangs: Gangs, budgets: Budgets, below: int, *, equals: bool = False, but: str = ""
    ) -> None:
        """Find the units; `but` is the gang that they are to make room for, which is no victim of its own."""
        self.cluster, self._budgets, self._but = cluster, budgets, but
        self.running: dict[str, Running] = {}
        self.units: list[Unit] = []
        pods, length = cluster.pods, cluster.pods.length
        limit = below + 1 if equals else below
        live = (pods.node[:length] >= 0) & ~pods.terminating[:length]
        live[live] = cluster.nodes.on[pods.node[:length][live]]
        alone = np.flatnonzero(live & (pods.group[:length] == NO_GROUP) & (pods.priority[:length] < limit))
        for row, priority in zip(alone.tolist(), pods.priority[alone].tolist(), strict=True):
            self.units.append(Unit((row,), priority))
        self._add_gangs(gangs, np.flatnonzero(live & (pods.group[:length] != NO_GROUP)), limit)

    def _add_gangs(self, gangs: Gangs, rows: Ints, limit: int) -> None:
        members: dict[str, list[int]] = {}
        for row in rows.tolist():
            key = gangs.key_of(row)
            if key is not None and key != self._but:
                members.setdefault(key, []).append(row)
        priorities = self.cluster.pods.priority
        for key, mine in members.items():
            gang = gangs.gang(key)
            priority = gang.priority if gang.priority is not None else int(priorities[mine].max())
            if priority >= limit:
                continue
            running = self.running[key] = Running(gang, mine, gangs.parts_of(key))
            if gang.disruption is Disruption.SINGLE:
                self.units += [Unit((row,), priority, key, whole=False) for row in mine]
                continue
            if gang.disruption is Disruption.WHOLE and running.spare > 0:
                self.units += [Unit((row,), priority, key, whole=False) for row in mine]
            self.units.append(Unit(tuple(mine), priority, key))

    def __len__(self) -> int:
        return len(self.units)

    def is_allowed(self, units: Sequence[Unit]) -> bool:
        """Say whether units may be evicted together: a gang goes whole or without its surplus, not half."""
        by_gang: dict[str, list[Unit]] = {}
        for unit in units:
            if unit.gang is not None:
                by_gang.setdefault(unit.gang, []).append(unit)
        for key, mine in by_gang.items():
            running = self.running[key]
            if running.gang.disruption is Disruption.SINGLE:
                continue
            if len(mine) > 1 and any(unit.whole for unit in mine):
                return False
            if not mine[0].whole and running.broken_without(row for unit in mine for row in unit.rows):
                return False
        return True

    def rows(self, units: Iterable[Unit]) -> list[int]:
        """Give the pods of units, the most important first."""
        pods = self.cluster.pods
        rows = [row for unit in units for row in unit.rows]
        return sorted(rows, key=lambda row: (-int(pods.priority[row]), int(pods.start[row]), pods.keys[row]))

    def names(self, unit: Unit) -> tuple[str, ...]:
        """Give the names of a unit's pods."""
        return tuple(sorted(self.cluster.pods.keys[row] for row in unit.rows))

    def protected(self, unit: Unit) -> bool:
        """Say whether a disruption budget covers a pod of a unit."""
        return bool(self._budgets) and self._budgets.protects(unit.rows)

    def violations(self, units: Iterable[Unit]) -> int:
        """Count the evictions that break a disruption budget."""
        return len(self._budgets.violating(self.rows(units))) if self._budgets else 0

    def broken(self, units: Iterable[Unit]) -> int:
        """Count the gangs, those of one pod included, that do not go on."""
        total = 0
        gone: dict[str, list[int]] = {}
        for unit in units:
            if unit.gang is None:
                total += 1
            else:
                gone.setdefault(unit.gang, []).extend(unit.rows)
        return total + sum(self.running[key].broken_without(rows) for key, rows in gone.items())

    def loss(self, units: Sequence[Unit]) -> Loss:
        """Say how much a set of victims matters."""
        pods = self.cluster.pods
        rows = self.rows(units)
        priorities = [int(pods.priority[row]) for row in rows]
        highest = max((unit.priority for unit in units), default=-(2**63))
        top = max(priorities, default=0)
        first = min((int(pods.start[r]) for r, p in zip(rows, priorities, strict=True) if p == top), default=0)
        names = tuple(sorted(pods.keys[row] for row in rows))
        return self.violations(units), highest, self.broken(units), len(rows), sum(priorities), -first, names
