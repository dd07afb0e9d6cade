"""Compose the recommendation from the best purchase.

Contract: pure. The bound is rounded up to a cost that a plan can have at all: a sum of prices, or a number of nodes.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from tutti.market.money import NANO
from tutti.recommend.problem.problem import Problem
from tutti.recommend.problem.search_context import PRICE_TIE_BREAK, SearchContext
from tutti.recommend.reasons import alternatives, spread_notes, why_left
from tutti.recommend.records.new_nodes import NewNode
from tutti.recommend.records.recommendation import Placement, PoolStatus, Recommendation
from tutti.recommend.records.request import Objective, Strategy
from tutti.recommend.records.scale_ups import merge
from tutti.recommend.replay.binding import BoundPurchase


def compose(
    context: SearchContext,
    purchase: BoundPurchase,
    bound: float,
    *,
    problem: Problem,
    pools: tuple[PoolStatus, ...],
    notes: Sequence[str],
) -> Recommendation:
    """Return the recommendation for the best purchase; `problem` has all offerings, including ineligible ones."""
    planning, request = context.planning, context.request
    new_nodes = dict(purchase.new_nodes)
    pods_on: dict[str, list[str]] = {name: [] for name in new_nodes}
    on_existing = [Placement(pod=pod, node=node) for pod, node in sorted(planning.promised.items())]
    for pod in planning.pending:
        node = purchase.node_of_pod.get(pod)
        if node in pods_on:
            pods_on[node].append(pod)
        elif node is not None:
            on_existing.append(Placement(pod=pod, node=node))
    nodes = tuple(
        NewNode(
            name=name, pool=each.pool, zone=each.zone, instance_type=each.instance_type,
            capacity_type=each.capacity_type, price=each.price, template=each.node.metadata.name,
            pods=tuple(pods_on[name]),
        )
        for name, each in new_nodes.items()
    )  # fmt: skip
    priced = all(each.price is not None for each in nodes)
    cost = sum(each.price or 0 for each in nodes) if priced else None
    objective_value = len(nodes) if context.objective is Objective.NODES else cost
    proven_bound: int | None = None
    if objective_value is not None and context.strategy is Strategy.OPTIMAL:
        proven_bound = min(_round_up_bound(context, bound), objective_value)
    gap = (
        None
        if proven_bound is None or objective_value is None
        else (objective_value - proven_bound) / objective_value
        if objective_value
        else 0.0
    )
    left = why_left(planning, problem, purchase, unpriced=_unpriced_rows(context, problem))
    return Recommendation(
        strategy=purchase.maker if context.strategy is not Strategy.OPTIMAL else "optimal",
        objective=str(context.objective), binder=str(context.options.binder), scale_up=merge(nodes), nodes=nodes,
        on_existing=tuple(on_existing), left=tuple(left), pools=pools,
        alternatives=alternatives(planning),
        pods=len(planning.pending) + len(planning.promised), placed=len(purchase.node_of_pod) + len(planning.promised),
        cost=cost, bound=proven_bound, gap=gap, minimal=purchase.minimal,
        notes=(*request.catalogue.notes, *request.notes, *notes, *spread_notes(planning, context.problem, purchase)),
    )  # fmt: skip


def _unpriced_rows(context: SearchContext, problem: Problem) -> set[int]:
    """Return the rows of offerings that were left out because only other offerings have a price."""
    eligible = context.problem.offerings
    if context.objective is not Objective.COST or not any(each.price is not None for each in eligible):
        return set()
    eligible_ids = {id(each) for each in eligible}
    return {row for row, each in enumerate(problem.offerings) if each.price is None and id(each) not in eligible_ids}


def _round_up_bound(context: SearchContext, bound: float) -> int:
    """Return the least possible cost of a plan at or above the bound: a sum of prices, or a number of nodes."""
    if context.objective is Objective.NODES:
        return math.ceil(bound / NANO / (1 + PRICE_TIE_BREAK) - 1e-6)
    step = math.gcd(*(offering.price or 0 for offering in context.problem.offerings)) or 1
    return math.ceil(context.bound_in_money(bound) * (1 - 1e-6) / step) * step
