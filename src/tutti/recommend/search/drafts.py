"""Drafts of every strategy: greedy, by models of Karpenter and Cluster Autoscaler, and by column generation.

Contract: pure; stops at the work budget; the planning cluster is left as it was. All other drafts are seeds of the
optimal drafts, so no other draft is cheaper by the numbers of the problem. For kube-scheduler, which spreads pods over
nodes, some drafts leave spare room on every node.
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
from tutti.recommend.search.greedy.strategies import greedy_draft
from tutti.recommend.search.lower_bound import is_pure_packing
from tutti.recommend.search.optimal_drafts import optimize
from tutti.recommend.search.packing_problem import MAX_EXISTING_NODES

_MAX_NODE_GROUPS = 120
"""Cluster Autoscaler's model runs up to this many node groups: it tries them one by one."""
_MANY_CLASSES = 600
"""Above this many classes only Karpenter's model runs: the other strategies iterate over the classes for every node."""
_MANY_PODS = 1_500
"""Above this many pods a replay takes long: fewer drafts are made, so that more of the budget is left for replays."""
_SLACK = (0.6,)
"""Which shares of the largest request are left free on every node, in drafts for a scheduler that spreads pods."""
_GREEDY_STRATEGIES = (Strategy.LEAST_COST, Strategy.LEAST_WASTE, Strategy.MOST_PODS)


class OptimalDrafts(NamedTuple):
    """The drafts of column generation, and the lower bound for the whole demand (0: none)."""

    drafts: list[Draft]
    bound: float = 0.0


def greedy_drafts(context: SearchContext, progress: Progress) -> list[Draft]:
    """Return the drafts of the greedy strategies, or of the one strategy that the request names."""
    budget = progress.budget
    if context.strategy is not Strategy.OPTIMAL:
        return [_greedy_draft(context, context.strategy, budget)]
    drafts: list[Draft] = []
    remaining_before = budget.remaining
    for number, strategy in enumerate(_GREEDY_STRATEGIES if len(context.problem.classes) <= _MANY_CLASSES else ()):
        if number and remaining_before - budget.remaining > 0.08 * budget.limit:
            break
        progress.tell(f"buying node by node, {strategy}")
        drafts.append(_greedy_draft(context, strategy, budget.share(0.15 if number else 0.5)))
    return drafts


def _greedy_draft(context: SearchContext, strategy: Strategy, budget: WorkBudget) -> Draft:
    """Return the draft of one greedy strategy over all offerings of the problem."""
    every_offering = np.ones(len(context.problem.offerings), dtype=bool)
    return greedy_draft(
        context.planning, context.problem, context.options, strategy, eligible=every_offering, budget=budget
    )


def peer_drafts(context: SearchContext, progress: Progress) -> list[Draft]:
    """Return what the models of Karpenter and Cluster Autoscaler would buy."""
    progress.tell("simulating Karpenter and Cluster Autoscaler")
    meter = progress.budget.meter
    catalogue, daemon_sets = _eligible_catalogue(context), context.request.daemon_sets
    # kube-scheduler binds pods that fit now at once, before new nodes join.
    already_bound = {} if context.is_tutti_binder else context.planning.promised
    has_many_classes = len(context.problem.classes) > _MANY_CLASSES
    part_budget = progress.budget.share(0.8 if has_many_classes else 0.12)
    bought = karpenter(
        copy_cluster(context.cluster, bind_edits(already_bound)),
        catalogue,
        daemon_sets,
        budget=part_budget.share(1.0 if has_many_classes else 0.5),
    )
    drafts = [_as_draft(context, "karpenter", bought)]
    if has_many_classes or len(context.problem.offerings) > _MAX_NODE_GROUPS:
        return drafts
    for expander in ("least-waste", "price"):
        if not part_budget.is_exhausted():
            purchase = cluster_autoscaler(
                copy_cluster(context.cluster, bind_edits(already_bound), meter=meter),
                catalogue,
                daemon_sets,
                options=ScaleUpOptions(expander=expander),
                budget=part_budget.share(0.5),
            )
            drafts.append(_as_draft(context, f"cluster-autoscaler, {expander}", purchase))
    return drafts


def _eligible_catalogue(context: SearchContext) -> Catalogue:
    """Return the catalogue with the eligible offerings only."""
    pools = []
    for pool in context.request.catalogue.pools:
        offerings = tuple(offering for offering in pool.offerings if id(offering) in context.number_of_offering)
        if offerings:
            pools.append(replace(pool, offerings=offerings))
    return Catalogue(pools=tuple(pools), limits=context.request.catalogue.limits)


def _as_draft(context: SearchContext, maker: str, purchase: Purchase) -> Draft:
    """Return a purchase as a draft, without nodes that have no pods of the problem."""
    class_of_pod = context.problem.class_of_pod
    nodes = (
        DraftNode(context.number_of_offering[id(offering)], tuple(pod for pod in pods if pod in class_of_pod))
        for offering, pods in purchase.nodes
    )
    on_existing = tuple((pod, node) for pod, node in purchase.on_existing if pod in class_of_pod)
    return Draft(maker, tuple(each for each in nodes if each.pods), on_existing, purchase.left)


def draft_without(context: SearchContext, draft: Draft, gangs: set[str]) -> Draft:
    """Return a draft without the pods of some gangs, and without nodes that had no other pods."""

    def is_kept(pod: str) -> bool:
        return context.gang_of(pod) not in gangs

    nodes = (DraftNode(each.offering, tuple(filter(is_kept, each.pods))) for each in draft.nodes)
    on_existing = tuple((pod, node) for pod, node in draft.on_existing if is_kept(pod))
    return draft._replace(nodes=tuple(each for each in nodes if each.pods), on_existing=on_existing)


def optimal_drafts(
    context: SearchContext, progress: Progress, *, problem: Problem, demand: Ints, seeds: Sequence[Draft]
) -> OptimalDrafts:
    """Return the drafts of column generation."""
    if len(problem.classes) > _MANY_CLASSES:
        return OptimalDrafts([])
    progress.tell("column generation")
    on_existing: tuple[tuple[str, str], ...] = ()
    if len(problem.node_free) > MAX_EXISTING_NODES and seeds:
        on_existing = seeds[0].on_existing
        problem = _without_existing_nodes(problem, on_existing)
        demand = np.minimum(demand, problem.demand)
    values = context.pod_sizes if context.objective is Objective.PODS else None
    part_budget = progress.budget.share(_column_generation_share(context))
    result = optimize(
        problem, demand, context.prices, part_budget, seeds=seeds, values=values, report=progress.report_costs
    )
    drafts = list(result.drafts)
    # kube-scheduler may not reproduce a draft: more different drafts raise the chance of a good outcome.
    if not context.is_tutti_binder and len(context.planning.pending) <= _MANY_PODS:
        progress.tell("column generation by the other objective")
        other_result = optimize(
            problem,
            demand,
            context.other_prices,
            progress.budget.share(_column_generation_share(context) / 3),
            seeds=seeds,
        )
        drafts += [draft._replace(maker="optimal, by the other objective") for draft in other_result.drafts]
        drafts += _drafts_with_spare_room(context, progress, problem=problem, demand=demand)
    drafts = [draft._replace(on_existing=(*on_existing, *draft.on_existing)) for draft in drafts]
    return OptimalDrafts(drafts, 0.0 if on_existing else result.bound)


def _column_generation_share(context: SearchContext) -> float:
    """Return the share of the budget for column generation; the rest is for the binder's replays."""
    if context.is_tutti_binder:
        return 0.85 - min(len(context.planning.pending) / 20_000, 0.25) if is_pure_packing(context.problem) else 0.55
    return 0.28 if len(context.planning.pending) <= _MANY_PODS else 0.14


def _without_existing_nodes(problem: Problem, placed: Sequence[tuple[str, str]]) -> Problem:
    """Return the problem without existing nodes, and without the pods that are already placed there."""
    placed_pods = {pod for pod, _ in placed}
    classes = tuple(
        each._replace(pods=tuple(pod for pod in each.pods if pod not in placed_pods)) for each in problem.classes
    )
    demand = np.array([len(each.pods) for each in classes], dtype=np.int64)
    no_nodes = problem.node_feasible[:0]
    return problem._replace(
        classes=classes,
        demand=demand,
        nodes=(),
        node_labels=(),
        node_free=problem.node_free[:0],
        node_feasible=no_nodes,
        node_allowed=no_nodes,
    )


def _drafts_with_spare_room(
    context: SearchContext, progress: Progress, *, problem: Problem, demand: Ints
) -> list[Draft]:
    """Return drafts that leave spare room on every node, for a scheduler that spreads pods.

    Such a scheduler fills all nodes evenly; the last large pod fits only if some node has room for it. So a part of
    the largest request is left free on every node, which makes large nodes the better purchase.
    """
    drafts = []
    pods = problem.resources.index("pods")
    for slack in _SLACK:
        if progress.budget.is_below(0.3):
            break
        progress.tell(f"column generation with spare room, {slack:.0%} of a large pod")
        free = problem.free.copy()
        for row in range(len(free)):
            candidates = problem.allowed[row] & (demand > 0)
            if candidates.any():
                largest = problem.requests[candidates].max(axis=0)
                needs_spare_room = free[row] >= 2 * largest  # a node for one large pod needs no spare room
                free[row] -= np.where(needs_spare_room, (slack * largest).astype(np.int64), 0)
        free[:, pods] = problem.free[:, pods]
        part_budget = progress.budget.share(0.06)
        result = optimize(problem._replace(free=free), demand, context.prices, part_budget)
        drafts += [draft._replace(maker="optimal, with spare room") for draft in result.drafts[:1]]
    return drafts
