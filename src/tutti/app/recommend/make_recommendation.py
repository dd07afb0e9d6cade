"""The use case `recommend`: which nodes to buy for pending pods, and which nodes to remove.

Contract: pure except for the clock in the caller's work budget. Commands, the server and the Python API call
`make_recommendation`. Without pending pods the recommendation is empty and the pools are not checked; with pending pods
and no offering at all, it raises `PoolError`. If the options request a scale-down, the recommendation contains one.
"""

from __future__ import annotations

from msgspec.structs import replace

from tutti.cluster.work.work_budget import WorkBudget
from tutti.exceptions import PoolError
from tutti.market.pools.karpenter_nodepool import NO_TYPE
from tutti.recommend.down.scale_down import plan_scale_down
from tutti.recommend.pending_pods import pending_pods
from tutti.recommend.pipeline import recommend
from tutti.recommend.problem.search_context import Tell
from tutti.recommend.records.recommendation import Recommendation
from tutti.recommend.records.request import Request, Strategy
from tutti.recommend.unpriced_notes import unpriced_notes

_CUT_BY_CLOCK = "the search took far longer than it should and was cut by the clock: another run may find another plan"


def make_recommendation(request: Request, budget: WorkBudget, *, tell: Tell | None = None) -> Recommendation:
    """Return the recommendation for a request; `tell` receives progress messages."""
    options = request.options
    if pending_pods(request):
        check_catalogue(request)
        answer = recommend(request, budget, tell=tell)
        answer = replace(answer, notes=(*answer.notes, *unpriced_notes(answer, request.catalogue)))
    else:
        answer = Recommendation(
            strategy=options.strategy or Strategy.OPTIMAL,
            objective=options.objective,
            binder=options.binder,
            cost=0,
            bound=0,
            gap=0.0,
            notes=(*request.catalogue.notes, *request.notes) if options.down is not None else (),
        )
    if options.down is not None:
        if tell is not None:
            tell("looking for nodes that can go")
        answer = replace(answer, down=plan_scale_down(request, answer, budget, down=options.down))
    return replace(answer, notes=(*answer.notes, _CUT_BY_CLOCK)) if budget.cut_by_clock else answer


def check_catalogue(request: Request) -> None:
    """Raise `PoolError` for a request whose pools offer no instance type at all."""
    if not any(pool.offerings for pool in request.catalogue.pools):
        pool_names = ", ".join(pool.name for pool in request.catalogue.pools)
        no_pools = "there are no nodes or NodePools to infer pools from"
        reason = f"nothing is offered in {pool_names}" if pool_names else no_pools
        type_notes = list(dict.fromkeys(note.partition(": ")[2] for note in request.catalogue.notes if NO_TYPE in note))
        if pool_names and type_notes:
            raise PoolError(f"nothing can be bought: {reason}: {type_notes[0]}")
        raise PoolError(f"nothing can be bought: {reason}; name the pools with --pools")
