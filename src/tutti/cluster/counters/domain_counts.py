"""Tallies: how many pods of some kind stand on each node and in each domain.

Contract: a tally is a column of counts per row, kept by every edit that moves a pod. Its views add the rows of each
domain (the nodes that share a label's value) up. A view is kept by the same edits while the nodes keep their shape
(which are on, labels, taints), and built anew when it is asked after the shape has moved.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tutti.cluster.columns import Bools, Ints, Ints32, Rows, grown
from tutti.cluster.node_table import NodeTable
from tutti.kube.objects import Toleration
from tutti.kube.selectors import NodeTerm, Requirement
from tutti.kube.taints import first_untolerated

_FEW = 32
"""Rows up to which a view follows nodes one by one."""


class Eligibility(NamedTuple):
    """Which nodes a spread constraint counts: those that have all `keys` and, where asked, match and are tolerated."""

    keys: tuple[str, ...] = ()
    labels: tuple[Requirement, ...] = ()
    terms: tuple[NodeTerm, ...] | None = None
    tolerations: tuple[Toleration, ...] | None = None

    def mask(self, nodes: NodeTable, rows: Rows | slice) -> Bools:
        """Say for each row whether it counts."""
        mask: Bools = nodes.on[rows] & nodes.meeting(self.labels, rows)
        for key in self.keys:
            mask &= nodes.column(key).ids[rows] >= 0
        if self.terms is not None:
            mask &= nodes.in_any_term(self.terms, rows)
        if self.tolerations is not None:
            refused = [first_untolerated(taints, self.tolerations) is not None for taints in nodes.taint_sets]
            mask &= ~np.array(refused)[nodes.taints[rows]]
        return mask


class RowCounts:
    """Counts per row, and their sums per domain."""

    __slots__ = ("column", "some", "total", "views")

    def __init__(self, size: int) -> None:
        self.column: Ints = np.zeros(size, dtype=np.int64)
        self.total = 0
        self.some: dict[int, int] = {}
        """The rows with a count, and their counts: most tallies are of pods on few nodes."""
        self.views: dict[tuple[str, Eligibility | None], DomainView] = {}

    def add(self, row: int, number: int) -> None:
        """Count pods that came to a row (or, with a negative number, left it)."""
        count = self.some.get(row, 0) + number
        if count:
            self.some[row] = count
        else:
            del self.some[row]
        self.column[row] = count
        self.total += number
        for view in self.views.values():
            view.add(row, number)

    def fill(self, column: Ints) -> None:
        """Set all counts anew."""
        self.column = column
        self.total = int(column.sum())
        rows = np.flatnonzero(column)
        self.some = dict(zip(rows.tolist(), column[rows].tolist(), strict=True))
        for view in self.views.values():
            view.reset()

    def grow(self, size: int) -> None:
        """Make room for more rows."""
        self.column = grown(self.column, size)

    def copy_to(self, twin: RowCounts) -> None:
        """Give another tally the same counts; it makes its own views when it is asked."""
        twin.column, twin.total, twin.some = self.column.copy(), self.total, dict(self.some)

    def view(self, key: str, nodes: NodeTable, *, eligible: Eligibility | None = None) -> DomainView:
        """Give the sums per value of a node label, over all nodes or over the eligible ones."""
        view = self.views.get((key, eligible))
        if view is None:
            view = self.views[key, eligible] = DomainView(self, key, nodes, eligible=eligible)
        view.sync()
        return view


class DomainView:
    """The counts of a tally per domain.

    `counts[d]` is the sum over the rows of domain d, `nodes_in[d]` how many rows there are; both only over eligible
    rows that are on. `domain` is the domain of each row, -1 where there is none. The view follows pods as they move,
    and nodes row by row when it is asked.
    """

    __slots__ = ("_eligible", "_nodes", "_read", "_shape", "_tally", "counts", "domain", "key", "mask", "nodes_in")

    def __init__(self, tally: RowCounts, key: str, nodes: NodeTable, *, eligible: Eligibility | None) -> None:
        self._tally, self.key, self._nodes, self._eligible = tally, key, nodes, eligible
        self._shape = self._read = -1
        self.counts: Ints = np.zeros(0, dtype=np.int64)
        self.nodes_in: Ints = self.counts
        self.domain: Ints32 = np.zeros(0, dtype=np.int32)
        self.mask: Bools = np.zeros(0, dtype=bool)

    def reset(self) -> None:
        """Build the view anew when it is asked the next time."""
        self._shape = self._read = -1

    def sync(self) -> None:
        """Follow the nodes, if their shape has changed."""
        nodes = self._nodes
        if self._shape == nodes.shape:
            return
        rows = nodes.touched.since(self._read) if self._read >= 0 else None
        self._shape, self._read = nodes.shape, nodes.touched.length
        if rows is None or len(rows) > _FEW or len(self.domain) != nodes.size:
            self._build()
        else:
            self._patch(np.unique(rows))

    def _eligible_in(self, rows: Rows | slice) -> Bools:
        on: Bools = self._nodes.on[rows] if self._eligible is None else self._eligible.mask(self._nodes, rows)
        return on & (self._nodes.column(self.key).ids[rows] >= 0)

    def _build(self) -> None:
        column = self._nodes.column(self.key)
        self.domain = column.ids.copy()
        self.mask = self._eligible_in(slice(None))
        rows = np.flatnonzero(self.mask)
        domains, size = column.ids[rows], len(column.values)
        self.nodes_in = np.bincount(domains, minlength=size)
        self.counts = np.bincount(domains, weights=self._tally.column[rows], minlength=size).astype(np.int64)

    def _patch(self, rows: Rows) -> None:
        column = self._nodes.column(self.key)
        if len(self.counts) < len(column.values):
            self.counts, self.nodes_in = (grown(a, len(column.values)) for a in (self.counts, self.nodes_in))
        for row, counts in zip(rows.tolist(), self._eligible_in(rows).tolist(), strict=True):
            number = self._tally.column[row]
            if self.mask[row]:
                self.counts[self.domain[row]] -= number
                self.nodes_in[self.domain[row]] -= 1
            self.domain[row], self.mask[row] = column.ids[row], counts
            if counts:
                self.counts[self.domain[row]] += number
                self.nodes_in[self.domain[row]] += 1

    def add(self, row: int, number: int) -> None:
        """Follow one change of the tally."""
        if self._read >= 0 and row < len(self.mask) and self.mask[row]:
            self.counts[self.domain[row]] += number
