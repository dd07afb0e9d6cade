"""Exchanges: cheaper purchases on which a scheduler still places everybody, from several starts.

Contract: pure but for the clock; the picture is left as it was. What comes back is the outcome that was given, or a
better one by rank that was replayed; limits hold. Walks (`walk`) start from the outcome and from the cheapest purchases
of one offering alone; from the best of what they come to another one looks further.
"""

from __future__ import annotations

from tutti.cluster.columns import Floats
from tutti.cluster.work.work_budget import WorkBudget
from tutti.recommend.replay.binding import BoundPurchase
from tutti.recommend.replay.kube_scheduler_binder import KubeSchedulerBinder
from tutti.recommend.search.exchange.local_search import LocalSearch, Rank
from tutti.recommend.search.exchange.neighbours import CELLS, Neighbours, must_stop

_STARTS = 4
"""From so many purchases of one offering walks start before the best is looked at more closely."""


def exchanged(
    binding: KubeSchedulerBinder, outcome: BoundPurchase, prices: Floats, rank: Rank, *, budget: WorkBudget
) -> BoundPurchase:
    """The best outcome that exchanges lead to from one."""
    if len(outcome.nodes) * len(binding.problem.classes) not in range(1, CELLS) or must_stop(budget):
        return outcome
    steps = Neighbours(binding, prices, budget, start=outcome)
    walk = LocalSearch(binding, steps, rank, outcome)
    starts = steps.alone(walk.sound_at)
    for start in sorted([walk.sound_at, *starts[:_STARTS]], key=steps.cost):
        walk.go(start, wide=False)
    walk.go(walk.sound_at, wide=True)
    for start in starts[_STARTS:]:
        walk.go(start, wide=True)
    return walk.sound
