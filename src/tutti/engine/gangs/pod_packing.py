"""Packing: where pods of several kinds go so that all fit, found by trying.

Contract: pure arithmetic on what is free; complete unless the budget is exhausted, so "no" means that there is no way.
Pods of one kind are alike, and rows that look alike are tried once. Larger pods go first, into the first row that has
room.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from tutti.cluster.work.meter import GANG_PACKING_STEP
from tutti.cluster.work.work_budget import WorkBudget


class PackedPods(NamedTuple):
    """Pods that are alike: how many, what each wants, on which rows it may go, and in which groups it counts."""

    pods: int
    amounts: tuple[int, ...]
    rows: tuple[int, ...]
    groups: tuple[int, ...]


def pack(
    items: Sequence[PackedPods], lacks: Sequence[int], free: dict[int, list[int]], budget: WorkBudget
) -> list[list[int]] | None:
    """Give the rows of the placed pods of each item; None when there is no way, or the budget is exhausted.

    Of each group at least as many pods are placed as it lacks, and nobody whom no group needs. `free` says for each row
    how much is left, in the order of the items' amounts.
    """
    packing = _Packing(items, lacks, free, budget)
    return packing.trimmed() if packing.run() else None


class _Packing:
    def __init__(
        self, items: Sequence[PackedPods], lacks: Sequence[int], free: dict[int, list[int]], budget: WorkBudget
    ) -> None:
        self._items, self._lacks, self._free, self._budget = items, lacks, free, budget
        width = max((len(item.amounts) for item in items), default=0)
        largest = [max((row[k] for row in free.values()), default=1) or 1 for k in range(width)]
        # The largest first: what is left over is useful to the smaller ones.
        sizes = [max((a / m for a, m in zip(item.amounts, largest, strict=True)), default=0.0) for item in items]
        self._order = sorted(range(len(items)), key=lambda number: -sizes[number])
        self._spare = [-lack for lack in lacks]
        for item in items:
            for group in item.groups:
                self._spare[group] += item.pods
        self._placed: list[list[int]] = [[] for _ in items]
        self._looks = dict.fromkeys(free, 0)
        for bit, item in enumerate(items):
            for row in item.rows:
                self._looks[row] |= 1 << bit

    def run(self) -> bool:
        """Place everything."""
        return min(self._spare, default=0) >= 0 and self._item(0)

    def trimmed(self) -> list[list[int]]:
        """Give what was placed, without pods that no group needs."""
        over = [-lack for lack in self._lacks]
        for item, rows in zip(self._items, self._placed, strict=True):
            for group in item.groups:
                over[group] += len(rows)
        for number in self._order:
            while self._placed[number] and all(over[group] > 0 for group in self._items[number].groups):
                self._placed[number].pop()
                for group in self._items[number].groups:
                    over[group] -= 1
        return self._placed

    def _item(self, place: int) -> bool:
        """Place the pods of one item and of all items behind it."""
        if place == len(self._order):
            return True
        item = self._items[self._order[place]]
        may_skip = min(self._spare[group] for group in item.groups)
        if may_skip < item.pods and sum(self._copies(row, item) for row in item.rows) + may_skip < item.pods:
            return False
        return self._pod(place, 0, item.pods)

    def _copies(self, row: int, item: PackedPods) -> int:
        return min((f // a for f, a in zip(self._free[row], item.amounts, strict=True) if a), default=item.pods)

    def _pod(self, place: int, start: int, left: int) -> bool:
        """Place what is left of an item, on rows from `start` on: pods of one item are taken in the order of rows."""
        if not left:
            return self._item(place + 1)
        if not self._budget.spend(GANG_PACKING_STEP):
            return False
        item = self._items[self._order[place]]
        placed = self._placed[self._order[place]]
        tried: set[tuple[int, ...]] = set()
        for at in range(start, len(item.rows)):
            row = item.rows[at]
            free = self._free[row]
            looks = (self._looks[row], *free)
            if looks in tried or any(f < a for f, a in zip(free, item.amounts, strict=True)):
                continue
            tried.add(looks)
            self._take(free, item, 1)
            placed.append(row)
            if self._pod(place, at, left - 1):
                return True
            placed.pop()
            self._take(free, item, -1)
            if self._budget.is_exhausted():
                return False
        return self._skipped(place, start, left)

    @staticmethod
    def _take(free: list[int], item: PackedPods, times: int) -> None:
        for k, amount in enumerate(item.amounts):
            free[k] -= times * amount

    def _skipped(self, place: int, start: int, left: int) -> bool:
        """Leave one pod out, if all groups in which it counts can do without it."""
        groups = self._items[self._order[place]].groups
        if min(self._spare[group] for group in groups) <= 0:
            return False
        for group in groups:
            self._spare[group] -= 1
        if self._pod(place, start, left - 1):
            return True
        for group in groups:
            self._spare[group] += 1
        return False
