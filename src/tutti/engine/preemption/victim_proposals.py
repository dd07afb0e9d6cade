"""Proposals: which victims are worth trying, found by arithmetic on columns.

Contract: what is refused here (`hopeless`, `enough`, `enough_sets`) truly does not fit, as far as more evictions can
only help; what is proposed must still be tried. Room is counted for every kind of pod of the gang by itself, and for
every domain of the label that the whole gang is bound to.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from tutti.cluster.columns import Bools, Ints, Rows
from tutti.engine.gangs.areas import PodKind, lacking
from tutti.engine.gangs.gang_state import Need
from tutti.engine.gangs.placer import GangPlacer
from tutti.engine.placement.capacity import MANY, sum_by
from tutti.engine.plugins.base import Area
from tutti.engine.preemption.greedy_victims import GreedyVictims
from tutti.engine.preemption.victims import EvictionUnit, EvictionUnits

_DOMAINS = 6
"""Domains for which victims are proposed: those that lack least."""


class VictimProposals:
    """See the module's contract."""

    def __init__(self, placer: GangPlacer, need: Need, victims: EvictionUnits) -> None:
        self._placer, self._need, self._victims = placer, need, victims
        self._cluster = placer.engine.cluster
        areas = placer.areas
        self._groups = [(areas.kinds(each.everybody), each.least) for each in lacking(need)]
        """The kinds of pods of the gang and of each of its parts, and how many are needed."""
        self._kinds = self._groups[0][0]
        self.plain = not any(any(kind.incoming.applicable_plugins) for kind in self._kinds)
        """Whether the gang's pods look at nobody else."""
        self._pods, self._unit = victims.pods, victims.owner

    @staticmethod
    def _flattened(units: Sequence[EvictionUnit]) -> tuple[Rows, Rows]:
        """Give the pods of all units, and the unit of each."""
        pods = [row for unit in units for row in unit.rows]
        owner = [number for number, unit in enumerate(units) for _ in unit.rows]
        return np.array(pods, dtype=np.intp), np.array(owner, dtype=np.intp)

    # Room -------------------------------------------------------------------------------------------------------------

    def _free(self, gone: Rows) -> Ints:
        """Give what would be free on every row without some pods."""
        cluster = self._cluster
        free = cluster.nodes.alloc - cluster.nodes.used
        there = np.zeros(cluster.pods.length, dtype=bool)
        there[gone] = True  # a pod may be in two units
        gone = np.flatnonzero(there)
        np.add.at(free.T, cluster.pods.node[gone], cluster.usages.matrix[cluster.pods.usage[gone]])
        return free

    def _spare(self, free: Ints) -> Ints:
        """Say for each domain of the gang how many pods beyond the need it can hold; negative where it lacks room."""
        digits, length, allowed = self._domains()
        spare = np.full(length, 2**40)
        for kinds, count in self._groups:
            fits = np.zeros(length, dtype=np.int64)
            for kind in kinds:
                copies = self._placer.capacity.count(kind.incoming, free, slice(None))
                fits += np.minimum(sum_by(digits, np.minimum(copies, len(kind.rows)), length), len(kind.rows))
            spare = np.minimum(spare, fits - count)
        return np.where(allowed, spare, -(2**40))

    def _domains(self) -> tuple[Rows, int, Bools]:
        """Give the domain of each row, how many there are, and which of them the gang may go to."""
        nodes, key = self._cluster.nodes, self._need.topology.required
        if key is None:
            return np.zeros(nodes.size, dtype=np.intp), 1, np.ones(1, dtype=bool)
        domains = nodes.domains(key)
        allowed = np.ones(len(domains.nodes_in), dtype=bool)
        allowed[0] = False
        taken = self._placer.areas.values_of(self._need.running, key)
        if taken:
            allowed[:] = False
            if len(taken) == 1:
                allowed[list(taken)] = 0 not in taken
        return domains.indices, len(allowed), allowed

    def hopeless(self) -> bool:
        """Say whether not even evicting everybody could make room."""
        return bool((self._spare(self._free(self._pods)) < 0).all())

    def enough(self, units: Sequence[EvictionUnit]) -> bool:
        """Say whether evicting some units could make room."""
        pods, _ = self._flattened(units)
        return bool((self._spare(self._free(pods)) >= 0).any())

    def enough_sets(self, units: Sequence[EvictionUnit]) -> Ints:
        """Give the numbers of the sets of units (see `sets.py`) that could make room."""
        masks = np.arange(1, 1 << len(units))
        if not self.plain:
            return masks
        pods, owner = self._flattened(units)
        cluster = self._cluster
        rows, place = np.unique(cluster.pods.node[pods], return_inverse=True)
        freed = np.zeros((len(units), len(rows), len(cluster.resources)), dtype=np.int64)
        np.add.at(freed, (owner, place), cluster.usages.matrix[cluster.pods.usage[pods]])
        free = (cluster.nodes.alloc - cluster.nodes.used).copy()
        digits, _, allowed = self._domains()
        # Only domains in which somebody could go make a difference.
        there = np.unique(digits[rows])
        there = there[allowed[there]]
        length = len(there) + 1
        place_of = np.full(len(allowed), len(there), dtype=np.intp)
        place_of[there] = np.arange(len(there))
        digits = place_of[digits]
        short = np.zeros((len(masks), length), dtype=bool)
        short[:, -1] = True
        holds = (masks[:, np.newaxis] >> np.arange(len(units))) & 1
        for kinds, count in self._groups:
            fits = np.zeros(short.shape, dtype=np.int64)
            for kind in kinds:
                steady = self._placer.capacity.count(kind.incoming, free, slice(None))
                steady[rows] = 0
                base = sum_by(digits, np.minimum(steady, len(kind.rows)), length)
                sums = np.repeat(base[np.newaxis], len(masks), axis=0)
                for at, row in enumerate(rows.tolist()):
                    # A node with these pods gone, for each of the sets.
                    copies = self._copies(kind, free[:, row] + holds @ freed[:, at], row)
                    sums[:, digits[row]] += np.minimum(copies, len(kind.rows))
                fits += np.minimum(sums, len(kind.rows))
            short |= fits < count
        return masks[~short.all(axis=1)]

    def _copies(self, kind: PodKind, left: Ints, row: int) -> Ints:
        """How many copies fit a row, for each line of what is left."""
        if not self._placer.capacity.welcome(kind.incoming, slice(row, row + 1))[0]:
            return np.zeros(len(left), dtype=np.int64)
        most = np.full(len(left), 1 if kind.incoming.spec.ports else MANY, dtype=np.int64)
        for place, amount in self._placer.engine.evaluator.room_wanted(kind.incoming):
            np.minimum(most, left[:, place] // amount, out=most)
        return np.maximum(most, 0)

    # Who --------------------------------------------------------------------------------------------------------------

    def useful(self) -> list[EvictionUnit]:
        """Give the units whose eviction can help: those in the way, for pods that look at nobody else."""
        if not self.plain:
            return self._victims.units
        welcome = np.zeros(self._cluster.nodes.size, dtype=bool)
        for kind in self._kinds:
            welcome |= self._placer.capacity.welcome(kind.incoming, slice(None))
        digits, _, allowed = self._domains()
        welcome &= allowed[digits]
        wanted = welcome[self._cluster.pods.node[self._pods]]
        return [self._victims.units[number] for number in np.unique(self._unit[wanted]).tolist()]

    def proposed(self) -> Iterator[list[EvictionUnit]]:
        """Give shortlists of units, the most promising first."""
        for allowed in self._rounds():
            kept = self._up_to_enough(allowed)
            if kept is None:
                continue
            for area in self._likely(kept):
                yield from self._in_area(kept, area)

    def _rounds(self) -> Iterator[Rows]:
        """Give the numbers of the units to look at: first those that break no budget."""
        violating = self._victims.violating
        if violating.any():
            yield np.flatnonzero(~violating)
        yield np.arange(len(violating))

    def _up_to_enough(self, numbers: Rows) -> Rows | None:
        """Leave out the units of higher priority than needed; None when there is no room even without all."""
        priorities = self._victims.priorities[numbers]
        levels = np.unique(priorities)
        # That everybody together makes room enough is known.
        low, high = 0, len(levels) - (len(numbers) == len(self._victims))
        while low < high:
            middle = (low + high) // 2
            if self._makes_room(numbers[priorities <= levels[middle]]):
                high = middle
            else:
                low = middle + 1
        return numbers[priorities <= levels[low]] if low < len(levels) else None

    def _makes_room(self, numbers: Rows) -> bool:
        mask = np.zeros(len(self._victims.units), dtype=bool)
        mask[numbers] = True
        return bool((self._spare(self._free(self._pods[mask[self._unit]])) >= 0).any())

    def _likely(self, numbers: Rows) -> Iterator[Area | None]:
        """Give the domains in which victims are looked for: those that lack least now, among those that can do."""
        key = self._need.topology.required
        if key is None:
            yield None
            return
        mask = np.zeros(len(self._victims.units), dtype=bool)
        mask[numbers] = True
        possible = self._spare(self._free(self._pods[mask[self._unit]])) >= 0
        now = self._spare(self._cluster.nodes.alloc - self._cluster.nodes.used)
        order = np.lexsort((self._placer.areas.ranks(key), -now))
        for digit in order[possible[order]][:_DOMAINS].tolist():
            yield self._placer.areas.domain(key, digit)

    def _in_area(self, numbers: Rows, area: Area | None) -> Iterator[list[EvictionUnit]]:
        greedy = GreedyVictims(self._placer, self._victims, numbers, area)
        wanted = self._wanted()
        if len(wanted) == 1:
            by_gain = greedy.by_gain(*wanted[0])
            if by_gain is not None:
                yield by_gain
                if greedy.one_is_enough:
                    return
        one_by_one = greedy.one_by_one(wanted)
        if one_by_one is not None:
            yield one_by_one
        elif not self.plain or self._need.parts:
            yield greedy.everybody()

    def _wanted(self) -> list[tuple[PodKind, int]]:
        """Choose pods for a first guess: for each part, the inner ones first, as they come."""
        taken: dict[int, int] = {}
        for kinds, count in reversed(self._groups):
            left = count - sum(taken.get(row, 0) for kind in kinds for row in kind.rows)
            for row in (row for kind in kinds for row in kind.rows if row not in taken):
                if left > 0:
                    taken[row] = 1
                    left -= 1
        return [(kind, n) for kind in self._kinds if (n := sum(row in taken for row in kind.rows))]
