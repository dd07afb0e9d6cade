"""Columns: numpy arrays that grow, the numbering of resources, and the log of changed rows.

A column has spare capacity behind its last used row, so a new row usually costs no copy. A row number stays valid while
its object exists. Resources have indices: the first six are fixed, extended resources follow in order of appearance.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Ints32 = NDArray[np.int32]
Bools = NDArray[np.bool_]
Floats = NDArray[np.float64]
Rows = NDArray[np.intp]

CPU, MEMORY, PODS, NONZERO_CPU, NONZERO_MEMORY, STORAGE = range(6)
FIXED = {"cpu": CPU, "memory": MEMORY, "pods": PODS, "ephemeral-storage": STORAGE}
UNLIMITED = 2**62
"""The capacity of every node for the two non-zero sums: they are scored and never limit a node."""


def grow_column(array: NDArray[Any], size: int, *, fill: int | bool = 0) -> NDArray[Any]:
    """Copy a column, or a stack of columns whose last axis is the rows, into a larger array."""
    bigger = np.full((*array.shape[:-1], size), fill, dtype=array.dtype)
    bigger[..., : array.shape[-1]] = array
    return bigger


class ResourceNames:
    """The index of each resource in the stacked columns; indices are never reused."""

    def __init__(self) -> None:
        self.names = ["cpu", "memory", "pods", "", "", "ephemeral-storage"]
        self._index = dict(FIXED)

    def __len__(self) -> int:
        return len(self.names)

    def index(self, name: str) -> int:
        """Return the index of a resource; a new name gets the next index."""
        index = self._index.get(name)
        if index is None:
            index = self._index[name] = len(self.names)
            self.names.append(name)
        return index

    def copy(self) -> ResourceNames:
        """Copy the numbering."""
        clone = ResourceNames()
        clone.names, clone._index = list(self.names), dict(self._index)
        return clone

    def vector(self, amounts: dict[str, int]) -> Ints:
        """Return amounts by name as a vector by resource index."""
        by_index = {self.index(name): amount for name, amount in amounts.items()}
        vector = np.zeros(len(self.names), dtype=np.int64)
        for index, amount in by_index.items():
            vector[index] = amount
        return vector


class RowLog:
    """A log of changed rows, in order; each reader remembers the position up to which it has read.

    The log keeps only the newest entries, at least half of `kept`, so that its memory is bounded. A reader that is
    further behind gets all kept entries; these are so many that a reader of node rows rebuilds its state instead of
    following them one by one. Other readers must ask `has_all_since`.
    """

    def __init__(self, kept: int = 1 << 17) -> None:
        self._kept = kept
        self._rows = np.zeros(1024, dtype=np.intp)
        self._dropped = 0
        self.length = 0
        """The number of rows ever logged, which is the position after the last entry."""

    def add(self, row: int) -> None:
        """Log a changed row."""
        index = self.length - self._dropped
        if index == len(self._rows):
            index = self._make_room()
        self._rows[index] = row
        self.length += 1

    def _make_room(self) -> int:
        if len(self._rows) < self._kept:
            self._rows = grow_column(self._rows, 2 * len(self._rows))
        else:
            half = len(self._rows) // 2
            self._rows[:half] = self._rows[half:].copy()
            self._dropped += half
        return self.length - self._dropped

    def has_all_since(self, position: int) -> bool:
        """Return whether no entry after a position was dropped."""
        return position >= self._dropped

    def since(self, position: int) -> Rows:
        """Return the rows logged after a position, with repetitions."""
        return self._rows[max(position - self._dropped, 0) : self.length - self._dropped]

    def copy(self) -> RowLog:
        """Copy the log; positions in the original are valid in the copy."""
        clone = RowLog(self._kept)
        clone._rows, clone._dropped, clone.length = self._rows.copy(), self._dropped, self.length
        return clone
