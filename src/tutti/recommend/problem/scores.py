"""Scores of the greedy strategies: which offering is the best next node, by the pods that one node of it takes.

Contract: pure and exact. Each offering is a row with the number of pods of each class that one node takes. Priority
levels are compared from the highest to the lowest: an offering that serves more important pods better always wins, and
lower levels break ties. At one level, `least-cost` scores the weighted requests of the pods per price (per node where
no price is known), `least-waste` the used share of the node (the mean of cpu, memory and, where the node has them,
GPUs), and `most-pods` the number of pods. Ties go to the larger node, then to the first pool, zone and instance type by
name. Rows are compared as floats first; rows close to the best are compared again as exact fractions.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from tutti.cluster.columns import Bools, Floats, Ints, Rows
from tutti.kube.quantity import value
from tutti.kube.resource_names import is_gpu
from tutti.recommend.problem.problem import Problem
from tutti.recommend.records.request import ResourceWeights, Strategy

_PER_MILLICORE, _PER_BYTE, _PER_GPU = 1 << 27, 125, 125 << 30
"""Factors that make a core, a GiB and a GPU of the same weight the same whole number: 125 x 2^30."""
_TOLERANCE = 1e-9
"""Floats whose relative difference is below this are compared again exactly."""


def unit_weights(resources: Sequence[str], weights: ResourceWeights) -> Ints:
    """Return the weight of one unit of each resource of the problem."""
    found = []
    for name in resources:
        if name == "cpu":
            found.append(weights.cpu * _PER_MILLICORE)
        elif name == "memory":
            found.append(weights.memory * _PER_BYTE)
        else:
            found.append(weights.gpu * _PER_GPU if is_gpu(name) else 0)
    return np.array(found, dtype=np.int64)


class Scorer:
    """See the module's contract."""

    def __init__(self, problem: Problem, strategy: Strategy, weights: ResourceWeights) -> None:
        self.strategy = strategy
        weights_by_resource = unit_weights(problem.resources, weights)
        self.pod_sizes: Ints = problem.requests @ weights_by_resource
        """Weighted requests of a pod of each class."""
        self.node_sizes: Ints = problem.free @ weights_by_resource
        """Weighted free amounts of an empty node of each offering."""
        priorities = [each.priority for each in problem.classes]
        first: dict[tuple[int, ...], int] = {}
        first_with_requests = [first.setdefault(tuple(line), n) for n, line in enumerate(problem.requests.tolist())]
        self.order = sorted(
            range(len(first_with_requests)),
            key=lambda n: (-priorities[n], -int(self.pod_sizes[n]), first_with_requests[n], n),
        )
        """The order in which classes are placed on a node: by priority, then by size, then by the queue; classes with
        the same requests follow each other."""
        self._prices = _effective_prices(problem)
        self._tie_rank = _tie_ranks(problem, self.node_sizes)
        self._levels = [
            np.array([n for n, priority in enumerate(priorities) if priority == level], dtype=np.intp)
            for level in sorted(set(priorities), reverse=True)
        ]
        self._requests, self._free = problem.requests, problem.free
        self._waste_columns = [
            [
                column
                for column, name in enumerate(problem.resources)
                if _counts_for_waste(name) and problem.free[row, column] > 0
            ]
            for row in range(len(problem.offerings))
        ]
        self._waste_count = [
            len(columns) + gpus for columns, gpus in zip(self._waste_columns, _unrequested_gpus(problem), strict=True)
        ]
        self._inverse_free = _inverse_amounts(problem.free, self._waste_columns)
        self._inverse_count = 1.0 / np.maximum(self._waste_count, 1)

    def best_offering(self, taken: Ints, open_rows: Bools) -> int | None:
        """Return the number of the best open offering; None when no open offering takes a pod."""
        rows = np.flatnonzero(open_rows)
        has_pods = False
        for level in self._levels:
            if len(rows) < 2 and has_pods:
                break
            level_taken = taken if len(rows) == len(taken) else taken[rows]
            level_taken = level_taken if len(level) == level_taken.shape[1] else level_taken[:, level]
            pods = level_taken.sum(axis=1)
            if not pods.any():
                continue
            has_pods = True
            rows, pods = self._best_at_level(rows, level_taken, level, pods)
            if pods.any():
                rows = rows[pods > 0]
        if not has_pods or not len(rows):  # requests can overflow, as in Kubernetes: then no row is left to compare
            return None
        return int(rows[self._tie_rank[rows].argmin()])

    def _best_at_level(self, rows: Rows, level_taken: Ints, level: Rows, pods: Ints) -> tuple[Rows, Ints]:
        """Return the best rows at one priority level, with the number of pods that each takes."""
        if self.strategy == Strategy.MOST_PODS:
            most_pods = np.flatnonzero(pods == pods.max())
            return rows[most_pods], pods[most_pods]
        if self.strategy == Strategy.LEAST_WASTE:
            used = level_taken @ self._requests[level]
            approximate = (used * self._inverse_free[rows]).sum(axis=1) * self._inverse_count[rows]
        else:
            used = (level_taken @ self.pod_sizes[level])[:, np.newaxis]
            prices = self._prices[rows]
            approximate = used[:, 0] / np.where(prices > 0, prices, 1e-30)
        top = float(approximate.max())
        nearly_best = np.flatnonzero(approximate >= top - _TOLERANCE * abs(top))
        if len(nearly_best) > 1:
            nearly_best = self._exactly_best(rows, used, nearly_best)
        return rows[nearly_best], pods[nearly_best]

    def _exactly_best(self, rows: Rows, used: Ints, nearly_best: Rows) -> Rows:
        """Return those of the nearly best positions that have the best exact score; equal inputs are scored once."""
        scores: dict[tuple[object, ...], tuple[bool, Fraction]] = {}
        values = []
        for place in nearly_best.tolist():
            row = int(rows[place])
            shares = tuple(self._free[row, self._waste_columns[row]].tolist())
            key = (int(self._prices[row]), self._waste_count[row], shares, *used[place].tolist())
            if key not in scores:
                scores[key] = self._exact_score(row, used[place])
            values.append(scores[key])
        best = max(values)
        return nearly_best[[place for place, value in enumerate(values) if value == best]]

    def _exact_score(self, row: int, used: Ints) -> tuple[bool, Fraction]:
        """Return the exact score of one row: whether the node costs nothing, and the score."""
        if self.strategy == Strategy.LEAST_WASTE:
            shares = [Fraction(int(used[column]), int(self._free[row, column])) for column in self._waste_columns[row]]
            return False, sum(shares, Fraction(0)) / max(self._waste_count[row], 1)
        price = int(self._prices[row])
        return price == 0, Fraction(int(used[0]), price or 1)


def _counts_for_waste(resource: str) -> bool:
    """Return whether least-waste counts a resource: cpu, memory and GPUs."""
    return resource in ("cpu", "memory") or is_gpu(resource)


def _effective_prices(problem: Problem) -> Ints:
    """Return the price of every offering; an unknown price counts as the highest known price, or 1 if none is known."""
    known = [offering.price for offering in problem.offerings if offering.price is not None]
    unknown = max(known, default=1)
    return np.array([unknown if each.price is None else each.price for each in problem.offerings], dtype=np.int64)


def _tie_ranks(problem: Problem, node_sizes: Ints) -> Ints:
    """Return the rank of every offering among offerings with equal scores."""
    offerings = problem.offerings
    order = sorted(
        range(len(offerings)),
        key=lambda n: (-node_sizes[n], offerings[n].pool, offerings[n].zone, offerings[n].instance_type, n),
    )
    ranks = np.empty(len(order), dtype=np.int64)
    ranks[order] = np.arange(len(order))
    return ranks


def _unrequested_gpus(problem: Problem) -> list[int]:
    """Return for each offering how many kinds of GPUs a node has that no pending pod requests."""
    counts = []
    for offering in problem.offerings:
        amounts = offering.node.status.allocatable or {}
        gpus = [name for name in amounts if is_gpu(name) and name not in problem.resources]
        counts.append(sum(1 for name in gpus if value(amounts[name]) > 0))
    return counts


def _inverse_amounts(free: Ints, waste_columns: Sequence[Sequence[int]]) -> Floats:
    """Return 1 / amount for each amount that counts for least-waste, and 0 for all other amounts."""
    inverse = np.zeros(free.shape)
    for row, columns in enumerate(waste_columns):
        inverse[row, columns] = 1.0 / free[row, columns]
    return inverse
