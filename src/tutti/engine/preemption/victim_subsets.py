"""All sets of a few units, sorted by their loss, on columns: a set is a number whose bits say which units are in it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from tutti.cluster.columns import Bools, Ints
from tutti.engine.preemption.victims import EvictionUnit, EvictionUnits

_NONE = -(2**62)


def ranked_sets(
    victims: EvictionUnits, units: Sequence[EvictionUnit], masks: Ints, *, fewest: bool
) -> Iterator[tuple[EvictionUnit, ...]]:
    """Give the allowed sets among those with the given numbers, the least loss first; or the fewest pods first."""
    if not len(masks):
        return
    sets = _Sets(victims, units, masks)
    keys = [
        sets.by_name(),
        -sets.first_start(),
        sets.sums(),
        sets.pods(),
        sets.broken(),
        sets.highest(),
        sets.violations(),
    ]
    if fewest:
        keys.append(sets.pods())
    order = np.lexsort(keys)
    for place in order[sets.allowed()[order]].tolist():
        yield sets.units_of(int(masks[place]))


class _Sets:
    def __init__(self, victims: EvictionUnits, units: Sequence[EvictionUnit], masks: Ints) -> None:
        self._victims, self._units = victims, units
        self._holds: Bools = (masks[:, np.newaxis] >> np.arange(len(units))) & 1 == 1
        pods = victims.cluster.pods
        self._priorities = [pods.priority[list(unit.rows)] for unit in units]
        self._starts = [pods.start[list(unit.rows)] for unit in units]
        self._gangs: dict[str, list[int]] = {}
        for place, unit in enumerate(units):
            if unit.gang is not None:
                self._gangs.setdefault(unit.gang, []).append(place)

    def units_of(self, mask: int) -> tuple[EvictionUnit, ...]:
        """Give the units of one set."""
        return tuple(unit for bit, unit in enumerate(self._units) if mask >> bit & 1)

    def by_name(self) -> Ints:
        """A number that sorts sets of one size by the names of their units, which stand in that order."""
        return -self._added([1 << place for place in reversed(range(len(self._units)))])

    def pods(self) -> Ints:
        """How many pods each set has."""
        return self._added([len(unit.rows) for unit in self._units])

    def sums(self) -> Ints:
        """The sum of priorities."""
        return self._added([int(p.sum()) for p in self._priorities])

    def _added(self, values: list[int]) -> Ints:
        total: Ints = np.where(self._holds, np.array(values, dtype=np.int64), 0).sum(axis=1)
        return total

    def highest(self) -> Ints:
        """The highest priority of a unit."""
        found: Ints = np.where(self._holds, np.array([u.priority for u in self._units]), _NONE).max(axis=1)
        return found

    def first_start(self) -> Ints:
        """When the first of the most important pods started."""
        top = np.array([int(p.max()) for p in self._priorities])
        first = np.array([int(s[p == p.max()].min()) for s, p in zip(self._starts, self._priorities, strict=True)])
        tops = np.where(self._holds, top, _NONE)
        most = tops.max(axis=1)
        found: Ints = np.where(tops == most[:, np.newaxis], first, 2**63 - 1).min(axis=1)
        return found

    def broken(self) -> Ints:
        """How many gangs do not go on, those of one pod included."""
        total = self._added([int(unit.gang is None) for unit in self._units])
        for places in self._gangs.values():
            total += self._by_pattern(places, lambda units: self._victims.broken(units) if units else 0)
        return total

    def violations(self) -> Ints:
        """How many evictions break a disruption budget."""
        places = [place for place, unit in enumerate(self._units) if self._victims.protected(unit)]
        if not places:
            return np.zeros(len(self._holds), dtype=np.int64)
        return self._by_pattern(places, self._victims.violations)

    def allowed(self) -> Bools:
        """Which sets leave no gang half evicted."""
        found = np.ones(len(self._holds), dtype=bool)
        for places in self._gangs.values():
            found &= self._by_pattern(places, lambda units: int(self._victims.is_allowed(units))) == 1
        return found

    def _by_pattern(self, places: list[int], ask: Callable[[tuple[EvictionUnit, ...]], int]) -> Ints:
        """Ask once for each way in which sets hold the units at some places."""
        numbers = self._holds[:, places] @ (1 << np.arange(len(places)))
        patterns, inverse = np.unique(numbers, return_inverse=True)
        answers = [
            ask(tuple(self._units[place] for bit, place in enumerate(places) if pattern >> bit & 1))
            for pattern in patterns.tolist()
        ]
        return np.array(answers, dtype=np.int64)[inverse]
