"""The nodes of a cluster as columns.

Contract: a node keeps its row while it lives; a removed row is a tombstone that the next node takes over. `on` says
which rows are nodes that take part. Label columns are made when somebody asks for a label, and kept up by edits from
then on. `shape` counts changes of which rows are on, of labels and of taints: what was derived from those is stale when
`shape` has moved. `touched` logs every row whose node object changed, `rank` orders rows by node name.
"""

from __future__ import annotations

from bisect import bisect_left
from copy import copy

import numpy as np

from tutti.cluster.columns import (
    FIXED,
    NONZERO_CPU,
    NONZERO_MEMORY,
    UNLIMITED,
    Bools,
    Ints,
    Ints32,
    ResourceNames,
    RowLog,
    Rows,
    grown,
)
from tutti.kube.objects import Node, NodeImage, Taint
from tutti.kube.resources import allocatable
from tutti.kube.selectors import NODE_NAME_FIELD, NodeTerm, Requirement

RANK_BITS = 36
_EXACT = 2**45
_FEW = 32
"""Rows up to which what is derived from nodes follows them one by one."""
_RANK_STEP = 1 << 16


class LabelColumn:
    """The values of one label: `ids` holds a number per row, -1 where the node lacks the label."""

    def __init__(self, size: int) -> None:
        self.values: dict[str, int] = {}
        self.ids: Ints32 = np.full(size, -1, dtype=np.int32)

    def number(self, value: str | None) -> int:
        """Give the value's number, a new one if it is new."""
        if value is None:
            return -1
        return self.values.setdefault(value, len(self.values))

    def copy(self) -> LabelColumn:
        """Copy the column."""
        twin = LabelColumn(0)
        twin.values, twin.ids = dict(self.values), self.ids.copy()
        return twin

    def meeting(self, requirement: Requirement, rows: Rows | slice) -> Bools:
        """Say for each row whether its value meets the requirement."""
        # One answer per value, and a last one that -1 (no label) picks.
        table = np.fromiter(
            (*(requirement.holds(v) for v in self.values), requirement.holds(None)), bool, len(self.values) + 1
        )
        answers: Bools = table[self.ids[rows]]
        return answers


class DomainColumn:
    """The values of one label over all nodes that take part, as numbers to index tables with.

    `digits` is the value's number per row, counted from 1; 0 where the label is missing. `nodes_in` says how many nodes
    that take part have each. Both follow the nodes row by row.
    """

    def __init__(self, nodes: NodeTable, key: str) -> None:
        self._nodes, self._key = nodes, key
        self._size = -1
        self._read = 0
        self.digits: Rows = np.zeros(0, dtype=np.intp)
        self._counted: Bools = np.zeros(0, dtype=bool)
        self.nodes_in: Ints = np.zeros(0, dtype=np.int64)

    @property
    def everywhere(self) -> bool:
        """Whether every node has the label."""
        return not self.nodes_in[0]

    def sync(self) -> None:
        """Follow the nodes."""
        nodes = self._nodes
        if self._read == nodes.touched.length and self._size == nodes.size:
            return
        column = nodes.column(self._key)
        rows = nodes.touched.since(self._read)
        self._read = nodes.touched.length
        if self._size != nodes.size or len(rows) > _FEW:
            self._size = nodes.size
            self.digits, self._counted = column.ids.astype(np.intp) + 1, nodes.on.copy()
            self.nodes_in = np.bincount(self.digits[nodes.on], minlength=len(column.values) + 1)
            return
        if len(self.nodes_in) <= len(column.values):
            self.nodes_in = grown(self.nodes_in, len(column.values) + 1)
        for row in set(rows.tolist()):
            if self._counted[row]:
                self.nodes_in[self.digits[row]] -= 1
            self.digits[row], self._counted[row] = column.ids[row] + 1, nodes.on[row]
            if self._counted[row]:
                self.nodes_in[self.digits[row]] += 1


class NodeTable:
    """All nodes; see the module's contract."""

    def __init__(self, resources: ResourceNames) -> None:
        size = 64
        self.resources = resources
        self.size = size
        self.count = 0
        self.length = 0
        """Rows from here on have never been used."""
        self.objects: list[Node | None] = [None] * size
        self.names: list[str] = [""] * size
        self.row_of: dict[str, int] = {}
        self.free: list[int] = list(range(size - 1, -1, -1))
        self.on: Bools = np.zeros(size, dtype=bool)
        self.alloc: Ints = np.ones((len(resources), size), dtype=np.int64)
        """What nodes offer. Rows without a node offer 1, so that whoever divides need not look."""
        self.used: Ints = np.zeros((len(resources), size), dtype=np.int64)
        self.unschedulable: Bools = np.zeros(size, dtype=bool)
        self.rank: Ints = np.zeros(size, dtype=np.int64)
        self.taints: Ints32 = np.zeros(size, dtype=np.int32)
        self.taint_sets: list[tuple[Taint, ...]] = [()]
        self._taint_ids: dict[tuple[tuple[str, str | None, str], ...], int] = {(): 0}
        self.labels: dict[str, LabelColumn] = {}
        self._domains: dict[str, DomainColumn] = {}
        self.image_rows: dict[str, set[int]] = {}
        self.image_size: dict[str, int] = {}
        self.images_shape = 0
        self.exact_in_floats = True
        """Whether every node has cpu and memory, and amounts of which floats hold a hundredfold exactly."""
        self.shape = 0
        self.rank_shape = 0
        self.touched = RowLog()
        self._sorted: list[str] = []

    # Rows -------------------------------------------------------------------------------------------------------------

    def put(self, node: Node, *, on: bool = True) -> int:
        """Write a node into its row, a new one if its name is new, and give the row."""
        name = node.metadata.name
        row = self.row_of.get(name)
        if row is None:
            row = self._take_row()
            self.row_of[name], self.names[row] = row, name
            self._rank(name, row)
            self._write(row, node, None)
            self.switch(row, on=on)
        else:
            old = self.objects[row]
            self._write(row, node, old)
            if self.on[row]:
                self._set_images(row, old.status.images if old else None, node.status.images)
        self.touched.add(row)
        return row

    def remove(self, name: str) -> int:
        """Turn a node's row into a tombstone."""
        row = self.row_of[name]
        self.switch(row, on=False)
        del self.row_of[name]
        self.objects[row], self.names[row] = None, ""
        self.alloc[:, row] = 1
        self.taints[row] = 0
        for column in self.labels.values():
            column.ids[row] = -1
        self._sorted.pop(bisect_left(self._sorted, name))
        self.free.append(row)
        self.touched.add(row)
        return row

    def switch(self, row: int, *, on: bool) -> None:
        """Turn a row on or off."""
        node = self.objects[row]
        if node is None or bool(self.on[row]) == on:
            return
        self.on[row] = on
        self.count += 1 if on else -1
        images = node.status.images
        self._set_images(row, *((None, images) if on else (images, None)))
        self.shape += 1
        self.touched.add(row)

    def _take_row(self) -> int:
        if not self.free:
            self._grow(self.size + max(64, self.size // 4))
        row = self.free.pop()
        self.length = max(self.length, row + 1)
        return row

    def _grow(self, size: int) -> None:
        self.objects += [None] * (size - self.size)
        self.names += [""] * (size - self.size)
        self.free = list(range(size - 1, self.size - 1, -1))
        for field in ("on", "used", "unschedulable", "rank", "taints"):
            setattr(self, field, grown(getattr(self, field), size))
        self.alloc = grown(self.alloc, size, fill=1)
        for column in self.labels.values():
            column.ids = grown(column.ids, size, fill=-1)
        self.size = size

    def fit_resources(self) -> None:
        """Make room for resources that were numbered since the columns were made."""
        missing = len(self.resources) - len(self.alloc)
        if missing > 0:
            empty = np.zeros((missing, self.size), dtype=np.int64)
            self.alloc, self.used = np.vstack((self.alloc, empty)), np.vstack((self.used, empty))

    def _rank(self, name: str, row: int) -> None:
        """Give a new row a rank between those of its neighbours by name; renumber all when there is no room."""
        place = bisect_left(self._sorted, name)
        low = self.rank[self.row_of[self._sorted[place - 1]]] if place else 0
        if place == len(self._sorted):
            high = low + 2 * _RANK_STEP
        else:
            high = self.rank[self.row_of[self._sorted[place]]]
        self._sorted.insert(place, name)
        if high - low >= 2 and high < 1 << RANK_BITS:
            self.rank[row] = (low + high) // 2
            return
        for number, known in enumerate(self._sorted, start=1):
            self.rank[self.row_of[known]] = number * _RANK_STEP
        self.rank_shape += 1

    def copy(self, resources: ResourceNames) -> NodeTable:
        """Copy the columns; the nodes themselves are shared."""
        twin = copy(self)
        twin.resources = resources
        for field in ("on", "alloc", "used", "unschedulable", "rank", "taints"):
            setattr(twin, field, getattr(self, field).copy())
        for field in ("objects", "names", "free", "taint_sets", "_sorted"):
            setattr(twin, field, list(getattr(self, field)))
        for field in ("row_of", "_taint_ids", "image_size"):
            setattr(twin, field, dict(getattr(self, field)))
        twin._domains = {}
        twin.labels = {key: column.copy() for key, column in self.labels.items()}
        twin.image_rows = {name: set(rows) for name, rows in self.image_rows.items()}
        twin.touched = self.touched.copy()
        return twin

    # What a node says -------------------------------------------------------------------------------------------------

    def _write(self, row: int, node: Node, old: Node | None) -> None:
        offered = allocatable(node)
        for name in offered:
            if name not in FIXED:
                self.resources.place(name)
        self.fit_resources()
        self.alloc[:, row] = 0
        for name, amount in offered.items():
            self.alloc[self.resources.place(name), row] = amount
        self.alloc[NONZERO_CPU : NONZERO_MEMORY + 1, row] = UNLIMITED
        if not all(0 < offered.get(name, 0) < _EXACT for name in ("cpu", "memory")):
            self.exact_in_floats = False
        self.unschedulable[row] = bool(node.spec.unschedulable)
        taints = self._taint_id(node.spec.taints or [])
        if taints != self.taints[row]:
            self.taints[row] = taints
            self.shape += 1
        labels = node.metadata.labels or {}
        if old is None or labels != (old.metadata.labels or {}):
            for key, column in self.labels.items():
                column.ids[row] = column.number(labels.get(key))
            self.shape += 1
        self.objects[row] = node

    def _taint_id(self, taints: list[Taint]) -> int:
        key = tuple((t.key, t.value, t.effect) for t in taints)
        number = self._taint_ids.get(key)
        if number is None:
            number = self._taint_ids[key] = len(self.taint_sets)
            self.taint_sets.append(tuple(taints))
        return number

    def _set_images(self, row: int, before: list[NodeImage] | None, after: list[NodeImage] | None) -> None:
        """Exchange the images that a row has. An image's size is what the first node that had it said."""
        self.images_shape += 1
        if before == after:
            return
        for name in {n for image in before or () for n in image.names or ()}:
            holders = self.image_rows[name]
            holders.discard(row)
            if not holders:
                del self.image_rows[name], self.image_size[name]
        for image in after or ():
            for name in image.names or ():
                self.image_rows.setdefault(name, set()).add(row)
                self.image_size.setdefault(name, image.size_bytes or 0)

    # Questions --------------------------------------------------------------------------------------------------------

    def column(self, key: str) -> LabelColumn:
        """Give the column of a label, made now if nobody has asked for it before."""
        column = self.labels.get(key)
        if column is None:
            column = self.labels[key] = LabelColumn(self.size)
            for row in self.row_of.values():
                node = self.objects[row]
                if node is not None:
                    column.ids[row] = column.number((node.metadata.labels or {}).get(key))
        return column

    def domains(self, key: str) -> DomainColumn:
        """Give the values of a label as numbers to index tables with."""
        domains = self._domains.get(key)
        if domains is None:
            domains = self._domains[key] = DomainColumn(self, key)
        domains.sync()
        return domains

    def meeting(self, requirements: tuple[Requirement, ...], rows: Rows | slice) -> Bools:
        """Say for each row whether its labels meet all the requirements."""
        met = np.ones(len(self.on[rows]), dtype=bool)
        for requirement in requirements:
            met &= self.column(requirement.key).meeting(requirement, rows)
        return met

    def in_term(self, term: NodeTerm, rows: Rows | slice) -> Bools:
        """Say for each row whether it is in a node selector term."""
        if term.is_invalid:
            return np.zeros(len(self.on[rows]), dtype=bool)
        met = self.meeting(term.labels, rows)
        for requirement in term.fields:
            met &= self._named(requirement, rows)
        return met

    def in_any_term(self, terms: tuple[NodeTerm, ...], rows: Rows | slice) -> Bools:
        """Say for each row whether one of the terms holds there."""
        met = np.zeros(len(self.on[rows]), dtype=bool)
        for term in terms:
            met |= self.in_term(term, rows)
        return met

    def _named(self, requirement: Requirement, rows: Rows | slice) -> Bools:
        default = requirement.holds(None)
        if requirement.key != NODE_NAME_FIELD:
            return np.full(len(self.on[rows]), default)
        named = np.full(self.size, requirement.operator == "NotIn")
        for name in requirement.values:
            row = self.row_of.get(name)
            if row is not None:
                named[row] = requirement.operator == "In"
        answers: Bools = named[rows]
        return answers
