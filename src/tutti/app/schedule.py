"""The use case `schedule`: place the pending pods of a cluster, and choose which of them to show.

Contract: pure. All pending pods are scheduled together, in the order of kube-scheduler's queue; `namespace` and
`selector` choose which of them the result shows, a gang with all of its pods if one of them is chosen. The cluster
that is given stands as the plan leaves it: give a copy to keep it. Scheduling itself is `engine.session`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tutti.app.label_query import parse_query
from tutti.app.loaded_cluster import LoadedCluster
from tutti.app.missing_kinds import missing_kinds
from tutti.app.result import Result
from tutti.cluster.cluster import Cluster
from tutti.engine.gangs.gang_state import Gangs
from tutti.engine.placement.profile import Profile
from tutti.engine.session.passes import pending_pods
from tutti.engine.session.plan import Bound, Eviction, GangPlan, Nominated, NotConsidered, Plan, Turn, Unschedulable
from tutti.engine.session.queue_order import not_considered, sort_into_turns
from tutti.engine.session.schedule import schedule
from tutti.kube.objects import Pod
from tutti.kube.selectors import Selector
from tutti.present.plan_table import NO_PENDING_PODS, plan_data, plan_names, plan_text


class ScheduleResult(Result, frozen=True, kw_only=True):
    """The plan for the pods that were chosen; it prints as the table of `tutti schedule`."""

    plan: Plan
    cluster: Cluster
    """As the plan leaves it."""
    queue: tuple[Turn, ...] = ()
    """The turns of gangs and single pods, in order; empty where there are no gangs."""

    @property
    def binds(self) -> tuple[Bound, ...]:
        """Pods that get a node."""
        return self.plan.binds

    @property
    def evictions(self) -> tuple[Eviction, ...]:
        """Pods that are evicted or moved, and for which pod or gang."""
        return self.plan.evictions

    @property
    def unschedulable(self) -> tuple[Unschedulable, ...]:
        """Pods that fit nowhere, with the reasons of the nodes."""
        return self.plan.unschedulable

    @property
    def nominated(self) -> tuple[Nominated, ...]:
        """Pods for which room is held until other pods have left."""
        return self.plan.nominated

    @property
    def not_considered(self) -> tuple[NotConsidered, ...]:
        """Pods that the scheduler does not try: gated ones, and those of other schedulers."""
        return self.plan.not_considered

    @property
    def gangs(self) -> tuple[GangPlan, ...]:
        """What becomes of each gang."""
        return self.plan.gangs

    @property
    def is_empty(self) -> bool:
        """Whether no pod was pending."""
        return not self.plan.counts["pending"]

    def text(self, *, wide: bool = False, namespaced: bool | None = None) -> str:
        """The table and its summary; namespaces have a column if asked for, or if several came up."""
        if self.is_empty:
            return NO_PENDING_PODS
        return plan_text(self.plan, self.cluster, self.queue, wide=wide, namespaced=namespaced)

    def names(self) -> str:
        """A line for each pod with its node, as `-o name` has it."""
        return plan_names(self.plan)

    def data(self) -> dict[str, Any]:
        """The plan as plain data."""
        return plan_data(self.plan)


def schedule_pods(
    loaded: LoadedCluster,
    profile: Profile | None = None,
    *,
    preemption: bool = True,
    consolidation: bool = False,
    namespace: str | None = None,
    selector: Selector | None = None,
) -> ScheduleResult:
    """Place all pending pods, and show those of a namespace with certain labels."""
    cluster = loaded.cluster
    profile = profile or Profile.default()
    waiting = [cluster.pod(key) for key in pending_pods(cluster)]
    chosen = {pod.key for pod in waiting if _is_shown(pod, namespace, selector)}
    queue = [turn for turn in _queue(cluster, waiting, profile) if not chosen.isdisjoint(turn.pods)]
    plan = place_pending(cluster, profile, preemption=preemption, consolidation=consolidation)
    as_input = {pod.key: pod for pod in loaded.input.pods}
    considered = [as_input.get(pod.key, pod) for pod in waiting if not_considered(pod, profile) is None]
    notes = missing_kinds(loaded.input, considered, evictions=len(plan.evictions))
    return ScheduleResult(plan=_only(plan, chosen, queue), cluster=cluster, queue=tuple(queue), notes=tuple(notes))


def place_pending(cluster: Cluster, profile: Profile, *, preemption: bool = True, consolidation: bool = False) -> Plan:
    """Place all pending pods: the one call of the scheduler in `app`. The cluster stands as the plan leaves it."""
    return schedule(cluster, profile=profile, preemption=preemption, consolidation=consolidation)


def pending_count(loaded: LoadedCluster) -> int:
    """How many pods have no node."""
    return len(pending_pods(loaded.cluster))


def selector_of(query: str | None) -> Selector | None:
    """The selector that a query in kubectl's words stands for."""
    return None if query is None else parse_query(query)


def _is_shown(pod: Pod, namespace: str | None, selector: Selector | None) -> bool:
    inside = not namespace or pod.key.partition("/")[0] == namespace
    return inside and (selector is None or selector.matches(pod.metadata.labels or {}))


def _queue(cluster: Cluster, waiting: Sequence[Pod], profile: Profile) -> list[Turn]:
    """The turns of gangs and of single pods, in order; none where there are no gangs."""
    if not cluster.groups.keys:
        return []
    found, _ = sort_into_turns(cluster, Gangs(cluster), [pod.key for pod in waiting], profile=profile)
    return [turn for turn in found if not turn.surplus]


def _only(plan: Plan, pods: set[str], queue: Sequence[Turn]) -> Plan:
    """The part of a plan that is about these pods and the gangs of these turns, with the evictions they cause."""
    gangs = {turn.gang for turn in queue if turn.gang is not None}
    pods = pods.union(*(turn.pods for turn in queue))
    return Plan.of(
        (each for each in plan.binds if each.pod in pods),
        (each for each in plan.evictions if each.by in pods or each.by in gangs),
        (each for each in plan.unschedulable if each.pod in pods),
        (each for each in plan.not_considered if each.pod in pods),
        (each for each in plan.nominated if each.pod in pods),
        (each for each in plan.gangs if each.gang in gangs),
    )
