"""DefaultPreemption: whom to evict so that a pod fits.

As kube-scheduler does it: on every node whose refusal evictions could cure, all pods of lower priority are taken away;
if the pod then fits they are put back one by one, those whose eviction would break a budget first, the more important
before the less, and stay where the pod still fits. Of the nodes left, the one whose victims matter least is chosen. All
of it is a what-if: the cluster is as before afterwards.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec
import numpy as np

from tutti.cluster.cluster import Cluster
from tutti.cluster.columns import Bools
from tutti.cluster.edits import Bind, Unbind
from tutti.cluster.pods import NOT_STARTED
from tutti.engine.engine import Engine
from tutti.engine.judge import Filtered, States
from tutti.engine.plugins.base import Asked
from tutti.engine.verdict import PASS, AttemptError, Reason
from tutti.kube.objects import PodDisruptionBudget
from tutti.kube.selectors import Selector, parse_label_selector


class Candidate(msgspec.Struct, frozen=True):
    """A node that evictions would make fit."""

    node: str
    victims: tuple[str, ...]
    """The pods to evict, the most important first."""
    violations: int = 0
    """How many of the evictions break a disruption budget."""


class Preemption(msgspec.Struct, frozen=True):
    """All candidates, and the nodes (equally good ones, by name) that are best."""

    candidates: tuple[Candidate, ...] = ()
    chosen: tuple[Candidate, ...] = ()


def preempt(engine: Engine, pod: str) -> Preemption | None:
    """Say what evictions would make a pod fit that fits nowhere; None when it may not preempt."""
    asked = engine.judge.ask(engine.cluster.pod_row(pod))
    if not engine.profile.preempts or asked.pod.spec.preemption_policy == "Never":
        return None
    try:
        filtered = engine.judge.filter(asked)
    except AttemptError:
        return None
    if isinstance(filtered, Reason) or filtered.feasible.any():
        return None  # no pre-filter refuses all nodes for a reason that evictions could cure
    curable = engine.judge.curable(asked, filtered)
    if not _may_preempt(engine.cluster, asked, curable):
        return None
    return _Evictions(engine, asked, filtered).run(np.flatnonzero(curable).tolist())


def _may_preempt(cluster: Cluster, asked: Asked, curable: Bools) -> bool:
    """Say no while pods that the pod has already had evicted are still leaving its node."""
    name = asked.pod.status.nominated_node_name
    row = cluster.nodes.row_of.get(name) if name else None
    if row is None or not curable[row]:
        return True
    priority = asked.pod.spec.priority or 0
    return not any(cluster.pods.priority[p] < priority and _leaving(cluster, p) for p in cluster.on_node[row])


def _leaving(cluster: Cluster, pod: int) -> bool:
    """Say whether a pod is terminating because the scheduler evicted it."""
    if not cluster.pods.terminating[pod]:
        return False
    obj = cluster.pods.objects[pod]
    conditions = (obj.status.conditions if obj is not None else None) or ()
    return any(
        c.type == "DisruptionTarget" and c.status == "True" and c.reason == "PreemptionByScheduler" for c in conditions
    )


class _Budgets:
    """How many evictions each disruption budget still allows."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._budgets: list[tuple[PodDisruptionBudget, Selector]] = []
        for key in sorted(cluster.objects["PodDisruptionBudget"]):
            budget = cluster.objects["PodDisruptionBudget"][key]
            assert isinstance(budget, PodDisruptionBudget)
            selector = parse_label_selector(budget.spec.selector)
            if selector.requirements:  # without any, a budget protects nothing
                self._budgets.append((budget, selector))

    def violating(self, pods: Iterable[int]) -> set[int]:
        """Give the pods whose eviction, in this order, would break a budget."""
        if not self._budgets:
            return set()
        allowed = [budget.status.disruptions_allowed or 0 for budget, _ in self._budgets]
        broken = set()
        for pod in pods:
            obj = self._cluster.pods.objects[pod]
            assert obj is not None
            if self._breaks(obj.metadata.namespace or "default", obj.metadata.name, obj.metadata.labels, allowed):
                broken.add(pod)
        return broken

    def _breaks(self, namespace: str, name: str, labels: dict[str, str] | None, allowed: list[int]) -> bool:
        if not labels:
            return False
        for i, (budget, selector) in enumerate(self._budgets):
            if (budget.metadata.namespace or "default") != namespace or not selector.matches(labels):
                continue
            if name in (budget.status.disrupted_pods or {}):
                continue
            allowed[i] -= 1
            if allowed[i] < 0:
                return True
        return False


class _Evictions:
    """The dry runs for one pod."""

    def __init__(self, engine: Engine, asked: Asked, filtered: Filtered) -> None:
        self._judge, self._asked, self._filtered = engine.judge, asked, filtered
        self._cluster = engine.cluster
        self._budgets = _Budgets(engine.cluster)

    def run(self, rows: list[int]) -> Preemption:
        """Try every row that evictions could help."""
        candidates = [c for row in rows if (c := self._try(row)) is not None]
        candidates.sort(key=lambda c: c.node)
        if not candidates:
            return Preemption()
        costs = [self._cost(c) for c in candidates]
        least = min(costs)
        chosen = tuple(c for c, cost in zip(candidates, costs, strict=True) if cost == least)
        return Preemption(tuple(candidates), chosen)

    def _try(self, row: int) -> Candidate | None:
        cluster, pods = self._cluster, self._cluster.pods
        priority = self._asked.pod.spec.priority or 0
        lower = [p for p in cluster.on_node[row] if pods.priority[p] < priority]
        if not lower:
            return None
        lower.sort(key=lambda p: (-int(pods.priority[p]), int(pods.start[p]), pods.keys[p]))
        prepared = [state.fork() if state is not None else None for state in self._filtered.states]
        mark = cluster.mark()
        try:
            for pod in lower:
                self._move(prepared, pod, row, -1)
            if self._judge.judge_with_holds(self._asked, prepared, row) != PASS:
                return None
            broken = self._budgets.violating(lower)
            victims = []
            violations = 0
            for pod in (*(p for p in lower if p in broken), *(p for p in lower if p not in broken)):
                self._move(prepared, pod, row, 1)
                if self._judge.judge_with_holds(self._asked, prepared, row) != PASS:
                    self._move(prepared, pod, row, -1)
                    victims.append(pod)
                    violations += pod in broken
        finally:
            cluster.rollback(mark)
        order = {pod: place for place, pod in enumerate(lower)}
        victims.sort(key=order.__getitem__)
        if not victims:
            return None
        return Candidate(cluster.nodes.names[row], tuple(pods.keys[p] for p in victims), violations)

    def _move(self, prepared: States, pod: int, row: int, number: int) -> None:
        """Take a pod off the node, or put it back."""
        cluster = self._cluster
        key = cluster.pods.keys[pod]
        obj = cluster.pods.objects[pod]
        assert obj is not None
        if number < 0:
            cluster.apply(Unbind(key))
        else:
            cluster.apply(Bind(key, cluster.nodes.names[row]))
        for state in prepared:
            if state is not None:
                state.moved(obj, cluster.spec_of(pod), row, number)

    def _cost(self, candidate: Candidate) -> tuple[int, int, int, int, int]:
        """Order candidates: budgets broken, highest priority, sum of priorities, number, and who started latest."""
        pods = self._cluster.pods
        rows = [pods.row_of[key] for key in candidate.victims]
        priorities = [int(pods.priority[row]) for row in rows]
        highest = max(priorities)
        started = [int(pods.start[r]) for r, p in zip(rows, priorities, strict=True) if p == highest]
        earliest = min(started, default=NOT_STARTED)
        return (candidate.violations, highest, sum(p + 2**31 for p in priorities), len(rows), -earliest)
