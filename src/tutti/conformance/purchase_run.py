"""Recorded purchases, made again by Tutti and held against what the peer bought.

Contract: a case is run within its time limit and never raises: what goes wrong is told in the outcome. Ours is worse if
it places fewer pods, or costs more and places no more. Where kube-scheduler binds, both purchases are replayed: the
nodes join the cluster, and it is counted how many pods kube-scheduler gives a node. What the peer says it places and
kube-scheduler then does not, does not count for the peer.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import NamedTuple

from msgspec.structs import replace

from tutti.autoscalers.karpenter.state import is_provisionable
from tutti.cluster.work.work_budget import WorkBudget
from tutti.conformance.purchase_cases import PurchaseCase
from tutti.kube.objects import Pod
from tutti.market.offerings import Offering
from tutti.recommend.after_purchase import OfferingIndex
from tutti.recommend.records.recommendation import Recommendation
from tutti.recommend.records.request import Binder, Request

ROUNDING = 1_000
"""Recorded costs are rounded to a millionth of a dollar; a difference within that is none."""

Bought = list[tuple[Offering, int]]
Recommender = Callable[[Request, WorkBudget], Recommendation]
Replayer = Callable[[Request, Bought], int]


class PurchaseSettings(NamedTuple):
    """How to run purchases."""

    binder: Binder = Binder.TUTTI
    seconds: float = 5.0


DEFAULT = PurchaseSettings()


class PurchaseOutcome(NamedTuple):
    """What came of one case."""

    peer: str
    family: str
    case: str = ""
    pods: int = 0
    placed: int = 0
    peer_placed: int = 0
    cost: int | None = None
    """In nano-dollars an hour; None when a price is not known, or when nothing came of it."""
    peer_cost: int = 0
    nodes: int = 0
    peer_nodes: int = 0
    bound: int | None = None
    """How many pods kube-scheduler gives a node on what we bought; None when that was not asked."""
    peer_bound: int | None = None
    """The same for what the peer bought; None as well when that is not recorded."""
    failed: str = ""
    supported: bool = True

    @property
    def dearer(self) -> bool:
        """Whether ours costs more than the peer's."""
        return self.cost is None or self.cost > self.peer_cost + ROUNDING

    @property
    def peer_kept(self) -> int:
        """How many pods the peer's purchase really places."""
        return self.peer_placed if self.peer_bound is None else min(self.peer_placed, self.peer_bound)

    @property
    def worse(self) -> bool:
        """Whether the peer's purchase is the better one."""
        return bool(self.failed) or self.placed < self.peer_kept or (self.dearer and self.placed == self.peer_kept)

    @property
    def more(self) -> bool:
        """Whether ours places more pods for more money."""
        return self.placed > self.peer_kept and self.dearer

    @property
    def holds(self) -> bool | None:
        """Whether kube-scheduler places all the pods that we say are placed."""
        return None if self.bound is None else self.bound >= self.placed

    @property
    def peer_holds(self) -> bool | None:
        """Whether it does for the peer."""
        return None if self.peer_bound is None else self.peer_bound >= self.peer_placed


def run_purchase(
    case: PurchaseCase,
    settings: PurchaseSettings = DEFAULT,
    *,
    recommender: Recommender | None = None,
    replayer: Replayer | None = None,
) -> PurchaseOutcome:
    """Recommend for a case, and compare."""
    request = replace(case.request, options=replace(case.request.options, binder=settings.binder))
    peer = case.peer
    known = PurchaseOutcome(
        peer.name,
        case.family,
        case.name,
        pods=sum(
            not each.spec.node_name and is_provisionable(each) for each in request.objects if isinstance(each, Pod)
        ),
        peer_placed=peer.placed,
        peer_cost=peer.cost,
        peer_nodes=peer.nodes,
    )
    try:
        budget = WorkBudget.of_seconds(settings.seconds, time.process_time)
        ours = (recommender or _recommend)(request, budget)
        known = known._replace(placed=ours.placed, cost=ours.cost, nodes=len(ours.nodes))
        if settings.binder is Binder.KUBE_SCHEDULER:
            replay = replayer or _replay
            known = known._replace(bound=replay(request, bought_of(request, ours)))
            if peer.bought or not peer.nodes:
                cost = sum((offering.price or 0) * count for offering, count in peer.bought)
                known = known._replace(peer_bound=replay(request, list(peer.bought)), peer_cost=cost)
    except Exception as error:  # a fault in one case is to be seen beside the others
        known = known._replace(failed=f"{type(error).__name__}: {error}")
    return known


def bought_of(request: Request, answer: Recommendation) -> Bought:
    """What an answer buys, as offerings of the request."""
    offered = OfferingIndex(request.catalogue)
    return [(offered.find(each), each.increment) for each in answer.scale_up]


def _recommend(request: Request, budget: WorkBudget) -> Recommendation:
    from tutti.recommend.flow import recommend

    return recommend(request, budget)


def _replay(request: Request, bought: Bought) -> int:
    from tutti.recommend.replay.replay_purchase import replay_purchase
    from tutti.recommend.request_cluster import planning_cluster

    return replay_purchase(planning_cluster(request), bought)
