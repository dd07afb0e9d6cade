"""The rounds of a scaling simulation: ask, let the nodes join, schedule again.

Contract: `play` builds the picture of a snapshot, schedules what can be scheduled, and asks a recommender about the
rest until nobody waits, the answer buys nothing, or the rounds are used up. New nodes are what the snapshot's templates
say; pods are placed by the engine as kube-scheduler would, and nobody is evicted. What an answer says can go is told,
not taken away.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from tutti.app.scaling_story_snapshot import Story
from tutti.cli.scalesim.client import Answer, Bought
from tutti.cluster.node_edits import node_of, pods_on
from tutti.engine.session.plan import NotConsidered, Plan, Unschedulable
from tutti.engine.session.schedule import schedule
from tutti.exceptions import TuttiError
from tutti.kube.objects import Node, Pod, PriorityClass
from tutti.kube.reading.sources import Source
from tutti.market.offerings import Offering
from tutti.market.planning_cluster import PlanningCluster
from tutti.market.price_book import ON_DEMAND
from tutti.recommend.after_purchase import Offered
from tutti.recommend.records.new_nodes import ScaleUp
from tutti.recommend.records.request import Request
from tutti.recommend.request_cluster import planning_cluster

Ask = Callable[[bytes], Answer]
_MOST_NODES = 100_000


class Joined(NamedTuple):
    """A node that joined."""

    name: str
    offering: Offering


class Round(NamedTuple):
    """One question, and what came of its answer."""

    number: int
    answer: Answer
    joined: list[Joined]
    placed: dict[str, str]
    """Pods that got a node, with its name."""
    waiting: int
    """How many pods wait after it."""


class Numbers(NamedTuple):
    """What the picture holds at first."""

    namespaces: int
    priority_classes: int
    nodes: int
    pods: int
    bound: int


class Outcome(NamedTuple):
    """The whole story."""

    numbers: Numbers
    placed: dict[str, str]
    """Pods that got a node before anything was bought."""
    waiting: int
    """How many waited then."""
    rounds: list[Round]
    left: list[Unschedulable]
    not_considered: list[NotConsidered]
    picture: PlanningCluster
    stopped: bool
    """Whether the rounds were used up."""

    @property
    def joined(self) -> list[Joined]:
        """All nodes that joined."""
        return [each for round_ in self.rounds for each in round_.joined]

    @property
    def cost(self) -> int | None:
        """What all new nodes cost, in nano-dollars an hour; None when a price is not known."""
        prices = [each.offering.price for each in self.joined]
        return None if any(price is None for price in prices) else sum(price or 0 for price in prices)


def play(source: Source, request: Request, ask: Ask, *, rounds: int, tell: Callable[[Round], None]) -> Outcome:
    """Play the whole story of a snapshot; `tell` is told every round."""
    numbers = _numbers(request)
    bound = {obj.key for obj in request.objects if isinstance(obj, Pod) and obj.spec.node_name}
    picture, story = planning_cluster(request), Story(source)
    offered = Offered(request.catalogue)
    plan = schedule(picture.cluster, None, picture.profile, preemption=False)
    placed = {key: node for key, node in _bindings(picture).items() if key not in bound}
    story.bind(placed)
    waiting, stopped = _waiting(plan), False
    played: list[Round] = []
    counts: dict[str, int] = {}
    while plan.unschedulable or plan.nominated:
        if len(played) == rounds:
            stopped = True
            break
        before = _bindings(picture)
        answer = ask(story.body)
        joined = [
            _join(bought, name, picture, offered, story=story)
            for bought in answer.recommendation.scale_up
            for name in _names(bought, picture, offered, counts=counts)
        ]
        daemons = {pod.key for each in joined for pod in pods_on(picture.cluster, each.name)}
        if joined:
            plan = schedule(picture.cluster, None, picture.profile, preemption=False)
        got = {key: node for key, node in _bindings(picture).items() if key not in before and key not in daemons}
        story.bind(got)
        played.append(Round(len(played) + 1, answer, joined, got, _waiting(plan)))
        tell(played[-1])
        if not joined:
            break
    left = list(plan.unschedulable)
    return Outcome(numbers, placed, waiting, played, left, list(plan.not_considered), picture, stopped)


def _numbers(request: Request) -> Numbers:
    pods = [obj for obj in request.objects if isinstance(obj, Pod)]
    return Numbers(
        namespaces=len({pod.metadata.namespace for pod in pods}),
        priority_classes=sum(isinstance(obj, PriorityClass) for obj in request.objects),
        nodes=sum(isinstance(obj, Node) for obj in request.objects),
        pods=len(pods),
        bound=sum(bool(pod.spec.node_name) for pod in pods),
    )


def _waiting(plan: Plan) -> int:
    return len(plan.unschedulable) + len(plan.nominated)


def _bindings(picture: PlanningCluster) -> dict[str, str]:
    pods = picture.cluster.pods
    return {key: node for key, row in pods.row_of.items() if (node := pods.node_names[row]) is not None}


def _offering(bought: Bought, offered: Offered) -> Offering:
    """What an answer buys; it names no template, and a pool of a snapshot has one for each zone."""
    pool, zone, kind = bought.node_pool_name, bought.zone, bought.instance_type
    try:
        return offered.of(
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


def _names(bought: Bought, picture: PlanningCluster, offered: Offered, *, counts: dict[str, int]) -> list[str]:
    """The names of new nodes: those of the answer as far as they are free, made up otherwise."""
    if bought.increment_by > _MOST_NODES:
        raise TuttiError(f"the answer adds {bought.increment_by:,} nodes at once, more than {_MOST_NODES:,}")
    offering = _offering(bought, offered)
    names: list[str] = []
    for number in range(bought.increment_by):
        name = bought.node_names[number] if number < len(bought.node_names) else ""
        while not name or name in picture.cluster.nodes.row_of or name in names:
            name = picture.name_of(offering, counts)
        names.append(name)
    return names


def _join(bought: Bought, name: str, picture: PlanningCluster, offered: Offered, *, story: Story) -> Joined:
    offering = _offering(bought, offered)
    picture.join(offering, name)
    story.join(node_of(picture.cluster, name), pods_on(picture.cluster, name))
    return Joined(name, offering)
