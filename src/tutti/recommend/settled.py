"""The cluster once a recommendation has been followed: the new nodes have joined, and pods are where they go.

Contract: the picture is made anew, the nodes join it under the names that the recommendation gives them, and the pods
are placed: by the engine as kube-scheduler would, or on the nodes that the recommendation names when Tutti binds.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from tutti.cluster.edits import Bind
from tutti.cluster.meter import Meter
from tutti.engine.plan import Bound, Plan, Unschedulable
from tutti.engine.schedule import schedule
from tutti.engine.turns import Turn
from tutti.recommend.answer import Recommendation
from tutti.recommend.bought import NewNode, ScaleUp
from tutti.recommend.merge import Kind, in_order
from tutti.recommend.offerings import Catalogue, Offering
from tutti.recommend.picture import Picture, initialise
from tutti.recommend.request import Binder, Request


class Settled(NamedTuple):
    """The plan that places the pods, on the picture as it leaves it."""

    plan: Plan
    picture: Picture
    queue: list[Turn]


def settle(answer: Recommendation, request: Request, *, meter: Meter | None = None) -> Settled:
    """Buy what is recommended, and place the pods."""
    picture = initialise(request, meter=meter)
    now = picture.schedule_now() if answer.binder == Binder.KUBE_SCHEDULER else None
    offered = Offered(request.catalogue)
    for node in answer.nodes:
        picture.join(offered.of(node), node.name)
    queue = [turn for turn in picture.turns if not turn.surplus]
    if now is None:
        return Settled(_followed(answer, picture), picture, queue)
    then = schedule(picture.cluster, picture.pending, picture.profile, preemption=False)
    gangs = {each.gang: each for each in (*now.gangs, *then.gangs)}
    plan = Plan.of(
        (*now.binds, *then.binds), (), then.unschedulable, picture.not_considered, gangs=tuple(gangs.values())
    )
    return Settled(plan, picture, queue)


class Offered:
    """What can be bought, by what new nodes say of themselves.

    Nodes that do not name a template, or one that is not there, are of the first offering with their pool, zone, type
    and capacity type.
    """

    def __init__(self, catalogue: Catalogue) -> None:
        self._found: dict[Kind, Offering] = {}
        for pool in catalogue.pools:
            for each in pool.offerings:
                key = in_order(each)
                self._found.setdefault(key, each)
                self._found.setdefault((*key[:4], ""), each)

    def of(self, bought: NewNode | ScaleUp) -> Offering:
        """The offering that nodes were bought by; `KeyError` if there is none."""
        key = in_order(bought)
        found = self._found.get(key)
        return found if found is not None else self._found[*key[:4], ""]


def _followed(answer: Recommendation, picture: Picture) -> Plan:
    """The plan that puts every pod where the recommendation says."""
    cluster = picture.cluster
    where = dict(_places(answer))
    order = [*picture.promised, *picture.pending]
    binds = [
        Bound(pod=pod, node=where[pod], priority=cluster.pod(pod).spec.priority or 0) for pod in order if pod in where
    ]
    for each in binds:
        if each.pod not in picture.promised:
            cluster.apply(Bind(each.pod, each.node))
    left = [
        Unschedulable(pod=each.pod, message=each.reason, priority=cluster.pod(each.pod).spec.priority or 0)
        for each in answer.left
    ]
    return Plan.of(binds, (), left, picture.not_considered)


def _places(answer: Recommendation) -> Iterator[tuple[str, str]]:
    for node in answer.nodes:
        for pod in node.pods:
            yield pod, node.name
    for each in answer.on_existing:
        yield each.pod, each.node
