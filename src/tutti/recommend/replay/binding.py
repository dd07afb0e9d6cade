"""What both binders share, and `BoundPurchase`, the result of binding a draft.

Contract: drafts are tried on the planning cluster, which stays unchanged. In a `BoundPurchase` only pods that the
engine has placed count; of a gang that would not start, no pod counts. The binders are `tutti_binder` and
`kube_scheduler_binder`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from tutti.market.offerings import Offering
from tutti.market.planning_cluster import PlanningCluster
from tutti.recommend.problem.problem import LimitRow, Problem
from tutti.recommend.records.draft import Draft, DraftNode
from tutti.recommend.replay.gang_check import unstarted_gangs

Buyer = Callable[[Problem, Sequence[str]], Draft]
"""Returns a draft for some pods on the planning cluster as it is."""
MAX_EXTRA_PURCHASES = 12
"""How often nodes are added at most for pods that are left."""


class BoundPurchase(NamedTuple):
    """A purchase with the pods where the binder has placed them."""

    maker: str
    nodes: tuple[tuple[str, int], ...]
    """The new nodes: names, and the numbers of their offerings."""
    node_of_pod: dict[str, str]
    """The node name of each placed pod."""
    left: tuple[str, ...]
    short: tuple[str, ...] = ()
    """Gangs with pending pods that would not start whole."""
    minimal: bool | None = None
    """Whether every node is needed; None if not checked."""

    offerings: tuple[Offering, ...] = ()
    """All offerings of the problem, by number."""

    @property
    def new_nodes(self) -> tuple[tuple[str, Offering], ...]:
        """The new nodes: names and offerings."""
        return tuple((name, self.offerings[number]) for name, number in self.nodes)

    @property
    def price(self) -> int:
        """The price of the new nodes an hour; unknown prices count as 0."""
        return sum(offering.price or 0 for _, offering in self.new_nodes)


def draft_nodes(purchase: BoundPurchase) -> tuple[DraftNode, ...]:
    """Return the new nodes of a purchase with their pods, as nodes of a draft."""
    pods: dict[str, list[str]] = {name: [] for name, _ in purchase.nodes}
    for pod, node in purchase.node_of_pod.items():
        if node in pods:
            pods[node].append(pod)
    return tuple(DraftNode(offering, tuple(pods[name])) for name, offering in purchase.nodes)


class DraftBinder:
    """Base class of both binders: the planning cluster, the problem, and the buyer for pods that are left."""

    def __init__(self, planning: PlanningCluster, problem: Problem, *, buy: Buyer) -> None:
        self.planning, self.problem, self.buy = planning, problem, buy
        self.pods = problem.class_of_pod
        self.queue_place = {pod: place for place, pod in enumerate(planning.pending)}

    def after_purchase(self, nodes: Sequence[tuple[str, int]]) -> Problem:
        """Return the problem with the limits that remain after some purchases."""
        limits = tuple(
            LimitRow(row.takes, row.left - sum(int(row.takes[offering]) for _, offering in nodes), row.reason)
            for row in self.problem.limits
        )
        return self.problem._replace(limits=limits)

    def bound_purchase(self, maker: str, nodes: Sequence[tuple[str, int]], minimal: bool | None) -> BoundPurchase:
        """Return the purchase with the pods where the planning cluster has them now."""
        pods = self.planning.cluster.pods
        short = unstarted_gangs(self.planning, self.pods)
        where = {pod: node for pod in self.pods if (node := pods.node_names[pods.row_of[pod]]) is not None}
        if short:  # a gang that does not start has no pod placed
            gangs = self.planning.gangs
            where = {pod: node for pod, node in where.items() if gangs.key_of(pods.row_of[pod]) not in short}
        left = tuple(pod for pod in self.planning.pending if pod in self.pods and pod not in where)
        return BoundPurchase(maker, tuple(nodes), where, left, tuple(short), minimal, self.problem.offerings)
