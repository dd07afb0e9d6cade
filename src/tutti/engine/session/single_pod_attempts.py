"""Attempts to place pods without a gang, with placement and preemption exactly as in kube-scheduler.

The exception: if gangs of lower priority are running, victims are chosen by the rules of gang preemption. Consecutive
pods of one kind are tried together: when one of them fits on no node, the others do not fit either, until the cluster
changes.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby

from tutti.cluster.events import Event
from tutti.cluster.work.meter import POD_TRIED, PREEMPTION_NODE
from tutti.engine.gangs.gang_state import Need
from tutti.engine.placement.engine import Attempt, Decision
from tutti.engine.plugins.base import Area, controller
from tutti.engine.preemption.gang_preemption import Evictions
from tutti.engine.reasons.pod_failure import PodFailure, pod_failure
from tutti.engine.session.context import EVICTS_NOBODY, FailedAttempt, FailureCache, SessionContext
from tutti.engine.session.plan import Turn, Unschedulable, WaitsFor
from tutti.engine.session.waiting.failure_kind import FailureKind

_GROWTH = 16
"""The growth of batches of pods of one kind. The first batch is one pod, which shows whether the kind fits at all."""


class SinglePodAttempts:
    """See the module's docstring."""

    def __init__(self, context: SessionContext) -> None:
        self._context, self._engine, self._cluster = context, context.engine, context.cluster
        self._failure_kinds: dict[tuple[int, int], tuple[FailedAttempt, FailureKind]] = {}
        """By identity of the failure and duration; the failure is kept, so that its identity stays its own."""
        self._known_failures: FailureCache[tuple[PodFailure, FailedAttempt]] = FailureCache(context)

    def attempt(self, pods: Sequence[str]) -> dict[str, FailedAttempt]:
        """Try pods in this order; return the failures by pod key."""
        failures: dict[str, FailedAttempt] = {}
        for kind, same_kind in groupby(pods, self._kind):
            known_failure = self._known_failures.get(kind)
            if known_failure is None:
                failures |= self._place_kind(kind, list(same_kind))
            else:
                failures |= self._refuse_pods(same_kind, *known_failure)
        return failures

    def _kind(self, key: str) -> tuple[object, ...]:
        """Return what decides an attempt: pods of the same kind fail alike while the cluster does not change."""
        pod = self._cluster.pod(key)
        pod_kind = self._context.pod_kind(self._cluster.pod_row(key))
        held = key if key in self._cluster.holds else ""
        area = self._context.area_for((key,))
        is_limited = area is not None or self._context.eviction_area is not None or self._context.spared
        limited = key if is_limited else ""
        return held, limited, pod_kind, controller(pod), pod.spec.priority, pod.spec.preemption_policy

    def failure_kind(self, turn: Turn, failure: FailedAttempt) -> FailureKind:
        """Return the kind of a pod that failed; pods of one kind have the same failure."""
        row = self._cluster.pod_row(turn.key)
        duration = int(self._cluster.pods.duration[row])
        known = self._failure_kinds.get((id(failure), duration))
        if known is None:
            known = failure, self._failure_kind(turn, failure, row, duration)
            self._failure_kinds[id(failure), duration] = known
        return known[1]

    def _failure_kind(self, turn: Turn, failure: FailedAttempt, row: int, duration: int) -> FailureKind:
        pod = self._cluster.pod(turn.key)
        preempts = self._context.policy.preemption and self._engine.profile.preempts
        may_preempt = preempts and pod.spec.preemption_policy != "Never"
        key = ("pod", *self._kind(turn.key), duration)
        return self._context.room_kind(key, (row,), failure, priority=turn.priority if may_preempt else None)

    def _place_kind(self, kind: tuple[object, ...], remaining: list[str]) -> dict[str, FailedAttempt]:
        context, size = self._context, 1
        failures: dict[str, FailedAttempt] = {}
        while remaining:
            area = context.area_for(remaining[:1])
            decisions = self._engine.place(remaining[:size], area, give_up=True)
            context.budget.spend(POD_TRIED * len(decisions))
            bound = [decision for decision in decisions if decision.node is not None]
            context.record_binds(bound)
            remaining = remaining[len(bound) :]
            size *= _GROWTH
            if len(bound) < len(decisions):
                outcome = self._find_victims(remaining[0], area)
                pod = remaining.pop(0)
                if isinstance(outcome, PodFailure):
                    known_failure = self._known_failures.put(kind, (outcome, self._failed_attempt(pod, outcome)))
                    return failures | self._refuse_pods((pod, *remaining), *known_failure)
                priority = int(self._cluster.pods.priority[self._cluster.pod_row(pod)])
                if not context.evictor.carry_out(outcome, preemptor=pod, gang=None, priority=priority):
                    failures[pod] = context.waiting_for_victims(outcome)
                size = 1
        return failures

    def _find_victims(self, pod: str, area: Area | None) -> PodFailure | Evictions:
        """Return evictions that make room for a pod that fits on no node, or the failure if there are none."""
        cluster, policy = self._cluster, self._context.policy
        row = cluster.pod_row(pod)
        if not policy.preemption:
            return PodFailure(self._engine.decide(pod, area))
        never = cluster.pod(pod).spec.preemption_policy == "Never"
        if not never and self._engine.profile.preempts and (policy.consolidation or self._has_lower_gangs(row)):
            need = Need(pod, 1, (row,), ())
            evictions = self._context.find_evictions(need, int(cluster.pods.priority[row]), None, area)
            if evictions is not None:
                return evictions
            attempt = self._engine.attempt(pod, area)
            failure = self._pod_failure(attempt)
            return _without_victims(failure)._replace(is_blocked_by_budgets=self._context.is_blocked_by_budgets)
        if self._context.eviction_area is not None:
            area = self._context.limited_area(area)
            if not len(area.rows):
                return PodFailure(self._engine.decide(pod), preemption_message=f"preemption: {EVICTS_NOBODY}")
        failure = self._pod_failure(self._engine.attempt(pod, area))
        self._context.budget.spend(PREEMPTION_NODE * cluster.nodes.count)
        if failure.candidate is None:
            return failure
        on_candidate = Decision(pod, failure.candidate.node, nodes=failure.decision.nodes)
        return Evictions(failure.candidate.victims, (on_candidate,), failure.candidate.violations)

    def _pod_failure(self, attempt: Attempt) -> PodFailure:
        rules, stuck_before = self._context.victim_rules, self._context.stuck_before
        return pod_failure(self._engine, attempt, best_only=True, rules=rules, stuck_before=stuck_before)

    def _has_lower_gangs(self, row: int) -> bool:
        """Return whether pods of gangs with a lower priority than the pod in a row are running."""
        pods, length = self._cluster.pods, self._cluster.pods.length
        if not self._cluster.groups.keys:
            return False
        lower = (pods.node[:length] >= 0) & (pods.group[:length] >= 0) & (pods.priority[:length] < pods.priority[row])
        return bool(lower.any())

    def _failed_attempt(self, pod: str, failure: PodFailure) -> FailedAttempt:
        """Return the failed attempt of a pod's turn, with the events that may cure the failure."""
        decision = failure.decision
        plugins = {decision.refused.plugin} if decision.refused is not None else decision.plugins
        cures = self._engine.evaluator.retry_events(plugins) if plugins else frozenset(Event)
        needs_room = "NodeResourcesFit" in plugins
        attempt = FailedAttempt(failure.message, cures, tuple(self._cluster.events), needs_room, frozenset(plugins))
        hold = self._cluster.holds.get(pod) if failure.waits_for_victims else None
        if hold is None:
            return attempt
        keys, row = self._cluster.pods.keys, self._cluster.nodes.row_of[hold.node]
        leaving = (keys[each] for each in self._cluster.pods_on_row[row])
        return attempt._replace(retry_at=self._context.stuck_at(leaving))

    def _refuse_pods(
        self, pods: Iterable[str], failure: PodFailure, attempt: FailedAttempt
    ) -> dict[str, FailedAttempt]:
        """Record in the plan that pods of one kind cannot be placed; return the failure for each of them."""
        decision, table = failure.decision, self._cluster.pods
        reasons = decision.reasons
        if decision.refused is not None:
            reasons = dict.fromkeys(decision.refused.messages, decision.nodes)
        reasons = dict(sorted(reasons.items()))
        failures = {}
        for pod in pods:
            if failure.eligible:
                self._context.release_holds((pod,))
            priority = int(table.priority[table.row_of[pod]])
            message, waits_for = self._context.with_refusals((pod,), attempt.message, _waits_for(failure))
            self._context.plan.refuse(
                Unschedulable(pod, message, priority, decision.nodes, reasons, waits_for=waits_for)
            )
            failures[pod] = attempt
        return failures


def _without_victims(failure: PodFailure) -> PodFailure:
    """Return the failure of a pod whose only victims belong to gangs that cannot be evicted as a whole."""
    if failure.candidate is None:
        return failure
    text = "preemption: the victims belong to gangs that cannot be evicted as a whole."
    return PodFailure(failure.decision, preemption_message=text)


def _waits_for(failure: PodFailure) -> WaitsFor:
    if failure.waits_for_victims:
        return "victims"
    return "budgets" if failure.is_blocked_by_budgets else "room"
