"""The nodes of a forecast: columns of what is there and of what can be bought, laid side by side for many purchases.

Contract: pure; the picture is left as it was. Nodes of a purchase have the names that they get when they are bought, so
that ties between nodes go to the same ones.
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

REAL, SCORED = [CPU, MEMORY], [NONZERO_CPU, NONZERO_MEMORY]


class ForecastNodes(NamedTuple):
    """The nodes of some purchases side by side, as they fill."""

    of: Ints
    """The purchase that each node belongs to."""
    free: Ints
    """Node x resource of the problem."""
    capacity: Floats
    """Of cpu and memory: 2 x node."""
    real: Floats
    """What is requested of them."""
    scored: Floats
    """The same as it is scored, where a pod without a request counts as a small one."""
    rank: Ints
    """The larger, the earlier the name among those of the purchase."""
    allowed: Bools
    """Node x class."""
    held: Ints
    """Node x class: how many pods were placed, where that matters to anybody."""
    kinds: Ints
    """The row of the node's label values."""

    def of_some(self, alive: Bools) -> ForecastNodes:
        """The nodes of those purchases that are still of interest."""
        rows = np.flatnonzero(alive[self.of])
        across = {name: getattr(self, name)[:, rows] for name in ("capacity", "real", "scored")}
        return ForecastNodes(
            **{name: getattr(self, name)[rows] for name in self._fields if name not in across}, **across
        )


class ForecastColumns:
    """See the module's contract; `offerings` are the numbers of those that may be bought."""

    def __init__(self, planning: PlanningCluster, problem: Problem, offerings: Iterable[int]) -> None:
        self._planning, self._problem = planning, problem
        self._row_of = {number: row for row, number in enumerate(offerings)}
        self._names: dict[tuple[str, str], list[str]] = {}
        self._numbers: dict[str, int] = {}
        of = {number: problem.offerings[number] for number in self._row_of}
        self._order = {number: scale_up_key(offering) for number, offering in of.items()}
        self._group = {number: (offering.pool, offering.zone) for number, offering in of.items()}
        self._read()

    def _read(self) -> None:
        """Columns of the nodes that are there, and then of one new node of each offering."""
        cluster, problem = self._planning.cluster, self._problem
        with Trial(cluster):
            names = [f"forecast-{row}" for row in range(len(self._row_of))]
            for name, number in zip(names, self._row_of, strict=True):
                self._planning.join(problem.offerings[number], name)
            rows = [cluster.node_row(name) for name in (*problem.nodes, *names)]
            self._capacity = cluster.nodes.alloc[REAL][:, rows].astype(np.float64)
            self._used = cluster.nodes.used[:, rows].astype(np.float64)
        chosen = list(self._row_of)
        self._free = np.concatenate((problem.room, problem.free[chosen]))
        self._allowed = np.concatenate((problem.roomy, problem.allowed[chosen]))

    def labels(self, key: str, known: Iterable[str]) -> tuple[Ints, list[str]]:
        """The value of a label on the nodes that are there, and then on those of each offering, as numbers of names."""
        new = self._problem.domain(key)
        values = [labels.get(key) or "" for labels in self._problem.node_labels]
        values += [new[number] or "" for number in self._row_of]
        names = sorted({*values, *known})
        return np.array([names.index(value) for value in values], dtype=np.intp), names

    def nodes(self, purchases: Sequence[Sequence[int]]) -> ForecastNodes:
        """The nodes that are there, once for every purchase, and those of the purchase."""
        rows = [self._named(bought) for bought in purchases]
        kinds = np.concatenate([kinds for kinds, _ in rows])
        used = self._used[:, kinds]
        classes = len(self._problem.classes) if self._problem.rules.looks.any() else 0
        return ForecastNodes(
            of=np.repeat(np.arange(len(rows)), [len(kinds) for kinds, _ in rows]),
            free=self._free[kinds],
            capacity=np.maximum(self._capacity[:, kinds], 1.0),
            real=used[REAL],
            scored=used[SCORED],
            rank=np.concatenate([rank for _, rank in rows]),
            allowed=self._allowed[kinds],
            held=np.zeros((len(kinds), classes), dtype=np.int64),
            kinds=kinds,
        )

    def _named(self, bought: Sequence[int]) -> tuple[Ints, Ints]:
        """The rows of the nodes that are there and of those of a purchase, and who comes first by name."""
        offerings, there = self._problem.offerings, len(self._problem.nodes)
        names, given = list(self._problem.nodes), dict[tuple[str, str], int]()
        chosen = sorted(bought, key=self._order.__getitem__)
        for number in chosen:
            group = self._group[number]
            place = given[group] = given.get(group, -1) + 1
            known = self._names.setdefault(group, [])
            if place == len(known):
                known.append(self._planning.name_of(offerings[number], self._numbers))
            names.append(known[place])
        kinds = np.array([*range(there), *(there + self._row_of[number] for number in chosen)], dtype=np.intp)
        rank = np.empty(len(kinds), dtype=np.int64)
        rank[sorted(range(len(names)), key=names.__getitem__, reverse=True)] = np.arange(len(names))
        return kinds, rank
