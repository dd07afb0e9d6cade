"""Disruption budgets: which pods they select, and how many disruptions they still allow.

Contract: a budget without a selector selects no pod. With an empty selector, programs differ, and both rules are here:
kube-scheduler's preemption ignores such a budget (`Budgets`); the eviction API of policy/v1 and Cluster Autoscaler let
it select every pod of its namespace (`RemainingBudgets`). kube-scheduler also ignores pods without labels. Both go by
what a budget's status says. A budget from a file may have no status: `remaining_budgets` then computes what the
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
    """Budgets by key, and which of them select a pod; pods with the same labels are looked at once."""

    def __init__(self, budgets: Iterable[PodDisruptionBudget], *, empty_selects_all: bool) -> None:
        ordered = sorted(budgets, key=lambda budget: budget.key)
        parsed = [(budget, parse_label_selector(budget.spec.selector)) for budget in ordered]
        if not empty_selects_all:
            parsed = [(budget, selector) for budget, selector in parsed if selector.requirements]
        self.budgets = [budget for budget, _ in parsed]
        self._selectors = [(budget.metadata.namespace or "default", selector) for budget, selector in parsed]
        self._known: dict[tuple[str, _Labels], tuple[int, ...]] = {}

    def selecting(self, pod: Pod) -> tuple[int, ...]:
        """The places in `budgets` of those that select a pod."""
        namespace, labels = pod.metadata.namespace or "default", pod.metadata.labels or {}
        key = (namespace, tuple(sorted(labels.items())))
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = tuple(
                place
                for place, (home, selector) in enumerate(self._selectors)
                if home == namespace and selector.matches(labels)
            )
        return found


class Budgets:
    """The budgets of a cluster by kube-scheduler's rules."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._selectors = BudgetSelectors(_budgets_of(cluster), empty_selects_all=False)
        self._budgets = self._selectors.budgets

    def __bool__(self) -> bool:
        return bool(self._budgets)

    def violating(self, pods: Iterable[int]) -> set[int]:
        """The pods whose eviction, in this order, would violate a budget."""
        if not self._budgets:
            return set()
        allowed = [budget.status.disruptions_allowed or 0 for budget in self._budgets]
        return {row for row in pods if (pod := self._cluster.pods.objects[row]) and self._violates(pod, allowed)}

    def protects(self, pods: Iterable[int]) -> bool:
        """Whether one of the pods is under a budget."""
        found = (self._cluster.pods.objects[row] for row in pods)
        return any(pod.metadata.labels and self._selectors.selecting(pod) for pod in found if pod is not None)

    def spend(self, victim: Pod) -> Iterator[PodDisruptionBudget]:
        """The budgets of a pod as its eviction leaves them: their controller counts one disruption less."""
        for place in self._selectors.selecting(victim):
            budget = self._budgets[place]
            allowed = budget.status.disruptions_allowed or 0
            if allowed:
                spent = replace(budget, status=replace(budget.status, disruptions_allowed=allowed - 1))
                self._budgets[place] = spent
                yield spent

    def _violates(self, pod: Pod, allowed: list[int]) -> bool:
        if not pod.metadata.labels:
            return False
        for place in self._selectors.selecting(pod):
            if pod.metadata.name in (self._budgets[place].status.disrupted_pods or {}):
                continue
            allowed[place] -= 1
            if allowed[place] < 0:
                return True
        return False


class RemainingBudgets:
    """How many disruptions each budget still allows, by the eviction API's rules; `copy` costs the numbers only."""

    def __init__(self, budgets: Iterable[PodDisruptionBudget] = ()) -> None:
        self._selectors = BudgetSelectors(budgets, empty_selects_all=True)
        self._left = [budget.status.disruptions_allowed or 0 for budget in self._selectors.budgets]

    def copy(self) -> RemainingBudgets:
        """The same budgets, to be spent apart."""
        twin = RemainingBudgets()
        twin._left, twin._selectors = self._left.copy(), self._selectors
        return twin

    def number(self, pod: Pod) -> int:
        """How many budgets select a pod; the eviction API refuses a pod with several."""
        return len(self._selectors.selecting(pod))

    def left(self, pod: Pod) -> int | None:
        """How many disruptions the tightest budget of a pod still allows; None if no budget selects the pod."""
        return min((self._left[place] for place in self._selectors.selecting(pod)), default=None)

    def spend(self, pod: Pod) -> None:
        """Count one disruption. The rest may fall below 0: a simulated move is never refused."""
        for place in self._selectors.selecting(pod):
            self._left[place] -= 1

    def allow_together(self, pods: Iterable[Pod]) -> bool:
        """Whether pods can be evicted at once, without one waiting for the replacement of another."""
        needed = Counter(place for pod in pods for place in self._selectors.selecting(pod))
        return all(count <= self._left[place] for place, count in needed.items())


def remaining_budgets(cluster: Cluster) -> RemainingBudgets:
    """The budgets of a cluster; those without a status get the one that the disruption controller would write."""
    budgets = _budgets_of(cluster)
    if any(each.status.disruptions_allowed is None for each in budgets):
        counts = _pod_counts(cluster)
        budgets = [_with_status(each, counts.get(each.metadata.namespace or "default", {})) for each in budgets]
    return RemainingBudgets(budgets)


def _budgets_of(cluster: Cluster) -> list[PodDisruptionBudget]:
    found = cluster.objects[PodDisruptionBudget.KIND].values()
    return [each for each in found if isinstance(each, PodDisruptionBudget)]


def _pod_counts(cluster: Cluster) -> dict[str, dict[_Labels, tuple[int, int]]]:
    """How many pods there are, and how many of them are healthy, by namespace and labels.

    A pod is healthy if it has a node and does not say that it is not ready.
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
    """A budget with what it allows: the healthy pods that it selects, less those that must stay."""
    if budget.status.disruptions_allowed is not None:
        return budget
    spec, selector = budget.spec, parse_label_selector(budget.spec.selector)
    expected = healthy = 0
    for labels, (number, ready) in counts.items():
        if selector.matches(dict(labels)):
            expected, healthy = expected + number, healthy + ready
    if spec.max_unavailable is not None:
        must_stay = expected - _scaled(spec.max_unavailable, expected)
    else:
        must_stay = _scaled(spec.min_available if spec.min_available is not None else 1, expected)
    return replace(budget, status=replace(budget.status, disruptions_allowed=max(healthy - must_stay, 0)))


def _scaled(value: int | str, whole: int) -> int:
    """A number of pods, or a percentage of them, rounded up; validation has checked its form."""
    if isinstance(value, int):
        return value
    return -(-int(value.removesuffix("%")) * whole // 100)
