"""Packing: search nodes for pods of several kinds so that enough pods of each group fit.

Contract: pure arithmetic on free amounts. The search is complete unless the budget is exhausted: without a result and
with budget left, no packing exists. Pods of one item are interchangeable; rows with the same free amounts and the same
items are tried once. Larger pods are placed first, on the first row with room.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from tutti.cluster.work.meter import GANG_PACKING_STEP
from tutti.cluster.work.work_budget import WorkBudget


class PackedPods(NamedTuple):
    """Interchangeable pods: how many, the amounts each requests, the rows to which they may go, and their groups."""

    pods: int
    amounts: tuple[int, ...]
    rows: tuple[int, ...]
    groups: tuple[int, ...]


def pack(
    items: Sequence[PackedPods], missing: Sequence[int], free: dict[int, list[int]], budget: WorkBudget
) -> list[list[int]] | None:
    """Return the rows of the placed pods of each item; None if there is no packing or the budget is exhausted.

    At least `missing` pods of each group are placed, and no pod that no group needs. `free` holds the free amounts of
    each row, in the order of the items' amounts.
    """
    packing = _Packing(items, missing, free, budget)
    return packing.trimmed() if packing.run() else None


class _Packing:
    """The state of one packing search."""

    def __init__(
        self, items: Sequence[PackedPods], missing: Sequence[int], free: dict[int, list[int]], budget: WorkBudget
    ) -> None:
        self._items, self._missing, self._free, self._budget = items, missing, free, budget
        width = max((len(item.amounts) for item in items), default=0)
        largest = [max((row[k] for row in free.values()), default=1) or 1 for k in range(width)]
        # Largest pods first: small pods can use the room that is left.
        sizes = [max((a / m for a, m in zip(item.amounts, largest, strict=True)), default=0.0) for item in items]
        self._order = sorted(range(len(items)), key=lambda number: -sizes[number])
        self._skippable = [-count for count in missing]
        for item in items:
            for group in item.groups:
                self._skippable[group] += item.pods
        self._placed: list[list[int]] = [[] for _ in items]
        self._items_of_row = dict.fromkeys(free, 0)
        for bit, item in enumerate(items):
            for row in item.rows:
                self._items_of_row[row] |= 1 << bit

    def run(self) -> bool:
        """Place all pods that cannot be skipped; return whether that succeeds."""
        return min(self._skippable, default=0) >= 0 and self._place_item(0)

    def trimmed(self) -> list[list[int]]:
        """Return the rows of the placed pods of each item, without pods that no group needs."""
        excess = [-count for count in self._missing]
        for item, rows in zip(self._items, self._placed, strict=True):
            for group in item.groups:
                excess[group] += len(rows)
        for number in self._order:
            while self._placed[number] and all(excess[group] > 0 for group in self._items[number].groups):
                self._placed[number].pop()
                for group in self._items[number].groups:
                    excess[group] -= 1
        return self._placed

    def _place_item(self, position: int) -> bool:
        """Place the pods of one item and of all later items."""
        if position == len(self._order):
            return True
        item = self._items[self._order[position]]
        skippable = min(self._skippable[group] for group in item.groups)
        if skippable < item.pods and sum(self._copies(row, item) for row in item.rows) + skippable < item.pods:
            return False
        return self._place_pods(position, 0, item.pods)

    def _copies(self, row: int, item: PackedPods) -> int:
        """Return how many pods of an item fit on a row."""
        return min((f // a for f, a in zip(self._free[row], item.amounts, strict=True) if a), default=item.pods)

    def _place_pods(self, position: int, start: int, remaining: int) -> bool:
        """Place the remaining pods of an item on rows from `start` on; the order of equal pods does not matter."""
        if not remaining:
            return self._place_item(position + 1)
        if not self._budget.spend(GANG_PACKING_STEP):
            return False
        item = self._items[self._order[position]]
        placed = self._placed[self._order[position]]
        tried: set[tuple[int, ...]] = set()
        for row_position in range(start, len(item.rows)):
            row = item.rows[row_position]
            free = self._free[row]
            row_state = (self._items_of_row[row], *free)
            if row_state in tried or any(f < a for f, a in zip(free, item.amounts, strict=True)):
                continue
            tried.add(row_state)
            self._take(free, item, 1)
            placed.append(row)
            if self._place_pods(position, row_position, remaining - 1):
                return True
            placed.pop()
            self._take(free, item, -1)
            if self._budget.is_exhausted():
                return False
        return self._skip_pod(position, start, remaining)

    @staticmethod
    def _take(free: list[int], item: PackedPods, times: int) -> None:
        """Subtract the amounts of an item's pods from the free amounts."""
        for k, amount in enumerate(item.amounts):
            free[k] -= times * amount

    def _skip_pod(self, position: int, start: int, remaining: int) -> bool:
        """Skip one pod, if each of its groups still has enough pods, and place the others."""
        groups = self._items[self._order[position]].groups
        if min(self._skippable[group] for group in groups) <= 0:
            return False
        for group in groups:
            self._skippable[group] -= 1
        if self._place_pods(position, start, remaining - 1):
            return True
        for group in groups:
            self._skippable[group] += 1
        return False
