"""Greedy choices of victims, on columns: good first guesses where there are too many units to try all sets.

Two ways: by gain, taking again and again the unit that makes room for the most of what is missing; and one by one,
giving each pod of the gang the node where the least has to go. Both count room only, in one area.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tutti.cluster.columns import Bools, Ints, Rows
from tutti.engine.gangs.areas import PodKind
from tutti.engine.gangs.placer import GangPlacer
from tutti.engine.plugins.base import Area
from tutti.engine.preemption.victims import EvictionUnit, EvictionUnits

_FURTHER = 3
"""Units beside a guess that are worth a look: those that come nearest to doing as well."""


class GreedyVictims:
    """Guesses for one gang in one area."""

    def __init__(self, placer: GangPlacer, victims: EvictionUnits, numbers: Rows, area: Area | None) -> None:
        cluster = self._cluster = placer.engine.cluster
        self._capacity, self._evaluator, self._victims = placer.capacity, placer.engine.evaluator, victims
        self._inside: Bools = cluster.nodes.on if area is None else cluster.nodes.on & area.mask
        self._units = [victims.units[n] for n in numbers.tolist()]
        place = np.full(len(victims), -1)
        place[numbers] = np.arange(len(numbers))
        owner = place[victims.owner]
        near = (owner >= 0) & self._inside[cluster.pods.node[victims.pods]]
        self._pods, self._owner = victims.pods[near], owner[near]
        self._rows = cluster.pods.node[self._pods].astype(np.intp)
        self._usage: Ints = cluster.usages.matrix[cluster.pods.usage[self._pods]]
        self._breaks, self._counts = victims.breaking[numbers], victims.counts[numbers]
        # One number per unit sorts units by their loss: see `victims.py`.
        losses = (-victims.starts[numbers], victims.sums[numbers], self._counts, self._breaks)
        self._cost: Ints = np.empty(len(numbers), dtype=np.int64)
        self._cost[np.lexsort((*losses, victims.priorities[numbers]))] = np.arange(len(numbers))
        self.one_is_enough = False
        """Whether one unit alone was found to make room enough."""

    def all_units(self) -> list[EvictionUnit]:
        """Give all units of the area."""
        return self._allowed(np.unique(self._owner).tolist())

    # By gain ----------------------------------------------------------------------------------------------------------

    def by_gain(self, kind: PodKind, count: int) -> list[EvictionUnit] | None:
        """Take the units that make room for most, until all fit; with some that would do nearly as well."""
        nodes = self._cluster.nodes
        free = nodes.alloc - nodes.used
        pairs, pair_of = np.unique(self._owner * nodes.size + self._rows, return_inverse=True)
        unit, row = np.divmod(pairs, nodes.size)
        freed = np.zeros((len(pairs), self._usage.shape[1]), dtype=np.int64)
        np.add.at(freed, pair_of, self._usage)
        chosen: list[int] = []
        further: list[int] = []
        while True:
            copies = np.where(self._inside, self._capacity.copies_with_free(kind.incoming, free, slice(None)), 0)
            missing = count - int(np.minimum(copies, count).sum())
            if missing <= 0:
                self.one_is_enough = len(chosen) == 1
                return self._allowed([*chosen, *further])
            with_room = free[:, row] + freed.T
            gain_of_pair = self._capacity.copies_with_free(kind.incoming, with_room, row) - copies[row]
            gain = np.bincount(unit, weights=np.maximum(gain_of_pair, 0), minlength=len(self._units)).astype(np.int64)
            gain[chosen] = 0
            useful = np.minimum(gain, missing)
            if not useful.any():
                return None
            order = np.lexsort((self._cost, self._counts, self._breaks, -useful))
            if not chosen:
                further = order[1 : 1 + _FURTHER][useful[order[1 : 1 + _FURTHER]] > 0].tolist()
            best = int(order[0])
            chosen.append(best)
            mine = unit == best
            np.add.at(free.T, row[mine], freed[mine])

    # One by one -------------------------------------------------------------------------------------------------------

    def one_by_one(self, wanted: Sequence[tuple[PodKind, int]]) -> list[EvictionUnit] | None:
        """Give each pod the node where the least has to go."""
        nodes = self._cluster.nodes
        free = nodes.alloc - nodes.used
        # Pods by their rows, the least important first: prefixes are what a node would lose.
        order = np.lexsort((self._cost[self._owner], self._rows))
        rows, owner, usage = self._rows[order], self._owner[order], self._usage[order].copy()
        starts = np.flatnonzero(np.r_[True, rows[1:] != rows[:-1]]) if len(rows) else np.zeros(0, dtype=np.intp)
        gone: set[int] = set()
        for kind, count in sorted(wanted, key=lambda pair: -self._capacity.largest_share(pair[0].incoming)):
            need = self._evaluator.resource_requests(kind.incoming)
            left = count
            while left:
                copies = np.where(self._inside, self._capacity.copies_with_free(kind.incoming, free, slice(None)), 0)
                taken = self._take(copies, left)
                if taken.any():
                    for place, amount in need:
                        free[place] -= taken * amount
                    left -= int(taken.sum())
                    continue
                end = self._cheapest(kind, free, (rows, owner, usage, starts), need)
                if end is None:
                    return None
                first = int(starts[np.searchsorted(starts, end, side="right") - 1])
                for number in set(owner[first : end + 1].tolist()) - gone:
                    gone.add(number)
                    mine = owner == number
                    np.add.at(free.T, rows[mine], usage[mine])
                    usage[mine] = 0
        return self._allowed(sorted(gone))

    def _take(self, copies: Ints, count: int) -> Ints:
        """Give how many copies go to each row: as many as fit, node by node in the order of their names."""
        by_name = np.argsort(self._cluster.nodes.rank)
        most = np.minimum(copies, count)[by_name]
        taken = np.zeros_like(copies)
        taken[by_name] = np.clip(count - (np.cumsum(most) - most), 0, most)
        return taken

    def _cheapest(
        self, kind: PodKind, free: Ints, entries: tuple[Rows, Rows, Ints, Rows], need: list[tuple[int, int]]
    ) -> int | None:
        """Give the end of the cheapest prefix of pods on a row without which one more pod fits there."""
        rows, owner, usage, starts = entries
        if not len(rows):
            return None
        lengths = np.diff(np.r_[starts, len(rows)])
        enough = self._capacity.nodes_accept(kind.incoming, slice(None))[rows]
        for place, amount in need:
            total = np.cumsum(usage[:, place])
            before = np.repeat(total[starts] - usage[starts, place], lengths)
            enough &= free[place, rows] + total - before >= amount
        ends = np.flatnonzero(enough)
        if not len(ends):
            return None
        group = np.searchsorted(starts, ends, side="right") - 1
        _, first = np.unique(group, return_index=True)
        ends = ends[first]
        # What is lost: units that are gone already cost nothing, and each unit of a row counts once.
        paid = usage.any(axis=1)
        seen = np.r_[False, (owner[1:] == owner[:-1]) & (rows[1:] == rows[:-1])]
        costs = []
        for values in (self._breaks, self._counts):
            total = np.cumsum(np.where(paid & ~seen, values[owner], 0))
            begin = starts[group[first]]
            lost = np.where(paid & ~seen, values[owner], 0)
            costs.append(total[ends] - total[begin] + lost[begin])
        worst = np.where(paid, self._cost[owner], -1)
        bounds = np.column_stack((starts[group[first]], ends + 1)).ravel()
        top = np.maximum.reduceat(np.r_[worst, -1], bounds)[::2]
        rank = self._cluster.nodes.rank[rows[ends]]
        return int(ends[np.lexsort((rank, top, costs[1], costs[0]))[0]])

    # ------------------------------------------------------------------------------------------------------------------

    def _allowed(self, numbers: Sequence[int]) -> list[EvictionUnit]:
        """Give units that may go together: a gang that would lose more than its surplus goes whole."""
        units = [self._units[n] for n in dict.fromkeys(numbers)]
        found: list[EvictionUnit] = []
        whole = {unit.gang: unit for unit in self._units if unit.gang is not None and unit.whole}
        for gang in dict.fromkeys(unit.gang for unit in units):
            mine = [unit for unit in units if unit.gang == gang]
            if gang is not None and gang in whole and not self._victims.is_allowed(mine):
                mine = [whole[gang]]
            found += mine
        return found
