"""The pods of a cluster as columns: node, usage, priority, start time.

Contract: a pod keeps its row while it exists. `node` is the row of the pod's node, -1 for a pending pod or a pod whose
node is not in the cluster. `usage` numbers the pod's resource usage. `start` is `NOT_STARTED`, later than all times,
for a pod that has not started. Finished pods have no row.
"""

from __future__ import annotations

from copy import copy

import numpy as np

from tutti.cluster.columns import (
    NONZERO_CPU,
    NONZERO_MEMORY,
    PODS,
    Bools,
    Ints,
    Ints32,
    ResourceNames,
    RowLog,
    grow_column,
)
from tutti.cluster.indexes.groups import NO_GROUP
from tutti.kube.objects import Pod
from tutti.kube.resources import PlacedRequests

NOT_STARTED = 2**63 - 1
NO_DURATION = -1
_MAX_TOUCHED = 1 << 18
"""Entries of the log of pod rows; a reader that is further behind reads all pods again."""


_UsageKey = tuple[tuple[tuple[str, int], ...], int, int]


class UsageTable:
    """Interned resource usages of pods: `matrix[number]` is a vector by resource index.

    The number of a usage that no spec class has any more is used again.
    """

    def __init__(self, resources: ResourceNames) -> None:
        self.resources = resources
        self.matrix: Ints = np.zeros((64, len(resources)), dtype=np.int64)
        self._numbers: dict[_UsageKey, int] = {}
        self._keys: list[_UsageKey] = []
        self._spec_counts: list[int] = []
        self._free: list[int] = []

    def take(self, placed: PlacedRequests) -> int:
        """Return the number of the usage of one more spec class; a new usage gets a new number."""
        key = (tuple(sorted(placed.requests.items())), placed.nonzero_cpu, placed.nonzero_memory)
        number = self._numbers.get(key)
        if number is None:
            if self._free:
                number = self._free.pop()
                self._keys[number] = key
            else:
                number = len(self._keys)
                self._keys.append(key)
                self._spec_counts.append(0)
            self._numbers[key] = number
            vector = self.resources.vector({name: amount for name, amount in key[0] if amount})
            vector[PODS], vector[NONZERO_CPU], vector[NONZERO_MEMORY] = 1, key[1], key[2]
            if number == len(self.matrix):
                self.matrix = np.vstack((self.matrix, np.zeros_like(self.matrix)))
            self.fit_resources()
            self.matrix[number] = vector
        self._spec_counts[number] += 1
        return number

    def give_back(self, number: int) -> None:
        """Count one spec class less; a usage that no spec class has gives its number back."""
        self._spec_counts[number] -= 1
        if not self._spec_counts[number]:
            del self._numbers[self._keys[number]]
            self._free.append(number)

    def copy(self, resources: ResourceNames) -> UsageTable:
        """Copy the table."""
        clone = UsageTable(resources)
        clone.matrix, clone._numbers = self.matrix.copy(), dict(self._numbers)
        clone._keys, clone._spec_counts, clone._free = list(self._keys), list(self._spec_counts), list(self._free)
        return clone

    def fit_resources(self) -> None:
        """Grow the vectors to the number of known resources."""
        missing = len(self.resources) - self.matrix.shape[1]
        if missing > 0:
            self.matrix = grow_column(self.matrix, len(self.resources))


class PodTable:
    """All pods; see the module's contract."""

    _FIELDS = ("node", "spec", "labels", "usage", "priority", "start", "duration", "order", "terminating", "group")

    def __init__(self) -> None:
        size = 256
        self.size = size
        self.length = 0
        """Rows from here on have never been used."""
        self.objects: list[Pod | None] = [None] * size
        self.keys: list[str] = [""] * size
        self.row_of: dict[str, int] = {}
        self.node_names: list[str | None] = [None] * size
        self.free: list[int] = []
        self.node: Ints32 = np.full(size, -1, dtype=np.int32)
        self.spec: Ints = np.zeros(size, dtype=np.int64)
        self.labels: Ints = np.zeros(size, dtype=np.int64)
        self.usage: Ints32 = np.zeros(size, dtype=np.int32)
        self.priority: Ints = np.zeros(size, dtype=np.int64)
        self.start: Ints = np.zeros(size, dtype=np.int64)
        self.duration: Ints = np.full(size, NO_DURATION, dtype=np.int64)
        """How long the pod states that it runs (annotation tutti.dev/duration), in microseconds."""
        self.order: Ints = np.zeros(size, dtype=np.int64)
        """The order in which pods arrived on nodes: of two equally important pods, preemption evicts the later one
        first."""
        self.terminating: Bools = np.zeros(size, dtype=bool)
        self.group: Ints32 = np.full(size, NO_GROUP, dtype=np.int32)
        """The number of the group that the pod names."""
        self.touched = RowLog(_MAX_TOUCHED)
        """Pod rows whose pod was put, removed, bound or unbound."""

    def take_row(self, key: str) -> int:
        """Return a row for a new pod."""
        if self.free:
            row = self.free.pop()
        else:
            if self.length == self.size:
                self._grow(2 * self.size)
            row = self.length
            self.length += 1
        self.row_of[key], self.keys[row] = row, key
        return row

    def drop_row(self, row: int) -> None:
        """Empty a pod's row for reuse; the pod must be off its node."""
        del self.row_of[self.keys[row]]
        self.objects[row], self.keys[row], self.node_names[row] = None, "", None
        self.group[row], self.terminating[row] = NO_GROUP, False
        self.free.append(row)
        self.touched.add(row)

    def used_rows(self) -> Bools:
        """Return for each row up to `length` whether a pod has the row."""
        used = np.ones(self.length, dtype=bool)
        used[self.free] = False
        return used

    def copy(self) -> PodTable:
        """Copy the columns; the pod objects are shared."""
        clone = copy(self)
        for field in self._FIELDS:
            setattr(clone, field, getattr(self, field).copy())
        for field in ("objects", "keys", "node_names", "free"):
            setattr(clone, field, list(getattr(self, field)))
        clone.row_of, clone.touched = dict(self.row_of), self.touched.copy()
        return clone

    def _grow(self, size: int) -> None:
        for values in (self.objects, self.node_names):
            values += [None] * (size - self.size)
        self.keys += [""] * (size - self.size)
        for field in self._FIELDS:
            setattr(self, field, grow_column(getattr(self, field), size, fill=-1 if field in ("node", "group") else 0))
        self.size = size
