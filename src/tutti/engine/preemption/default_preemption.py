"""DefaultPreemption: which pods to evict so that a single pod fits, as in kube-scheduler.

On every node whose refusal evictions could resolve, all pods of lower priority are removed. If the pod then fits, the
removed pods are put back (reprieved) one by one while the pod still fits: first the pods whose eviction would violate a
disruption budget, and more important pods before less important ones. Of the remaining candidate nodes, the one with
the least important victims is chosen. All of this is a dry run: the cluster is unchanged afterwards.
"""

from __future__ import annotations

import msgspec
import numpy as np

from tutti.cluster.cluster import Cluster
from tutti.cluster.columns import Bools, Rows
from tutti.cluster.edits import Bind, Unbind
from tutti.cluster.pod_table import NOT_STARTED
from tutti.engine.placement.engine import Attempt, Engine
from tutti.engine.placement.evaluator import Evaluator, FilterResult, States
from tutti.engine.plugins.base import IncomingPod
from tutti.engine.plugins.verdict import PASS
from tutti.engine.preemption.disruption_budgets import Budgets
from tutti.engine.preemption.room_dry_runs import Cost, RoomDryRuns
from tutti.engine.preemption.stuck_pods import is_stuck
from tutti.engine.preemption.victim_rules import VictimRules

POLICY_NEVER = "not eligible due to preemptionPolicy=Never."
VICTIM_TERMINATING = "not eligible due to a terminating pod on the nominated node."
NO_VICTIMS = "No preemption victims found for incoming pod"
BUDGETS_VIOLATED = "Evictions would violate disruption budgets"
NOT_HELPFUL = "Preemption is not helpful for scheduling"


class Candidate(msgspec.Struct, frozen=True):
    """A node on which the pod would fit after evictions."""

    node: str
    victims: tuple[str, ...]
    """The pods to evict, the most important first."""
    violations: int = 0
    """How many of the evictions violate a disruption budget."""


class PreemptionResult(msgspec.Struct, frozen=True):
    """All candidate nodes, and those that are best (equally good, sorted by name)."""

    candidates: tuple[Candidate, ...] = ()
    chosen: tuple[Candidate, ...] = ()
    failed: dict[str, int] = {}
    """Number of nodes that are not candidates, by reason."""
    ineligible: str | None = None
    """Why the pod may not preempt, or need not."""


def preempt(
    engine: Engine,
    attempt: Attempt,
    *,
    best_only: bool = False,
    rules: VictimRules | None = None,
    stuck_before: int | None = None,
) -> PreemptionResult:
    """Return the evictions with which a pod whose attempt has just failed would fit.

    Only the nodes of the attempt's area are candidates. With `best_only`, the candidates may be incomplete; the chosen
    ones are not. Pods that should have left before `stuck_before`, a time in microseconds, are neither waited for nor
    victims.
    """
    nodes, evaluator, incoming = engine.cluster.nodes, engine.evaluator, attempt.incoming
    if not engine.profile.preempts:
        return PreemptionResult(ineligible="the profile does not preempt.")
    if incoming.pod.spec.preemption_policy == "Never":
        return PreemptionResult(ineligible=POLICY_NEVER)
    if attempt.decision.node is not None:
        return PreemptionResult(ineligible="the pod fits without preemption.")
    filtered, refusals = attempt.filtered, attempt.refusals
    if filtered is None or refusals is None:
        # No pre-filter refuses all nodes for a reason that evictions could resolve.
        error = attempt.decision.error
        if error is not None and nodes.count:
            return PreemptionResult(ineligible=error)
        return PreemptionResult(failed={NOT_HELPFUL: nodes.count})
    resolvable = evaluator.resolvable_rows(incoming, filtered, refusals)
    rules = rules or VictimRules()
    if not _may_preempt(engine.cluster, incoming, resolvable, stuck_before, by_eviction_api=rules.hard_budgets):
        return PreemptionResult(ineligible=VICTIM_TERMINATING)
    rows = np.flatnonzero(resolvable)
    failed = {NOT_HELPFUL: nodes.count - len(rows)} if len(rows) < nodes.count else {}
    dry_runs = _DryRuns(
        evaluator,
        incoming,
        filtered,
        failed,
        best_only=best_only,
        rules=rules,
        stuck_before=stuck_before,
    )
    return dry_runs.run(rows)


def _may_preempt(
    cluster: Cluster, incoming: IncomingPod, resolvable: Bools, stuck_before: int | None, *, by_eviction_api: bool
) -> bool:
    """Return False while earlier victims of the pod are still terminating on its nominated node."""
    hold = cluster.holds.get(incoming.pod.key)
    name = hold.node if hold is not None else incoming.pod.status.nominated_node_name
    row = cluster.nodes.row_of.get(name) if name else None
    if row is None or not resolvable[row]:
        return True
    priority = incoming.pod.spec.priority or 0
    return not any(
        cluster.pods.priority[pod] < priority
        and _is_terminating_victim(cluster, pod, by_eviction_api)
        and not is_stuck(cluster, pod, stuck_before)
        for pod in cluster.pods_on_row[row]
    )


def _is_terminating_victim(cluster: Cluster, pod: int, by_eviction_api: bool) -> bool:
    """Return whether a pod is terminating because the scheduler evicted it, perhaps through the eviction API.

    The eviction API writes a reason of its own, until the scheduler has repeated that the pod is its victim.
    """
    if not cluster.pods.terminating[pod]:
        return False
    obj = cluster.pods.objects[pod]
    conditions = (obj.status.conditions if obj is not None else None) or ()
    reasons = ("PreemptionByScheduler", "EvictionByEvictionAPI") if by_eviction_api else ("PreemptionByScheduler",)
    return any(c.type == "DisruptionTarget" and c.status == "True" and c.reason in reasons for c in conditions)


class _DryRuns:
    """The dry runs for one pod."""

    def __init__(
        self,
        evaluator: Evaluator,
        incoming: IncomingPod,
        filtered: FilterResult,
        failed: dict[str, int],
        *,
        best_only: bool,
        rules: VictimRules,
        stuck_before: int | None,
    ) -> None:
        self._best_only, self._rules, self._stuck_before = best_only, rules, stuck_before
        self._evaluator, self._incoming, self._filtered, self._failed = evaluator, incoming, filtered, failed
        self._cluster = evaluator.cluster
        self._budgets = Budgets(evaluator.cluster, hard=rules.hard_budgets)

    def run(self, rows: Rows) -> PreemptionResult:
        """Try every row on which evictions could help."""
        cluster = self._cluster
        pods = self._lower_priority_pods(rows)
        has_lower_pods = np.zeros(cluster.nodes.size, dtype=bool)
        has_lower_pods[cluster.pods.node[pods]] = True
        rows_with_lower_pods = np.flatnonzero(has_lower_pods)
        if len(rows_with_lower_pods) < len(rows):
            self._fail((NO_VICTIMS,), len(rows) - len(rows_with_lower_pods))
        # If only free resources decide, arithmetic replaces the dry runs.
        by_arithmetic = np.zeros(cluster.nodes.size, dtype=bool)
        if not any(self._filtered.states) and not self._incoming.spec.ports:
            by_arithmetic = self._evaluator.row_cache(self._incoming).node_cache.base_keys >= 0
        on_arithmetic_row = by_arithmetic[cluster.pods.node[pods]]
        found = self._candidates_by_arithmetic(
            pods[on_arithmetic_row], rows_with_lower_pods[by_arithmetic[rows_with_lower_pods]]
        )
        for row, lower in self._pods_by_row(pods[~on_arithmetic_row]).items():
            result = self._dry_run(row, lower)
            if not isinstance(result, Candidate):
                self._fail(result)
            elif result.victims:
                found.append((self._cost(result), result))
        if self._rules.hard_budgets:
            allowed = [(cost, candidate) for cost, candidate in found if not candidate.violations]
            self._fail((BUDGETS_VIOLATED,), len(found) - len(allowed))
            found = allowed
        if not found:
            return PreemptionResult(failed=self._failed)
        found.sort(key=lambda pair: pair[1].node)
        lowest_cost = min(cost for cost, _ in found)
        chosen = tuple(candidate for cost, candidate in found if cost == lowest_cost)
        return PreemptionResult(tuple(candidate for _, candidate in found), chosen, self._failed)

    def _candidates_by_arithmetic(self, pods: Rows, rows: Rows) -> list[tuple[Cost, Candidate]]:
        """Return the candidates among rows where only free resources decide; with `best_only`, the cheapest alone."""
        if not len(pods):
            return []
        room, pods_table = RoomDryRuns(self._evaluator, self._incoming), self._cluster.pods
        is_full = np.zeros(self._cluster.nodes.size, dtype=bool)
        is_full[room.rows_without_room(pods, rows, self._fail)] = True
        found = room.candidates(pods[~is_full[pods_table.node[pods]]], self._budgets)
        candidates = []
        for number in found.cheapest() if self._best_only else range(len(found.rows)):
            cost, name = found.cost(number), self._cluster.nodes.names[found.rows[number]]
            victims = tuple(pods_table.keys[pod] for pod in found.victims(number))
            candidates.append((cost, Candidate(name, victims, cost[0])))
        return candidates

    def _lower_priority_pods(self, rows: Rows) -> Rows:
        """Return the pods of lower priority on some rows."""
        pods, length = self._cluster.pods, self._cluster.pods.length
        is_wanted = np.zeros(self._cluster.nodes.size + 1, dtype=bool)
        is_wanted[rows] = True  # a pod without a node has row -1, the last entry, which stays False
        lower = pods.priority[:length] < (self._incoming.pod.spec.priority or 0)
        found = np.flatnonzero(is_wanted[pods.node[:length]] & lower)
        scheduler_name = self._evaluator.profile.scheduler_name
        allowed = self._rules.may_evict(self._cluster, found, scheduler_name)
        if self._stuck_before is not None:
            for index in np.flatnonzero(pods.terminating[found]).tolist():
                allowed[index] &= not is_stuck(self._cluster, int(found[index]), self._stuck_before)
        return found[allowed]

    def _pods_by_row(self, pod_rows: Rows) -> dict[int, list[int]]:
        """Return pods by row, the most important first."""
        pods = self._cluster.pods
        columns = (pods.node, pods.priority, pods.start, pods.order)
        entries: dict[int, list[tuple[int, int, int, int]]] = {}
        for pod, row, priority, start, order in zip(
            pod_rows.tolist(), *(column[pod_rows].tolist() for column in columns), strict=True
        ):
            entries.setdefault(row, []).append((-priority, start, order, pod))
        return {row: [entry[3] for entry in sorted(entries[row])] for row in sorted(entries)}

    def _fail(self, messages: tuple[str, ...], number: int = 1) -> None:
        """Count nodes that are not candidates, by message."""
        for message in messages if number else ():
            self._failed[message] = self._failed.get(message, 0) + number

    def _dry_run(self, row: int, lower: list[int]) -> Candidate | tuple[str, ...]:
        """Remove all lower pods and reprieve those that need not go; or return why even that does not help."""
        cluster, evaluator, incoming = self._cluster, self._evaluator, self._incoming
        states = [state.clone() if state is not None else None for state in self._filtered.states]
        mark = cluster.mark()
        try:
            for pod in lower:
                self._move(states, pod, row, -1)
            verdict = evaluator.filter_row_with_holds(incoming, states, row)
            if verdict != PASS:
                return evaluator.reason(incoming, row, verdict).messages
            violating = self._budgets.violating(lower)
            victims = set()
            for pod in _reprieve_order(lower, violating):
                self._move(states, pod, row, 1)
                if evaluator.filter_row_with_holds(incoming, states, row) != PASS:
                    self._move(states, pod, row, -1)
                    victims.add(pod)
        finally:
            cluster.rollback(mark)
        if self._budgets.hard:  # the budgets need to allow the evictions of the victims only
            violating = self._budgets.violating(pod for pod in lower if pod in victims)
        return _candidate(cluster, row, lower, victims, violating)

    def _move(self, states: States, pod: int, row: int, change: int) -> None:
        """Unbind a pod from the node (-1), or bind it again (1), in the cluster and in the prepared plugins."""
        cluster = self._cluster
        key = cluster.pods.keys[pod]
        obj = cluster.pods.objects[pod]
        assert obj is not None
        if change < 0:
            cluster.apply(Unbind(key, keep_volumes=True))
        else:
            cluster.apply(Bind(key, cluster.nodes.names[row]))
        for state in states:
            if state is not None:
                state.update_with_pod(obj, cluster.spec_of(pod), row, change)

    def _cost(self, candidate: Candidate) -> Cost:
        """Return a candidate's cost."""
        pods = self._cluster.pods
        rows = [pods.row_of[key] for key in candidate.victims]
        priorities = [int(pods.priority[row]) for row in rows]
        highest = max(priorities)
        started = [int(pods.start[r]) for r, p in zip(rows, priorities, strict=True) if p == highest]
        earliest = min(started, default=NOT_STARTED)
        return (candidate.violations, highest, sum(p + 2**31 for p in priorities), len(rows), -earliest)


def _reprieve_order(lower: list[int], violating: set[int]) -> list[int]:
    """Return the order in which pods are reprieved: first those whose eviction would violate a budget."""
    return [p for p in lower if p in violating] + [p for p in lower if p not in violating]


def _candidate(cluster: Cluster, row: int, lower: list[int], victims: set[int], violating: set[int]) -> Candidate:
    """Return the candidate for a row."""
    keys = tuple(cluster.pods.keys[pod] for pod in lower if pod in victims)
    return Candidate(cluster.nodes.names[row], keys, len(victims & violating))
