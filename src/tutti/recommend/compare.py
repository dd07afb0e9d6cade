"""Compare our purchase with the purchases of other autoscalers (peers) for the same request.

Contract: pure except for the clock of the budget; every peer gets the same share of the budget. The first record is
ours; the peers follow in a fixed order. Every purchase, ours included, is replayed: its nodes join the cluster, and
kube-scheduler binds the pods. If a peer cannot handle the request or exceeds its budget, its record says so; no
exception of a peer is raised. All purchases are made for the same pods and from the same offerings: pods that no
scheduler tries to place, and offerings without a price where prices decide, are left out for all.
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
from tutti.recommend.request_cluster import copy_cluster, planning_cluster

OURS = "tutti"
NO_PRICES = "it chooses by price, and no price is known"


class ComparedPurchase(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One purchase, ours or a peer's, with its comparison to ours."""

    who: str
    """`OURS`, or the name of a peer in `PEERS`."""
    problem: str = ""
    """Why there is no purchase; then all other fields are unset."""
    bought: tuple[tuple[Offering, int], ...] = ()
    """Offerings with the number of nodes bought, in the order of the catalogue."""
    cost: int | None = None
    """The price of all nodes in nano-dollars an hour; None if a price is not known."""
    placed: int = 0
    """The number of pods that get a node according to the program that made the purchase."""
    left: int = 0
    """The number of pods that stay pending according to the same program."""
    kept: int | None = None
    """The number of pods that get a node when kube-scheduler binds; None if the budget did not allow a replay."""
    follows: bool = False
    """Whether pods go where the plan says (Tutti binds), whatever kube-scheduler would do."""
    change: float | None = None
    """The extra cost relative to our purchase: 0.11 is 11 % more."""
    better: bool = False
    """Whether this purchase is better than ours: it gives more pods a node, or as many at less cost by the objective.

    As in our own search, every node adds a small cost: nine nodes that save a cent over two nodes are not better.
    """

    @property
    def nodes(self) -> int:
        """The number of nodes bought."""
        return sum(count for _, count in self.bought)

    @property
    def holds(self) -> bool | None:
        """Whether kube-scheduler places as many pods as the purchase was made for; None if unknown."""
        return None if self.kept is None else self.kept >= self.placed

    @property
    def real(self) -> int:
        """The number of pods that get a node in the end, as far as that is known."""
        return self.placed if self.kept is None or self.follows else min(self.placed, self.kept)


Model = Callable[[Cluster, Catalogue, Sequence[DaemonSet], WorkBudget], Purchase]
"""Returns a purchase for the pending pods of a cluster; the cluster stays unchanged."""


class PeerModel(NamedTuple):
    """The model of another autoscaler."""

    name: str
    model: Model
    by_price: bool = False
    """Whether the model needs prices to choose."""


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
    """Return our purchase and the purchase of each peer, all replayed and compared with ours."""
    tell = tell or (lambda _: None)
    pending = frozenset(planning_cluster(request, meter=budget.meter).pending)
    shared = _ComparisonInput(
        copy_cluster(request.cluster, (Remove(Pod.KIND, each.pod) for each in not_considered(request))),
        _shared_catalogue(request.catalogue, answer),
        request.daemon_sets,
        pending,
        answer.pods - len(pending),
        answer.objective,
    )
    tell("replaying our purchase")
    ours = shared.with_replay(_our_record(request, answer), budget)
    records = [ours]
    for peer in peers:
        tell(f"asking {peer.name}")
        peer_budget = budget.share(1.0).limited_to(budget.limit // len(peers))
        peer_record = _peer_purchase(peer, shared, peer_budget)
        records.append(peer_record if peer_record.problem else shared.with_difference(peer_record, ours))
    return tuple(records)


class _ComparisonInput(NamedTuple):
    """The pods and offerings that all purchases are made for."""

    cluster: Cluster
    """The cluster without pods that no scheduler tries to place."""
    catalogue: Catalogue
    """The catalogue without unpriced offerings, where prices decide."""
    daemon_sets: Sequence[DaemonSet]
    pending: frozenset[str]
    promised: int
    """The number of pods that have a promised node already; they count as placed."""
    objective: str

    def with_replay(self, purchase: ComparedPurchase, budget: WorkBudget) -> ComparedPurchase:
        """Return the record with the number of pods that kube-scheduler places, if the budget allows a replay."""
        if budget.is_exhausted():
            return purchase
        kept = replay_purchase(PlanningCluster(self.copy(budget), self.daemon_sets), purchase.bought)
        return replace(purchase, kept=self.promised + kept)

    def copy(self, budget: WorkBudget) -> Cluster:
        """Return a copy of the cluster whose work counts towards a budget."""
        return copy_cluster(self.cluster, meter=budget.meter)

    def with_difference(self, peer_record: ComparedPurchase, ours: ComparedPurchase) -> ComparedPurchase:
        """Return a peer's record with its difference to ours."""
        change = None
        if peer_record.cost is not None and ours.cost is not None:
            change = peer_record.cost / ours.cost - 1 if ours.cost else None if peer_record.cost else 0.0
        return replace(peer_record, change=change, better=self._is_better(peer_record, ours))

    def _is_better(self, peer_record: ComparedPurchase, ours: ComparedPurchase) -> bool:
        if peer_record.real != ours.real:
            return peer_record.real > ours.real
        if self.objective == Objective.NODES and peer_record.nodes != ours.nodes:
            return peer_record.nodes < ours.nodes
        if peer_record.cost is None or ours.cost is None:
            return False
        one_more = NODE_SURCHARGE * min((each.price or 0 for each in self.offerings), default=0)
        return peer_record.cost + one_more * peer_record.nodes < ours.cost + one_more * ours.nodes

    @property
    def offerings(self) -> list[Offering]:
        """All offerings of the catalogue."""
        return [each for pool in self.catalogue.pools for each in pool.offerings]


def _shared_catalogue(catalogue: Catalogue, answer: Recommendation) -> Catalogue:
    """Return the catalogue for all purchases: without unpriced offerings, where prices decide."""
    if answer.objective != Objective.COST:
        return catalogue
    pools = tuple(
        replace(pool, offerings=tuple(each for each in pool.offerings if each.price is not None))
        for pool in catalogue.pools
    )
    return replace(catalogue, pools=tuple(pool for pool in pools if pool.offerings))


def _our_record(request: Request, answer: Recommendation) -> ComparedPurchase:
    """Return our recommendation as a purchase."""
    offered = OfferingIndex(request.catalogue)
    bought = tuple((offered.find(each), each.increment) for each in answer.scale_up)
    return ComparedPurchase(
        who=OURS, bought=bought, cost=answer.cost, placed=answer.placed, left=answer.pods - answer.placed, change=0.0,
        follows=answer.binder == Binder.TUTTI,
    )  # fmt: skip


def _peer_purchase(peer: PeerModel, shared: _ComparisonInput, budget: WorkBudget) -> ComparedPurchase:
    """Return the replayed purchase of a peer, or a record with the problem."""
    if peer.by_price and shared.offerings and all(each.price is None for each in shared.offerings):
        return ComparedPurchase(who=peer.name, problem=NO_PRICES)
    try:
        purchase = peer.model(shared.copy(budget), shared.catalogue, shared.daemon_sets, budget)
        if budget.is_exhausted():
            return ComparedPurchase(who=peer.name, problem=f"not done in {max(budget.seconds, 0.1):.1f} s")
        return shared.with_replay(_peer_record(peer, purchase, shared), budget)
    except Exception as error:  # an exception in a model must not lose our recommendation
        detail = f": {error}" if str(error) else ""
        return ComparedPurchase(who=peer.name, problem=f"the model failed ({type(error).__name__}{detail})")


def _peer_record(peer: PeerModel, purchase: Purchase, shared: _ComparisonInput) -> ComparedPurchase:
    """Return a peer's purchase as a record; only pods that are pending here count."""
    counts = Counter(id(offering) for offering, _ in purchase.nodes)
    bought = tuple((each, counts[id(each)]) for each in shared.offerings if id(each) in counts)
    left = len(shared.pending.intersection(purchase.left))
    prices = [offering.price for offering, _ in purchase.nodes]
    known_prices = [price for price in prices if price is not None]
    cost = sum(known_prices) if len(known_prices) == len(prices) else None
    placed = shared.promised + len(shared.pending) - left
    return ComparedPurchase(who=peer.name, bought=bought, cost=cost, placed=placed, left=left)
