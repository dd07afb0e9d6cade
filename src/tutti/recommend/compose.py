"""Composing the answer: from the best outcome to the record that is printed.

Contract: pure. The bound is rounded up to what a plan can cost at all: a sum of prices, or a number of nodes.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from tutti.market.money import NANO
from tutti.recommend.problem.problem import Problem
from tutti.recommend.problem.search_context import TIE, Matter
from tutti.recommend.reasons import alternatives, spread_notes, why_left
from tutti.recommend.records.new_nodes import NewNode
from tutti.recommend.records.recommendation import Placement, PoolStatus, Recommendation
from tutti.recommend.records.request import Objective, Strategy
from tutti.recommend.records.scale_ups import merge
from tutti.recommend.replay.binding import Outcome


def compose(
    matter: Matter,
    outcome: Outcome,
    bound: float,
    *,
    problem: Problem,
    pools: tuple[PoolStatus, ...],
    notes: Sequence[str],
) -> Recommendation:
    """The answer for the best outcome; `problem` has all offerings, those that cannot be bought included."""
    picture, request = matter.picture, matter.request
    new = dict(outcome.bought)
    pods: dict[str, list[str]] = {name: [] for name in new}
    on_existing = [Placement(pod=pod, node=node) for pod, node in sorted(picture.promised.items())]
    for pod in picture.pending:
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
    measured = len(nodes) if matter.objective is Objective.NODES else cost
    proved: int | None = None
    if measured is not None and matter.strategy is Strategy.OPTIMAL:
        proved = min(_rounded_up(matter, bound), measured)
    gap = None if proved is None or measured is None else (measured - proved) / measured if measured else 0.0
    left = why_left(picture, problem, outcome, unpriced=_left_out_for_a_price(matter, problem))
    return Recommendation(
        strategy=outcome.maker if matter.strategy is not Strategy.OPTIMAL else "optimal",
        objective=str(matter.objective), binder=str(matter.options.binder), scale_up=merge(nodes), nodes=nodes,
        on_existing=tuple(on_existing), left=tuple(left), pools=pools,
        alternatives=alternatives(picture),
        pods=len(picture.pending) + len(picture.promised), placed=len(outcome.where) + len(picture.promised),
        cost=cost, bound=proved, gap=gap, minimal=outcome.minimal,
        notes=(*request.catalogue.notes, *request.notes, *notes, *spread_notes(picture, matter.problem, outcome)),
    )  # fmt: skip


def _left_out_for_a_price(matter: Matter, problem: Problem) -> set[int]:
    """The rows of offerings that were left out because only others have a price."""
    offered = matter.problem.offerings
    if matter.objective is not Objective.COST or not any(each.price is not None for each in offered):
        return set()
    kept = {id(each) for each in offered}
    return {row for row, each in enumerate(problem.offerings) if each.price is None and id(each) not in kept}


def _rounded_up(matter: Matter, bound: float) -> int:
    """The least cost that a plan can have which costs at least this: a sum of prices, or a number of nodes."""
    if matter.objective is Objective.NODES:
        return math.ceil(bound / NANO / (1 + TIE) - 1e-6)
    step = math.gcd(*(offering.price or 0 for offering in matter.problem.offerings)) or 1
    return math.ceil(matter.money(bound) * (1 - 1e-6) / step) * step
