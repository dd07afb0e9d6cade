"""Steps: the cheapest purchase next to another one, by forecasts.

Contract: pure but for the clock. A step takes what stays of a purchase and adds the fewest nodes of one offering, or
none, on which everybody would find a place whom the start of the search places, within limits, for less than before.
What was forecast once is kept. Offerings that another one is as good as for less are not looked at (`useful`).
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

Purchase = Counter[int]
"""How many nodes of each offering."""
Key = tuple[tuple[int, int], ...]
_RESERVED = 0.12
"""The share of the budget that is left to the steps after the exchange."""
_LESS = 1 - 1e-9
_ABREAST = 64
"""How many purchases are forecast side by side, at most."""
CELLS = 400_000
"""How many nodes are looked at for a run of pods before the time is looked at: a fraction of a second."""
_TIMES, _MORE = 3, 20
"""A purchase has at most so many times the nodes of the one before, and so many more: large ones take long."""

_DEARER = 1.3
"""How much more than the best purchase one of a single offering may cost to be looked at."""


class _Try(NamedTuple):
    """A purchase: what stays, and so many nodes of another offering."""

    rest: Purchase
    other: int
    times: int

    def purchase(self) -> Purchase:
        """The purchase as a whole."""
        return self.rest + Counter({self.other: self.times})


class Neighbours:
    """See the module's contract; `prices` are what the objective counts."""

    def __init__(
        self, binding: KubeSchedulerBinder, prices: Floats, budget: WorkBudget, *, start: BoundPurchase
    ) -> None:
        self._binding, self.prices, self._budget = binding, prices, budget
        problem = binding.problem
        self._others = useful(problem, prices)
        self._places = places_of(problem)
        bought = Counter(offering for _, offering in start.nodes)
        self._forecast = Forecast(binding.planning, problem, sorted({*bought, *self._others}))
        left = Counter(binding.pods[pod] for pod in start.left)
        known = self._forecast.left(sorted(bought.elements()))
        self._allowed = np.maximum(known, [left[number] for number in range(len(known))])
        """How many pods of each class may be left: those of the start, and those that it is forecast to leave."""
        self._asked = (problem.demand - self._allowed) @ problem.requests - problem.room.sum(axis=0)
        self.refuted: set[Key] = set()
        """Purchases whose replay was not as forecast."""
        self._forecasts: dict[Key, bool] = {}

    def must_stop(self) -> bool:
        """Whether to come to an end."""
        return must_stop(self._budget)

    def cost(self, purchase: Purchase) -> float:
        """What a purchase costs by the objective."""
        return cost_of(purchase, self.prices)

    def step(self, purchase: Purchase, rests: Sequence[Purchase], *, near: bool) -> Purchase | None:
        """The cheapest purchase that keeps one of the first of these parts with which there is a cheaper one.

        With `near`, what comes is where something went, by the labels that rules look at.
        """
        most, cost = _TIMES * purchase.total() + _MORE, self.cost(purchase) * _LESS
        tries: list[_Try] = []
        for place, rest in enumerate(rests):
            worth, room = cost - self.cost(rest), most - rest.total()
            if worth > 0:
                tries.append(_Try(rest, -1, 0))
            places = {self._places[each] for each in purchase if rest[each] < purchase[each]}
            for other in self._others:
                if near and self._places[other] not in places:
                    continue
                count = min(int(worth / self.prices[other]) if worth > 0 else 0, room)
                if count > 0 and rest[other] >= purchase[other]:  # to take back what went is no step
                    tries.append(_Try(rest, other, count))
            if len(tries) >= _ABREAST or place == len(rests) - 1:
                found = self._that_do(tries)
                if found:
                    return self._fewest(found)
                tries = []
        return None

    def alone(self, purchase: Purchase) -> list[Purchase]:
        """Purchases of one offering each that do, the cheapest first, none much dearer than a purchase."""
        most, worth = _TIMES * purchase.total() + _MORE, _DEARER * self.cost(purchase)
        counts = [(other, min(int(worth / self.prices[other]), most)) for other in self._others]
        found = self._that_do([_Try(Counter(), other, count) for other, count in counts if count])
        return sorted((self._fewest([each]) for each in found), key=self.cost)

    def _that_do(self, tries: Sequence[_Try]) -> list[_Try]:
        return [each for each, fit in zip(tries, self._fit([each.purchase() for each in tries]), strict=True) if fit]

    def _fewest(self, found: Sequence[_Try]) -> Purchase:
        """The cheapest of some purchases that do, and of those with fewer of the nodes that were added that do too."""
        known = [(-1, each) for each in found]
        while True:
            best = min((each for _, each in known), key=self._cost_of)
            cost = self._cost_of(best)
            todo = [
                (least, each)
                for least, each in known
                if least + 1 < each.times and self._cost_of(each._replace(times=least + 1)) < cost
            ]
            if not todo or self.must_stop():
                return best.purchase()
            known = [(best.times - 1, best)]
            halves = [each._replace(times=(least + each.times) // 2) for least, each in todo]
            fits = self._fit([half.purchase() for half in halves])
            for (least, each), half, fit in zip(todo, halves, fits, strict=True):
                known.append((least, half) if fit else (half.times, each))

    def _cost_of(self, tried: _Try) -> float:
        return self.cost(tried.rest) + float(self.prices[tried.other]) * tried.times

    def _fit(self, purchases: Sequence[Purchase]) -> list[bool]:
        """Which purchases limits allow, on which everybody would find a place; None of them when it is late."""
        self._binding.planning.cluster.meter.count += EXCHANGE_PURCHASE * len(purchases)
        keys = [key_of(purchase) for purchase in purchases]
        todo: dict[Key, list[int]] = {}
        for key, purchase in zip(keys, purchases, strict=True):
            if key not in self._forecasts and key not in todo:
                bought = sorted(purchase.elements())
                if self._could_do(bought):
                    todo[key] = bought
                else:
                    self._forecasts[key] = False
        while todo and not self.must_stop():
            part = self._abreast(todo)
            fits = self._forecast.fit([todo.pop(key) for key in part], self._allowed)
            self._forecasts |= {key: bool(fit) for key, fit in zip(part, fits, strict=True)}
        return [self._forecasts.get(key, False) and key not in self.refuted for key in keys]

    def _abreast(self, todo: Mapping[Key, Sequence[int]]) -> list[Key]:
        """The first of some purchases, as many as are forecast side by side before the time is looked at."""
        chosen, cells = list[Key](), 0
        for key, bought in todo.items():
            cells += len(bought) * len(self._forecast.runs)
            if chosen and (cells > CELLS or len(chosen) == _ABREAST):
                break
            chosen.append(key)
        return chosen

    def _could_do(self, bought: list[int]) -> bool:
        """Whether limits allow a purchase, and all of its nodes together have the room."""
        problem = self._binding.problem
        roomy = bool((problem.free[bought].sum(axis=0) >= self._asked).all())
        return roomy and all(int(row.takes[bought].sum()) <= row.left for row in problem.limits)


def must_stop(budget: WorkBudget) -> bool:
    """Whether only the share of the budget remains that is left to later steps."""
    return budget.is_below(_RESERVED)


def cost_of(purchase: Purchase, prices: Floats) -> float:
    """What a purchase costs by some prices."""
    return float(sum(prices[offering] * count for offering, count in purchase.items()))


def key_of(purchase: Purchase) -> Key:
    """A purchase as what tells it from others."""
    return tuple(sorted((offering, count) for offering, count in purchase.items() if count))


def places_of(problem: Problem) -> list[tuple[str, ...]]:
    """Where nodes of each offering are, by the labels that rules between pods look at."""
    keys = sorted({rule.key for rule in problem.rules.domains})
    values = [[value or "" for value in problem.domain(key)] for key in keys]
    return list(zip(*values, strict=True)) if keys else [()] * len(problem.offerings)


def useful(problem: Problem, prices: Floats) -> list[int]:
    """The offerings that no other one is as good as for less: as roomy, for the same pods, in the same place."""
    numbers: dict[tuple[str, ...], int] = {}
    places = np.array([numbers.setdefault(place, len(numbers)) for place in places_of(problem)], dtype=np.intp)
    takes: Ints = np.array([row.takes for row in problem.limits], dtype=np.int64).reshape(-1, len(prices))
    found: list[int] = []
    for number in np.argsort(prices, kind="stable").tolist():
        if prices[number] <= 0 or not problem.allowed[number].any():
            continue
        better = (problem.free[found] >= problem.free[number]).all(axis=1)
        better &= (problem.allowed[found] >= problem.allowed[number]).all(axis=1)
        better &= places[found] == places[number]
        better &= (takes[:, found] <= takes[:, [number]]).all(axis=0)
        if not better.any():
            found.append(number)
    return found
