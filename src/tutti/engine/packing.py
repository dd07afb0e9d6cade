"""Packing: where pods of several kinds go so that all fit, found by trying.

Contract: pure arithmetic on what is free; complete unless the work runs out, so "no" means that there is no way. Pods
of one kind are alike, and rows that look alike are tried once. Larger pods go first, into the row that they fill best.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple


class Work:
    """A budget of steps. What is limited by work and not by time gives the same answer on every machine."""

    __slots__ = ("left",)

    def __init__(self, steps: int) -> None:
        self.left = steps

    def spend(self, steps: int = 1) -> bool:
        """Take some steps; no when there are none left."""
        self.left -= steps
        return self.left >= 0


class Item(NamedTuple):
    """Pods that are alike: how many, what each wants, and the rows on one of which it may go."""

    pods: int
    amounts: tuple[int, ...]
    rows: tuple[int, ...]


class Pool(NamedTuple):
    """Items of which `need` pods are wanted together, whichever."""

    items: tuple[Item, ...]
    need: int


def pack(pools: Sequence[Pool], free: dict[int, list[int]], work: Work) -> list[list[list[int]]] | None:
    """Give the rows of the placed pods of each item of each pool; None when there is no way, or no work left.

    `free` says for each row how much is left, in the order of the items' amounts. It is as before afterwards.
    """
    return _Packing(pools, free, work).run()


class _Packing:
    def __init__(self, pools: Sequence[Pool], free: dict[int, list[int]], work: Work) -> None:
        self._free, self._work = free, work
        self._slots = [(p, i, item) for p, pool in enumerate(pools) for i, item in enumerate(pool.items)]
        width = max((len(item.amounts) for _, _, item in self._slots), default=0)
        largest = [max((row[k] for row in free.values()), default=1) or 1 for k in range(width)]
        # The largest first: what is left over is useful to the smaller ones.
        self._slots.sort(key=lambda s: -max((a / m for a, m in zip(s[2].amounts, largest, strict=True)), default=0.0))
        self._spare = [sum(item.pods for item in pool.items) - pool.need for pool in pools]
        self._placed: list[list[list[int]]] = [[[] for _ in pool.items] for pool in pools]
        self._looks = self._row_looks()

    def _row_looks(self) -> dict[int, int]:
        """Say for each row, as bits, which items may go there."""
        looks = dict.fromkeys(self._free, 0)
        for bit, (_, _, item) in enumerate(self._slots):
            for row in item.rows:
                looks[row] |= 1 << bit
        return looks

    def run(self) -> list[list[list[int]]] | None:
        if min(self._spare, default=0) < 0:
            return None
        return self._placed if self._slot(0) else None

    def _slot(self, place: int) -> bool:
        """Place the pods of one item and of all items behind it."""
        if place == len(self._slots):
            return True
        pool, _, item = self._slots[place]
        room = sum(self._copies(row, item) for row in item.rows)
        if room + self._spare[pool] < item.pods:
            return False
        return self._pod(place, 0, item.pods)

    def _copies(self, row: int, item: Item) -> int:
        return min((f // a for f, a in zip(self._free[row], item.amounts, strict=True) if a), default=item.pods)

    def _pod(self, place: int, start: int, left: int) -> bool:
        """Place what is left of an item, on rows from `start` on: pods of one item are taken in the order of rows."""
        if not left:
            return self._slot(place + 1)
        if not self._work.spend():
            return False
        pool, number, item = self._slots[place]
        placed = self._placed[pool][number]
        tried: set[tuple[int, ...]] = set()
        for at in self._in_order(item, start):
            row = item.rows[at]
            free = self._free[row]
            looks = (self._looks[row], *free)
            if looks in tried:
                continue
            tried.add(looks)
            for k, amount in enumerate(item.amounts):
                free[k] -= amount
            placed.append(row)
            if self._pod(place, at, left - 1):
                return True
            placed.pop()
            for k, amount in enumerate(item.amounts):
                free[k] += amount
            if self._work.left <= 0:
                return False
        if self._spare[pool]:
            self._spare[pool] -= 1
            if self._pod(place, start, left - 1):
                return True
            self._spare[pool] += 1
        return False

    def _in_order(self, item: Item, start: int) -> list[int]:
        """Give the places of the rows with room for one more."""
        found = []
        for at in range(start, len(item.rows)):
            free = self._free[item.rows[at]]
            if all(f >= a for f, a in zip(free, item.amounts, strict=True)):
                found.append(at)
        return found
