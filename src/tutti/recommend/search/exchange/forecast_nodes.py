"""The nodes of forecasts: columns of existing nodes and of offerings, repeated for many purchases at once.

Contract: pure; the planning cluster is left as it was. New nodes get the names that they have when they are bought, so
that score ties go to the same nodes.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from tutti.cluster.columns import CPU, MEMORY, NONZERO_CPU, NONZERO_MEMORY, Bools, Floats, Ints
from tutti.cluster.trial import Trial
from tutti.market.planning_cluster import PlanningCluster
from tutti.recommend.problem.problem import Problem
from tutti.recommend.records.scale_ups import scale_up_key

REQUESTED, NONZERO_REQUESTED = [CPU, MEMORY], [NONZERO_CPU, NONZERO_MEMORY]
"""Columns of requested cpu and memory, and of the requests that kube-scheduler scores, which have defaults."""


class ForecastNodes(NamedTuple):
    """The nodes of some purchases, with the amounts that change while pods are placed."""

    purchase_of: Ints
    """The purchase of each node."""
    free: Ints
    """Node x resource of the problem: the free amounts."""
    capacity: Floats
    """Allocatable cpu and memory: 2 x node."""
    requested: Floats
    """Requested cpu and memory: 2 x node."""
    nonzero_requested: Floats
    """Requested cpu and memory as kube-scheduler scores them, with a default for pods without requests: 2 x node."""
    name_rank: Ints
    """The larger, the earlier the name among the nodes of the purchase."""
    allowed: Bools
    """Node x class."""
    placed_counts: Ints
    """Node x class: how many pods the forecast placed; without columns when no class has rules about other pods."""
    template_rows: Ints
    """The row of the node in `ForecastColumns`: existing nodes first, then one row per offering."""

    def select_purchases(self, is_active: Bools) -> ForecastNodes:
        """Return the nodes of the active purchases."""
        rows = np.flatnonzero(is_active[self.purchase_of])
        columns_by_node = {
            name: getattr(self, name)[:, rows] for name in ("capacity", "requested", "nonzero_requested")
        }
        return ForecastNodes(
            **{name: getattr(self, name)[rows] for name in self._fields if name not in columns_by_node},
            **columns_by_node,
        )


class ForecastColumns:
    """See the module's contract; `offerings` are the numbers of the offerings that may be bought."""

    def __init__(self, planning: PlanningCluster, problem: Problem, offerings: Iterable[int]) -> None:
        self._planning, self._problem = planning, problem
        self._template_row = {number: row for row, number in enumerate(offerings)}
        self._names_by_group: dict[tuple[str, str], list[str]] = {}
        self._name_numbers: dict[str, int] = {}
        offering_of = {number: problem.offerings[number] for number in self._template_row}
        self._sort_keys = {number: scale_up_key(offering) for number, offering in offering_of.items()}
        self._name_group = {number: (offering.pool, offering.zone) for number, offering in offering_of.items()}
        self._read()

    def _read(self) -> None:
        """Read the columns of the existing nodes, and then of one new node of each offering."""
        cluster, problem = self._planning.cluster, self._problem
        with Trial(cluster):
            names = [f"forecast-{row}" for row in range(len(self._template_row))]
            for name, number in zip(names, self._template_row, strict=True):
                self._planning.join(problem.offerings[number], name)
            rows = [cluster.node_row(name) for name in (*problem.nodes, *names)]
            self._capacity = cluster.nodes.alloc[REQUESTED][:, rows].astype(np.float64)
            self._used = cluster.nodes.used[:, rows].astype(np.float64)
        chosen = list(self._template_row)
        self._free = np.concatenate((problem.node_free, problem.free[chosen]))
        self._allowed = np.concatenate((problem.node_allowed, problem.allowed[chosen]))

    def labels(self, key: str, known_values: Iterable[str]) -> tuple[Ints, list[str]]:
        """Return the domain number of each row (existing nodes, then offerings), and the label values by number."""
        new = self._problem.domain(key)
        values = [labels.get(key) or "" for labels in self._problem.node_labels]
        values += [new[number] or "" for number in self._template_row]
        names = sorted({*values, *known_values})
        return np.array([names.index(value) for value in values], dtype=np.intp), names

    def nodes(self, purchases: Sequence[Sequence[int]]) -> ForecastNodes:
        """Return for every purchase the existing nodes and the nodes of the purchase."""
        rows = [self._rows_by_name(bought) for bought in purchases]
        template_rows = np.concatenate([template_rows for template_rows, _ in rows])
        used = self._used[:, template_rows]
        classes = len(self._problem.classes) if self._problem.rules.affected.any() else 0
        return ForecastNodes(
            purchase_of=np.repeat(np.arange(len(rows)), [len(template_rows) for template_rows, _ in rows]),
            free=self._free[template_rows],
            capacity=np.maximum(self._capacity[:, template_rows], 1.0),
            requested=used[REQUESTED],
            nonzero_requested=used[NONZERO_REQUESTED],
            name_rank=np.concatenate([name_rank for _, name_rank in rows]),
            allowed=self._allowed[template_rows],
            placed_counts=np.zeros((len(template_rows), classes), dtype=np.int64),
            template_rows=template_rows,
        )

    def _rows_by_name(self, bought: Sequence[int]) -> tuple[Ints, Ints]:
        """Return the rows of the existing nodes and of the nodes of a purchase, and their ranks by name."""
        offerings, existing = self._problem.offerings, len(self._problem.nodes)
        names, used_names = list(self._problem.nodes), dict[tuple[str, str], int]()
        chosen = sorted(bought, key=self._sort_keys.__getitem__)
        for number in chosen:
            group = self._name_group[number]
            position = used_names[group] = used_names.get(group, -1) + 1
            known_names = self._names_by_group.setdefault(group, [])
            if position == len(known_names):
                known_names.append(self._planning.name_of(offerings[number], self._name_numbers))
            names.append(known_names[position])
        template_rows = np.array(
            [*range(existing), *(existing + self._template_row[number] for number in chosen)], dtype=np.intp
        )
        name_rank = np.empty(len(template_rows), dtype=np.int64)
        name_rank[sorted(range(len(names)), key=names.__getitem__, reverse=True)] = np.arange(len(names))
        return template_rows, name_rank
