"""The use case `schedule`: place the pending pods of a cluster, and choose which of them to show.

Contract: pure. All pending pods are scheduled together, in the order of kube-scheduler's queue. `namespace` and
`selector` choose the pods that the result shows; if they choose one pod of a gang, the whole gang is shown. The cluster
is left as the plan changes it: pass a copy to keep it. `engine.session` does the scheduling.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tutti.app.label_query import parse_query
from tutti.app.loaded_cluster import LoadedCluster
from tutti.app.missing_kinds import missing_kinds
from tutti.app.result import Result
from tutti.cluster.cluster import Cluster
from tutti.engine.gangs.cluster_gangs import Gangs
from tutti.engine.placement.profile import Profile
from tutti.engine.session.passes import pending_pods
from tutti.engine.session.plan import Bound, Eviction, GangPlan, Nominated, NotConsidered, Plan, Turn, Unschedulable
from tutti.engine.session.queue_order import not_considered, sort_into_turns
from tutti.engine.session.schedule import schedule
from tutti.kube.objects import Pod
from tutti.kube.selectors import Selector
from tutti.present.plan_table import NO_PENDING_PODS, plan_data, plan_names, plan_text


class ScheduleResult(Result, frozen=True, kw_only=True):
    """The plan for the shown pods; its text is the table of `tutti schedule`."""

    plan: Plan
    cluster: Cluster
    """The cluster after the plan."""
    queue: tuple[Turn, ...] = ()
    """The turns of gangs and single pods, in order; empty for a cluster without gangs."""

    @property
    def binds(self) -> tuple[Bound, ...]:
        """Pods that get a node."""
        return self.plan.binds

    @property
    def evictions(self) -> tuple[Eviction, ...]:
        """Pods that are evicted or moved, each with the pod or gang that needs the room."""
        return self.plan.evictions

    @property
    def unschedulable(self) -> tuple[Unschedulable, ...]:
        """Pods that fit on no node, with the reasons of the nodes."""
        return self.plan.unschedulable

    @property
    def nominated(self) -> tuple[Nominated, ...]:
        """Pods for which room is held until other pods have left."""
        return self.plan.nominated

    @property
    def not_considered(self) -> tuple[NotConsidered, ...]:
        """Pods that the scheduler does not try: gated, terminating, or for another scheduler."""
        return self.plan.not_considered

    @property
    def gangs(self) -> tuple[GangPlan, ...]:
        """What the plan does with each gang."""
        return self.plan.gangs

    @property
    def is_empty(self) -> bool:
        """Whether no pod was pending."""
        return not self.plan.counts["pending"]

    def text(self, *, wide: bool = False, namespaced: bool | None = None) -> str:
        """Return the table and its summary.

        `namespaced` says whether namespaces have a column; None: only if the pods are in several namespaces.
        """
        if self.is_empty:
            return NO_PENDING_PODS
        return plan_text(self.plan, self.cluster, self.queue, wide=wide, namespaced=namespaced)

    def names(self) -> str:
        """Return a line for each pod with its node, as `-o name` prints it."""
        return plan_names(self.plan)

    def data(self) -> dict[str, Any]:
        """Return the plan as plain data."""
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
    """Place all pending pods; the result shows those in a namespace whose labels match a selector."""
    cluster = loaded.cluster
    profile = profile or Profile.default()
    pending = [cluster.pod(key) for key in pending_pods(cluster)]
    shown = {pod.key for pod in pending if _is_shown(pod, namespace, selector)}
    queue = [turn for turn in _queue(cluster, pending, profile) if not shown.isdisjoint(turn.pods)]
    plan = place_pending(cluster, profile, preemption=preemption, consolidation=consolidation)
    input_pods = {pod.key: pod for pod in loaded.input.pods}
    considered = [input_pods.get(pod.key, pod) for pod in pending if not_considered(pod, profile) is None]
    notes = missing_kinds(loaded.input, considered, evictions=len(plan.evictions))
    return ScheduleResult(
        plan=selected_plan(plan, shown, queue), cluster=cluster, queue=tuple(queue), notes=tuple(notes)
    )


def place_pending(cluster: Cluster, profile: Profile, *, preemption: bool = True, consolidation: bool = False) -> Plan:
    """Place all pending pods; the cluster is left as the plan changes it. Only this function of `app` schedules."""
    return schedule(cluster, profile=profile, preemption=preemption, consolidation=consolidation)


def pending_count(loaded: LoadedCluster) -> int:
    """Return the number of pods without a node."""
    return len(pending_pods(loaded.cluster))


def selector_of(query: str | None) -> Selector | None:
    """Return the selector for a query in kubectl's syntax; None for None."""
    return None if query is None else parse_query(query)


def _is_shown(pod: Pod, namespace: str | None, selector: Selector | None) -> bool:
    is_in_namespace = not namespace or pod.key.partition("/")[0] == namespace
    return is_in_namespace and (selector is None or selector.matches(pod.metadata.labels or {}))


def _queue(cluster: Cluster, pending: Sequence[Pod], profile: Profile) -> list[Turn]:
    """Return the turns of gangs and single pods, in order; none for a cluster without gangs."""
    if not cluster.groups.keys:
        return []
    turns, _ = sort_into_turns(cluster, Gangs(cluster), [pod.key for pod in pending], profile=profile)
    return [turn for turn in turns if not turn.surplus]


def selected_plan(plan: Plan, pods: set[str], queue: Sequence[Turn]) -> Plan:
    """Return the part of a plan for these pods and the gangs of these turns, with the evictions that they cause."""
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
