"""The cluster once a recommendation has been followed: the new nodes have joined, and pods are where they go.

Contract: the picture is made anew, the nodes join it under the names that the recommendation gives them, and the pods
are placed: by the engine as kube-scheduler would, or on the nodes that the recommendation names when Tutti binds.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from msgspec.structs import replace

from tutti.cluster.edits import Bind
from tutti.cluster.work.meter import Meter
from tutti.engine.session.plan import Bound, GangPlan, Plan, Turn, Unschedulable
from tutti.engine.session.queue_order import sort_into_turns
from tutti.engine.session.schedule import schedule
from tutti.market.offerings import Catalogue, Offering
from tutti.market.planning_cluster import PlanningCluster
from tutti.recommend.records.new_nodes import NewNode, ScaleUp
from tutti.recommend.records.recommendation import Recommendation
from tutti.recommend.records.request import Binder, Request
from tutti.recommend.records.scale_ups import ScaleUpKey, in_order
from tutti.recommend.request_cluster import planning_cluster


class ClusterAfterPurchase(NamedTuple):
    """The plan that places the pods, on the picture as it leaves it."""

    plan: Plan
    planning: PlanningCluster
    queue: list[Turn]
    """Who waited before anything was done, in order."""


def settle(answer: Recommendation, request: Request, *, meter: Meter | None = None) -> ClusterAfterPurchase:
    """Buy what is recommended, and place the pods."""
    planning = planning_cluster(request, meter=meter)
    queue = _queue(planning)
    before = _bound(planning, planning.promised)
    gangs = _gangs(planning, before, ())
    now = planning.schedule_now() if answer.binder == Binder.KUBE_SCHEDULER else None
    offered = OfferingIndex(request.catalogue)
    for node in answer.nodes:
        planning.join(offered.of(node), node.name)
    if now is None:
        return ClusterAfterPurchase(_followed(answer, planning), planning, queue)
    then = schedule(planning.cluster, planning.pending, planning.profile, preemption=False)
    gangs = _both(_both(gangs, now.gangs), then.gangs)
    plan = Plan.of((*before, *now.binds, *then.binds), (), then.unschedulable, planning.not_considered, gangs=gangs)
    return ClusterAfterPurchase(plan, planning, queue)


def _queue(planning: PlanningCluster) -> list[Turn]:
    """The turns of all pods that wait, those that were promised a node included."""
    pods = [*planning.promised, *planning.pending]
    found, _ = sort_into_turns(planning.cluster, planning.gangs, pods, profile=planning.profile)
    return [turn for turn in found if not turn.surplus]


def _both(now: Iterable[GangPlan], then: Iterable[GangPlan]) -> list[GangPlan]:
    """What becomes of gangs in two plans, one after the other."""
    found = {each.gang: each for each in now}
    for each in then:
        first = found.get(each.gang)
        if first is not None:
            each = replace(each, running=first.running, placed=first.placed + each.placed)
        found[each.gang] = each
    return list(found.values())


class OfferingIndex:
    """What can be bought, by what new nodes say of themselves.

    Nodes that do not name a template, or one that is not there, are of the first offering with their pool, zone, type
    and capacity type.
    """

    def __init__(self, catalogue: Catalogue) -> None:
        self._found: dict[ScaleUpKey, Offering] = {}
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


def _followed(answer: Recommendation, planning: PlanningCluster) -> Plan:
    """The plan that puts every pod where the recommendation says."""
    cluster = planning.cluster
    where = dict(_places(answer))
    binds = _bound(planning, {pod: where[pod] for pod in (*planning.promised, *planning.pending) if pod in where})
    for each in binds:
        if each.pod not in planning.promised:
            cluster.apply(Bind(each.pod, each.node))
    left = [
        Unschedulable(
            pod=each.pod, message=each.reason, priority=cluster.pod(each.pod).spec.priority or 0, gang=each.gang
        )
        for each in answer.left
    ]
    return Plan.of(binds, (), left, planning.not_considered, gangs=_gangs(planning, binds, left))


def _bound(planning: PlanningCluster, where: Mapping[str, str]) -> list[Bound]:
    cluster = planning.cluster
    return [
        Bound(
            pod=pod,
            node=node,
            priority=cluster.pod(pod).spec.priority or 0,
            gang=planning.gangs.key_of(cluster.pod_row(pod)),
        )
        for pod, node in where.items()
    ]


def _gangs(planning: PlanningCluster, binds: Iterable[Bound], left: Iterable[Unschedulable]) -> list[GangPlan]:
    """What becomes of the gangs of these pods, once those that are bound are on their nodes."""
    placed = Counter(each.gang for each in binds if each.gang is not None)
    why: dict[str, str] = {}
    for each in left:
        if each.gang is not None:
            why.setdefault(each.gang, each.message)
    pods, found = planning.cluster.pods, []
    for key in dict.fromkeys((*placed, *why)):
        gang, rows = planning.gangs.gang(key), planning.gangs.rows(key)
        on_nodes = [row for row in rows if pods.node[row] >= 0 and not pods.terminating[row]]
        priority = gang.priority if gang.priority is not None else int(pods.priority[rows].max())
        running = len(on_nodes) - placed[key]
        short = len(on_nodes) < gang.minimum
        found.append(
            GangPlan(
                gang=key,
                dialect=gang.dialect,
                minimum=gang.minimum,
                pods=len(rows),
                running=running,
                placed=placed[key],
                priority=priority,
                message=why.get(key, "") if short else "",
            )
        )
    return found


def _places(answer: Recommendation) -> Iterator[tuple[str, str]]:
    for node in answer.nodes:
        for pod in node.pods:
            yield pod, node.name
    for each in answer.on_existing:
        yield each.pod, each.node
