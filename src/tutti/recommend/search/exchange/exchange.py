"""Exchange of nodes: cheaper purchases on which kube-scheduler still places the same pods, from several starts.

Contract: pure; stops at the work budget; the planning cluster is left as it was. The result is the given outcome, or a
replayed outcome with a better rank; limits are obeyed. Local searches start from the outcome and from the cheapest
purchases of one offering alone; a wide search then starts from the best purchase found.
"""

from __future__ import annotations

from tutti.cluster.columns import Floats
from tutti.cluster.work.work_budget import WorkBudget
from tutti.recommend.replay.binding import BoundPurchase
from tutti.recommend.replay.kube_scheduler_binder import KubeSchedulerBinder
from tutti.recommend.search.exchange.local_search import LocalSearch, Rank
from tutti.recommend.search.exchange.neighbours import MAX_CELLS, Neighbours, must_stop

_NARROW_STARTS = 4
"""Number of single-offering purchases from which narrow searches start, before the wide search."""


def exchange_nodes(
    binding: KubeSchedulerBinder, outcome: BoundPurchase, prices: Floats, rank: Rank, *, budget: WorkBudget
) -> BoundPurchase:
    """Return the best outcome that the local searches find."""
    if len(outcome.nodes) * len(binding.problem.classes) not in range(1, MAX_CELLS) or must_stop(budget):
        return outcome
    neighbours = Neighbours(binding, prices, budget, start=outcome)
    search = LocalSearch(binding, neighbours, rank, outcome)
    starts = neighbours.single_offering_purchases(search.best_purchase)
    for start in sorted([search.best_purchase, *starts[:_NARROW_STARTS]], key=neighbours.cost):
        search.run(start, wide=False)
    search.run(search.best_purchase, wide=True)
    for start in starts[_NARROW_STARTS:]:
        search.run(start, wide=True)
    return search.best
