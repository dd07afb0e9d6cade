"""Attempts for pods without a gang: placed, and others evicted for them, exactly as kube-scheduler does.

Where gangs could be the victims, they leave as gangs do. Pods of one kind are tried together: when one fits nowhere,
neither do the others, until the cluster changes.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby

from tutti.cluster.events import Event
from tutti.cluster.work.meter import POD_TRIED, PREEMPTION_NODE
from tutti.engine.gangs.gang_state import Need
from tutti.engine.placement.engine import Decision
from tutti.engine.plugins.base import controller
from tutti.engine.preemption.gang_preemption import Evictions
from tutti.engine.reasons.pod_failure import PodFailure, failure
from tutti.engine.session.context import FailedAttempt, FailureCache, SessionContext
from tutti.engine.session.plan import Unschedulable

_GROWTH = 16
"""How much larger the next attempt with like pods is: one tells whether they fit at all."""


class SinglePodAttempts:
    """See the module's docstring."""

    def __init__(self, context: SessionContext) -> None:
        self._context, self._engine, self._cluster = context, context.engine, context.cluster
        self._failed: FailureCache[tuple[PodFailure, FailedAttempt]] = FailureCache(context)

    def attempt(self, pods: Sequence[str]) -> dict[str, FailedAttempt]:
        """Try pods in this order; return those that were refused."""
        refused: dict[str, FailedAttempt] = {}
        for kind, alike in groupby(pods, self._kind):
            known = self._failed.get(kind)
            if known is None:
                refused |= self._place_alike(kind, list(alike))
            else:
                refused |= self._refuse(alike, *known)
        return refused

    def _kind(self, key: str) -> tuple[object, ...]:
        """Return what tells a pod from others."""
        pod = self._cluster.pod(key)
        looks = self._context.pod_kind(self._cluster.pod_row(key))
        held = key if key in self._cluster.holds else ""
        return held, looks, controller(pod), pod.spec.priority, pod.spec.preemption_policy

    def _place_alike(self, kind: tuple[object, ...], todo: list[str]) -> dict[str, FailedAttempt]:
        context, size = self._context, 1
        refused: dict[str, FailedAttempt] = {}
        while todo:
            decisions = self._engine.place(todo[:size])
            context.budget.spend(POD_TRIED * len(decisions))
            context.note_bound(d for d in decisions if d.node is not None)
            failed = [d for d in decisions if d.node is None]
            todo = [d.pod for d in failed] + todo[size:]
            size *= _GROWTH
            if failed:
                found = self._failure(failed[0])
                pod = todo.pop(0)
                if isinstance(found, PodFailure):
                    known = self._failed.put(kind, (found, self._failed_attempt(found)))
                    return refused | self._refuse((pod, *todo), *known)
                priority = int(self._cluster.pods.priority[self._cluster.pod_row(pod)])
                if not context.evictor.carry_out(found, by=pod, gang=None, priority=priority):
                    refused[pod] = context.waits_for(found)
                size = 1
        return refused

    def _failure(self, decision: Decision) -> PodFailure | Evictions:
        """Find victims for a pod; gangs that would have to leave for it leave as gangs do."""
        cluster, policy = self._cluster, self._context.policy
        row = cluster.pod_row(decision.pod)
        if not policy.preemption:
            return PodFailure(decision)
        never = cluster.pod(decision.pod).spec.preemption_policy == "Never"
        if not never and self._engine.profile.preempts and (policy.consolidation or self._gangs_below(row)):
            need = Need(decision.pod, 1, (row,), ())
            found = self._context.find_room(need, int(cluster.pods.priority[row]), None)
            return found if found is not None else _without_victims(failure(self._engine, decision))
        told = failure(self._engine, decision)
        self._context.budget.spend(PREEMPTION_NODE * cluster.nodes.count)
        if told.candidate is None:
            return told
        there = Decision(decision.pod, told.candidate.node, nodes=decision.nodes)
        return Evictions(told.candidate.victims, (there,), told.candidate.violations)

    def _gangs_below(self, row: int) -> bool:
        """Return whether gangs of a lower priority than a pod run."""
        pods, length = self._cluster.pods, self._cluster.pods.length
        if not self._cluster.groups.keys:
            return False
        lower = (pods.node[:length] >= 0) & (pods.group[:length] >= 0) & (pods.priority[:length] < pods.priority[row])
        return bool(lower.any())

    def _failed_attempt(self, found: PodFailure) -> FailedAttempt:
        """Return a failure with the events that may cure it."""
        decision = found.decision
        plugins = {decision.refused.plugin} if decision.refused is not None else decision.plugins
        cures = self._engine.evaluator.retry_events(plugins) if plugins else frozenset(Event)
        return FailedAttempt(found.message, cures, tuple(self._cluster.events), "NodeResourcesFit" in plugins)

    def _refuse(self, pods: Iterable[str], found: PodFailure, refusal: FailedAttempt) -> dict[str, FailedAttempt]:
        """Note pods that fail for one reason; return them with it."""
        decision, table = found.decision, self._cluster.pods
        reasons = decision.reasons
        if decision.refused is not None:
            reasons = dict.fromkeys(decision.refused.messages, decision.nodes)
        reasons = dict(sorted(reasons.items()))
        refused = {}
        for pod in pods:
            if found.eligible:
                self._context.release((pod,))
            priority = int(table.priority[table.row_of[pod]])
            self._context.plan.refuse(Unschedulable(pod, refusal.message, priority, decision.nodes, reasons))
            refused[pod] = refusal
        return refused


def _without_victims(told: PodFailure) -> PodFailure:
    """Return the failure of a pod where a victim exists, but not the whole gang of that victim can be evicted."""
    if told.candidate is None:
        return told
    return PodFailure(told.decision, after="preemption: the victims are parts of gangs that cannot go whole.")
