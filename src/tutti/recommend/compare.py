"""Beside the peers: what others would buy for the same request, and what becomes of each purchase.

Contract: pure but for the clock; every peer has the same share of the budget. The first record is ours, the others
follow in a fixed order. Every purchase, ours as well, is replayed: its nodes join the cluster, and kube-scheduler
binds. A peer that cannot take the request, or is not done in its time, has a record that says so; nothing that goes
wrong with a peer is raised. All look at the same pods and the same market: pods that nobody tries to place, and
offerings that have no price where prices decide, are left out for all alike.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import NamedTuple

import msgspec
from msgspec.structs import replace

from tutti.autoscalers.cluster_autoscaler.orchestrator import ScaleUpOptions, cluster_autoscaler
from tutti.autoscalers.karpenter.provisioner import KarpenterOptions, karpenter
from tutti.autoscalers.original.recommender import original_recommender
from tutti.autoscalers.shared.purchase import Purchase
from tutti.cluster.cluster import Cluster
from tutti.cluster.edits import Remove
from tutti.cluster.work.work_budget import WorkBudget
from tutti.kube.objects import DaemonSet, Pod
from tutti.market.offerings import Catalogue, Offering
from tutti.market.planning_cluster import PlanningCluster
from tutti.recommend.after_purchase import OfferingIndex
from tutti.recommend.pending_pods import not_considered
from tutti.recommend.problem.search_context import NODE_SURCHARGE, Tell
from tutti.recommend.records.recommendation import Recommendation
from tutti.recommend.records.request import Binder, Objective, Request
from tutti.recommend.replay.replay_purchase import replay_purchase
from tutti.recommend.request_cluster import copied, planning_cluster

OURS = "tutti"
NO_PRICES = "it chooses by price, and no price is known"


class ComparedPurchase(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One purchase beside the others."""

    who: str
    """`OURS`, or the name of a peer in `PEERS`."""
    problem: str = ""
    """Why there is no purchase; then nothing else is known."""
    bought: tuple[tuple[Offering, int], ...] = ()
    """How many nodes of each offering, in the order of the catalogue."""
    cost: int | None = None
    """In nano-dollars an hour; None when some price is not known."""
    placed: int = 0
    """How many pods get a node, by whoever made the purchase."""
    left: int = 0
    """How many do not."""
    kept: int | None = None
    """How many get a node by kube-scheduler; None when there was no time to see."""
    follows: bool = False
    """Whether pods go where the plan says, whatever kube-scheduler would do."""
    change: float | None = None
    """How much more it costs than ours: 0.11 is 11 % more."""
    better: bool = False
    """Whether it is better than ours: more pods get a node in the end, or as many for less, by the objective.

    As in our own search a node costs a little for being one more: nine nodes that save a cent over two are not better.
    """

    @property
    def nodes(self) -> int:
        """How many nodes are bought."""
        return sum(count for _, count in self.bought)

    @property
    def holds(self) -> bool | None:
        """Whether kube-scheduler gives a node to as many pods as the purchase was made for."""
        return None if self.kept is None else self.kept >= self.placed

    @property
    def real(self) -> int:
        """How many pods get a node in the end, as far as that is known."""
        return self.placed if self.kept is None or self.follows else min(self.placed, self.kept)


Model = Callable[[Cluster, Catalogue, Sequence[DaemonSet], WorkBudget], Purchase]
"""Buys for the pending pods of a cluster, which it leaves as it was."""


class PeerModel(NamedTuple):
    """A program that buys nodes, as a model of it."""

    name: str
    model: Model
    by_price: bool = False
    """Whether it cannot choose without prices."""


def _cluster_autoscaler(expander: str) -> Model:
    def model(cluster: Cluster, catalogue: Catalogue, daemons: Sequence[DaemonSet], budget: WorkBudget) -> Purchase:
        options = ScaleUpOptions(expander=expander)
        return cluster_autoscaler(cluster, catalogue, daemons, options=options, budget=budget)

    return model


def _karpenter(cluster: Cluster, catalogue: Catalogue, daemons: Sequence[DaemonSet], budget: WorkBudget) -> Purchase:
    return karpenter(cluster, catalogue, daemons, options=KarpenterOptions(as_in_go=True), budget=budget)


def _original(cluster: Cluster, catalogue: Catalogue, daemons: Sequence[DaemonSet], budget: WorkBudget) -> Purchase:
    return original_recommender(cluster, catalogue, daemons, budget=budget)


PEERS = (
    PeerModel("cluster-autoscaler/least-waste", _cluster_autoscaler("least-waste")),
    PeerModel("cluster-autoscaler/most-pods", _cluster_autoscaler("most-pods")),
    PeerModel("cluster-autoscaler/price", _cluster_autoscaler("price"), by_price=True),
    PeerModel("karpenter", _karpenter),
    PeerModel("original-recommender", _original, by_price=True),
)


def compare(
    request: Request,
    answer: Recommendation,
    *,
    budget: WorkBudget,
    peers: Sequence[PeerModel] = PEERS,
    tell: Tell | None = None,
) -> tuple[ComparedPurchase, ...]:
    """What is bought by us, as answered, and by each peer."""
    tell = tell or (lambda _: None)
    pending = frozenset(planning_cluster(request, meter=budget.meter).pending)
    scene = _Scene(
        copied(request.cluster, (Remove(Pod.KIND, each.pod) for each in not_considered(request))),
        _same_market(request.catalogue, answer),
        request.daemon_sets,
        pending,
        answer.pods - len(pending),
        answer.objective,
    )
    tell("replaying our purchase")
    ours = scene.replayed(_ours(request, answer), budget)
    found = [ours]
    for peer in peers:
        tell(f"asking {peer.name}")
        fair = budget.share(1.0).limited_to(budget.limit // len(peers))
        theirs = _asked(peer, scene, fair)
        found.append(theirs if theirs.problem else scene.beside(theirs, ours))
    return tuple(found)


class _Scene(NamedTuple):
    """What all purchases are made for."""

    cluster: Cluster
    """Without the pods that no scheduler tries to place."""
    catalogue: Catalogue
    """Without offerings that have no price, where prices decide."""
    daemon_sets: Sequence[DaemonSet]
    pending: frozenset[str]
    promised: int
    """How many pods had been promised a node before; they count as placed."""
    objective: str

    def replayed(self, purchase: ComparedPurchase, budget: WorkBudget) -> ComparedPurchase:
        """The record with what kube-scheduler makes of it, if there is time."""
        if budget.is_exhausted():
            return purchase
        kept = replay_purchase(PlanningCluster(self.copy(budget), self.daemon_sets), purchase.bought)
        return replace(purchase, kept=self.promised + kept)

    def copy(self, budget: WorkBudget) -> Cluster:
        """A copy of the cluster whose work counts towards a budget."""
        return copied(self.cluster, meter=budget.meter)

    def beside(self, theirs: ComparedPurchase, ours: ComparedPurchase) -> ComparedPurchase:
        """A peer's record, measured against ours."""
        change = None
        if theirs.cost is not None and ours.cost is not None:
            change = theirs.cost / ours.cost - 1 if ours.cost else None if theirs.cost else 0.0
        return replace(theirs, change=change, better=self._is_better(theirs, ours))

    def _is_better(self, theirs: ComparedPurchase, ours: ComparedPurchase) -> bool:
        if theirs.real != ours.real:
            return theirs.real > ours.real
        if self.objective == Objective.NODES and theirs.nodes != ours.nodes:
            return theirs.nodes < ours.nodes
        if theirs.cost is None or ours.cost is None:
            return False
        one_more = NODE_SURCHARGE * min((each.price or 0 for each in self.offerings), default=0)
        return theirs.cost + one_more * theirs.nodes < ours.cost + one_more * ours.nodes

    @property
    def offerings(self) -> list[Offering]:
        """All that can be bought."""
        return [each for pool in self.catalogue.pools for each in pool.offerings]


def _same_market(catalogue: Catalogue, answer: Recommendation) -> Catalogue:
    """The catalogue as all look at it: without offerings that have no price, where prices decide."""
    if answer.objective != Objective.COST:
        return catalogue
    pools = tuple(
        replace(pool, offerings=tuple(each for each in pool.offerings if each.price is not None))
        for pool in catalogue.pools
    )
    return replace(catalogue, pools=tuple(pool for pool in pools if pool.offerings))


def _ours(request: Request, answer: Recommendation) -> ComparedPurchase:
    """What was answered, as a purchase."""
    offered = OfferingIndex(request.catalogue)
    bought = tuple((offered.of(each), each.increment) for each in answer.scale_up)
    return ComparedPurchase(
        who=OURS, bought=bought, cost=answer.cost, placed=answer.placed, left=answer.pods - answer.placed, change=0.0,
        follows=answer.binder == Binder.TUTTI,
    )  # fmt: skip


def _asked(peer: PeerModel, scene: _Scene, budget: WorkBudget) -> ComparedPurchase:
    """What a peer would buy, replayed; or why nothing is known of that."""
    if peer.by_price and scene.offerings and all(each.price is None for each in scene.offerings):
        return ComparedPurchase(who=peer.name, problem=NO_PRICES)
    try:
        purchase = peer.model(scene.copy(budget), scene.catalogue, scene.daemon_sets, budget)
        if budget.is_exhausted():
            return ComparedPurchase(who=peer.name, problem=f"not done in {max(budget.seconds, 0.1):.1f} s")
        return scene.replayed(_theirs(peer, purchase, scene), budget)
    except Exception as error:  # whatever a model stumbles over, our answer is not lost for it
        said = f": {error}" if str(error) else ""
        return ComparedPurchase(who=peer.name, problem=f"the model failed ({type(error).__name__}{said})")


def _theirs(peer: PeerModel, purchase: Purchase, scene: _Scene) -> ComparedPurchase:
    """A peer's purchase; what it does about pods that do not wait here does not count."""
    counts = Counter(id(offering) for offering, _ in purchase.nodes)
    bought = tuple((each, counts[id(each)]) for each in scene.offerings if id(each) in counts)
    left = len(scene.pending.intersection(purchase.left))
    prices = [offering.price for offering, _ in purchase.nodes]
    known = [price for price in prices if price is not None]
    cost = sum(known) if len(known) == len(prices) else None
    placed = scene.promised + len(scene.pending) - left
    return ComparedPurchase(who=peer.name, bought=bought, cost=cost, placed=placed, left=left)
