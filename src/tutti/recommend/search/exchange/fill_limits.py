"""Fill limits: purchases on which kube-scheduler places more pods, when limits leave no room for all pods.

Contract: pure; stops at the work budget; the planning cluster is left as it was. Which nodes use up a limit decides how
many pods get a node: large pods do not compete for small nodes. A neighbour removes all or half of the nodes that share
a limit with an offering, and adds as many nodes of that offering as the limits then allow. Forecasts choose neighbours,
replays confirm them: the result is the given outcome, or a replayed outcome with a better rank.
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
from tutti.recommend.search.exchange.neighbours import (
    MAX_CELLS,
    NodeCounts,
    cost_of,
    key_of,
    must_stop,
    useful_offerings,
)

_BATCH_SIZE = 32
"""How many purchases are forecast at once."""
_REPLAYS = 3
"""How many of the best forecasts are replayed in a round."""


def fill_limits(
    binding: KubeSchedulerBinder, outcome: BoundPurchase, prices: Floats, rank: Rank, *, budget: WorkBudget
) -> BoundPurchase:
    """Return the best outcome that other ways to fill the limits lead to."""
    problem = binding.problem
    if not outcome.left or not problem.limits or must_stop(budget):
        return outcome
    filler = _LimitFiller(binding, prices, budget)
    while not must_stop(budget):
        best = outcome
        for purchase in filler.best_neighbours(Counter(offering for _, offering in outcome.nodes)):
            replayed = binding.replay(outcome.maker, sorted(purchase.elements()))
            best = replayed if rank(replayed) < rank(best) else best
        if best is outcome:
            break
        outcome = best
    return outcome


class _LimitFiller:
    """Proposes neighbours of a purchase that use the limits for other offerings."""

    def __init__(self, binding: KubeSchedulerBinder, prices: Floats, budget: WorkBudget) -> None:
        problem = binding.problem
        self._prices, self._budget = prices, budget
        self._useful_offerings = useful_offerings(problem, prices)
        self._forecast = Forecast(binding.planning, problem, range(len(problem.offerings)))
        self._limit_usage: Ints = np.array([row.takes for row in problem.limits], dtype=np.int64)
        self._limit_left: Ints = np.array([row.left for row in problem.limits], dtype=np.int64)
        self._max_nodes = len(binding.pods)
        levels = sorted({each.priority for each in problem.classes}, reverse=True)
        self._is_level = np.array([[each.priority == level for each in problem.classes] for level in levels])
        self._seen = set[tuple[tuple[int, int], ...]]()

    def best_neighbours(self, purchase: NodeCounts) -> list[NodeCounts]:
        """Return the neighbours with the fewest unplaced pods by forecast, important pods first."""
        candidates = [each for each in self._neighbours(purchase) if key_of(each) not in self._seen]
        self._seen.update(map(key_of, candidates))
        ranked: list[tuple[tuple[float, ...], NodeCounts]] = []
        for first in range(0, len(candidates), _BATCH_SIZE):
            if must_stop(self._budget):
                break
            batch = candidates[first : first + _BATCH_SIZE]
            unplaced = self._forecast.unplaced_counts([sorted(each.elements()) for each in batch])
            for each, pods in zip(batch, unplaced, strict=True):
                ranked.append(((*(self._is_level @ pods).tolist(), cost_of(each, self._prices)), each))
        ranked.sort(key=lambda each: each[0])
        return [each for _, each in ranked[:_REPLAYS]]

    def _neighbours(self, purchase: NodeCounts) -> Iterator[NodeCounts]:
        """Yield purchases with nodes of one offering instead of all or half of the nodes that share its limits."""
        for offering in self._useful_offerings:
            uses_limit = self._limit_usage[:, offering] > 0
            if not uses_limit.any():
                continue
            same_limit = [each for each in purchase if (self._limit_usage[uses_limit, each] > 0).any()]
            for divisor in (1, 2):
                remainder = Counter(
                    {each: count - (count if each in same_limit else 0) // divisor for each, count in purchase.items()}
                )
                count = self._max_added(remainder, offering)
                if count > 0 and (remainder.total() + count) * len(self._forecast.runs) <= MAX_CELLS:
                    yield +remainder + Counter({offering: count})

    def _max_added(self, purchase: NodeCounts, offering: int) -> int:
        """Return how many more nodes of an offering limits allow; at most one per pending pod."""
        used = sum(
            (self._limit_usage[:, each] * count for each, count in purchase.items()), np.zeros_like(self._limit_left)
        )
        usage = self._limit_usage[:, offering]
        uses_limit = usage > 0
        return int(min(((self._limit_left - used)[uses_limit] // usage[uses_limit]).min(), self._max_nodes))
