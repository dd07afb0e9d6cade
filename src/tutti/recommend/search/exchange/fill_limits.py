"""To the brim: purchases on which a scheduler places more pods, where limits leave no room for everybody.

Contract: pure but for the clock; the picture is left as it was. Which nodes share a limit decides how many pods get
one: large pods take small nodes from nobody. So what draws on the same limits as an offering goes, all or half of it,
and as many nodes of that offering come as limits then allow. Forecasts choose, replays confirm: what comes back is the
outcome that was given, or a better one by rank.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import numpy as np

from tutti.cluster.columns import Floats, Ints
from tutti.cluster.work.work_budget import WorkBudget
from tutti.recommend.replay.binding import BoundPurchase
from tutti.recommend.replay.kube_scheduler_binder import KubeSchedulerBinder
from tutti.recommend.search.exchange.forecast import Forecast
from tutti.recommend.search.exchange.local_search import Rank
from tutti.recommend.search.exchange.neighbours import CELLS, Purchase, cost_of, key_of, must_stop, useful

_ABREAST = 32
"""How many purchases are forecast side by side."""
_CONFIRMED = 3
"""How many of the purchases that promise most are replayed in a round."""


def filled(
    binding: KubeSchedulerBinder, outcome: BoundPurchase, prices: Floats, rank: Rank, *, budget: WorkBudget
) -> BoundPurchase:
    """The best outcome that filling limits otherwise leads to."""
    problem = binding.problem
    if not outcome.left or not problem.limits or must_stop(budget):
        return outcome
    brim = _Brim(binding, prices, budget)
    while not must_stop(budget):
        better = outcome
        for purchase in brim.promising(Counter(offering for _, offering in outcome.nodes)):
            again = binding.replay(outcome.maker, sorted(purchase.elements()))
            better = again if rank(again) < rank(better) else better
        if better is outcome:
            break
        outcome = better
    return outcome


class _Brim:
    def __init__(self, binding: KubeSchedulerBinder, prices: Floats, budget: WorkBudget) -> None:
        problem = binding.problem
        self._prices, self._budget = prices, budget
        self._useful = useful(problem, prices)
        self._forecast = Forecast(binding.planning, problem, range(len(problem.offerings)))
        self._takes: Ints = np.array([row.takes for row in problem.limits], dtype=np.int64)
        self._left: Ints = np.array([row.left for row in problem.limits], dtype=np.int64)
        self._most = len(binding.pods)
        levels = sorted({each.priority for each in problem.classes}, reverse=True)
        self._level = np.array([[each.priority == level for each in problem.classes] for level in levels])
        self._seen = set[tuple[tuple[int, int], ...]]()

    def promising(self, purchase: Purchase) -> list[Purchase]:
        """The purchases next to one that would leave the fewest pods, the important ones first."""
        tries = [each for each in self._next_to(purchase) if key_of(each) not in self._seen]
        self._seen.update(map(key_of, tries))
        found: list[tuple[tuple[float, ...], Purchase]] = []
        for first in range(0, len(tries), _ABREAST):
            if must_stop(self._budget):
                break
            part = tries[first : first + _ABREAST]
            left = self._forecast.left_of([sorted(each.elements()) for each in part])
            for each, pods in zip(part, left, strict=True):
                found.append(((*(self._level @ pods).tolist(), cost_of(each, self._prices)), each))
        found.sort(key=lambda each: each[0])
        return [each for _, each in found[:_CONFIRMED]]

    def _next_to(self, purchase: Purchase) -> Iterator[Purchase]:
        for offering in self._useful:
            mine = self._takes[:, offering] > 0
            if not mine.any():
                continue
            near = [each for each in purchase if (self._takes[mine, each] > 0).any()]
            for share in (1, 2):
                rest = Counter(
                    {each: count - (count if each in near else 0) // share for each, count in purchase.items()}
                )
                count = self._room(rest, offering)
                if count > 0 and (rest.total() + count) * len(self._forecast.runs) <= CELLS:
                    yield +rest + Counter({offering: count})

    def _room(self, purchase: Purchase, offering: int) -> int:
        """How many more nodes of an offering limits allow; no more than there are pods."""
        used = sum((self._takes[:, each] * count for each, count in purchase.items()), np.zeros_like(self._left))
        takes = self._takes[:, offering]
        mine = takes > 0
        return int(min(((self._left - used)[mine] // takes[mine]).min(), self._most))
