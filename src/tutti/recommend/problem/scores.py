"""Scores: which new node is the best buy, by what it would take.

Contract: pure and exact. Every offering is a row with the number of pods of each class that one node of it takes; the
best row is found level by level of priority, the highest first: a node that serves more important pods better is never
beaten by one that serves less important pods, and lower levels break ties. At one level, `least-cost` counts the
resource units of the pods per price (per node where no price is known), `least-waste` the share of the node that they
use (the mean of cpu, memory and, where there are any, GPUs), `most-pods` the pods. Ties go to the larger node, then to
the first pool, zone and instance type by name. Columns are compared as floats; whatever comes near the best is compared
again in whole numbers.
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
"""A core, a GiB and a GPU, weighted alike, in the same whole numbers: 125 x 2^30 each."""
_NEAR = 1e-9
"""Floats that differ by less, for their size, are compared again."""


def unit_weights(resources: Sequence[str], weights: ResourceWeights) -> Ints:
    """How much one unit of each resource counts, as the problem counts resources."""
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
        each = unit_weights(problem.resources, weights)
        self.units: Ints = problem.requests @ each
        """Of a pod of each class."""
        self.sizes: Ints = problem.free @ each
        """Of an empty node of each offering."""
        priorities = [each.priority for each in problem.classes]
        first: dict[tuple[int, ...], int] = {}
        shapes = [first.setdefault(tuple(line), n) for n, line in enumerate(problem.requests.tolist())]
        self.order = sorted(range(len(shapes)), key=lambda n: (-priorities[n], -int(self.units[n]), shapes[n], n))
        """The order in which classes fill a node: priority, then size, then the queue; those that ask for the same
        follow each other."""
        self._prices = _prices(problem)
        self._rank = _ranks(problem, self.sizes)
        self._levels = [
            np.array([n for n, priority in enumerate(priorities) if priority == level], dtype=np.intp)
            for level in sorted(set(priorities), reverse=True)
        ]
        self._requests, self._free = problem.requests, problem.free
        self._shares = [
            [place for place, name in enumerate(problem.resources) if _is_shared(name) and problem.free[row, place] > 0]
            for row in range(len(problem.offerings))
        ]
        self._counted = [len(places) + idle for places, idle in zip(self._shares, _idle(problem), strict=True)]
        self._amounts = _inverse(problem.free, self._shares)
        self._parts = 1.0 / np.maximum(self._counted, 1)

    def best(self, taken: Ints, open_rows: Bools) -> int | None:
        """The offering to buy a node of, of those that are open; None when none of them takes a pod."""
        rows = np.flatnonzero(open_rows)
        some = False
        for level in self._levels:
            if len(rows) < 2 and some:
                break
            mine = taken if len(rows) == len(taken) else taken[rows]
            mine = mine if len(level) == mine.shape[1] else mine[:, level]
            pods = mine.sum(axis=1)
            if not pods.any():
                continue
            some = True
            rows, pods = self._best_at(rows, mine, level, pods)
            if pods.any():
                rows = rows[pods > 0]
        if not some or not len(rows):  # requests that overflow, as in Kubernetes, leave nothing to compare
            return None
        return int(rows[self._rank[rows].argmin()])

    def _best_at(self, rows: Rows, mine: Ints, level: Rows, pods: Ints) -> tuple[Rows, Ints]:
        """The rows that are best at one level, with the pods that they take."""
        if self.strategy == Strategy.MOST_PODS:
            keep = np.flatnonzero(pods == pods.max())
            return rows[keep], pods[keep]
        if self.strategy == Strategy.LEAST_WASTE:
            used = mine @ self._requests[level]
            about = (used * self._amounts[rows]).sum(axis=1) * self._parts[rows]
        else:
            used = (mine @ self.units[level])[:, np.newaxis]
            prices = self._prices[rows]
            about = used[:, 0] / np.where(prices > 0, prices, 1e-30)
        top = float(about.max())
        near = np.flatnonzero(about >= top - _NEAR * abs(top))
        if len(near) > 1:
            near = self._exactly_best(rows, used, near)
        return rows[near], pods[near]

    def _exactly_best(self, rows: Rows, used: Ints, near: Rows) -> Rows:
        known: dict[tuple[object, ...], tuple[bool, Fraction]] = {}
        values = []
        for place in near.tolist():
            row = int(rows[place])
            shares = tuple(self._free[row, self._shares[row]].tolist())
            key = (int(self._prices[row]), self._counted[row], shares, *used[place].tolist())
            if key not in known:
                known[key] = self._exact(row, used[place])
            values.append(known[key])
        best = max(values)
        return near[[place for place, value in enumerate(values) if value == best]]

    def _exact(self, row: int, used: Ints) -> tuple[bool, Fraction]:
        """The score of one row: whether it costs nothing, and the number."""
        if self.strategy == Strategy.LEAST_WASTE:
            shares = [Fraction(int(used[place]), int(self._free[row, place])) for place in self._shares[row]]
            return False, sum(shares, Fraction(0)) / max(self._counted[row], 1)
        price = int(self._prices[row])
        return price == 0, Fraction(int(used[0]), price or 1)


def _is_shared(resource: str) -> bool:
    return resource in ("cpu", "memory") or is_gpu(resource)


def _prices(problem: Problem) -> Ints:
    """The price of every offering: 1 where none is known, that of the dearest where only this one is not."""
    known = [offering.price for offering in problem.offerings if offering.price is not None]
    unknown = max(known, default=1)
    return np.array([unknown if each.price is None else each.price for each in problem.offerings], dtype=np.int64)


def _ranks(problem: Problem, sizes: Ints) -> Ints:
    """The place of every offering among equals."""
    offers = problem.offerings
    order = sorted(
        range(len(offers)), key=lambda n: (-sizes[n], offers[n].pool, offers[n].zone, offers[n].instance_type, n)
    )
    ranks = np.empty(len(order), dtype=np.int64)
    ranks[order] = np.arange(len(order))
    return ranks


def _idle(problem: Problem) -> list[int]:
    """How many kinds of GPUs a node of each offering has that nobody waits for."""
    found = []
    for offering in problem.offerings:
        amounts = offering.node.status.allocatable or {}
        gpus = [name for name in amounts if is_gpu(name) and name not in problem.resources]
        found.append(sum(1 for name in gpus if value(amounts[name]) > 0))
    return found


def _inverse(free: Ints, shares: Sequence[Sequence[int]]) -> Floats:
    """One over each amount that counts for least-waste, 0 where an amount does not count."""
    inverse = np.zeros(free.shape)
    for row, places in enumerate(shares):
        inverse[row, places] = 1.0 / free[row, places]
    return inverse
