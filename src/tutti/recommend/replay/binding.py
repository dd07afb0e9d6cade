"""Binding: what becomes of a draft when somebody binds the pods.

Contract: drafts are tried on the picture, which is left as it was. `BoundPurchase` is a plan as it would be carried
out: only pods that the engine has placed count, and of a gang that would not start none does. The two binders are in
`followed` and `replayed`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from tutti.market.offerings import Offering
from tutti.market.planning_cluster import PlanningCluster
from tutti.recommend.problem.problem import LimitRow, Problem
from tutti.recommend.records.draft import Draft, DraftNode
from tutti.recommend.replay.gang_check import gangs_short

Buyer = Callable[[Problem, Sequence[str]], Draft]
"""Buys nodes for some pods on the picture as it stands."""
MENDS = 12
"""How often something is bought for pods that were left, at most."""


class BoundPurchase(NamedTuple):
    """A plan as the binder would carry it out."""

    maker: str
    nodes: tuple[tuple[str, int], ...]
    """New nodes by name, with the numbers of their offerings."""
    where: dict[str, str]
    left: tuple[str, ...]
    short: tuple[str, ...] = ()
    """Gangs of which some pods wait that would not start whole."""
    minimal: bool | None = None
    """Whether every node was found to be needed; None when that was not looked at."""

    offerings: tuple[Offering, ...] = ()
    """All that could be bought, by number."""

    @property
    def bought(self) -> tuple[tuple[str, Offering], ...]:
        """The new nodes by name, with their offerings."""
        return tuple((name, self.offerings[number]) for name, number in self.nodes)

    @property
    def price(self) -> int:
        """What the nodes cost, as far as prices are known."""
        return sum(offering.price or 0 for _, offering in self.bought)


def bought_of(outcome: BoundPurchase) -> tuple[DraftNode, ...]:
    """The nodes of an outcome with their pods."""
    pods: dict[str, list[str]] = {name: [] for name, _ in outcome.nodes}
    for pod, node in outcome.where.items():
        if node in pods:
            pods[node].append(pod)
    return tuple(DraftNode(offering, tuple(pods[name])) for name, offering in outcome.nodes)


class Binding:
    """What both binders know and do."""

    def __init__(self, planning: PlanningCluster, problem: Problem, *, buy: Buyer) -> None:
        self.planning, self.problem, self.buy = planning, problem, buy
        self.pods = problem.class_of_pod
        self.turn = {pod: place for place, pod in enumerate(planning.pending)}

    def rest(self, nodes: Sequence[tuple[str, int]]) -> Problem:
        """The problem with what is left of the limits after some purchases."""
        limits = tuple(
            LimitRow(row.takes, row.left - sum(int(row.takes[offering]) for _, offering in nodes), row.reason)
            for row in self.problem.limits
        )
        return self.problem._replace(limits=limits)

    def outcome(self, maker: str, nodes: Sequence[tuple[str, int]], minimal: bool | None) -> BoundPurchase:
        pods = self.planning.cluster.pods
        short = gangs_short(self.planning, self.pods)
        where = {pod: node for pod in self.pods if (node := pods.node_names[pods.row_of[pod]]) is not None}
        if short:  # a gang that does not start has no pod placed
            gangs = self.planning.gangs
            where = {pod: node for pod, node in where.items() if gangs.key_of(pods.row_of[pod]) not in short}
        left = tuple(pod for pod in self.planning.pending if pod in self.pods and pod not in where)
        return BoundPurchase(maker, tuple(nodes), where, left, tuple(short), minimal, self.problem.offerings)
