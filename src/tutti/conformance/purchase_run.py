"""The run of a recorded purchase: Tutti recommends for the same request, and the two purchases are compared.

Contract: a case runs within its time limit and never raises: an exception is part of the outcome. Tutti's purchase is
worse if it places fewer pods, or costs more and does not place more pods. If kube-scheduler is the binder, both
purchases are replayed: the nodes join the cluster, and kube-scheduler binds the pods. Pods that the peer claims to
place and that kube-scheduler does not bind do not count for the peer.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import NamedTuple

from msgspec.structs import replace

from tutti.autoscalers.karpenter.state import is_provisionable
from tutti.cluster.work.work_budget import WorkBudget
from tutti.conformance.purchase_cases import ROUNDING, PurchaseCase
from tutti.kube.objects import Pod
from tutti.market.offerings import Offering
from tutti.recommend.after_purchase import OfferingIndex
from tutti.recommend.records.recommendation import Recommendation
from tutti.recommend.records.request import Binder, Request

Bought = list[tuple[Offering, int]]
Recommender = Callable[[Request, WorkBudget], Recommendation]
Replayer = Callable[[Request, Bought], int]


class PurchaseSettings(NamedTuple):
    """The binder and the time limit of a run."""

    binder: Binder = Binder.TUTTI
    seconds: float = 5.0


DEFAULT = PurchaseSettings()


class PurchaseOutcome(NamedTuple):
    """The result of one case: Tutti's purchase and the peer's."""

    peer: str
    family: str
    case: str = ""
    pods: int = 0
    placed: int = 0
    peer_placed: int = 0
    cost: int | None = None
    """In nano-dollars an hour; None if a price is unknown, or the run failed."""
    peer_cost: int = 0
    nodes: int = 0
    peer_nodes: int = 0
    bound: int | None = None
    """The number of pods that kube-scheduler binds after Tutti's purchase; None without a replay."""
    peer_bound: int | None = None
    """The number of pods that kube-scheduler binds after the peer's purchase; None without a replay or a record."""
    failed: str = ""
    supported: bool = True

    @property
    def dearer(self) -> bool:
        """Whether Tutti's purchase costs more than the peer's."""
        return self.cost is None or self.cost > self.peer_cost + ROUNDING

    @property
    def peer_kept(self) -> int:
        """The number of pods that the peer's purchase places, at most as many as kube-scheduler binds."""
        return self.peer_placed if self.peer_bound is None else min(self.peer_placed, self.peer_bound)

    @property
    def worse(self) -> bool:
        """Whether the peer's purchase is better."""
        return bool(self.failed) or self.placed < self.peer_kept or (self.dearer and self.placed == self.peer_kept)

    @property
    def more(self) -> bool:
        """Whether Tutti's purchase places more pods for more money."""
        return self.placed > self.peer_kept and self.dearer

    @property
    def holds(self) -> bool | None:
        """Whether kube-scheduler binds all pods that Tutti claims to place; None without a replay."""
        return None if self.bound is None else self.bound >= self.placed

    @property
    def peer_holds(self) -> bool | None:
        """Whether kube-scheduler binds all pods that the peer claims to place; None without a replay."""
        return None if self.peer_bound is None else self.peer_bound >= self.peer_placed


def run_purchase(
    case: PurchaseCase,
    settings: PurchaseSettings = DEFAULT,
    *,
    recommender: Recommender | None = None,
    replayer: Replayer | None = None,
) -> PurchaseOutcome:
    """Recommend for the request of a case, and compare with the peer's purchase."""
    request = replace(case.request, options=replace(case.request.options, binder=settings.binder))
    peer = case.peer
    outcome = PurchaseOutcome(
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
        outcome = outcome._replace(placed=ours.placed, cost=ours.cost, nodes=len(ours.nodes))
        if settings.binder is Binder.KUBE_SCHEDULER:
            replay = replayer or _replay
            outcome = outcome._replace(bound=replay(request, bought_offerings(request, ours)))
            if peer.bought or not peer.nodes:
                cost = sum((offering.price or 0) * count for offering, count in peer.bought)
                outcome = outcome._replace(peer_bound=replay(request, list(peer.bought)), peer_cost=cost)
    except Exception as error:  # other cases must run even if one fails
        outcome = outcome._replace(failed=f"{type(error).__name__}: {error}")
    return outcome


def bought_offerings(request: Request, answer: Recommendation) -> Bought:
    """Return the offerings of the request that a recommendation buys, with the numbers of nodes."""
    offerings = OfferingIndex(request.catalogue)
    return [(offerings.find(each), each.increment) for each in answer.scale_up]


def _recommend(request: Request, budget: WorkBudget) -> Recommendation:
    from tutti.recommend.pipeline import recommend

    return recommend(request, budget)


def _replay(request: Request, bought: Bought) -> int:
    from tutti.recommend.replay.replay_purchase import replay_purchase
    from tutti.recommend.request_cluster import planning_cluster

    return replay_purchase(planning_cluster(request), bought)
