"""Drafts of every kind: node by node, as the peers would, and by column generation.

Contract: pure but for the clock; the picture is left as it was. The optimal drafts are seeded with all others, so
that on paper none of those is cheaper. For a scheduler that does not follow the plan there are also drafts that leave
it room to err.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from msgspec.structs import replace

from tutti.autoscalers.cluster_autoscaler.orchestrator import ScaleUpOptions, cluster_autoscaler
from tutti.autoscalers.karpenter.provisioner import karpenter
from tutti.autoscalers.shared.purchase import Purchase
from tutti.cluster.columns import Ints
from tutti.cluster.work.work_budget import WorkBudget
from tutti.market.offerings import Catalogue
from tutti.recommend.problem.problem import Problem
from tutti.recommend.problem.search_context import Progress, SearchContext
from tutti.recommend.records.draft import Draft, DraftNode
from tutti.recommend.records.request import Objective, Strategy
from tutti.recommend.request_cluster import bind_edits, copy_cluster
from tutti.recommend.search.greedy.strategies import greedy
from tutti.recommend.search.optimal_drafts import is_plain, optimum
from tutti.recommend.search.packing_problem import ROOMS

_GROUPS = 120
"""Cluster Autoscaler's algorithm is asked up to so many node groups: it tries them one by one."""
_MANY = 600
"""Above so many classes only Karpenter's algorithm is asked: the others go through the classes for every node."""
_MANY_PODS = 1_500
"""Above so many pods a replay takes long: there are fewer drafts to replay, and more time for what becomes of them."""
_SLACK = (0.6,)
"""How much of the largest request is left free on every node in drafts for a scheduler that spreads pods."""
_GREEDY = (Strategy.LEAST_COST, Strategy.LEAST_WASTE, Strategy.MOST_PODS)


class OptimalDrafts(NamedTuple):
    """What column generation gives: drafts, and a bound for the whole demand (0: none)."""

    drafts: list[Draft]
    bound: float = 0.0


def greedy_drafts(context: SearchContext, progress: Progress) -> list[Draft]:
    """What the strategies that go node by node would buy."""
    budget = progress.budget
    if context.strategy is not Strategy.OPTIMAL:
        return [_greedy(context, context.strategy, budget)]
    drafts: list[Draft] = []
    started = budget.remaining
    for place, strategy in enumerate(_GREEDY if len(context.problem.classes) <= _MANY else ()):
        if place and started - budget.remaining > 0.08 * budget.limit:
            break
        progress.tell(f"buying node by node, {strategy}")
        drafts.append(_greedy(context, strategy, budget.share(0.15 if place else 0.5)))
    return drafts


def _greedy(context: SearchContext, strategy: Strategy, budget: WorkBudget) -> Draft:
    every = np.ones(len(context.problem.offerings), dtype=bool)
    return greedy(context.planning, context.problem, context.options, strategy, eligible=every, budget=budget)


def peer_drafts(context: SearchContext, progress: Progress) -> list[Draft]:
    """What the peers' algorithms would buy."""
    progress.tell("asking what others would buy")
    meter = progress.budget.meter
    catalogue, daemon_sets = _eligible(context), context.request.daemon_sets
    # A scheduler that does not follow the plan binds at once what fits now.
    bound = {} if context.follows else context.planning.promised
    many = len(context.problem.classes) > _MANY
    part = progress.budget.share(0.8 if many else 0.12)
    bought = karpenter(
        copy_cluster(context.cluster, bind_edits(bound)),
        catalogue,
        daemon_sets,
        budget=part.share(1.0 if many else 0.5),
    )
    drafts = [_as_draft(context, "karpenter", bought)]
    if many or len(context.problem.offerings) > _GROUPS:
        return drafts
    for expander in ("least-waste", "price"):
        if not part.is_exhausted():
            purchase = cluster_autoscaler(
                copy_cluster(context.cluster, bind_edits(bound), meter=meter),
                catalogue,
                daemon_sets,
                options=ScaleUpOptions(expander=expander),
                budget=part.share(0.5),
            )
            drafts.append(_as_draft(context, f"cluster-autoscaler, {expander}", purchase))
    return drafts


def _eligible(context: SearchContext) -> Catalogue:
    """The catalogue with nothing but what can be bought."""
    pools = []
    for pool in context.request.catalogue.pools:
        kept = tuple(offering for offering in pool.offerings if id(offering) in context.number_of)
        if kept:
            pools.append(replace(pool, offerings=kept))
    return Catalogue(pools=tuple(pools), limits=context.request.catalogue.limits)


def _as_draft(context: SearchContext, maker: str, purchase: Purchase) -> Draft:
    """A purchase as a draft; nodes that nobody was bought for are left out."""
    known = context.problem.of_pod
    bought = (
        DraftNode(context.number_of[id(offering)], tuple(pod for pod in pods if pod in known))
        for offering, pods in purchase.nodes
    )
    on_existing = tuple((pod, node) for pod, node in purchase.on_existing if pod in known)
    return Draft(maker, tuple(each for each in bought if each.pods), on_existing, purchase.left)


def without(context: SearchContext, draft: Draft, gangs: set[str]) -> Draft:
    """A draft without the pods of some gangs; nodes that had no others are not bought."""

    def stays(pod: str) -> bool:
        return context.gang_of(pod) not in gangs

    bought = (DraftNode(each.offering, tuple(filter(stays, each.pods))) for each in draft.bought)
    on_existing = tuple((pod, node) for pod, node in draft.on_existing if stays(pod))
    return draft._replace(bought=tuple(each for each in bought if each.pods), on_existing=on_existing)


def optimal_drafts(
    context: SearchContext, progress: Progress, *, problem: Problem, demand: Ints, seeds: Sequence[Draft]
) -> OptimalDrafts:
    """What column generation would buy."""
    if len(problem.classes) > _MANY:
        return OptimalDrafts([])
    progress.tell("column generation")
    before: tuple[tuple[str, str], ...] = ()
    if len(problem.room) > ROOMS and seeds:
        before = seeds[0].on_existing
        problem = _without_rooms(problem, before)
        demand = np.minimum(demand, problem.demand)
    values = context.units if context.objective is Objective.PODS else None
    part = progress.budget.share(_share(context))
    found = optimum(problem, demand, context.prices, part, seeds=seeds, values=values, tell=progress.costs)
    drafts = list(found.drafts)
    # The more different drafts there are, the more likely one comes out well.
    if not context.follows and len(context.planning.pending) <= _MANY_PODS:
        progress.tell("column generation by the other measure")
        other = optimum(problem, demand, context.other_prices, progress.budget.share(_share(context) / 3), seeds=seeds)
        drafts += [draft._replace(maker="optimal, by the other measure") for draft in other.drafts]
        drafts += _loose_drafts(context, progress, problem=problem, demand=demand)
    drafts = [draft._replace(on_existing=(*before, *draft.on_existing)) for draft in drafts]
    return OptimalDrafts(drafts, 0.0 if before else found.bound)


def _share(context: SearchContext) -> float:
    """How much of the time column generation gets: the rest is for what the binder makes of its drafts."""
    if context.follows:
        return 0.85 - min(len(context.planning.pending) / 20_000, 0.25) if is_plain(context.problem) else 0.55
    return 0.28 if len(context.planning.pending) <= _MANY_PODS else 0.14


def _without_rooms(problem: Problem, placed: Sequence[tuple[str, str]]) -> Problem:
    """A problem with too many nodes to decide about one by one: what was found to fit there goes there first."""
    gone = {pod for pod, _ in placed}
    classes = tuple(each._replace(pods=tuple(pod for pod in each.pods if pod not in gone)) for each in problem.classes)
    demand = np.array([len(each.pods) for each in classes], dtype=np.int64)
    none = problem.welcome[:0]
    return problem._replace(
        classes=classes, demand=demand, nodes=(), node_labels=(), room=problem.room[:0], welcome=none, roomy=none
    )


def _loose_drafts(context: SearchContext, progress: Progress, *, problem: Problem, demand: Ints) -> list[Draft]:
    """Drafts that leave room on every node: a scheduler that spreads pods finds no place for large ones otherwise.

    Such a scheduler fills all nodes alike; the last large pod gets in only if some node has room for one. So a part of
    the largest request is left free everywhere, which makes large nodes the better buy.
    """
    drafts = []
    pods = problem.resources.index("pods")
    for slack in _SLACK:
        if progress.budget.is_below(0.3):
            break
        progress.tell(f"column generation with room to err, {slack:.0%} of a large pod")
        free = problem.free.copy()
        for row in range(len(free)):
            mine = problem.allowed[row] & (demand > 0)
            if mine.any():
                largest = problem.requests[mine].max(axis=0)
                roomy = free[row] >= 2 * largest  # what holds one large pod alone has nothing to spread
                free[row] -= np.where(roomy, (slack * largest).astype(np.int64), 0)
        free[:, pods] = problem.free[:, pods]
        part = progress.budget.share(0.06)
        found = optimum(problem._replace(free=free), demand, context.prices, part)
        drafts += [draft._replace(maker="optimal, with room to err") for draft in found.drafts[:1]]
    return drafts
