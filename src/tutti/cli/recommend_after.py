"""The cluster after a purchase: who is where once the new nodes have joined.

Contract: the picture is made anew, the nodes join it under the names that the recommendation gives them, and the pods
are placed: by the engine as kube-scheduler would, or on the nodes that the recommendation names when Tutti binds. What
is printed is what `tutti schedule` would print then.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from tutti.cli.gang_table import GangTable, has_gangs
from tutti.cli.plan_table import plan_table, summary
from tutti.cluster.edits import Bind
from tutti.engine.plan import Bound, Plan, Unschedulable
from tutti.engine.schedule import schedule
from tutti.engine.turns import Turn
from tutti.recommend.answer import Recommendation
from tutti.recommend.offerings import Offering
from tutti.recommend.picture import Picture, initialise
from tutti.recommend.request import Binder, Request


class After(NamedTuple):
    """The plan that places the pods, on the picture as it leaves it."""

    plan: Plan
    picture: Picture
    queue: list[Turn]

    def text(self, *, wide: bool) -> str:
        """The table and its summary."""
        cluster = self.picture.cluster
        if has_gangs(self.plan):
            gangs = GangTable(self.plan, cluster)
            lines, total = gangs.text(self.queue, wide=wide, namespaced=None), gangs.summary()
        else:
            lines, total = plan_table(self.plan, cluster, wide=wide, namespaced=None), summary(self.plan)
        return f"{lines}\n\n{total}" if lines else total


def after_purchase(answer: Recommendation, request: Request) -> After:
    """Buy what is recommended, and place the pods."""
    picture = initialise(request)
    offerings = _offerings(request)
    for node in answer.nodes:
        picture.join(offerings[node.pool, node.zone, node.instance_type, node.capacity_type], node.name)
    queue = [turn for turn in picture.turns if not turn.surplus]
    if answer.binder == Binder.TUTTI:
        return After(_followed(answer, picture), picture, queue)
    return After(schedule(picture.cluster, None, picture.profile, preemption=False), picture, queue)


def _offerings(request: Request) -> dict[tuple[str, str, str, str], Offering]:
    """What can be bought, by what a new node says of itself; of several that say the same, the first."""
    found: dict[tuple[str, str, str, str], Offering] = {}
    for pool in request.catalogue.pools:
        for each in pool.offerings:
            found.setdefault((each.pool, each.zone, each.instance_type, each.capacity_type), each)
    return found


def _followed(answer: Recommendation, picture: Picture) -> Plan:
    """The plan that puts every pod where the recommendation says."""
    cluster = picture.cluster
    where = dict(_places(answer))
    order = [*picture.promised, *picture.pending]
    binds = [
        Bound(pod=pod, node=where[pod], priority=cluster.pod(pod).spec.priority or 0) for pod in order if pod in where
    ]
    for each in binds:
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
