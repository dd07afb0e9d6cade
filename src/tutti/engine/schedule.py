"""Scheduling: every pending pod of a cluster, in the order of the queue, into one plan.

Contract: pure but for the cluster it is given, which stands as the plan leaves it afterwards (mark it before and roll
it back after for a what-if). Pods are tried as kube-scheduler's queue sorts them: higher priority first, then the
older, then by name; pods without a creation time are new and come last. A pod that fits nowhere has others evicted as
DefaultPreemption would: the victims go, their budgets shrink, and the pod takes its place at once. Victims do not come
back as pending pods: that is their controllers' work. Messages are those of kube-scheduler, to the letter.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import NamedTuple

from msgspec.structs import replace

from tutti.cluster.cluster import Cluster
from tutti.cluster.edits import Hold, Put, Release, Remove
from tutti.engine.engine import Decision, Engine
from tutti.engine.plan import Bound, Eviction, NotConsidered, Plan, Unschedulable
from tutti.engine.plugins.base import controller
from tutti.engine.preempt import Candidate, preempt
from tutti.engine.profile import Profile
from tutti.kube.objects import Pod, PodDisruptionBudget
from tutti.kube.selectors import parse_label_selector
from tutti.kube.times import micros

_NEW = 2**63
_GROWTH = 16
"""How much larger the next attempt with like pods is: one tells whether they fit at all."""


def schedule(
    cluster: Cluster, pods: Iterable[str] | None = None, profile: Profile | None = None, *, preemption: bool = True
) -> Plan:
    """Place the pending pods (all of them if none are named), and say why the rest cannot be placed."""
    session = _Session(Engine(cluster, profile), preemption=preemption)
    waiting = [cluster.pod(key) for key in (pending(cluster) if pods is None else pods)]
    queue = []
    for pod in in_queue_order(waiting):
        why = not_considered(pod, session.engine.profile)
        if why is None:
            queue.append(pod.key)
        else:
            session.left_out.append(why)
    session.run(queue)
    return Plan.of(session.binds, session.evictions, session.unschedulable, session.left_out)


def pending(cluster: Cluster) -> list[str]:
    """All pods without a node."""
    pods = cluster.pods
    return [key for key, row in pods.row_of.items() if pods.node_names[row] is None]


def in_queue_order(pods: Iterable[Pod]) -> list[Pod]:
    """Pods in the order in which the scheduler takes them."""

    def order(pod: Pod) -> tuple[int, int, str]:
        created = pod.metadata.creation_timestamp
        return -(pod.spec.priority or 0), micros(created) if created else _NEW, pod.key

    return sorted(pods, key=order)


def not_considered(pod: Pod, profile: Profile) -> NotConsidered | None:
    """Say why the scheduler does not try a pending pod, if it does not."""
    spec = pod.spec
    if (spec.scheduler_name or profile.scheduler_name) != profile.scheduler_name:
        return NotConsidered(pod.key, "other scheduler", f"schedulerName is {spec.scheduler_name}")
    if pod.metadata.deletion_timestamp is not None:
        return NotConsidered(pod.key, "terminating", "the pod is being deleted")
    if spec.scheduling_gates and profile.gates:
        gates = " ".join(gate.name for gate in spec.scheduling_gates)
        return NotConsidered(pod.key, "gated", f"waiting for scheduling gates: [{gates}]")
    return None


def fit_error(decision: Decision, after: str = "") -> str:
    """Word a refusal as kube-scheduler does; `after` is what became of preemption."""
    if decision.error is not None:
        return decision.error
    if decision.held is not None:
        return ", ".join(decision.held.messages)
    if decision.refused is not None:
        why = ", ".join(decision.refused.messages)
    else:
        why = ", ".join(sorted(f"{number} {message}" for message, number in decision.reasons.items()))
    text = f"0/{decision.nodes} nodes are available:"
    return " ".join((text, *(f"{part}." for part in (why,) if part), *(part for part in (after,) if part)))


class Failure(NamedTuple):
    """A refusal, and whom the pod could have evicted; `after` says why nobody."""

    decision: Decision
    candidates: tuple[Candidate, ...] = ()
    candidate: Candidate | None = None
    after: str = ""

    @property
    def message(self) -> str:
        """The line that kube-scheduler would write."""
        return fit_error(self.decision, self.after)


def failure(engine: Engine, decision: Decision) -> Failure:
    """Look for evictions that would cure a refusal; the cluster is as before afterwards."""
    if not engine.profile.preempts or decision.error is not None or decision.held is not None:
        return Failure(decision)
    found = preempt(engine, decision.pod)
    if found.ineligible is not None:
        return Failure(decision, after=f"preemption: {found.ineligible}")
    if found.chosen:
        return Failure(decision, found.candidates, found.chosen[0])
    return Failure(decision, after=_preemption_failed(found.failed, decision))


def _preemption_failed(counts: dict[str, int], decision: Decision) -> str:
    return f"preemption: {fit_error(Decision(decision.pod, nodes=decision.nodes, reasons=counts))}"


def spent_budgets(cluster: Cluster, victim: Pod) -> Iterator[PodDisruptionBudget]:
    """Give the disruption budgets of a pod as its eviction leaves them: its controller counts one disruption less."""
    for budget in list(cluster.objects[PodDisruptionBudget.KIND].values()):
        assert isinstance(budget, PodDisruptionBudget)
        selector, allowed = parse_label_selector(budget.spec.selector), budget.status.disruptions_allowed or 0
        near = (budget.metadata.namespace or "default") == (victim.metadata.namespace or "default")
        mine = near and selector.matches(victim.metadata.labels or {})
        if allowed and mine and selector.requirements:
            yield replace(budget, status=replace(budget.status, disruptions_allowed=allowed - 1))


class _Session:
    """One pass over the queue."""

    def __init__(self, engine: Engine, *, preemption: bool) -> None:
        self.engine, self._preemption = engine, preemption
        self.binds: list[Bound] = []
        self.evictions: list[Eviction] = []
        self.unschedulable: list[Unschedulable] = []
        self.left_out: list[NotConsidered] = []
        self._failed: dict[tuple[object, ...], Failure] = {}
        """What pods were refused with since the cluster last changed."""

    def run(self, queue: Sequence[str]) -> None:
        """Place the pods in this order."""
        for kind, alike in groupby(queue, self._kind):
            known = self._failed.get(kind)
            if known is None:
                self._place_alike(kind, list(alike))
            else:
                self.unschedulable += [self._refused(pod, known) for pod in alike]

    def _kind(self, key: str) -> tuple[object, ...]:
        """Give what tells a pod from others."""
        cluster, pods = self.engine.cluster, self.engine.cluster.pods
        row, pod = cluster.pod_row(key), cluster.pod(key)
        looks = int(pods.spec[row]), cluster.label_class_of(row).number, controller(pod)
        return key if key in cluster.holds else "", looks, pod.spec.priority, pod.spec.preemption_policy

    def _place_alike(self, kind: tuple[object, ...], todo: list[str]) -> None:
        """Place pods that cannot be told apart: when one fits nowhere, neither do those behind it."""
        size = 1
        while todo:
            decisions = self.engine.place(todo[:size])
            bound = [self._bound(d) for d in decisions if d.node is not None]
            failed = [d for d in decisions if d.node is None]
            todo = [d.pod for d in failed] + todo[size:]
            size *= _GROWTH
            if bound:
                self.binds += bound
                self._failed.clear()
            if failed:
                found = failure(self.engine, failed[0]) if self._preemption else Failure(failed[0])
                if found.candidate is None:
                    self._failed[kind] = found
                    self.unschedulable += [self._refused(pod, found) for pod in todo]
                    return
                self._evict(todo.pop(0), found.candidate)
                size = 1

    def _evict(self, pod: str, candidate: Candidate) -> None:
        """Carry a preemption out."""
        cluster = self.engine.cluster
        for victim in candidate.victims:
            priority = int(cluster.pods.priority[cluster.pod_row(victim)])
            self.evictions.append(Eviction(victim, candidate.node, by=pod, priority=priority))
            for budget in spent_budgets(cluster, cluster.pod(victim)):
                cluster.apply(Put(budget))
            cluster.apply(Remove("Pod", victim))
        # Whoever was promised the node and matters less has to look elsewhere, as with kube-scheduler.
        priority = int(cluster.pods.priority[cluster.pod_row(pod)])
        for other in list(cluster.held_on.get(candidate.node, ())):
            if cluster.pods.priority[cluster.pod_row(other)] < priority:
                cluster.apply(Release(other))
        cluster.apply(Hold(pod, candidate.node))
        self._failed.clear()
        decision = self.engine.place([pod])[0]
        if decision.node is None:
            self.unschedulable.append(self._refused(pod, Failure(decision)))
        else:
            self.binds.append(self._bound(decision, candidate))

    def _bound(self, decision: Decision, candidate: Candidate | None = None) -> Bound:
        evicts = candidate.victims if candidate is not None else ()
        breaks = candidate.violations if candidate is not None else 0
        priority = int(self.engine.cluster.pods.priority[self.engine.cluster.pod_row(decision.pod)])
        return Bound(decision.pod, decision.node or "", priority, decision.score, evicts, breaks)

    def _refused(self, pod: str, found: Failure) -> Unschedulable:
        decision = found.decision
        priority = int(self.engine.cluster.pods.priority[self.engine.cluster.pod_row(pod)])
        reasons = decision.reasons
        if decision.refused is not None:
            reasons = dict.fromkeys(decision.refused.messages, decision.nodes)
        return Unschedulable(pod, found.message, priority, decision.nodes, dict(sorted(reasons.items())))
