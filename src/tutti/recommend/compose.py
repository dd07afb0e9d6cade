"""Composing the answer: from the best outcome to the record that is printed.

Contract: pure. The bound is rounded up to what a plan can cost at all: a sum of prices, or a number of nodes.
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
    outcome: BoundPurchase,
    bound: float,
    *,
    problem: Problem,
    pools: tuple[PoolStatus, ...],
    notes: Sequence[str],
) -> Recommendation:
    """The answer for the best outcome; `problem` has all offerings, those that cannot be bought included."""
    planning, request = context.planning, context.request
    new = dict(outcome.bought)
    pods: dict[str, list[str]] = {name: [] for name in new}
    on_existing = [Placement(pod=pod, node=node) for pod, node in sorted(planning.promised.items())]
    for pod in planning.pending:
        node = outcome.where.get(pod)
        if node in pods:
            pods[node].append(pod)
        elif node is not None:
            on_existing.append(Placement(pod=pod, node=node))
    nodes = tuple(
        NewNode(
            name=name, pool=each.pool, zone=each.zone, instance_type=each.instance_type,
            capacity_type=each.capacity_type, price=each.price, template=each.node.metadata.name,
            pods=tuple(pods[name]),
        )
        for name, each in new.items()
    )  # fmt: skip
    priced = all(each.price is not None for each in nodes)
    cost = sum(each.price or 0 for each in nodes) if priced else None
    measured = len(nodes) if context.objective is Objective.NODES else cost
    proved: int | None = None
    if measured is not None and context.strategy is Strategy.OPTIMAL:
        proved = min(_rounded_up(context, bound), measured)
    gap = None if proved is None or measured is None else (measured - proved) / measured if measured else 0.0
    left = why_left(planning, problem, outcome, unpriced=_left_out_for_a_price(context, problem))
    return Recommendation(
        strategy=outcome.maker if context.strategy is not Strategy.OPTIMAL else "optimal",
        objective=str(context.objective), binder=str(context.options.binder), scale_up=merge(nodes), nodes=nodes,
        on_existing=tuple(on_existing), left=tuple(left), pools=pools,
        alternatives=alternatives(planning),
        pods=len(planning.pending) + len(planning.promised), placed=len(outcome.where) + len(planning.promised),
        cost=cost, bound=proved, gap=gap, minimal=outcome.minimal,
        notes=(*request.catalogue.notes, *request.notes, *notes, *spread_notes(planning, context.problem, outcome)),
    )  # fmt: skip


def _left_out_for_a_price(context: SearchContext, problem: Problem) -> set[int]:
    """The rows of offerings that were left out because only others have a price."""
    offered = context.problem.offerings
    if context.objective is not Objective.COST or not any(each.price is not None for each in offered):
        return set()
    kept = {id(each) for each in offered}
    return {row for row, each in enumerate(problem.offerings) if each.price is None and id(each) not in kept}


def _rounded_up(context: SearchContext, bound: float) -> int:
    """The least cost that a plan can have which costs at least this: a sum of prices, or a number of nodes."""
    if context.objective is Objective.NODES:
        return math.ceil(bound / NANO / (1 + PRICE_TIE_BREAK) - 1e-6)
    step = math.gcd(*(offering.price or 0 for offering in context.problem.offerings)) or 1
    return math.ceil(context.bound_in_money(bound) * (1 - 1e-6) / step) * step
