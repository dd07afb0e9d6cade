"""All sets of a few eviction units, sorted by loss, on columns.

A set is an integer whose bits say which units it contains.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from tutti.cluster.columns import Bools, Ints
from tutti.engine.preemption.eviction_units import EvictionUnit, EvictionUnits

_LOWEST = -(2**62)


def ranked_sets(
    candidates: EvictionUnits, units: Sequence[EvictionUnit], masks: Ints, *, fewest: bool
) -> Iterator[tuple[EvictionUnit, ...]]:
    """Yield the allowed sets among `masks`, the smallest loss first; with `fewest`, the fewest pods first."""
    if not len(masks):
        return
    sets = _SetColumns(candidates, units, masks)
    keys = [
        sets.name_order(),
        -sets.first_start(),
        sets.priority_sums(),
        sets.sum_over_gangs(candidates.broken_gangs),
        sets.pod_counts(),
        sets.sum_over_gangs(candidates.disruptions),
        sets.highest_priority(),
        sets.violations(),
    ]
    if fewest:
        keys.append(sets.pod_counts())
    order = np.lexsort(keys)
    for position in order[sets.allowed()[order]].tolist():
        yield sets.units_of(int(masks[position]))


class _SetColumns:
    """Columns with one entry per set, for sorting."""

    def __init__(self, candidates: EvictionUnits, units: Sequence[EvictionUnit], masks: Ints) -> None:
        self._candidates, self._units = candidates, units
        self._contains: Bools = (masks[:, np.newaxis] >> np.arange(len(units))) & 1 == 1
        pods = candidates.cluster.pods
        self._priorities = [pods.priority[list(unit.rows)] for unit in units]
        self._starts = [pods.start[list(unit.rows)] for unit in units]
        self._gangs: dict[str, list[int]] = {}
        for position, unit in enumerate(units):
            if unit.gang is not None:
                self._gangs.setdefault(unit.gang, []).append(position)

    def units_of(self, mask: int) -> tuple[EvictionUnit, ...]:
        """Return the units of one set."""
        return tuple(unit for bit, unit in enumerate(self._units) if mask >> bit & 1)

    def name_order(self) -> Ints:
        """Return integers that sort sets of one size by the names of their units; the units are sorted by name."""
        return -self._sum_over_units([1 << position for position in reversed(range(len(self._units)))])

    def pod_counts(self) -> Ints:
        """Return the number of pods of each set."""
        return self._sum_over_units([len(unit.rows) for unit in self._units])

    def priority_sums(self) -> Ints:
        """Return the sum of priorities of each set."""
        return self._sum_over_units([int(p.sum()) for p in self._priorities])

    def _sum_over_units(self, values: list[int]) -> Ints:
        """Return the sum of a value over the units of each set."""
        total: Ints = np.where(self._contains, np.array(values, dtype=np.int64), 0).sum(axis=1)
        return total

    def highest_priority(self) -> Ints:
        """Return the highest priority of a unit of each set."""
        highest: Ints = np.where(self._contains, np.array([unit.priority for unit in self._units]), _LOWEST).max(axis=1)
        return highest

    def first_start(self) -> Ints:
        """Return when the first of the most important pods of each set started."""
        highest_of_unit = np.array([int(p.max()) for p in self._priorities])
        start_of_unit = np.array(
            [int(s[p == p.max()].min()) for s, p in zip(self._starts, self._priorities, strict=True)]
        )
        priorities = np.where(self._contains, highest_of_unit, _LOWEST)
        highest = priorities.max(axis=1)
        start: Ints = np.where(priorities == highest[:, np.newaxis], start_of_unit, 2**63 - 1).min(axis=1)
        return start

    def sum_over_gangs(self, number_of: Callable[[tuple[EvictionUnit, ...]], int]) -> Ints:
        """Return for each set the sum of a number over its gangs; a pod without a gang counts as one."""
        total = self._sum_over_units([int(unit.gang is None) for unit in self._units])
        for positions in self._gangs.values():
            total += self._by_pattern(positions, lambda units: number_of(units) if units else 0)
        return total

    def violations(self) -> Ints:
        """Return how many evictions of each set violate a disruption budget."""
        positions = [position for position, unit in enumerate(self._units) if self._candidates.is_protected(unit)]
        if not positions:
            return np.zeros(len(self._contains), dtype=np.int64)
        return self._by_pattern(positions, self._candidates.violations)

    def allowed(self) -> Bools:
        """Return which sets break no gang in part."""
        allowed_sets = np.ones(len(self._contains), dtype=bool)
        for positions in self._gangs.values():
            allowed_sets &= self._by_pattern(positions, lambda units: int(self._candidates.is_allowed(units))) == 1
        return allowed_sets

    def _by_pattern(self, positions: list[int], value_of: Callable[[tuple[EvictionUnit, ...]], int]) -> Ints:
        """Return a value that depends only on the units at some positions, computed once per combination of these."""
        codes = self._contains[:, positions] @ (1 << np.arange(len(positions)))
        patterns, inverse = np.unique(codes, return_inverse=True)
        values = [
            value_of(tuple(self._units[position] for bit, position in enumerate(positions) if pattern >> bit & 1))
            for pattern in patterns.tolist()
        ]
        return np.array(values, dtype=np.int64)[inverse]
