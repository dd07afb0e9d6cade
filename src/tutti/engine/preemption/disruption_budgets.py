"""Disruption budgets: how many evictions each still allows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from msgspec.structs import replace

from tutti.cluster.cluster import Cluster
from tutti.kube.objects import Pod, PodDisruptionBudget
from tutti.kube.selectors import Selector, parse_label_selector


class Budgets:
    """How many evictions each disruption budget still allows."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._budgets: list[tuple[PodDisruptionBudget, Selector]] = []
        self._known: dict[tuple[str, tuple[tuple[str, str], ...]], list[int]] = {}
        for key in sorted(cluster.objects["PodDisruptionBudget"]):
            budget = cluster.objects["PodDisruptionBudget"][key]
            assert isinstance(budget, PodDisruptionBudget)
            selector = parse_label_selector(budget.spec.selector)
            if selector.requirements:  # without any, a budget protects nothing
                self._budgets.append((budget, selector))

    def __bool__(self) -> bool:
        return bool(self._budgets)

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

    def protects(self, pods: Iterable[int]) -> bool:
        """Say whether one of the pods is under a budget."""
        found = (self._cluster.pods.objects[pod] for pod in pods)
        metas = [obj.metadata for obj in found if obj is not None]
        return any(meta.labels and self._protecting(meta.namespace or "default", meta.labels) for meta in metas)

    def spend(self, victim: Pod) -> Iterator[PodDisruptionBudget]:
        """Give the budgets of a pod as its eviction leaves them: their controller counts one disruption less."""
        meta = victim.metadata
        for place in self._protecting(meta.namespace or "default", meta.labels or {}):
            budget, selector = self._budgets[place]
            allowed = budget.status.disruptions_allowed or 0
            if allowed:
                spent = replace(budget, status=replace(budget.status, disruptions_allowed=allowed - 1))
                self._budgets[place] = spent, selector
                yield spent

    def _breaks(self, namespace: str, name: str, labels: dict[str, str] | None, allowed: list[int]) -> bool:
        if not labels:
            return False
        for i in self._protecting(namespace, labels):
            if name in (self._budgets[i][0].status.disrupted_pods or {}):
                continue
            allowed[i] -= 1
            if allowed[i] < 0:
                return True
        return False

    def _protecting(self, namespace: str, labels: dict[str, str]) -> list[int]:
        """Give the budgets that select pods with these labels; pods of one workload are looked at once."""
        key = (namespace, tuple(sorted(labels.items())))
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = [
                i
                for i, (budget, selector) in enumerate(self._budgets)
                if (budget.metadata.namespace or "default") == namespace and selector.matches(labels)
            ]
        return found
