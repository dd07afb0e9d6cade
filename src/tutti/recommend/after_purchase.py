"""The cluster after a recommendation is carried out: the new nodes have joined, and the pods are placed.

Contract: `apply_recommendation` builds a new planning cluster, joins the new nodes under the names of the
recommendation, and places the pods. If kube-scheduler binds, the engine places them as kube-scheduler would; if Tutti
binds, every pod goes to the node that the recommendation names. The request's own cluster is only copied.
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
from tutti.recommend.records.scale_ups import ScaleUpKey, scale_up_key
from tutti.recommend.request_cluster import planning_cluster


class ClusterAfterPurchase(NamedTuple):
    """The planning cluster after a purchase, with the plan that placed its pods."""

    plan: Plan
    planning: PlanningCluster
    queue: list[Turn]
    """The turns of all pods that were pending before the purchase, in queue order."""


def apply_recommendation(
    answer: Recommendation, request: Request, *, meter: Meter | None = None
) -> ClusterAfterPurchase:
    """Return the cluster after the recommended nodes have joined and the pods are placed."""
    planning = planning_cluster(request, meter=meter)
    queue = _queue(planning)
    before = _bound(planning, planning.promised)
    gangs = _gangs(planning, before, ())
    plan_before = planning.schedule_now() if answer.binder == Binder.KUBE_SCHEDULER else None
    offerings = OfferingIndex(request.catalogue)
    for node in answer.nodes:
        planning.join(offerings.find(node), node.name)
    if plan_before is None:
        return ClusterAfterPurchase(_bind_as_recommended(answer, planning), planning, queue)
    plan_after = schedule(planning.cluster, planning.pending, planning.profile, preemption=False)
    gangs = _merge_gang_plans(_merge_gang_plans(gangs, plan_before.gangs), plan_after.gangs)
    plan = Plan.of(
        (*before, *plan_before.binds, *plan_after.binds),
        (),
        plan_after.unschedulable,
        planning.not_considered,
        gangs=gangs,
    )
    return ClusterAfterPurchase(plan, planning, queue)


def _queue(planning: PlanningCluster) -> list[Turn]:
    """Return the turns of all pending pods, including pods that already have a promised node."""
    pods = [*planning.promised, *planning.pending]
    found, _ = sort_into_turns(planning.cluster, planning.gangs, pods, profile=planning.profile)
    return [turn for turn in found if not turn.surplus]


def _merge_gang_plans(plan_before: Iterable[GangPlan], plan_after: Iterable[GangPlan]) -> list[GangPlan]:
    """Merge the gang records of two consecutive plans: pods placed by both plans are added up."""
    found = {each.gang: each for each in plan_before}
    for each in plan_after:
        first = found.get(each.gang)
        if first is not None:
            each = replace(each, running=first.running, placed=first.placed + each.placed)
        found[each.gang] = each
    return list(found.values())


class OfferingIndex:
    """Finds the offering of a new node or a scale-up.

    Without a template name, or with an unknown one, the first offering with the same pool, zone, instance type and
    capacity type counts.
    """

    def __init__(self, catalogue: Catalogue) -> None:
        self._offerings: dict[ScaleUpKey, Offering] = {}
        for pool in catalogue.pools:
            for each in pool.offerings:
                key = scale_up_key(each)
                self._offerings.setdefault(key, each)
                self._offerings.setdefault((*key[:4], ""), each)

    def find(self, node: NewNode | ScaleUp) -> Offering:
        """Return the offering that a new node or a scale-up is bought from; raise `KeyError` if there is none."""
        key = scale_up_key(node)
        found = self._offerings.get(key)
        return found if found is not None else self._offerings[*key[:4], ""]


def _bind_as_recommended(answer: Recommendation, planning: PlanningCluster) -> Plan:
    """Bind every pod to the node that the recommendation names, and return that plan."""
    cluster = planning.cluster
    nodes = dict(_places(answer))
    binds = _bound(planning, {pod: nodes[pod] for pod in (*planning.promised, *planning.pending) if pod in nodes})
    for each in binds:
        if each.pod not in planning.promised:
            cluster.apply(Bind(each.pod, each.node))
    unschedulable = [
        Unschedulable(
            pod=each.pod, message=each.reason, priority=cluster.pod(each.pod).spec.priority or 0, gang=each.gang
        )
        for each in answer.left
    ]
    return Plan.of(binds, (), unschedulable, planning.not_considered, gangs=_gangs(planning, binds, unschedulable))


def _bound(planning: PlanningCluster, nodes: Mapping[str, str]) -> list[Bound]:
    cluster = planning.cluster
    return [
        Bound(
            pod=pod,
            node=node,
            priority=cluster.pod(pod).spec.priority or 0,
            gang=planning.gangs.key_of(cluster.pod_row(pod)),
        )
        for pod, node in nodes.items()
    ]


def _gangs(planning: PlanningCluster, binds: Iterable[Bound], unschedulable: Iterable[Unschedulable]) -> list[GangPlan]:
    """Return a record for each gang of these pods, after the bound pods are on their nodes."""
    placed = Counter(each.gang for each in binds if each.gang is not None)
    reasons: dict[str, str] = {}
    for each in unschedulable:
        if each.gang is not None:
            reasons.setdefault(each.gang, each.message)
    pods, found = planning.cluster.pods, []
    for key in dict.fromkeys((*placed, *reasons)):
        state = planning.gangs.state(key, ())
        before = state.without(pods.row_of[each.pod] for each in binds if each.gang == key)
        found.append(
            GangPlan(
                gang=key,
                dialect=state.gang.dialect,
                minimum=state.gang.minimum,
                pods=len(planning.gangs.rows(key)),
                running=len(before.running),
                missing=before.need().least,
                placed=placed[key],
                priority=planning.gangs.priority(key),
                message=reasons.get(key, "") if state.is_short else "",
            )
        )
    return found


def _places(answer: Recommendation) -> Iterator[tuple[str, str]]:
    for node in answer.nodes:
        for pod in node.pods:
            yield pod, node.name
    for each in answer.on_existing:
        yield each.pod, each.node
