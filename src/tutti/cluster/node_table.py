"""The nodes of a cluster as columns.

Contract: a node keeps its row while it exists; the row of a removed node is reused. `on` marks the rows of active
nodes; templates and empty rows are off. A label column is built at its first use and then kept current by edits.
`version` changes when the active rows, labels or taints change: derived data is stale when `version` has changed.
`touched` logs every row whose node object changed. `rank` orders rows by node name. `collect` gives back taint sets and
label values that no node has, and label columns that nobody reads: the number of a taint set is used again, and a
column is built again with new numbers, which counts as a change of the nodes.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable
from copy import copy
from typing import Any

import numpy as np
from numpy.typing import NDArray

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
    grow_column,
)
from tutti.kube.objects import Node, NodeImage, Taint
from tutti.kube.resources import allocatable
from tutti.kube.selectors import NODE_NAME_FIELD, NodeTerm, Requirement

RANK_BITS = 36
_MAX_EXACT_AMOUNT = 2**45
_MAX_PATCHED_ROWS = 32
"""Up to this many changed rows, derived data is updated row by row; above, it is rebuilt."""
_RANK_STEP = 1 << 16
_SPARE_TAINT_SETS, _SPARE_VALUES, _SPARE_COLUMNS = 64, 64, 32
"""How many new entries `collect` tolerates before it looks which are in use."""


class LabelColumn:
    """The values of one label: `ids` holds a value number per row, -1 for nodes without the label."""

    def __init__(self, size: int) -> None:
        self.values: dict[str, int] = {}
        self.ids: Ints32 = np.full(size, -1, dtype=np.int32)

    def number(self, value: str | None) -> int:
        """Return the number of a value; a new value gets the next number."""
        if value is None:
            return -1
        return self.values.setdefault(value, len(self.values))

    def copy(self) -> LabelColumn:
        """Copy the column."""
        clone = LabelColumn(0)
        clone.values, clone.ids = dict(self.values), self.ids.copy()
        return clone

    def matches(self, requirement: Requirement, rows: Rows | slice) -> Bools:
        """Return for each row whether its value satisfies the requirement."""
        # One answer per value; the last answer is for nodes without the label, whose id is -1.
        if requirement.operator in ("In", "NotIn"):
            is_in = requirement.operator == "In"
            table = np.full(len(self.values) + 1, not is_in)
            table[[n for n in map(self.values.get, requirement.values) if n is not None]] = is_in
        else:
            answer_per_value = (*map(requirement.holds, self.values), requirement.holds(None))
            table = np.fromiter(answer_per_value, bool, len(self.values) + 1)
        answers: Bools = table[self.ids[rows]]
        return answers


class DomainColumn:
    """The values of one label over all active nodes, as table indices.

    `indices` holds the value's number per row, counted from 1; 0 for nodes without the label. `nodes_in` holds the
    number of active nodes per index. `sync` updates both row by row.
    """

    def __init__(self, nodes: NodeTable, key: str) -> None:
        self._nodes, self._key = nodes, key
        self._size = -1
        self._log_position = 0
        self.indices: Rows = np.zeros(0, dtype=np.intp)
        self._counted: Bools = np.zeros(0, dtype=bool)
        self.nodes_in: Ints = np.zeros(0, dtype=np.int64)

    @property
    def is_on_every_node(self) -> bool:
        """Whether every active node has the label."""
        return not self.nodes_in[0]

    def sync(self) -> None:
        """Update the column after changes of nodes."""
        nodes = self._nodes
        if self._log_position == nodes.touched.length and self._size == nodes.size:
            return
        column = nodes.column(self._key)
        rows = nodes.touched.since(self._log_position)
        self._log_position = nodes.touched.length
        if self._size != nodes.size or len(rows) > _MAX_PATCHED_ROWS:
            self._size = nodes.size
            self.indices, self._counted = column.ids.astype(np.intp) + 1, nodes.on.copy()
            self.nodes_in = np.bincount(self.indices[nodes.on], minlength=len(column.values) + 1)
            return
        if len(self.nodes_in) <= len(column.values):
            self.nodes_in = grow_column(self.nodes_in, len(column.values) + 1)
        for row in set(rows.tolist()):
            if self._counted[row]:
                self.nodes_in[self.indices[row]] -= 1
            self.indices[row], self._counted[row] = column.ids[row] + 1, nodes.on[row]
            if self._counted[row]:
                self.nodes_in[self.indices[row]] += 1


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
        """Allocatable amounts, by resource and row. Rows without a node have 1, so that code can divide without a
        check."""
        self.used: Ints = np.zeros((len(resources), size), dtype=np.int64)
        self.unschedulable: Bools = np.zeros(size, dtype=bool)
        self.rank: Ints = np.zeros(size, dtype=np.int64)
        self.taints: Ints32 = np.zeros(size, dtype=np.int32)
        self.taint_sets: list[tuple[Taint, ...]] = [()]
        self._taint_ids: dict[tuple[tuple[str, str | None, str], ...], int] = {(): 0}
        self._free_taint_ids: list[int] = []
        self._kept_taint_sets = self._kept_columns = 0
        """How many were left by the last collection."""
        self._requested_keys: set[str] = set()
        """The label keys whose columns were requested since the last collection of columns."""
        self.labels: dict[str, LabelColumn] = {}
        self._domains: dict[str, DomainColumn] = {}
        self.image_rows: dict[str, set[int]] = {}
        self.image_size: dict[str, int] = {}
        self.images_version = 0
        self.exact_in_floats = True
        """Whether every node has cpu and memory, and floats hold 100 times each amount exactly."""
        self.version = 0
        self.rank_version = 0
        self.touched = RowLog()
        self._sorted_names: list[str] = []

    # Rows -------------------------------------------------------------------------------------------------------------

    def put(self, node: Node, *, on: bool = True) -> int:
        """Write a node into its row, a new row for a new name, and return the row."""
        name = node.metadata.name
        row = self.row_of.get(name)
        offered = allocatable(node)  # first: a quantity that cannot be read must change nothing
        if row is None:
            row = self._take_row()
            self.row_of[name], self.names[row] = row, name
            self._rank(name, row)
            self._write(row, node, None, offered)
            self.switch(row, on=on)
        else:
            old = self.objects[row]
            self._write(row, node, old, offered)
            if self.on[row]:
                self._set_images(row, old.status.images if old else None, node.status.images)
        self.touched.add(row)
        return row

    def remove(self, name: str) -> int:
        """Empty a node's row for reuse, and return the row."""
        row = self.row_of[name]
        self.switch(row, on=False)
        del self.row_of[name]
        self.objects[row], self.names[row] = None, ""
        self.alloc[:, row] = 1
        self.taints[row] = 0
        for column in self.labels.values():
            column.ids[row] = -1
        self._sorted_names.pop(bisect_left(self._sorted_names, name))
        self.free.append(row)
        self.touched.add(row)
        return row

    def switch(self, row: int, *, on: bool) -> None:
        """Make the node in a row active or inactive."""
        node = self.objects[row]
        if node is None or bool(self.on[row]) == on:
            return
        self.on[row] = on
        self.count += 1 if on else -1
        images = node.status.images
        self._set_images(row, *((None, images) if on else (images, None)))
        self.version += 1
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
            setattr(self, field, grow_column(getattr(self, field), size))
        self.alloc = grow_column(self.alloc, size, fill=1)
        for column in self.labels.values():
            column.ids = grow_column(column.ids, size, fill=-1)
        self.size = size

    def fit_resources(self) -> None:
        """Grow the columns to the number of known resources."""
        missing = len(self.resources) - len(self.alloc)
        if missing > 0:
            empty = np.zeros((missing, self.size), dtype=np.int64)
            self.alloc, self.used = np.vstack((self.alloc, empty)), np.vstack((self.used, empty))

    def _rank(self, name: str, row: int) -> None:
        """Set the rank of a new row between its neighbours by name; renumber all rows when there is no gap."""
        position = bisect_left(self._sorted_names, name)
        low = self.rank[self.row_of[self._sorted_names[position - 1]]] if position else 0
        if position == len(self._sorted_names):
            high = low + 2 * _RANK_STEP
        else:
            high = self.rank[self.row_of[self._sorted_names[position]]]
        self._sorted_names.insert(position, name)
        if high - low >= 2 and high < 1 << RANK_BITS:
            self.rank[row] = (low + high) // 2
            return
        for number, known in enumerate(self._sorted_names, start=1):
            self.rank[self.row_of[known]] = number * _RANK_STEP
        self.rank_version += 1

    def copy(self, resources: ResourceNames) -> NodeTable:
        """Copy the columns; the node objects are shared."""
        clone = copy(self)
        clone.resources = resources
        for field in ("on", "alloc", "used", "unschedulable", "rank", "taints"):
            setattr(clone, field, getattr(self, field).copy())
        for field in ("objects", "names", "free", "taint_sets", "_free_taint_ids", "_sorted_names"):
            setattr(clone, field, list(getattr(self, field)))
        for field in ("row_of", "_taint_ids", "image_size"):
            setattr(clone, field, dict(getattr(self, field)))
        clone._domains, clone._requested_keys = {}, set(self._requested_keys)
        clone.labels = {key: column.copy() for key, column in self.labels.items()}
        clone.image_rows = {name: set(rows) for name, rows in self.image_rows.items()}
        clone.touched = self.touched.copy()
        return clone

    # Reading node objects ---------------------------------------------------------------------------------------------

    def _write(self, row: int, node: Node, old: Node | None, offered: dict[str, int]) -> None:
        for name in offered:
            if name not in FIXED:
                self.resources.index(name)
        self.fit_resources()
        self.alloc[:, row] = 0
        for name, amount in offered.items():
            self.alloc[self.resources.index(name), row] = amount
        self.alloc[NONZERO_CPU : NONZERO_MEMORY + 1, row] = UNLIMITED
        if not all(0 < offered.get(name, 0) < _MAX_EXACT_AMOUNT for name in ("cpu", "memory")):
            self.exact_in_floats = False
        self.unschedulable[row] = bool(node.spec.unschedulable)
        taints = self._taint_id(node.spec.taints or [])
        if taints != self.taints[row]:
            self.taints[row] = taints
            self.version += 1
        labels = node.metadata.labels or {}
        if old is None or labels != (old.metadata.labels or {}):
            for key, column in self.labels.items():
                column.ids[row] = column.number(labels.get(key))
            self.version += 1
        self.objects[row] = node

    def _taint_id(self, taints: list[Taint]) -> int:
        key = tuple((t.key, t.value, t.effect) for t in taints)
        number = self._taint_ids.get(key)
        if number is None:
            if self._free_taint_ids:
                number = self._free_taint_ids.pop()
                self.taint_sets[number] = tuple(taints)
            else:
                number = len(self.taint_sets)
                self.taint_sets.append(tuple(taints))
            self._taint_ids[key] = number
        return number

    def _set_images(self, row: int, before: list[NodeImage] | None, after: list[NodeImage] | None) -> None:
        """Replace the images of a row. An image's size is the size on the first node that had the image."""
        self.images_version += 1
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

    # Lookups ----------------------------------------------------------------------------------------------------------

    def column(self, key: str) -> LabelColumn:
        """Return the column of a label; build the column at its first use."""
        self._requested_keys.add(key)
        column = self.labels.get(key)
        if column is None:
            column = self.labels[key] = LabelColumn(self.size)
            for row in self.row_of.values():
                node = self.objects[row]
                if node is not None:
                    column.ids[row] = column.number((node.metadata.labels or {}).get(key))
        return column

    def domains(self, key: str) -> DomainColumn:
        """Return the values of a label as table indices, up to date."""
        self._requested_keys.add(key)
        domains = self._domains.get(key)
        if domains is None:
            domains = self._domains[key] = DomainColumn(self, key)
        domains.sync()
        return domains

    def by_taints(self, rows: Rows | slice, judge: Callable[[tuple[Taint, ...]], int], dtype: type) -> NDArray[Any]:
        """Return the judgement of each row's taints; each set of taints on these rows is judged once."""
        ids = self.taints[rows]
        table: NDArray[Any] = np.zeros(len(self.taint_sets), dtype=dtype)
        for number in np.flatnonzero(np.bincount(ids)).tolist():
            table[number] = judge(self.taint_sets[number])
        judgements: NDArray[Any] = table[ids]
        return judgements

    def matches_all(self, requirements: tuple[Requirement, ...], rows: Rows | slice) -> Bools:
        """Return for each row whether its labels satisfy all requirements."""
        met = np.ones(len(self.on[rows]), dtype=bool)
        for requirement in requirements:
            met &= self.column(requirement.key).matches(requirement, rows)
        return met

    def matches_term(self, term: NodeTerm, rows: Rows | slice) -> Bools:
        """Return for each row whether it matches a node selector term."""
        if term.is_invalid:
            return np.zeros(len(self.on[rows]), dtype=bool)
        met = self.matches_all(term.labels, rows)
        for requirement in term.fields:
            met &= self._matches_field(requirement, rows)
        return met

    def matches_any_term(self, terms: tuple[NodeTerm, ...], rows: Rows | slice) -> Bools:
        """Return for each row whether it matches at least one of the terms."""
        met = np.zeros(len(self.on[rows]), dtype=bool)
        for term in terms:
            met |= self.matches_term(term, rows)
        return met

    def _matches_field(self, requirement: Requirement, rows: Rows | slice) -> Bools:
        default = requirement.holds(None)
        if requirement.key != NODE_NAME_FIELD:
            return np.full(len(self.on[rows]), default)
        matching = np.full(self.size, requirement.operator == "NotIn")
        for name in requirement.values:
            row = self.row_of.get(name)
            if row is not None:
                matching[row] = requirement.operator == "In"
        answers: Bools = matching[rows]
        return answers

    # Collection -------------------------------------------------------------------------------------------------------

    def collect(self) -> int:
        """Give back taint sets and label values that no node has, and unread columns; return how many."""
        return self._collect_taint_sets() + self._collect_columns()

    def _collect_taint_sets(self) -> int:
        before = len(self._taint_ids)
        if before <= self._kept_taint_sets + _SPARE_TAINT_SETS:
            return 0
        is_used = np.bincount(self.taints, minlength=len(self.taint_sets)) > 0
        is_used[0] = True  # no taints
        for key, number in list(self._taint_ids.items()):
            if not is_used[number]:
                del self._taint_ids[key]
                self.taint_sets[number] = ()
                self._free_taint_ids.append(number)
        self._kept_taint_sets = len(self._taint_ids)
        return before - self._kept_taint_sets

    def _collect_columns(self) -> int:
        """Drop columns with more values than nodes can have; sometimes, drop columns that nobody has requested."""
        most_values = 2 * len(self.row_of) + _SPARE_VALUES
        dropped = [key for key, column in self.labels.items() if len(column.values) > most_values]
        if len(self.labels) > self._kept_columns + _SPARE_COLUMNS:
            dropped += self.labels.keys() - self._requested_keys - set(dropped)
            self._requested_keys = set()
            self._kept_columns = len(self.labels) - len(dropped)
        values = 0
        for key in dropped:
            values += len(self.labels.pop(key).values)
            self._domains.pop(key, None)
        if dropped:
            self.version += 1
            self.touched.add(0)  # whoever follows the log reads the new numbers; the row itself does not matter
        return values
