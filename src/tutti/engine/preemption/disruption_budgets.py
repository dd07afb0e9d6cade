"""Disruption budgets: which pods they select, and how many disruptions they still allow.

Contract: a budget without a selector selects no pod. For an empty selector, programs differ, and both rules are here:
kube-scheduler's preemption ignores such a budget (`Budgets`); for the eviction API of policy/v1 and Cluster Autoscaler
it selects every pod of its namespace (hard `Budgets`, `RemainingBudgets`). kube-scheduler also ignores pods without
labels. The eviction API refuses a pod with two budgets, and asks no budget for a pod that has not started. Both rules
use the status of a budget. A budget from a file may have no status: `remaining_budgets` then computes what the
disruption controller would write.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from msgspec.structs import replace

from tutti.cluster.cluster import Cluster
from tutti.kube.objects import Pod, PodDisruptionBudget
from tutti.kube.selectors import parse_label_selector
from tutti.kube.workloads.owners import is_active

_Labels = tuple[tuple[str, str], ...]


class BudgetSelectors:
    """Budgets sorted by key, and which of them select a pod; results are cached by namespace and labels."""

    def __init__(self, budgets: Iterable[PodDisruptionBudget], *, empty_selects_all: bool) -> None:
        ordered = sorted(budgets, key=lambda budget: budget.key)
        parsed = [(budget, parse_label_selector(budget.spec.selector)) for budget in ordered]
        if not empty_selects_all:
            parsed = [(budget, selector) for budget, selector in parsed if selector.requirements]
        self.budgets = [budget for budget, _ in parsed]
        self._selectors = [(budget.metadata.namespace or "default", selector) for budget, selector in parsed]
        self._selecting: dict[tuple[str, _Labels], tuple[int, ...]] = {}

    def selecting(self, pod: Pod) -> tuple[int, ...]:
        """Return the positions in `budgets` of those that select a pod."""
        namespace, labels = pod.metadata.namespace or "default", pod.metadata.labels or {}
        key = (namespace, tuple(sorted(labels.items())))
        positions = self._selecting.get(key)
        if positions is None:
            positions = self._selecting[key] = tuple(
                position
                for position, (budget_namespace, selector) in enumerate(self._selectors)
                if budget_namespace == namespace and selector.matches(labels)
            )
        return positions


class Budgets:
    """The budgets of a cluster by kube-scheduler's rules; hard budgets by those of the eviction API."""

    def __init__(self, cluster: Cluster, *, hard: bool = False) -> None:
        self._cluster, self.hard = cluster, hard
        self._selectors = BudgetSelectors(_budgets_of(cluster), empty_selects_all=hard)
        self._budgets = self._selectors.budgets

    def __bool__(self) -> bool:
        return bool(self._budgets)

    def violating(self, pods: Iterable[int]) -> set[int]:
        """Return the pods whose eviction, in this order, would violate a budget."""
        if not self._budgets:
            return set()
        allowed = [budget.status.disruptions_allowed or 0 for budget in self._budgets]
        return {row for row in pods if (pod := self._cluster.pods.objects[row]) and self._violates(pod, allowed)}

    def protects(self, pods: Iterable[int]) -> bool:
        """Return whether a budget selects one of the pods."""
        objects = (self._cluster.pods.objects[row] for row in pods)
        return any(self._selecting(pod) for pod in objects if pod is not None)

    def spend(self, victim: Pod) -> Iterator[PodDisruptionBudget]:
        """Count the eviction of a pod; yield each of its budgets with one allowed disruption less."""
        for position in self._selecting(victim) if self.hard else self._selectors.selecting(victim):
            budget = self._budgets[position]
            allowed = budget.status.disruptions_allowed or 0
            if allowed:
                spent = replace(budget, status=replace(budget.status, disruptions_allowed=allowed - 1))
                self._budgets[position] = spent
                yield spent

    def _selecting(self, pod: Pod) -> tuple[int, ...]:
        """Return the positions of the budgets that an eviction of a pod concerns."""
        is_ignored = pod.status.phase == "Pending" if self.hard else not pod.metadata.labels
        return () if is_ignored else self._selectors.selecting(pod)

    def _violates(self, pod: Pod, allowed: list[int]) -> bool:
        selecting = self._selecting(pod)
        if self.hard:
            for position in selecting:
                allowed[position] -= 1
            return len(selecting) > 1 or any(allowed[position] < 0 for position in selecting)
        for position in selecting:
            if pod.metadata.name in (self._budgets[position].status.disrupted_pods or {}):
                continue
            allowed[position] -= 1
            if allowed[position] < 0:
                return True
        return False


class RemainingBudgets:
    """How many disruptions each budget still allows, by the eviction API's rules; `copy` copies only the counts."""

    def __init__(self, budgets: Iterable[PodDisruptionBudget] = ()) -> None:
        self._selectors = BudgetSelectors(budgets, empty_selects_all=True)
        self._left = [budget.status.disruptions_allowed or 0 for budget in self._selectors.budgets]

    def copy(self) -> RemainingBudgets:
        """Return the same budgets with counts of their own."""
        copied = RemainingBudgets()
        copied._left, copied._selectors = self._left.copy(), self._selectors
        return copied

    def number(self, pod: Pod) -> int:
        """Return how many budgets select a pod; the eviction API refuses a pod with several budgets."""
        return len(self._selectors.selecting(pod))

    def left(self, pod: Pod) -> int | None:
        """Return how many disruptions the tightest budget of a pod still allows; None if no budget selects the pod."""
        return min((self._left[position] for position in self._selectors.selecting(pod)), default=None)

    def spend(self, pod: Pod) -> None:
        """Count one disruption. The count may become negative: a simulated move is never refused."""
        for position in self._selectors.selecting(pod):
            self._left[position] -= 1

    def allow_together(self, pods: Iterable[Pod]) -> bool:
        """Return whether pods can be evicted at once, without waiting for the replacement of any of them."""
        needed = Counter(position for pod in pods for position in self._selectors.selecting(pod))
        return all(count <= self._left[position] for position, count in needed.items())


def remaining_budgets(cluster: Cluster) -> RemainingBudgets:
    """Return the budgets of a cluster; a missing status is computed as the disruption controller would."""
    budgets = _budgets_of(cluster)
    if any(each.status.disruptions_allowed is None for each in budgets):
        counts = _pod_counts(cluster)
        budgets = [_with_status(each, counts.get(each.metadata.namespace or "default", {})) for each in budgets]
    return RemainingBudgets(budgets)


def _budgets_of(cluster: Cluster) -> list[PodDisruptionBudget]:
    objects = cluster.objects[PodDisruptionBudget.KIND].values()
    return [each for each in objects if isinstance(each, PodDisruptionBudget)]


def _pod_counts(cluster: Cluster) -> dict[str, dict[_Labels, tuple[int, int]]]:
    """Return the number of pods and the number of healthy pods, by namespace and labels.

    A pod is healthy if it has a node and does not report that it is not ready.
    """
    all_pods: Counter[tuple[str, _Labels]] = Counter()
    healthy: Counter[tuple[str, _Labels]] = Counter()
    pods = cluster.pods
    for row in pods.row_of.values():
        pod = pods.objects[row]
        if pod is not None and is_active(pod):
            key = (pod.metadata.namespace or "default", tuple(sorted((pod.metadata.labels or {}).items())))
            all_pods[key] += 1
            healthy[key] += pods.node[row] >= 0 and _is_ready(pod)
    counts: dict[str, dict[_Labels, tuple[int, int]]] = {}
    for (namespace, labels), number in all_pods.items():
        counts.setdefault(namespace, {})[labels] = number, healthy[namespace, labels]
    return counts


def _is_ready(pod: Pod) -> bool:
    for condition in pod.status.conditions or ():
        if condition.type == "Ready":
            return condition.status == "True"
    return pod.status.phase in (None, "", "Running")


def _with_status(budget: PodDisruptionBudget, counts: dict[_Labels, tuple[int, int]]) -> PodDisruptionBudget:
    """Return a budget with its allowed disruptions: the healthy pods that it selects, less those that must stay."""
    if budget.status.disruptions_allowed is not None:
        return budget
    spec, selector = budget.spec, parse_label_selector(budget.spec.selector)
    expected = healthy = 0
    for labels, (number, ready) in counts.items():
        if selector.matches(dict(labels)):
            expected, healthy = expected + number, healthy + ready
    if spec.max_unavailable is not None:
        must_stay = expected - _pods_of(spec.max_unavailable, expected)
    else:
        must_stay = _pods_of(spec.min_available if spec.min_available is not None else 1, expected)
    return replace(budget, status=replace(budget.status, disruptions_allowed=max(healthy - must_stay, 0)))


def _pods_of(value: int | str, whole: int) -> int:
    """Return a number of pods, or a percentage of them, rounded up; validation has checked the format."""
    if isinstance(value, int):
        return value
    return -(-int(value.removesuffix("%")) * whole // 100)
