"""Neighbours of a purchase: the cheapest purchase that is one exchange of nodes away, by forecasts.

Contract: pure; stops at the work budget. A neighbour keeps a part of the purchase and adds none or the fewest nodes of
one offering, so that by forecast at least the pods of the start are placed, within limits, for less than before.
Forecasts are cached. Offerings that another offering replaces for less are left out (`useful_offerings`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from tutti.cluster.columns import Floats, Ints
from tutti.cluster.work.meter import EXCHANGE_PURCHASE
from tutti.cluster.work.work_budget import WorkBudget
from tutti.recommend.problem.problem import Problem
from tutti.recommend.replay.binding import BoundPurchase
from tutti.recommend.replay.kube_scheduler_binder import KubeSchedulerBinder
from tutti.recommend.search.exchange.forecast import Forecast

NodeCounts = Counter[int]
"""A purchase: how many nodes of each offering."""
PurchaseKey = tuple[tuple[int, int], ...]
"""A purchase as a sorted tuple of offerings and counts, for sets and dictionaries."""
_RESERVED_SHARE = 0.12
"""The share of the budget that is left for the work after the exchange."""
_LESS_THAN = 1 - 1e-9
"""Factor that makes a cost strictly less, in spite of rounding."""
_BATCH_SIZE = 64
"""How many purchases are forecast at once, at most."""
MAX_CELLS = 400_000
"""Nodes times runs of pods of one batch of forecasts, before the budget is checked again: a fraction of a second."""
_MAX_GROWTH, _MAX_MORE_NODES = 3, 20
"""A neighbour has at most this many times the nodes of the purchase, plus this many: large purchases take long."""

_MAX_COST_RATIO = 1.3
"""A purchase of one offering may cost this many times the best purchase to be a start."""


class _Candidate(NamedTuple):
    """A purchase: the nodes that remain, and the added nodes of one offering."""

    remainder: NodeCounts
    offering: int
    added: int

    def purchase(self) -> NodeCounts:
        """Return the purchase as node counts."""
        return self.remainder + Counter({self.offering: self.added})


class Neighbours:
    """See the module's contract; `prices` are what the objective counts."""

    def __init__(
        self, binding: KubeSchedulerBinder, prices: Floats, budget: WorkBudget, *, start: BoundPurchase
    ) -> None:
        self._binding, self.prices, self._budget = binding, prices, budget
        problem = binding.problem
        self._useful_offerings = useful_offerings(problem, prices)
        self._domains_of_offering = offering_domains(problem)
        bought = Counter(offering for _, offering in start.nodes)
        self._forecast = Forecast(binding.planning, problem, sorted({*bought, *self._useful_offerings}))
        unplaced = Counter(binding.pods[pod] for pod in start.left)
        forecast = self._forecast.unplaced(sorted(bought.elements()))
        self._max_unplaced = np.maximum(forecast, [unplaced[number] for number in range(len(forecast))])
        """How many pods of each class may be unplaced: as many as the start leaves, or is forecast to leave."""
        self._needed = (problem.demand - self._max_unplaced) @ problem.requests - problem.node_free.sum(axis=0)
        self.refuted: set[PurchaseKey] = set()
        """Purchases whose replay was worse than forecast."""
        self._forecasts: dict[PurchaseKey, bool] = {}

    def must_stop(self) -> bool:
        """Return whether only the reserved share of the budget is left."""
        return must_stop(self._budget)

    def cost(self, purchase: NodeCounts) -> float:
        """Return the cost of a purchase by the objective's prices."""
        return cost_of(purchase, self.prices)

    def cheapest_neighbour(
        self, purchase: NodeCounts, remainders: Sequence[NodeCounts], *, same_domain: bool
    ) -> NodeCounts | None:
        """Return the cheapest feasible neighbour that keeps one of the remainders, the first ones first, or None.

        With `same_domain`, nodes are only added in domains where nodes were removed.
        """
        max_nodes, cost = _MAX_GROWTH * purchase.total() + _MAX_MORE_NODES, self.cost(purchase) * _LESS_THAN
        candidates: list[_Candidate] = []
        for place, remainder in enumerate(remainders):
            max_added_cost, max_added = cost - self.cost(remainder), max_nodes - remainder.total()
            if max_added_cost > 0:
                candidates.append(_Candidate(remainder, -1, 0))
            removed_domains = {self._domains_of_offering[each] for each in purchase if remainder[each] < purchase[each]}
            for offering in self._useful_offerings:
                if same_domain and self._domains_of_offering[offering] not in removed_domains:
                    continue
                count = min(int(max_added_cost / self.prices[offering]) if max_added_cost > 0 else 0, max_added)
                # To add nodes of the removed offering again is no exchange.
                if count > 0 and remainder[offering] >= purchase[offering]:
                    candidates.append(_Candidate(remainder, offering, count))
            if len(candidates) >= _BATCH_SIZE or place == len(remainders) - 1:
                feasible = self._feasible(candidates)
                if feasible:
                    return self._with_fewest_nodes(feasible)
                candidates = []
        return None

    def single_offering_purchases(self, purchase: NodeCounts) -> list[NodeCounts]:
        """Return feasible purchases of one offering each, the cheapest first, up to a cost above the given purchase."""
        max_nodes, max_cost = _MAX_GROWTH * purchase.total() + _MAX_MORE_NODES, _MAX_COST_RATIO * self.cost(purchase)
        counts = [
            (offering, min(int(max_cost / self.prices[offering]), max_nodes)) for offering in self._useful_offerings
        ]
        feasible = self._feasible([_Candidate(Counter(), offering, count) for offering, count in counts if count])
        return sorted((self._with_fewest_nodes([each]) for each in feasible), key=self.cost)

    def _feasible(self, candidates: Sequence[_Candidate]) -> list[_Candidate]:
        """Return the candidates that are feasible."""
        return [
            each
            for each, is_feasible in zip(
                candidates, self._are_feasible([each.purchase() for each in candidates]), strict=True
            )
            if is_feasible
        ]

    def _with_fewest_nodes(self, feasible: Sequence[_Candidate]) -> NodeCounts:
        """Return the cheapest feasible purchase: binary search for the fewest added nodes of each candidate."""
        intervals = [(-1, candidate) for candidate in feasible]
        while True:
            best = min((candidate for _, candidate in intervals), key=self._cost_of)
            cost = self._cost_of(best)
            todo = [
                (infeasible, candidate)
                for infeasible, candidate in intervals
                if infeasible + 1 < candidate.added and self._cost_of(candidate._replace(added=infeasible + 1)) < cost
            ]
            if not todo or self.must_stop():
                return best.purchase()
            intervals = [(best.added - 1, best)]
            halves = [candidate._replace(added=(infeasible + candidate.added) // 2) for infeasible, candidate in todo]
            results = self._are_feasible([half.purchase() for half in halves])
            for (infeasible, candidate), half, is_feasible in zip(todo, halves, results, strict=True):
                intervals.append((infeasible, half) if is_feasible else (half.added, candidate))

    def _cost_of(self, candidate: _Candidate) -> float:
        """Return the cost of a candidate."""
        return self.cost(candidate.remainder) + float(self.prices[candidate.offering]) * candidate.added

    def _are_feasible(self, purchases: Sequence[NodeCounts]) -> list[bool]:
        """Return which purchases obey limits and place the start's pods by forecast; False when the budget ends."""
        self._binding.planning.cluster.meter.count += EXCHANGE_PURCHASE * len(purchases)
        keys = [key_of(purchase) for purchase in purchases]
        todo: dict[PurchaseKey, list[int]] = {}
        for key, purchase in zip(keys, purchases, strict=True):
            if key not in self._forecasts and key not in todo:
                bought = sorted(purchase.elements())
                if self._may_fit(bought):
                    todo[key] = bought
                else:
                    self._forecasts[key] = False
        while todo and not self.must_stop():
            batch = self._next_batch(todo)
            results = self._forecast.are_feasible([todo.pop(key) for key in batch], self._max_unplaced)
            self._forecasts |= {key: bool(is_feasible) for key, is_feasible in zip(batch, results, strict=True)}
        return [self._forecasts.get(key, False) and key not in self.refuted for key in keys]

    def _next_batch(self, todo: Mapping[PurchaseKey, Sequence[int]]) -> list[PurchaseKey]:
        """Return the first purchases, as many as are forecast before the budget is checked again."""
        chosen, cells = list[PurchaseKey](), 0
        for key, bought in todo.items():
            cells += len(bought) * len(self._forecast.runs)
            if chosen and (cells > MAX_CELLS or len(chosen) == _BATCH_SIZE):
                break
            chosen.append(key)
        return chosen

    def _may_fit(self, bought: list[int]) -> bool:
        """Return whether limits allow a purchase, and its nodes have enough room in total."""
        problem = self._binding.problem
        has_room = bool((problem.free[bought].sum(axis=0) >= self._needed).all())
        return has_room and all(int(row.takes[bought].sum()) <= row.left for row in problem.limits)


def must_stop(budget: WorkBudget) -> bool:
    """Return whether only the reserved share of the budget is left."""
    return budget.is_below(_RESERVED_SHARE)


def cost_of(purchase: NodeCounts, prices: Floats) -> float:
    """Return the cost of a purchase by some prices."""
    return float(sum(prices[offering] * count for offering, count in purchase.items()))


def key_of(purchase: NodeCounts) -> PurchaseKey:
    """Return the key of a purchase."""
    return tuple(sorted((offering, count) for offering, count in purchase.items() if count))


def offering_domains(problem: Problem) -> list[tuple[str, ...]]:
    """Return the domains of a node of each offering, by the labels of the domain rules."""
    keys = sorted({rule.key for rule in problem.rules.domains})
    values = [[value or "" for value in problem.domain(key)] for key in keys]
    return list(zip(*values, strict=True)) if keys else [()] * len(problem.offerings)


def useful_offerings(problem: Problem, prices: Floats) -> list[int]:
    """Return the offerings that no other offering replaces.

    An offering replaces another if it costs no more, has at least the room, takes the same pods in the same domains,
    and uses no more of any limit.
    """
    numbers: dict[tuple[str, ...], int] = {}
    domains = np.array(
        [numbers.setdefault(domain, len(numbers)) for domain in offering_domains(problem)], dtype=np.intp
    )
    takes: Ints = np.array([row.takes for row in problem.limits], dtype=np.int64).reshape(-1, len(prices))
    kept: list[int] = []
    for number in np.argsort(prices, kind="stable").tolist():
        if prices[number] <= 0 or not problem.allowed[number].any():
            continue
        is_replaced = (problem.free[kept] >= problem.free[number]).all(axis=1)
        is_replaced &= (problem.allowed[kept] >= problem.allowed[number]).all(axis=1)
        is_replaced &= domains[kept] == domains[number]
        is_replaced &= (takes[:, kept] <= takes[:, [number]]).all(axis=0)
        if not is_replaced.any():
            kept.append(number)
    return kept
