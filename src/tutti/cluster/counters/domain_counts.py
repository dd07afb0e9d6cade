"""Row counts: how many selected pods are on each node and in each topology domain.

Contract: `RowCounts` is a column of counts per row; every edit that moves a pod updates it. A `DomainView` sums the
rows of each domain (the nodes with the same value of a label). Edits of pods update a view directly. A view is brought
up to date at its next use when the version of the node table has changed (active nodes, labels, taints).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tutti.cluster.columns import Bools, Ints, Ints32, Rows, grow_column
from tutti.cluster.node_table import LabelColumn, NodeTable
from tutti.kube.objects import Toleration
from tutti.kube.selectors import NodeTerm, Requirement
from tutti.kube.taints import first_untolerated

_MAX_PATCHED_ROWS = 32
"""Up to this many changed rows, a view is updated row by row; above, it is rebuilt."""


class Eligibility(NamedTuple):
    """The nodes that a spread constraint counts: they have all `keys` and, if set, match labels and terms and are
    tolerated.
    """

    keys: tuple[str, ...] = ()
    labels: tuple[Requirement, ...] = ()
    terms: tuple[NodeTerm, ...] | None = None
    tolerations: tuple[Toleration, ...] | None = None

    def mask(self, nodes: NodeTable, rows: Rows | slice) -> Bools:
        """Return for each row whether the node is counted."""
        mask: Bools = nodes.on[rows] & nodes.matches_all(self.labels, rows)
        for key in self.keys:
            mask &= nodes.column(key).ids[rows] >= 0
        if self.terms is not None:
            mask &= nodes.matches_any_term(self.terms, rows)
        if self.tolerations is not None:
            tolerations = self.tolerations
            mask &= nodes.by_taints(rows, lambda taints: first_untolerated(taints, tolerations) is None, bool)
        return mask


class RowCounts:
    """Pod counts per row, and their sums per domain."""

    __slots__ = ("column", "nonzero", "total", "views")

    def __init__(self, size: int) -> None:
        self.column: Ints = np.zeros(size, dtype=np.int64)
        self.total = 0
        self.nonzero: dict[int, int] = {}
        """Rows with a count other than 0, and their counts: most selectors match pods on few nodes."""
        self.views: dict[tuple[str, Eligibility | None], DomainView] = {}

    def add(self, row: int, number: int) -> None:
        """Add a number of pods to a row; the number is negative for removed pods."""
        count = self.nonzero.get(row, 0) + number
        if count:
            self.nonzero[row] = count
        else:
            del self.nonzero[row]
        self.column[row] = count
        self.total += number
        for view in self.views.values():
            view.add(row, number)

    def fill(self, column: Ints) -> None:
        """Replace all counts."""
        self.column = column
        self.total = int(column.sum())
        rows = np.flatnonzero(column)
        self.nonzero = dict(zip(rows.tolist(), column[rows].tolist(), strict=True))
        for view in self.views.values():
            view.reset()

    def grow(self, size: int) -> None:
        """Grow the column to a number of rows."""
        self.column = grow_column(self.column, size)

    def copy_to(self, clone: RowCounts) -> None:
        """Copy the counts to another object, which builds its own views on demand."""
        clone.column, clone.total, clone.nonzero = self.column.copy(), self.total, dict(self.nonzero)

    def view(self, key: str, nodes: NodeTable, *, eligible: Eligibility | None = None) -> DomainView:
        """Return the up-to-date sums per value of a node label, over all nodes or over the eligible nodes."""
        view = self.views.get((key, eligible))
        if view is None:
            view = self.views[key, eligible] = DomainView(self, key, nodes, eligible=eligible)
        view.sync()
        return view


class DomainView:
    """Pod counts per domain of one node label.

    `counts[d]` is the number of pods in domain d, `nodes_in[d]` the number of nodes; both include only active, eligible
    rows. `domain` is the domain of each row, -1 for rows without the label. Moved pods update the view at once; changed
    nodes update it at the next `sync`.
    """

    __slots__ = (
        "_column",
        "_eligible",
        "_log_position",
        "_nodes",
        "_nodes_version",
        "_row_counts",
        "counts",
        "domain",
        "key",
        "mask",
        "nodes_in",
    )

    def __init__(self, row_counts: RowCounts, key: str, nodes: NodeTable, *, eligible: Eligibility | None) -> None:
        self._row_counts, self.key, self._nodes, self._eligible = row_counts, key, nodes, eligible
        self._nodes_version = self._log_position = -1
        self._column: LabelColumn | None = None
        """The column whose value numbers are the domains; a column that was given back is built with new numbers."""
        self.counts: Ints = np.zeros(0, dtype=np.int64)
        self.nodes_in: Ints = self.counts
        self.domain: Ints32 = np.zeros(0, dtype=np.int32)
        self.mask: Bools = np.zeros(0, dtype=bool)

    def reset(self) -> None:
        """Rebuild the view at its next use."""
        self._nodes_version = self._log_position = -1

    def sync(self) -> None:
        """Update the view if the version of the node table has changed."""
        nodes = self._nodes
        if self._nodes_version == nodes.version:
            return
        rows = nodes.touched.since(self._log_position) if self._log_position >= 0 else None
        self._nodes_version, self._log_position = nodes.version, nodes.touched.length
        is_renumbered = self._column is not nodes.column(self.key)
        if rows is None or is_renumbered or len(rows) > _MAX_PATCHED_ROWS or len(self.domain) != nodes.size:
            self._build()
        else:
            self._patch(np.unique(rows))

    def _eligible_in(self, rows: Rows | slice) -> Bools:
        on: Bools = self._nodes.on[rows] if self._eligible is None else self._eligible.mask(self._nodes, rows)
        return on & (self._nodes.column(self.key).ids[rows] >= 0)

    def _build(self) -> None:
        column = self._column = self._nodes.column(self.key)
        self.domain = column.ids.copy()
        self.mask = self._eligible_in(slice(None))
        rows = np.flatnonzero(self.mask)
        domains, size = column.ids[rows], len(column.values)
        self.nodes_in = np.bincount(domains, minlength=size)
        self.counts = np.bincount(domains, weights=self._row_counts.column[rows], minlength=size).astype(np.int64)

    def _patch(self, rows: Rows) -> None:
        column = self._nodes.column(self.key)
        if len(self.counts) < len(column.values):
            self.counts, self.nodes_in = (grow_column(a, len(column.values)) for a in (self.counts, self.nodes_in))
        for row, counted in zip(rows.tolist(), self._eligible_in(rows).tolist(), strict=True):
            number = self._row_counts.column[row]
            if self.mask[row]:
                self.counts[self.domain[row]] -= number
                self.nodes_in[self.domain[row]] -= 1
            self.domain[row], self.mask[row] = column.ids[row], counted
            if counted:
                self.counts[self.domain[row]] += number
                self.nodes_in[self.domain[row]] += 1

    def add(self, row: int, number: int) -> None:
        """Add a number of pods on one row."""
        if self._log_position >= 0 and row < len(self.mask) and self.mask[row]:
            self.counts[self.domain[row]] += number
