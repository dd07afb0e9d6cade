"""Columns: numpy arrays that grow, and the numbering of resources.

A column has spare room behind its last used row, so that a new row costs no copy; rows are stable for as long as their
object lives. Resources are numbered: the first six places are fixed, extended resources follow as they appear.
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
"""What a node offers of the two non-zero sums, which are only scored and never run out."""


def grown(array: NDArray[Any], size: int, *, fill: int | bool = 0) -> NDArray[Any]:
    """Copy a column (or a stack of columns: its last axis is the rows) into one of a larger size."""
    bigger = np.full((*array.shape[:-1], size), fill, dtype=array.dtype)
    bigger[..., : array.shape[-1]] = array
    return bigger


class ResourceNames:
    """The place of each resource in the stacked columns; it only grows."""

    def __init__(self) -> None:
        self.names = ["cpu", "memory", "pods", "", "", "ephemeral-storage"]
        self._place = dict(FIXED)

    def __len__(self) -> int:
        return len(self.names)

    def place(self, name: str) -> int:
        """Give the resource's place, a new one if it is new."""
        place = self._place.get(name)
        if place is None:
            place = self._place[name] = len(self.names)
            self.names.append(name)
        return place

    def copy(self) -> ResourceNames:
        """Copy the numbering."""
        twin = ResourceNames()
        twin.names, twin._place = list(self.names), dict(self._place)
        return twin

    def vector(self, amounts: dict[str, int]) -> Ints:
        """Turn amounts by name into a vector by place."""
        places = {self.place(name): amount for name, amount in amounts.items()}
        vector = np.zeros(len(self.names), dtype=np.int64)
        for place, amount in places.items():
            vector[place] = amount
        return vector


class RowLog:
    """The rows that were touched, in order; readers remember how far they have read.

    Only the newest entries are kept. A reader that is further behind gets all of those, far more than it would follow
    one by one: every reader starts anew then.
    """

    KEPT = 1 << 22

    def __init__(self) -> None:
        self._rows = np.zeros(1024, dtype=np.intp)
        self._dropped = 0
        self.length = 0
        """How many rows were ever noted: the position behind the last."""

    def add(self, row: int) -> None:
        """Note that a row has changed."""
        place = self.length - self._dropped
        if place == len(self._rows):
            place = self._make_room()
        self._rows[place] = row
        self.length += 1

    def _make_room(self) -> int:
        if len(self._rows) < self.KEPT:
            self._rows = grown(self._rows, 2 * len(self._rows))
        else:
            half = len(self._rows) // 2
            self._rows[:half] = self._rows[half:].copy()
            self._dropped += half
        return self.length - self._dropped

    def since(self, position: int) -> Rows:
        """Give the rows touched after a position, with repetitions."""
        return self._rows[max(position - self._dropped, 0) : self.length - self._dropped]

    def copy(self) -> RowLog:
        """Copy the log: positions in the original are positions in the copy."""
        twin = RowLog()
        twin._rows, twin._dropped, twin.length = self._rows.copy(), self._dropped, self.length
        return twin
