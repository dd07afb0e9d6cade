"""Greedy choices of victims on columns: good first shortlists where there are too many units to try all sets.

Two ways: by gain, repeatedly taking the unit whose eviction makes room for the most missing pods; and one by one,
giving each pod of the gang the node with the smallest loss. Both count only free resources, within one area.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tutti.cluster.columns import Bools, Ints, Rows
from tutti.engine.gangs.areas import PodKind
from tutti.engine.gangs.placer import GangPlacer
from tutti.engine.plugins.base import Area
from tutti.engine.preemption.eviction_units import EvictionUnit, EvictionUnits

_MAX_ALTERNATIVES = 3
"""How many alternatives to the first unit join a shortlist: those with nearly the same gain."""


class GreedyVictims:
    """Shortlists of victims for one gang in one area."""

    def __init__(
        self, placer: GangPlacer, candidates: EvictionUnits, numbers: Rows, area: Area | None, *, free: Ints
    ) -> None:
        cluster = self._cluster = placer.engine.cluster
        self._capacity, self._evaluator, self._candidates = placer.capacity, placer.engine.evaluator, candidates
        self._free = free
        self._in_area: Bools = cluster.nodes.on if area is None else cluster.nodes.on & area.mask
        self._units = [candidates.units[n] for n in numbers.tolist()]
        position = np.full(len(candidates), -1)
        position[numbers] = np.arange(len(numbers))
        unit_position = position[candidates.unit_of_pod]
        in_area = (unit_position >= 0) & self._in_area[cluster.pods.node[candidates.pods]]
        self._pods, self._unit_of_pod = candidates.pods[in_area], unit_position[in_area]
        self._rows = cluster.pods.node[self._pods].astype(np.intp)
        self._usage: Ints = cluster.usages.matrix[cluster.pods.usage[self._pods]]
        self._is_disruption, self._counts = candidates.is_disruption[numbers], candidates.pod_counts[numbers]
        # One integer per unit sorts units by their loss (`eviction_units`).
        ties = -candidates.first_starts[numbers], candidates.priority_sums[numbers], candidates.breaks_gang[numbers]
        losses = *ties, self._counts, self._is_disruption, candidates.priorities[numbers]
        self._loss_rank: Ints = np.empty(len(numbers), dtype=np.int64)
        self._loss_rank[np.lexsort(losses)] = np.arange(len(numbers))
        self.one_is_enough = False
        """Whether `by_gain` found that one unit makes enough room."""

    def all_units(self) -> list[EvictionUnit]:
        """Return all units with pods in the area."""
        return self._complete_gangs(np.unique(self._unit_of_pod).tolist())

    # By gain ----------------------------------------------------------------------------------------------------------

    def by_gain(self, kind: PodKind, count: int) -> list[EvictionUnit] | None:
        """Return the units that make room for the most pods until `count` pods fit; None if they never fit.

        A few alternatives to the first unit are included.
        """
        nodes, free = self._cluster.nodes, self._free.copy()
        pairs, pair_of = np.unique(self._unit_of_pod * nodes.size + self._rows, return_inverse=True)
        unit, row = np.divmod(pairs, nodes.size)
        freed = np.zeros((len(pairs), self._usage.shape[1]), dtype=np.int64)
        np.add.at(freed, pair_of, self._usage)
        chosen: list[int] = []
        alternatives: list[int] = []
        while True:
            copies = np.where(self._in_area, self._capacity.copies_with_free(kind.incoming, free, slice(None)), 0)
            missing = count - int(np.minimum(copies, count).sum())
            if missing <= 0:
                self.one_is_enough = len(chosen) == 1
                return self._complete_gangs([*chosen, *alternatives])
            free_after = free[:, row] + freed.T
            gain_of_pair = self._capacity.copies_with_free(kind.incoming, free_after, row) - copies[row]
            gain = np.bincount(unit, weights=np.maximum(gain_of_pair, 0), minlength=len(self._units)).astype(np.int64)
            gain[chosen] = 0
            useful = np.minimum(gain, missing)
            if not useful.any():
                return None
            order = np.lexsort((self._loss_rank, self._counts, self._is_disruption, -useful))
            if not chosen:
                alternatives = order[1 : 1 + _MAX_ALTERNATIVES][useful[order[1 : 1 + _MAX_ALTERNATIVES]] > 0].tolist()
            best = int(order[0])
            chosen.append(best)
            of_best = unit == best
            np.add.at(free.T, row[of_best], freed[of_best])

    # One by one -------------------------------------------------------------------------------------------------------

    def one_by_one(self, pods_to_place: Sequence[tuple[PodKind, int]]) -> list[EvictionUnit] | None:
        """Return the units to evict if each pod goes to the node with the smallest loss; None if a pod fits nowhere."""
        free = self._free.copy()
        # Pods by row, the least important first: a prefix of a row holds the pods that the node would lose.
        order = np.lexsort((self._loss_rank[self._unit_of_pod], self._rows))
        rows, unit_of_pod, usage = self._rows[order], self._unit_of_pod[order], self._usage[order].copy()
        starts = np.flatnonzero(np.r_[True, rows[1:] != rows[:-1]]) if len(rows) else np.zeros(0, dtype=np.intp)
        evicted: set[int] = set()
        for kind, count in sorted(pods_to_place, key=lambda pair: -self._capacity.largest_share(pair[0].incoming)):
            requests = self._evaluator.resource_requests(kind.incoming)
            remaining = count
            while remaining:
                copies = np.where(self._in_area, self._capacity.copies_with_free(kind.incoming, free, slice(None)), 0)
                placed = self._fill_by_name(copies, remaining)
                if placed.any():
                    for resource, amount in requests:
                        free[resource] -= placed * amount
                    remaining -= int(placed.sum())
                    continue
                end = self._cheapest_prefix(kind, free, (rows, unit_of_pod, usage, starts), requests)
                if end is None:
                    return None
                first = int(starts[np.searchsorted(starts, end, side="right") - 1])
                for number in set(unit_of_pod[first : end + 1].tolist()) - evicted:
                    evicted.add(number)
                    of_unit = unit_of_pod == number
                    np.add.at(free.T, rows[of_unit], usage[of_unit])
                    usage[of_unit] = 0
        return self._complete_gangs(sorted(evicted))

    def _fill_by_name(self, copies: Ints, count: int) -> Ints:
        """Return how many copies go to each row: as many as fit, node by node in the order of their names."""
        by_name = np.argsort(self._cluster.nodes.rank)
        most = np.minimum(copies, count)[by_name]
        placed = np.zeros_like(copies)
        placed[by_name] = np.clip(count - (np.cumsum(most) - most), 0, most)
        return placed

    def _cheapest_prefix(
        self, kind: PodKind, free: Ints, entries: tuple[Rows, Rows, Ints, Rows], requests: list[tuple[int, int]]
    ) -> int | None:
        """Return the end of the prefix of pods on a row whose eviction makes room for one pod at the smallest loss."""
        rows, unit_of_pod, usage, starts = entries
        if not len(rows):
            return None
        lengths = np.diff(np.r_[starts, len(rows)])
        enough = self._capacity.nodes_accept(kind.incoming, slice(None))[rows]
        for resource, amount in requests:
            total = np.cumsum(usage[:, resource])
            before = np.repeat(total[starts] - usage[starts, resource], lengths)
            enough &= free[resource, rows] + total - before >= amount
        ends = np.flatnonzero(enough)
        if not len(ends):
            return None
        row_group = np.searchsorted(starts, ends, side="right") - 1
        _, first = np.unique(row_group, return_index=True)
        ends = ends[first]
        # The loss of a prefix: units that are already evicted cost nothing, and each unit of a row counts once.
        is_pending = usage.any(axis=1)
        is_repeated = np.r_[False, (unit_of_pod[1:] == unit_of_pod[:-1]) & (rows[1:] == rows[:-1])]
        costs = []
        for values in (self._is_disruption, self._counts):
            total = np.cumsum(np.where(is_pending & ~is_repeated, values[unit_of_pod], 0))
            begin = starts[row_group[first]]
            counted = np.where(is_pending & ~is_repeated, values[unit_of_pod], 0)
            costs.append(total[ends] - total[begin] + counted[begin])
        worst = np.where(is_pending, self._loss_rank[unit_of_pod], -1)
        bounds = np.column_stack((starts[row_group[first]], ends + 1)).ravel()
        top = np.maximum.reduceat(np.r_[worst, -1], bounds)[::2]
        rank = self._cluster.nodes.rank[rows[ends]]
        return int(ends[np.lexsort((rank, top, costs[1], costs[0]))[0]])

    # Units ------------------------------------------------------------------------------------------------------------

    def _complete_gangs(self, numbers: Sequence[int]) -> list[EvictionUnit]:
        """Return units that may be evicted together: a gang that would lose more than its surplus is evicted whole."""
        units = [self._units[n] for n in dict.fromkeys(numbers)]
        complete: list[EvictionUnit] = []
        whole = {unit.gang: unit for unit in self._units if unit.gang is not None and unit.whole}
        for gang in dict.fromkeys(unit.gang for unit in units):
            gang_units = [unit for unit in units if unit.gang == gang]
            if gang is not None and gang in whole and not self._candidates.is_allowed(gang_units):
                gang_units = [whole[gang]]
            complete += gang_units
        return complete
