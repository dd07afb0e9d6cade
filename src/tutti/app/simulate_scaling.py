"""The use case `scalesim`: ask a recommender, add the new nodes, schedule again, round by round.

Contract: `simulate_scaling` builds the cluster of a snapshot, schedules its pending pods, and asks a recommender for
nodes until no pod is pending, an answer adds no node, or the maximum number of rounds is reached. The caller's `ask`
posts a snapshot and returns the answer. The snapshot's templates describe new nodes. The engine places pods as
kube-scheduler would, without evictions. Nodes that an answer would remove are reported and stay.
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
_MAX_NODES = 100_000


class SimulationResult(Result, frozen=True, kw_only=True):
    """The result of a simulation; its text is that of `tutti scalesim`."""

    simulation: Simulation
    currency: str

    def text(self, *, wide: bool = False) -> str:
        """Return the start, every round, and the end."""
        return simulation_text(self.simulation)

    def data(self) -> dict[str, Any]:
        """Return the simulation as plain data, with every pod by name."""
        return simulation_data(self.simulation, self.currency)


def simulate_scaling(
    source: Source,
    request: Request,
    ask: AskRecommender,
    *,
    rounds: int,
    tell: Callable[[int], None] = lambda _: None,
) -> SimulationResult:
    """Simulate all rounds of a snapshot; `tell` receives the number of every finished round."""
    run = _SimulationRun(source, request)
    start = _start(request, run.schedule_start(), run.waiting)
    finished_rounds: list[SimulationRound] = []
    while run.waiting and len(finished_rounds) < rounds:
        finished_rounds.append(run.round(len(finished_rounds) + 1, ask(run.snapshot.body)))
        tell(len(finished_rounds))
        if not finished_rounds[-1].joined:
            break
    is_cut = bool(run.waiting and len(finished_rounds) == rounds and finished_rounds[-1].joined)
    simulation = Simulation(start, tuple(finished_rounds), run.plan.unschedulable, run.plan.not_considered, is_cut)
    return SimulationResult(simulation=simulation, currency=request.catalogue.currency)


class _SimulationRun:
    """The cluster of a simulation, and the snapshot with the same content."""

    def __init__(self, source: Source, request: Request) -> None:
        self._request = request
        self._planning, self.snapshot = planning_cluster(request), SimulationSnapshot(source)
        self._offerings = OfferingIndex(request.catalogue)
        self._counts: dict[str, int] = {}
        self.plan = self._schedule()

    @property
    def waiting(self) -> int:
        """The number of pods that wait for a node."""
        return len(self.plan.unschedulable) + len(self.plan.nominated)

    def schedule_start(self) -> dict[str, str]:
        """Bind the pods placed before the first round in the snapshot; return their nodes by pod key."""
        bound = {obj.key for obj in self._request.objects if isinstance(obj, Pod) and obj.spec.node_name}
        placed = {key: node for key, node in self._bindings().items() if key not in bound}
        self.snapshot.bind(placed)
        return placed

    def round(self, number: int, answer: RecommenderAnswer) -> SimulationRound:
        """Add the nodes of an answer, and schedule again."""
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
        offering = _offering(bought, self._offerings)
        self._planning.join(offering, name)
        cluster = self._planning.cluster
        self.snapshot.join(node_of(cluster, name), pods_on(cluster, name))
        return JoinedNode(name, offering)

    def _names(self, bought: RecommenderScaleUp) -> list[str]:
        """Return the names of new nodes: those of the answer that are not taken, or generated names."""
        if bought.increment_by > _MAX_NODES:
            raise TuttiError(f"the answer adds {bought.increment_by:,} nodes at once, more than {_MAX_NODES:,}")
        offering = _offering(bought, self._offerings)
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


def _offering(bought: RecommenderScaleUp, offerings: OfferingIndex) -> Offering:
    """Return the offering that an answer buys: answers name no template, and a pool has one template for each zone."""
    pool, zone, type_name = bought.node_pool_name, bought.zone, bought.instance_type
    try:
        return offerings.find(
            ScaleUp(
                pool=pool, zone=zone, instance_type=type_name, capacity_type=ON_DEMAND, increment=bought.increment_by,
                node_names=(),
            )
        )  # fmt: skip
    except KeyError:
        raise TuttiError(
            f"the answer adds nodes of pool {pool or '(none)'} in {zone or '(no zone)'} "
            f"of type {type_name or '(none)'}, which the snapshot does not have"
        ) from None
