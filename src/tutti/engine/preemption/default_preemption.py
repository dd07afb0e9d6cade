"""DefaultPreemption: whom to evict so that a pod fits.

As kube-scheduler does it: on every node whose refusal evictions could cure, all pods of lower priority are taken away;
if the pod then fits they are put back one by one, those whose eviction would break a budget first, the more important
before the less, and stay where the pod still fits. Of the nodes left, the one whose victims matter least is chosen. All
of it is a what-if: the cluster is as before afterwards.
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

NEVER = "not eligible due to preemptionPolicy=Never."
LEAVING = "not eligible due to a terminating pod on the nominated node."
NO_VICTIMS = "No preemption victims found for incoming pod"
NO_HELP = "Preemption is not helpful for scheduling"


class Candidate(msgspec.Struct, frozen=True):
    """A node that evictions would make fit."""

    node: str
    victims: tuple[str, ...]
    """The pods to evict, the most important first."""
    violations: int = 0
    """How many of the evictions break a disruption budget."""


class PreemptionResult(msgspec.Struct, frozen=True):
    """All candidates, and the nodes (equally good ones, by name) that are best."""

    candidates: tuple[Candidate, ...] = ()
    chosen: tuple[Candidate, ...] = ()
    failed: dict[str, int] = {}
    """How many nodes are no candidates, for each reason."""
    ineligible: str | None = None
    """Why the pod may not preempt, or need not."""


def preempt(engine: Engine, pod: str) -> PreemptionResult:
    """Say what evictions would make a pod fit that fits nowhere."""
    nodes, evaluator = engine.cluster.nodes, engine.evaluator
    incoming = evaluator.incoming_pod(engine.cluster.pod_row(pod))
    if not engine.profile.preempts:
        return PreemptionResult(ineligible="the profile does not preempt.")
    if incoming.pod.spec.preemption_policy == "Never":
        return PreemptionResult(ineligible=NEVER)
    stopped = engine.stopped(incoming)
    if stopped is not None:
        return PreemptionResult(failed={NO_HELP: nodes.count})
    try:
        filtered = evaluator.filter(incoming)
    except AttemptError as error:
        return PreemptionResult(ineligible=str(error))
    if isinstance(filtered, Reason):
        # No pre-filter refuses all nodes for a reason that evictions could cure.
        return PreemptionResult(failed={NO_HELP: nodes.count})
    if filtered.feasible.any():
        return PreemptionResult(ineligible="the pod fits without.")
    curable = evaluator.curable(incoming, filtered)
    if not _may_preempt(engine.cluster, incoming, curable):
        return PreemptionResult(ineligible=LEAVING)
    rows = np.flatnonzero(curable)
    failed = {NO_HELP: nodes.count - len(rows)} if len(rows) < nodes.count else {}
    return _Evictions(evaluator, incoming, filtered, failed).run(rows)


def _may_preempt(cluster: Cluster, incoming: IncomingPod, curable: Bools) -> bool:
    """Say no while pods that the pod has already had evicted are still leaving its node."""
    hold = cluster.holds.get(incoming.pod.key)
    name = hold.node if hold is not None else incoming.pod.status.nominated_node_name
    row = cluster.nodes.row_of.get(name) if name else None
    if row is None or not curable[row]:
        return True
    priority = incoming.pod.spec.priority or 0
    return not any(cluster.pods.priority[p] < priority and _leaving(cluster, p) for p in cluster.pods_on_row[row])


def _leaving(cluster: Cluster, pod: int) -> bool:
    """Say whether a pod is terminating because the scheduler evicted it."""
    if not cluster.pods.terminating[pod]:
        return False
    obj = cluster.pods.objects[pod]
    conditions = (obj.status.conditions if obj is not None else None) or ()
    return any(
        c.type == "DisruptionTarget" and c.status == "True" and c.reason == "PreemptionByScheduler" for c in conditions
    )


class _Evictions:
    """The dry runs for one pod."""

    def __init__(
        self, evaluator: Evaluator, incoming: IncomingPod, filtered: FilterResult, failed: dict[str, int]
    ) -> None:
        self._evaluator, self._incoming, self._filtered, self._failed = evaluator, incoming, filtered, failed
        self._cluster = evaluator.cluster
        self._budgets = Budgets(evaluator.cluster)

    def run(self, rows: Rows) -> PreemptionResult:
        """Try every row that evictions could help."""
        pods = self._lower(rows)
        taken = np.zeros(self._cluster.nodes.size, dtype=bool)
        taken[self._cluster.pods.node[pods]] = True
        there = np.flatnonzero(taken)
        if len(there) < len(rows):
            self._fail((NO_VICTIMS,), len(rows) - len(there))
        # Where nothing but room decides, and no room is held, room can be reckoned without moving pods.
        only_room = not any(self._filtered.states) and not self._incoming.spec.ports
        room = _Room(self._evaluator, self._incoming) if only_room and not self._cluster.held_on else None
        welcome = self._evaluator.row_table(self._incoming).tier.base >= 0
        if room is not None:
            hopeless = welcome & room.lacking(pods, there, self._fail, welcome)
            pods = pods[~hopeless[self._cluster.pods.node[pods]]]
        candidates = []
        for row, lower in self._by_row(pods).items():
            if room is not None and welcome[row]:
                found = room.candidate(row, lower, self._budgets)
            else:
                found = self._try(row, lower)
            if not isinstance(found, Candidate):
                self._fail(found)
            elif found.victims:
                candidates.append(found)
        candidates.sort(key=lambda c: c.node)
        if not candidates:
            return PreemptionResult(failed=self._failed)
        costs = [self._cost(c) for c in candidates]
        least = min(costs)
        chosen = tuple(c for c, cost in zip(candidates, costs, strict=True) if cost == least)
        return PreemptionResult(tuple(candidates), chosen, self._failed)

    def _lower(self, rows: Rows) -> Rows:
        """Give the pods of lower priority on some rows."""
        pods, length = self._cluster.pods, self._cluster.pods.length
        wanted = np.zeros(self._cluster.nodes.size + 1, dtype=bool)
        wanted[rows] = True  # a pod without a node has -1, which picks the last
        lower = pods.priority[:length] < (self._incoming.pod.spec.priority or 0)
        return np.flatnonzero(wanted[pods.node[:length]] & lower)

    def _by_row(self, chosen: Rows) -> dict[int, list[int]]:
        """Sort pods by their rows, the most important first."""
        pods = self._cluster.pods
        columns = (pods.node, pods.priority, pods.start, pods.order)
        found: dict[int, list[tuple[int, int, int, int]]] = {}
        for pod, row, priority, start, order in zip(
            chosen.tolist(), *(c[chosen].tolist() for c in columns), strict=True
        ):
            found.setdefault(row, []).append((-priority, start, order, pod))
        return {row: [entry[3] for entry in sorted(found[row])] for row in sorted(found)}

    def _fail(self, messages: tuple[str, ...], number: int = 1) -> None:
        for message in messages:
            self._failed[message] = self._failed.get(message, 0) + number

    def _try(self, row: int, lower: list[int]) -> Candidate | tuple[str, ...]:
        """Take all lower pods away, and put back those that need not go; or say why that does not help."""
        cluster, evaluator, incoming = self._cluster, self._evaluator, self._incoming
        states = [state.clone() if state is not None else None for state in self._filtered.states]
        mark = cluster.mark()
        try:
            for pod in lower:
                self._move(states, pod, row, -1)
            verdict = evaluator.filter_row_with_holds(incoming, states, row)
            if verdict != PASS:
                return evaluator.reason(incoming, row, verdict).messages
            broken = self._budgets.violating(lower)
            victims = set()
            for pod in _in_turn(lower, broken):
                self._move(states, pod, row, 1)
                if evaluator.filter_row_with_holds(incoming, states, row) != PASS:
                    self._move(states, pod, row, -1)
                    victims.add(pod)
        finally:
            cluster.rollback(mark)
        return _candidate(cluster, row, lower, victims, broken)

    def _move(self, states: States, pod: int, row: int, number: int) -> None:
        """Take a pod off the node, or put it back."""
        cluster = self._cluster
        key = cluster.pods.keys[pod]
        obj = cluster.pods.objects[pod]
        assert obj is not None
        if number < 0:
            cluster.apply(Unbind(key))
        else:
            cluster.apply(Bind(key, cluster.nodes.names[row]))
        for state in states:
            if state is not None:
                state.update_with_pod(obj, cluster.spec_of(pod), row, number)

    def _cost(self, candidate: Candidate) -> tuple[int, int, int, int, int]:
        """Order candidates: budgets broken, highest priority, sum of priorities, number, and who started latest."""
        pods = self._cluster.pods
        rows = [pods.row_of[key] for key in candidate.victims]
        priorities = [int(pods.priority[row]) for row in rows]
        highest = max(priorities)
        started = [int(pods.start[r]) for r, p in zip(rows, priorities, strict=True) if p == highest]
        earliest = min(started, default=NOT_STARTED)
        return (candidate.violations, highest, sum(p + 2**31 for p in priorities), len(rows), -earliest)


def _in_turn(lower: list[int], broken: set[int]) -> list[int]:
    """Give the order in which pods are put back: first those whose eviction would break a budget."""
    return [p for p in lower if p in broken] + [p for p in lower if p not in broken]


def _candidate(cluster: Cluster, row: int, lower: list[int], victims: set[int], broken: set[int]) -> Candidate:
    keys = tuple(cluster.pods.keys[pod] for pod in lower if pod in victims)
    return Candidate(cluster.nodes.names[row], keys, len(victims & broken))


class _Room:
    """What is left on nodes, for a pod that is refused for want of room alone."""

    def __init__(self, evaluator: Evaluator, incoming: IncomingPod) -> None:
        self._cluster = evaluator.cluster
        wanted = evaluator.room_wanted(incoming)
        self._places = [place for place, _ in wanted]
        self._amounts = [amount for _, amount in wanted]
        self._usages: dict[int, list[int]] = {}

    def _usage(self, pod: int) -> list[int]:
        number = int(self._cluster.pods.usage[pod])
        usage = self._usages.get(number)
        if usage is None:
            usage = self._usages[number] = self._cluster.usages.matrix[number, self._places].tolist()
        return usage

    def lacking(self, pods: Rows, rows: Rows, fail: Callable[[tuple[str, ...], int], None], welcome: Bools) -> Bools:
        """Say which rows lack something even without some pods, and tell what, all in one go."""
        cluster, nodes = self._cluster, self._cluster.nodes
        short = np.zeros(nodes.size, dtype=bool)
        rows = rows[welcome[rows]]
        for place, amount in zip(self._places, self._amounts, strict=True):
            freed = np.zeros(nodes.size, dtype=np.int64)
            np.add.at(freed, cluster.pods.node[pods], cluster.usages.matrix[cluster.pods.usage[pods], place])
            left = nodes.alloc[place, rows] - nodes.used[place, rows] + freed[rows]
            lacks = rows[left < amount]
            if len(lacks):
                short[lacks] = True
                fail((shortage(cluster.resources.names, place),), len(lacks))
        return short

    def candidate(self, row: int, lower: list[int], budgets: Budgets) -> Candidate | tuple[str, ...]:
        """Find the victims on a node; or say what it lacks even without all lower pods."""
        nodes = self._cluster.nodes
        left = (nodes.alloc[self._places, row] - nodes.used[self._places, row]).tolist()
        usages = {pod: self._usage(pod) for pod in lower}
        for usage in usages.values():
            left = [a + b for a, b in zip(left, usage, strict=True)]
        left = [a - b for a, b in zip(left, self._amounts, strict=True)]
        if min(left) < 0:
            names = self._cluster.resources.names
            return tuple(shortage(names, place) for place, a in zip(self._places, left, strict=True) if a < 0)
        broken = budgets.violating(lower)
        victims = set()
        for pod in _in_turn(lower, broken):
            after = [a - b for a, b in zip(left, usages[pod], strict=True)]
            if min(after) < 0:
                victims.add(pod)
            else:
                left = after
        return _candidate(self._cluster, row, lower, victims, broken)
