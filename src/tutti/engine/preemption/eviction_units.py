"""Eviction units: which pods are evicted together, and which of two victim sets is the smaller loss.

A unit is a pod without a gang, a member of a gang that may be evicted pod by pod, a member above the minimum of a gang
that may not, or a whole gang. Of two sets of units the better set violates fewer disruption budgets; then has the lower
highest priority; then causes fewer disruptions; then has fewer pods; then breaks fewer gangs; then has the lower sum of
priorities; then the later start, as kube-scheduler compares it; then the first names, so that the result is always the
same. A disruption is a pod without a gang, a pod of a gang that may be evicted pod by pod, or another gang that breaks.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain

import msgspec
import numpy as np

from tutti.cluster.cluster import Cluster
from tutti.cluster.columns import Bools, Ints, Rows
from tutti.cluster.indexes.groups import NO_GROUP
from tutti.engine.gangs.cluster_gangs import Gangs
from tutti.engine.gangs.gang_state import GangState
from tutti.engine.plugins.attached_cache import AttachedCache
from tutti.engine.preemption.disruption_budgets import Budgets
from tutti.engine.preemption.victim_rules import VictimRules
from tutti.kube.gangs.gang import DisruptionMode, Gang

_NO_RULES = VictimRules()

Loss = tuple[int, int, int, int, int, int, int, tuple[str, ...]]
"""How bad the eviction of a set of units is, in the order of the module's docstring; lower is better."""


class EvictionUnit(msgspec.Struct, frozen=True, eq=False, gc=False):
    """Pods that are evicted together."""

    rows: tuple[int, ...]
    priority: int
    gang: str | None = None
    whole: bool = True
    """Whether the unit is a gang with all of its pods, or a pod without a gang."""


class RunningGang(msgspec.Struct, frozen=True, eq=False, gc=False):
    """A gang with running pods, and how many of these can be evicted without breaking it."""

    state: GangState

    @property
    def gang(self) -> Gang:
        """The gang's record."""
        return self.state.gang

    @property
    def surplus(self) -> int:
        """How many pods run above the minimum, where members that have succeeded count towards the minimum."""
        return self.state.present - self.gang.minimum

    def is_broken_without(self, evicted: Iterable[int]) -> bool:
        """Return whether the gang falls below a minimum without some pods."""
        return self.state.without(evicted).is_short


class _UnitCache:
    """The units of running gangs, cached until the gang changes."""

    def __init__(self, gangs: Gangs) -> None:
        self._gangs = gangs
        self._entries: dict[str, tuple[list[int], Gang, int, RunningGang, list[EvictionUnit]]] = {}
        """By gang: the rows, record and priority for which the units were made, and the units."""
        gangs.watch(self._drop)

    def _drop(self, key: str) -> None:
        self._entries.pop(key, None)

    def of(self, gang: Gang, rows: list[int], priority: int) -> tuple[RunningGang, list[EvictionUnit]]:
        """Return the units of a gang with these running pods."""
        entry = self._entries.get(gang.key)
        if entry is not None and entry[0] == rows and entry[1] is gang and entry[2] == priority:
            return entry[3], entry[4]
        running = RunningGang(self._gangs.state_with(gang.key, rows))
        pod_by_pod = gang.disruption is DisruptionMode.SINGLE
        units: list[EvictionUnit] = []
        if pod_by_pod or (gang.disruption is DisruptionMode.WHOLE and running.surplus > 0):
            units += [EvictionUnit((row,), priority, gang.key, whole=False) for row in rows]
        if not pod_by_pod:
            units.append(EvictionUnit(tuple(rows), priority, gang.key))
        self._entries[gang.key] = rows, gang, priority, running, units
        return running, units


_UNIT_CACHES: AttachedCache[Gangs, _UnitCache] = AttachedCache(_UnitCache)


class EvictionUnits:
    """All units of a cluster that a preemptor of a priority may evict."""

    def __init__(
        self,
        cluster: Cluster,
        gangs: Gangs,
        budgets: Budgets,
        preemptor_priority: int,
        *,
        include_equal: bool = False,
        preemptor: str = "",
        rules: VictimRules = _NO_RULES,
        scheduler_name: str = "",
    ) -> None:
        """Collect the units below a priority; `preemptor` is the gang that needs the room and is never a victim.

        `rules` say which pods the scheduler of a name may evict; a gang with another pod is not evicted as a whole.
        """
        self.cluster, self._budgets, self._preemptor, self._rules = cluster, budgets, preemptor, rules
        self.running: dict[str, RunningGang] = {}
        self.units: list[EvictionUnit] = []
        pods, length = cluster.pods, cluster.pods.length
        limit = preemptor_priority + 1 if include_equal else preemptor_priority
        is_evictable = (pods.node[:length] >= 0) & ~pods.terminating[:length]
        is_evictable[is_evictable] = cluster.nodes.on[pods.node[:length][is_evictable]]
        single_rows = np.flatnonzero(
            is_evictable & (pods.group[:length] == NO_GROUP) & (pods.priority[:length] < limit)
        )
        for row, priority in zip(single_rows.tolist(), pods.priority[single_rows].tolist(), strict=True):
            self.units.append(EvictionUnit((row,), priority))
        self._add_gangs(gangs, np.flatnonzero(is_evictable & (pods.group[:length] != NO_GROUP)), limit)
        if rules != _NO_RULES:
            self._drop_protected(scheduler_name)
        # Sorted by name, so that ties do not depend on the order in which pods were added.
        self.units.sort(key=lambda unit: (unit.gang or pods.keys[unit.rows[0]], unit.whole, pods.keys[unit.rows[0]]))
        self._build_columns()

    def _add_gangs(self, gangs: Gangs, rows: Rows, limit: int) -> None:
        """Add the units of the gangs to which the pods in some rows belong."""
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
        waiting, unit_cache = self._waiting(gangs), _UNIT_CACHES.of(gangs)
        records = gangs.records(roots[starts].tolist())
        for start, end, top, gang in zip(starts.tolist(), ends, highest, records, strict=True):
            key, gang_rows = gang.key, listed[start:end]
            if gang.priority is None and top < limit and roots[start] in waiting:
                top = int(priorities[gangs.rows(key)].max())  # waiting members count as well
            priority = gang.priority if gang.priority is not None else top
            if priority >= limit or key == self._preemptor:
                continue
            self.running[key], units = unit_cache.of(gang, gang_rows, priority)
            self.units += units

    def _drop_protected(self, scheduler_name: str) -> None:
        """Drop the units with a pod that the rules do not allow to evict."""
        rows = np.array([row for unit in self.units for row in unit.rows], dtype=np.intp)
        allowed = self._rules.may_evict(self.cluster, rows, scheduler_name)
        protected = set(rows[~allowed].tolist())
        self.units = [unit for unit in self.units if protected.isdisjoint(unit.rows)]

    def _waiting(self, gangs: Gangs) -> set[int]:
        """Return the gangs with waiting pods, by their positions in `root_keys`."""
        pods, length = self.cluster.pods, self.cluster.pods.length
        rows = np.flatnonzero((pods.node[:length] < 0) & (pods.group[:length] != NO_GROUP))
        return set(gangs.roots_of(pods.group[rows]).tolist())

    def _build_columns(self) -> None:
        """Build the columns by which sets of units are compared."""
        pods = self.cluster.pods
        self.pods: Rows = np.array(list(chain.from_iterable(unit.rows for unit in self.units)), dtype=np.intp)
        """The pods of all units, unit by unit."""
        self.pod_counts: Ints = np.array([len(unit.rows) for unit in self.units], dtype=np.int64)
        self.unit_of_pod: Rows = np.repeat(np.arange(len(self.units)), self.pod_counts)
        """For each entry of `pods`, the number of its unit."""
        self.priorities: Ints = np.array([unit.priority for unit in self.units], dtype=np.int64)
        first = np.cumsum(self.pod_counts) - self.pod_counts
        self.priority_sums: Ints = np.add.reduceat(pods.priority[self.pods], first) if len(first) else first
        """The sum of the priorities of each unit's pods."""
        self.first_starts: Ints = np.minimum.reduceat(pods.start[self.pods], first) if len(first) else first
        """When the first pod of each unit started."""

    @property
    def breaks_gang(self) -> Ints:
        """Which units, evicted alone, break a gang (1), and which do not (0)."""
        return np.array(
            [unit.whole or (unit.gang is not None and self.running[unit.gang].surplus <= 0) for unit in self.units],
            dtype=np.int64,
        )

    @property
    def is_disruption(self) -> Ints:
        """Which units, evicted alone, are a disruption (1), and which are only surplus of a gang (0)."""
        return np.array([self._is_disruption(unit) for unit in self.units], dtype=np.int64)

    def _is_disruption(self, unit: EvictionUnit) -> bool:
        if unit.whole or unit.gang is None:
            return True
        running = self.running[unit.gang]
        if running.gang.parts:
            return bool(self.disruptions((unit,)))
        return running.surplus <= 0 or running.gang.disruption is DisruptionMode.SINGLE

    @property
    def violates_budget(self) -> Bools:
        """Which units, evicted alone, violate a disruption budget."""
        if not self._budgets:
            return np.zeros(len(self.units), dtype=bool)
        return np.array([self.is_protected(u) and self.violations((u,)) > 0 for u in self.units], dtype=bool)

    def __len__(self) -> int:
        return len(self.units)

    def is_allowed(self, units: Sequence[EvictionUnit]) -> bool:
        """Return whether units may be evicted together: a gang loses all of its pods or only its surplus."""
        if self._rules.hard_budgets and self.violations(units):
            return False
        by_gang: dict[str, list[EvictionUnit]] = {}
        for unit in units:
            if unit.gang is not None:
                by_gang.setdefault(unit.gang, []).append(unit)
        for key, gang_units in by_gang.items():
            running = self.running[key]
            if running.gang.disruption is DisruptionMode.SINGLE:
                continue
            if len(gang_units) > 1 and any(unit.whole for unit in gang_units):
                return False
            if not gang_units[0].whole and running.is_broken_without(row for unit in gang_units for row in unit.rows):
                return False
        return True

    def rows(self, units: Iterable[EvictionUnit]) -> list[int]:
        """Return the pods of units, the most important first."""
        pods = self.cluster.pods
        rows = {row for unit in units for row in unit.rows}
        return sorted(rows, key=lambda row: (-int(pods.priority[row]), int(pods.start[row]), pods.keys[row]))

    def pod_names(self, unit: EvictionUnit) -> tuple[str, ...]:
        """Return the names of a unit's pods, sorted."""
        return tuple(sorted(self.cluster.pods.keys[row] for row in unit.rows))

    def is_protected(self, unit: EvictionUnit) -> bool:
        """Return whether a disruption budget selects a pod of a unit."""
        return bool(self._budgets) and self._budgets.protects(unit.rows)

    def violations(self, units: Iterable[EvictionUnit]) -> int:
        """Return how many evictions violate a disruption budget."""
        return len(self._budgets.violating(self.rows(units))) if self._budgets else 0

    def disruptions(self, units: Iterable[EvictionUnit]) -> int:
        """Return how many disruptions the eviction of units causes (see the module's docstring).

        kube-scheduler counts pods that may be evicted one by one in the same way, whether or not they are in a gang.
        """
        units = tuple(units)
        others = [unit for unit in units if not self._is_evicted_by_itself(unit)]
        return len(units) - len(others) + self.broken_gangs(others)

    def _is_evicted_by_itself(self, unit: EvictionUnit) -> bool:
        return unit.gang is None or self.running[unit.gang].gang.disruption is DisruptionMode.SINGLE

    def broken_gangs(self, units: Iterable[EvictionUnit]) -> int:
        """Return how many gangs break; a pod without a gang counts as a gang of one."""
        total = 0
        evicted: dict[str, list[int]] = {}
        for unit in units:
            if unit.gang is None:
                total += 1
            else:
                evicted.setdefault(unit.gang, []).extend(unit.rows)
        return total + sum(self.running[key].is_broken_without(rows) for key, rows in evicted.items())

    def loss(self, units: Sequence[EvictionUnit]) -> Loss:
        """Return the loss of a set of units."""
        pods = self.cluster.pods
        rows = self.rows(units)
        priorities = [int(pods.priority[row]) for row in rows]
        highest = max((unit.priority for unit in units), default=-(2**63))
        top = max(priorities, default=0)
        first = min((int(pods.start[r]) for r, p in zip(rows, priorities, strict=True) if p == top), default=0)
        names = tuple(sorted(pods.keys[row] for row in rows))
        counts = self.violations(units), highest, self.disruptions(units), len(rows), self.broken_gangs(units)
        return *counts, sum(priorities), -first, names
