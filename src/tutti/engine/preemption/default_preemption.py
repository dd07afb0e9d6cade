"""DefaultPreemption: which pods to evict so that a single pod fits, as in kube-scheduler.

On every node whose refusal evictions could resolve, all pods of lower priority are removed. If the pod then fits, the
removed pods are put back (reprieved) one by one while the pod still fits: first the pods whose eviction would violate a
disruption budget, and more important pods before less important ones. Of the remaining candidate nodes, the one with
the least important victims is chosen. All of this is a dry run: the cluster is unchanged afterwards.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec
import numpy as np

from tutti.cluster.cluster import Cluster
from tutti.cluster.columns import Bools, Rows
from tutti.cluster.edits import Bind, Unbind
from tutti.cluster.pod_table import NOT_STARTED
from tutti.engine.placement.engine import Engine
from tutti.engine.placement.evaluator import Evaluator, FilterResult, States
from tutti.engine.plugins.base import IncomingPod
from tutti.engine.plugins.node_resources_fit import shortage
from tutti.engine.plugins.verdict import PASS, AttemptError, Reason
from tutti.engine.preemption.disruption_budgets import Budgets

POLICY_NEVER = "not eligible due to preemptionPolicy=Never."
VICTIM_TERMINATING = "not eligible due to a terminating pod on the nominated node."
NO_VICTIMS = "No preemption victims found for incoming pod"
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


def preempt(engine: Engine, pod: str) -> PreemptionResult:
    """Return the evictions with which a pod that fits nowhere would fit."""
    nodes, evaluator = engine.cluster.nodes, engine.evaluator
    incoming = evaluator.incoming_pod(engine.cluster.pod_row(pod))
    if not engine.profile.preempts:
        return PreemptionResult(ineligible="the profile does not preempt.")
    if incoming.pod.spec.preemption_policy == "Never":
        return PreemptionResult(ineligible=POLICY_NEVER)
    early = engine.early_decision(incoming)
    if early is not None:
        return PreemptionResult(failed={NOT_HELPFUL: nodes.count})
    try:
        filtered = evaluator.filter(incoming)
    except AttemptError as error:
        return PreemptionResult(ineligible=str(error))
    if isinstance(filtered, Reason):
        # No pre-filter refuses all nodes for a reason that evictions could resolve.
        return PreemptionResult(failed={NOT_HELPFUL: nodes.count})
    if filtered.feasible.any():
        return PreemptionResult(ineligible="the pod fits without preemption.")
    resolvable = evaluator.resolvable_rows(incoming, filtered)
    if not _may_preempt(engine.cluster, incoming, resolvable):
        return PreemptionResult(ineligible=VICTIM_TERMINATING)
    rows = np.flatnonzero(resolvable)
    failed = {NOT_HELPFUL: nodes.count - len(rows)} if len(rows) < nodes.count else {}
    return _DryRuns(evaluator, incoming, filtered, failed).run(rows)


def _may_preempt(cluster: Cluster, incoming: IncomingPod, resolvable: Bools) -> bool:
    """Return False while earlier victims of the pod are still terminating on its nominated node."""
    hold = cluster.holds.get(incoming.pod.key)
    name = hold.node if hold is not None else incoming.pod.status.nominated_node_name
    row = cluster.nodes.row_of.get(name) if name else None
    if row is None or not resolvable[row]:
        return True
    priority = incoming.pod.spec.priority or 0
    return not any(
        cluster.pods.priority[p] < priority and _is_terminating_victim(cluster, p) for p in cluster.pods_on_row[row]
    )


def _is_terminating_victim(cluster: Cluster, pod: int) -> bool:
    """Return whether a pod is terminating because the scheduler evicted it."""
    if not cluster.pods.terminating[pod]:
        return False
    obj = cluster.pods.objects[pod]
    conditions = (obj.status.conditions if obj is not None else None) or ()
    return any(
        c.type == "DisruptionTarget" and c.status == "True" and c.reason == "PreemptionByScheduler" for c in conditions
    )


class _DryRuns:
    """The dry runs for one pod."""

    def __init__(
        self, evaluator: Evaluator, incoming: IncomingPod, filtered: FilterResult, failed: dict[str, int]
    ) -> None:
        self._evaluator, self._incoming, self._filtered, self._failed = evaluator, incoming, filtered, failed
        self._cluster = evaluator.cluster
        self._budgets = Budgets(evaluator.cluster)

    def run(self, rows: Rows) -> PreemptionResult:
        """Try every row on which evictions could help."""
        pods = self._lower_priority_pods(rows)
        has_lower_pods = np.zeros(self._cluster.nodes.size, dtype=bool)
        has_lower_pods[self._cluster.pods.node[pods]] = True
        rows_with_lower_pods = np.flatnonzero(has_lower_pods)
        if len(rows_with_lower_pods) < len(rows):
            self._fail((NO_VICTIMS,), len(rows) - len(rows_with_lower_pods))
        # If only free resources decide, arithmetic replaces the dry runs.
        only_room = not any(self._filtered.states) and not self._incoming.spec.ports
        room = _RoomArithmetic(self._evaluator, self._incoming) if only_room else None
        accepting = self._evaluator.row_cache(self._incoming).node_cache.base_keys >= 0
        if room is not None:
            without_room = accepting & room.rows_without_room(pods, rows_with_lower_pods, self._fail, accepting)
            pods = pods[~without_room[self._cluster.pods.node[pods]]]
        candidates = []
        for row, lower in self._pods_by_row(pods).items():
            if room is not None and accepting[row]:
                result = room.candidate(row, lower, self._budgets)
            else:
                result = self._dry_run(row, lower)
            if not isinstance(result, Candidate):
                self._fail(result)
            elif result.victims:
                candidates.append(result)
        candidates.sort(key=lambda candidate: candidate.node)
        if not candidates:
            return PreemptionResult(failed=self._failed)
        costs = [self._cost(candidate) for candidate in candidates]
        lowest_cost = min(costs)
        chosen = tuple(candidate for candidate, cost in zip(candidates, costs, strict=True) if cost == lowest_cost)
        return PreemptionResult(tuple(candidates), chosen, self._failed)

    def _lower_priority_pods(self, rows: Rows) -> Rows:
        """Return the pods of lower priority on some rows."""
        pods, length = self._cluster.pods, self._cluster.pods.length
        is_wanted = np.zeros(self._cluster.nodes.size + 1, dtype=bool)
        is_wanted[rows] = True  # a pod without a node has row -1, the last entry, which stays False
        lower = pods.priority[:length] < (self._incoming.pod.spec.priority or 0)
        return np.flatnonzero(is_wanted[pods.node[:length]] & lower)

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
        for message in messages:
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
        return _candidate(cluster, row, lower, victims, violating)

    def _move(self, states: States, pod: int, row: int, change: int) -> None:
        """Unbind a pod from the node (-1), or bind it again (1), in the cluster and in the prepared plugins."""
        cluster = self._cluster
        key = cluster.pods.keys[pod]
        obj = cluster.pods.objects[pod]
        assert obj is not None
        if change < 0:
            cluster.apply(Unbind(key))
        else:
            cluster.apply(Bind(key, cluster.nodes.names[row]))
        for state in states:
            if state is not None:
                state.update_with_pod(obj, cluster.spec_of(pod), row, change)

    def _cost(self, candidate: Candidate) -> tuple[int, int, int, int, int]:
        """Return a candidate's cost: violations, highest priority, sum of priorities, number of victims, start."""
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


class _RoomArithmetic:
    """Dry runs by arithmetic, for a pod that is refused only for lack of free resources."""

    def __init__(self, evaluator: Evaluator, incoming: IncomingPod) -> None:
        self._cluster = evaluator.cluster
        nodes = self._cluster.nodes
        self._free = nodes.alloc - nodes.used
        if incoming.held is not None:
            self._free -= incoming.held.amounts
        requests = evaluator.resource_requests(incoming)
        self._resources = [resource for resource, _ in requests]
        self._amounts = [amount for _, amount in requests]
        self._usages: dict[int, list[int]] = {}

    def _usage(self, pod: int) -> list[int]:
        number = int(self._cluster.pods.usage[pod])
        usage = self._usages.get(number)
        if usage is None:
            usage = self._usages[number] = self._cluster.usages.matrix[number, self._resources].tolist()
        return usage

    def rows_without_room(
        self, pods: Rows, rows: Rows, fail: Callable[[tuple[str, ...], int], None], accepting: Bools
    ) -> Bools:
        """Return which rows lack resources even without some pods; report the missing resources to `fail`."""
        cluster, nodes = self._cluster, self._cluster.nodes
        without_room = np.zeros(nodes.size, dtype=bool)
        rows = rows[accepting[rows]]
        for resource, amount in zip(self._resources, self._amounts, strict=True):
            freed = np.zeros(nodes.size, dtype=np.int64)
            np.add.at(freed, cluster.pods.node[pods], cluster.usages.matrix[cluster.pods.usage[pods], resource])
            free = self._free[resource, rows] + freed[rows]
            short_rows = rows[free < amount]
            if len(short_rows):
                without_room[short_rows] = True
                fail((shortage(cluster.resources.names, resource),), len(short_rows))
        return without_room

    def candidate(self, row: int, lower: list[int], budgets: Budgets) -> Candidate | tuple[str, ...]:
        """Return the victims on a node, or the resources that it lacks even without all lower pods."""
        free = self._free[self._resources, row].tolist()
        usages = {pod: self._usage(pod) for pod in lower}
        for usage in usages.values():
            free = [a + b for a, b in zip(free, usage, strict=True)]
        free = [a - b for a, b in zip(free, self._amounts, strict=True)]
        if min(free) < 0:
            names = self._cluster.resources.names
            return tuple(shortage(names, resource) for resource, a in zip(self._resources, free, strict=True) if a < 0)
        violating = budgets.violating(lower)
        victims = set()
        for pod in _reprieve_order(lower, violating):
            free_after = [a - b for a, b in zip(free, usages[pod], strict=True)]
            if min(free_after) < 0:
                victims.add(pod)
            else:
                free = free_after
        return _candidate(self._cluster, row, lower, victims, violating)
