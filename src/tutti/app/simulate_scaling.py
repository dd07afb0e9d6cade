"""The use case `scalesim`: ask a recommender, let the new nodes join, schedule again, round by round.

Contract: `simulate_scaling` builds the cluster of a snapshot, schedules what can be scheduled, and asks a recommender
about the rest until no pod waits, the answer buys nothing, or the rounds are used up. How the recommender is reached is
the caller's business: `ask` posts a snapshot. New nodes are what the snapshot's templates say; pods are placed by the
engine as kube-scheduler would, and none is evicted. Nodes that could go, according to an answer, are reported and stay.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tutti.app.result import Result
from tutti.app.schedule import place_pending
from tutti.app.simulation_snapshot import SimulationSnapshot
from tutti.cluster.node_edits import node_of, pods_on
from tutti.engine.session.plan import Plan
from tutti.exceptions import TuttiError
from tutti.kube.objects import Node, Pod, PriorityClass
from tutti.kube.reading.sources import Source
from tutti.market.offerings import Offering
from tutti.market.price_book import ON_DEMAND
from tutti.present.scaling_simulation_text import simulation_data, simulation_text
from tutti.recommend.after_purchase import OfferingIndex
from tutti.recommend.records.new_nodes import ScaleUp
from tutti.recommend.records.request import Request
from tutti.recommend.records.simulation import JoinedNode, Simulation, SimulationRound, SimulationStart
from tutti.recommend.request_cluster import planning_cluster
from tutti.wire.gardener.client_response import RecommenderAnswer, RecommenderScaleUp

AskRecommender = Callable[[bytes], RecommenderAnswer]
_MOST_NODES = 100_000


class SimulationResult(Result, frozen=True, kw_only=True):
    """A simulation; it prints as `tutti scalesim` does."""

    simulation: Simulation
    currency: str

    def text(self, *, wide: bool = False) -> str:
        """The start, every round, and the end."""
        return simulation_text(self.simulation)

    def data(self) -> dict[str, Any]:
        """The same with every pod by name."""
        return simulation_data(self.simulation, self.currency)


def simulate_scaling(
    source: Source,
    request: Request,
    ask: AskRecommender,
    *,
    rounds: int,
    tell: Callable[[int], None] = lambda _: None,
) -> SimulationResult:
    """Play all rounds of a snapshot; `tell` hears the number of every round that is over."""
    run = _Run(source, request)
    start = _start(request, run.schedule_start(), run.waiting)
    played: list[SimulationRound] = []
    while run.waiting and len(played) < rounds:
        played.append(run.round(len(played) + 1, ask(run.snapshot.body)))
        tell(len(played))
        if not played[-1].joined:
            break
    is_cut = bool(run.waiting and len(played) == rounds and played[-1].joined)
    simulation = Simulation(start, tuple(played), run.plan.unschedulable, run.plan.not_considered, is_cut)
    return SimulationResult(simulation=simulation, currency=request.catalogue.currency)


class _Run:
    """The cluster of a simulation, and the snapshot that says the same."""

    def __init__(self, source: Source, request: Request) -> None:
        self._request = request
        self._planning, self.snapshot = planning_cluster(request), SimulationSnapshot(source)
        self._offered = OfferingIndex(request.catalogue)
        self._counts: dict[str, int] = {}
        self.plan = self._schedule()

    @property
    def waiting(self) -> int:
        """How many pods wait for a node."""
        return len(self.plan.unschedulable) + len(self.plan.nominated)

    def schedule_start(self) -> dict[str, str]:
        """The pods that got a node before the first round."""
        bound = {obj.key for obj in self._request.objects if isinstance(obj, Pod) and obj.spec.node_name}
        placed = {key: node for key, node in self._bindings().items() if key not in bound}
        self.snapshot.bind(placed)
        return placed

    def round(self, number: int, answer: RecommenderAnswer) -> SimulationRound:
        """Let the nodes of an answer join, and schedule again."""
        before = self._bindings()
        joined = tuple(
            self._join(bought, name) for bought in answer.recommendation.scale_up for name in self._names(bought)
        )
        daemons = {pod.key for each in joined for pod in pods_on(self._planning.cluster, each.name)}
        if joined:
            self.plan = self._schedule()
        placed = {key: node for key, node in self._bindings().items() if key not in before and key not in daemons}
        self.snapshot.bind(placed)
        scale_down = tuple(answer.recommendation.scale_down)
        return SimulationRound(number, answer.run_time, scale_down, joined, placed, self.waiting)

    def _schedule(self) -> Plan:
        return place_pending(self._planning.cluster, self._planning.profile, preemption=False)

    def _bindings(self) -> dict[str, str]:
        pods = self._planning.cluster.pods
        return {key: node for key, row in pods.row_of.items() if (node := pods.node_names[row]) is not None}

    def _join(self, bought: RecommenderScaleUp, name: str) -> JoinedNode:
        offering = _offering(bought, self._offered)
        self._planning.join(offering, name)
        cluster = self._planning.cluster
        self.snapshot.join(node_of(cluster, name), pods_on(cluster, name))
        return JoinedNode(name, offering)

    def _names(self, bought: RecommenderScaleUp) -> list[str]:
        """The names of new nodes: those of the answer as far as they are free, made up otherwise."""
        if bought.increment_by > _MOST_NODES:
            raise TuttiError(f"the answer adds {bought.increment_by:,} nodes at once, more than {_MOST_NODES:,}")
        offering = _offering(bought, self._offered)
        names: list[str] = []
        for number in range(bought.increment_by):
            name = bought.node_names[number] if number < len(bought.node_names) else ""
            while not name or name in self._planning.cluster.nodes.row_of or name in names:
                name = self._planning.name_of(offering, self._counts)
            names.append(name)
        return names


def _start(request: Request, placed: dict[str, str], waiting: int) -> SimulationStart:
    pods = [obj for obj in request.objects if isinstance(obj, Pod)]
    return SimulationStart(
        namespaces=len({pod.metadata.namespace for pod in pods}),
        priority_classes=sum(isinstance(obj, PriorityClass) for obj in request.objects),
        nodes=sum(isinstance(obj, Node) for obj in request.objects),
        pods=len(pods),
        bound=sum(bool(pod.spec.node_name) for pod in pods),
        placed=placed,
        waiting=waiting,
    )


def _offering(bought: RecommenderScaleUp, offered: OfferingIndex) -> Offering:
    """The offering that an answer buys; it names no template, and a pool of a snapshot has one for each zone."""
    pool, zone, kind = bought.node_pool_name, bought.zone, bought.instance_type
    try:
        return offered.find(
            ScaleUp(
                pool=pool, zone=zone, instance_type=kind, capacity_type=ON_DEMAND, increment=bought.increment_by,
                node_names=(),
            )
        )  # fmt: skip
    except KeyError:
        raise TuttiError(
            f"the answer adds nodes of pool {pool or '(none)'} in {zone or '(no zone)'} of type {kind or '(none)'}, "
            "which the snapshot does not have"
        ) from None
