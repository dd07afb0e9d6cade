"""Proposals: which sets of victims are worth trying, by arithmetic on columns.

Contract: a set that is refused here (`is_hopeless`, `may_suffice`, `possible_sets`) truly does not suffice, as far as
more evictions can only help. A proposed set must still be tried. Room is counted for each kind of pod of the gang by
itself, in every domain of the gang's required label.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from tutti.cluster.columns import Ints, Rows
from tutti.engine.gangs.areas import PodKind
from tutti.engine.gangs.domain_room import DomainRoom
from tutti.engine.gangs.gang_state import Need
from tutti.engine.gangs.placer import GangPlacer
from tutti.engine.placement.capacity import NO_LIMIT, sum_by
from tutti.engine.plugins.base import Area
from tutti.engine.preemption.eviction_units import EvictionUnit, EvictionUnits
from tutti.engine.preemption.greedy_victims import GreedyVictims

_MAX_DOMAINS = 6
"""Largest number of domains for which victims are proposed: those that lack the least room."""


class VictimProposals:
    """Proposes shortlists of victims for one gang (see the module's contract)."""

    def __init__(self, placer: GangPlacer, need: Need, candidates: EvictionUnits, area: Area | None = None) -> None:
        """Propose victims for a need that is limited to an area; None for all nodes."""
        self._placer, self._need, self._candidates, self._area = placer, need, candidates, area
        self._cluster = placer.engine.cluster
        self._room = DomainRoom(placer, need, area)
        self._groups, self._kinds, self._free = self._room.groups, self._room.kinds, self._room.free
        self.has_no_pod_rules = not any(any(kind.incoming.applicable_plugins) for kind in self._kinds)
        """Whether no cluster plugin concerns the gang's pods: no rules between pods, no volumes."""
        self._pods, self._unit_of_pod = candidates.pods, candidates.unit_of_pod

    @staticmethod
    def _pods_and_units(units: Sequence[EvictionUnit]) -> tuple[Rows, Rows]:
        """Return the pods of all units, and the number of the unit of each pod."""
        pods = [row for unit in units for row in unit.rows]
        unit_of_pod = [number for number, unit in enumerate(units) for _ in unit.rows]
        return np.array(pods, dtype=np.intp), np.array(unit_of_pod, dtype=np.intp)

    # Room -------------------------------------------------------------------------------------------------------------

    def is_hopeless(self) -> bool:
        """Return whether evicting all units could not make enough room."""
        return bool((self._room.surplus_by_domain(self._room.free_without(self._pods)) < 0).all())

    def may_suffice(self, units: Sequence[EvictionUnit]) -> bool:
        """Return whether evicting some units could make enough room."""
        pods, _ = self._pods_and_units(units)
        return bool((self._room.surplus_by_domain(self._room.free_without(pods)) >= 0).any())

    def possible_sets(self, units: Sequence[EvictionUnit]) -> Ints:
        """Return the sets of units (integers as in `victim_subsets`) that could make enough room."""
        masks = np.arange(1, 1 << len(units))
        if not self.has_no_pod_rules:
            return masks
        pods, unit_of_pod = self._pods_and_units(units)
        cluster = self._cluster
        rows, position = np.unique(cluster.pods.node[pods], return_inverse=True)
        freed = np.zeros((len(units), len(rows), len(cluster.resources)), dtype=np.int64)
        np.add.at(freed, (unit_of_pod, position), cluster.usages.matrix[cluster.pods.usage[pods]])
        free = self._free
        digits, _, allowed = self._room.domains()
        # Only domains with pods of these units make a difference.
        affected = np.unique(digits[rows])
        affected = affected[allowed[affected]]
        length = len(affected) + 1
        column_of = np.full(len(allowed), len(affected), dtype=np.intp)
        column_of[affected] = np.arange(len(affected))
        digits = column_of[digits]
        short = np.zeros((len(masks), length), dtype=bool)
        short[:, -1] = True
        contains = (masks[:, np.newaxis] >> np.arange(len(units))) & 1
        for kinds, count in self._groups:
            fits = np.zeros(short.shape, dtype=np.int64)
            for kind in kinds:
                unaffected = self._placer.capacity.copies_with_free(kind.incoming, free, slice(None))
                unaffected[rows] = 0
                base = sum_by(digits, np.minimum(unaffected, len(kind.rows)), length)
                sums = np.repeat(base[np.newaxis], len(masks), axis=0)
                for position_in_rows, row in enumerate(rows.tolist()):
                    # The copies that fit this row without the pods of each set.
                    copies = self._copies(kind, free[:, row] + contains @ freed[:, position_in_rows], row)
                    sums[:, digits[row]] += np.minimum(copies, len(kind.rows))
                fits += np.minimum(sums, len(kind.rows))
            short |= fits < count
        return masks[~short.all(axis=1)]

    def _copies(self, kind: PodKind, free: Ints, row: int) -> Ints:
        """Return how many copies fit a row, for each line of free amounts."""
        if not self._placer.capacity.nodes_accept(kind.incoming, slice(row, row + 1))[0]:
            return np.zeros(len(free), dtype=np.int64)
        most = np.full(len(free), 1 if kind.incoming.spec.ports else NO_LIMIT, dtype=np.int64)
        for resource, amount in self._placer.engine.evaluator.resource_requests(kind.incoming):
            np.minimum(most, free[:, resource] // amount, out=most)
        return np.maximum(most, 0)

    # Shortlists -------------------------------------------------------------------------------------------------------

    def useful_units(self) -> list[EvictionUnit]:
        """Return the units whose eviction can help; without rules between pods, those on nodes that accept the pods."""
        if not self.has_no_pod_rules:
            return self._candidates.units
        accepting = np.zeros(self._cluster.nodes.size, dtype=bool)
        for kind in self._kinds:
            accepting |= self._placer.capacity.nodes_accept(kind.incoming, slice(None))
        digits, _, allowed = self._room.domains()
        accepting &= allowed[digits]
        if self._area is not None:
            accepting &= self._area.mask
        is_useful = accepting[self._cluster.pods.node[self._pods]]
        return [self._candidates.units[number] for number in np.unique(self._unit_of_pod[is_useful]).tolist()]

    def shortlists(self) -> Iterator[list[EvictionUnit]]:
        """Yield shortlists of units, the most promising first."""
        for numbers in self._unit_rounds():
            needed = self._up_to_needed_priority(numbers)
            if needed is None:
                continue
            for area in self._likely_areas(needed):
                yield from self._shortlists_in_area(needed, area)

    def _unit_rounds(self) -> Iterator[Rows]:
        """Yield the numbers of the units to consider: first those that violate no budget, then all."""
        violating = self._candidates.violates_budget
        if violating.any():
            yield np.flatnonzero(~violating)
        yield np.arange(len(violating))

    def _up_to_needed_priority(self, numbers: Rows) -> Rows | None:
        """Return the units without those of higher priority than needed; None if even all make too little room."""
        priorities = self._candidates.priorities[numbers]
        levels = np.unique(priorities)
        # `is_hopeless` has already shown that all units together make enough room.
        low, high = 0, len(levels) - (len(numbers) == len(self._candidates))
        while low < high:
            middle = (low + high) // 2
            if self._can_make_room(numbers[priorities <= levels[middle]]):
                high = middle
            else:
                low = middle + 1
        return numbers[priorities <= levels[low]] if low < len(levels) else None

    def _can_make_room(self, numbers: Rows) -> bool:
        """Return whether evicting the units with these numbers could make enough room."""
        return bool((self._surplus_without(numbers) >= 0).any())

    def _surplus_without(self, numbers: Rows) -> Ints:
        """Return for each domain how many pods fit beyond the need, without the units with these numbers."""
        is_listed = np.zeros(len(self._candidates.units), dtype=bool)
        is_listed[numbers] = True
        return self._room.surplus_by_domain(self._room.free_without(self._pods[is_listed[self._unit_of_pod]]))

    def _likely_areas(self, numbers: Rows) -> Iterator[Area | None]:
        """Yield the areas in which to propose victims: possible domains, those that lack the least room now first."""
        key = self._need.topology.required
        if key is None:
            yield None
            return
        is_possible = self._surplus_without(numbers) >= 0
        surplus_now = self._room.surplus_by_domain(self._free)
        order = np.lexsort((self._placer.areas.domain_ranks(key), -surplus_now))
        for digit in order[is_possible[order]][:_MAX_DOMAINS].tolist():
            yield self._placer.areas.domain(key, digit)

    def _shortlists_in_area(self, numbers: Rows, area: Area | None) -> Iterator[list[EvictionUnit]]:
        """Yield the shortlists for one area."""
        greedy = GreedyVictims(self._placer, self._candidates, numbers, area, free=self._free)
        pods_to_place = self._pods_to_place()
        if len(pods_to_place) == 1:
            by_gain = greedy.by_gain(*pods_to_place[0])
            if by_gain is not None:
                yield by_gain
                if greedy.one_is_enough:
                    return
        one_by_one = greedy.one_by_one(pods_to_place)
        if one_by_one is not None:
            yield one_by_one
        elif not self.has_no_pod_rules or self._need.parts:
            yield greedy.all_units()

    def _pods_to_place(self) -> list[tuple[PodKind, int]]:
        """Return the pods to place in a first guess: enough for each part, inner parts first, in order."""
        chosen: dict[int, int] = {}
        for kinds, count in reversed(self._groups):
            remaining = count - sum(chosen.get(row, 0) for kind in kinds for row in kind.rows)
            for row in (row for kind in kinds for row in kind.rows if row not in chosen):
                if remaining > 0:
                    chosen[row] = 1
                    remaining -= 1
        return [(kind, number) for kind in self._kinds if (number := sum(row in chosen for row in kind.rows))]
