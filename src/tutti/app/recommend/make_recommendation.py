"""The use case `recommend`: which nodes to buy for the pods that wait, and which to give back.

Contract: pure but for the deadline, whose clock is the caller's. `make_recommendation` is what commands, the server and
the Python API call. When no pod waits, the recommendation is empty and the pools are not looked at; when a pod waits
and nothing can be bought at all, it is a `PoolError`. If the options ask for a scale-down, it is part of the answer.
"""

from __future__ import annotations

from msgspec.structs import replace

from tutti.cluster.work.work_budget import WorkBudget
from tutti.exceptions import PoolError
from tutti.market.pools.karpenter_nodepool import NO_TYPE
from tutti.recommend.down.scale_down import plan_scale_down
from tutti.recommend.flow import recommend
from tutti.recommend.pending_pods import pending_pods
from tutti.recommend.problem.search_context import Tell
from tutti.recommend.records.recommendation import Recommendation
from tutti.recommend.records.request import Request, Strategy
from tutti.recommend.unpriced_notes import unpriced_notes

_CUT = "the search took far longer than it should and was cut by the clock: another run may find another plan"


def make_recommendation(request: Request, budget: WorkBudget, *, tell: Tell | None = None) -> Recommendation:
    """The recommendation for a request."""
    chosen = request.options
    if pending_pods(request):
        check_catalogue(request)
        answer = recommend(request, budget, tell=tell)
        answer = replace(answer, notes=(*answer.notes, *unpriced_notes(answer, request.catalogue)))
    else:
        answer = Recommendation(
            strategy=chosen.strategy or Strategy.OPTIMAL,
            objective=chosen.objective,
            binder=chosen.binder,
            cost=0,
            bound=0,
            gap=0.0,
            notes=(*request.catalogue.notes, *request.notes) if chosen.down is not None else (),
        )
    if chosen.down is not None:
        if tell is not None:
            tell("looking for nodes that can go")
        answer = replace(answer, down=plan_scale_down(request, answer, budget, down=chosen.down))
    return replace(answer, notes=(*answer.notes, _CUT)) if budget.cut_by_clock else answer


def check_catalogue(request: Request) -> None:
    """Refuse a request for which nothing can be bought at all."""
    if not any(pool.offerings for pool in request.catalogue.pools):
        known = ", ".join(pool.name for pool in request.catalogue.pools)
        why = f"nothing is offered in {known}" if known else "there are no nodes or NodePools to tell the pools from"
        told = list(dict.fromkeys(note.partition(": ")[2] for note in request.catalogue.notes if NO_TYPE in note))
        if known and told:
            raise PoolError(f"nothing can be bought: {why}: {told[0]}")
        raise PoolError(f"nothing can be bought: {why}; say with --pools what can be")
