"""Disruption budgets as they stand: what their controller wrote, or would write.

Contract: pure. A budget of a live cluster says itself how many disruptions it allows. One from a file has no status:
then it is counted, as its controller counts: the healthy pods that it selects, less those that must stay. A pod is
healthy if it has a node and is ready, as far as it says that.
"""

from __future__ import annotations

from collections import Counter

from msgspec.structs import replace

from tutti.autoscalers.cluster_autoscaler.drainability import BudgetsLeft
from tutti.cluster.cluster import Cluster
from tutti.kube.objects import Pod, PodDisruptionBudget
from tutti.kube.selectors import parse_label_selector
from tutti.kube.workloads.owners import is_active

_Labels = tuple[tuple[str, str], ...]


def budgets_of(cluster: Cluster) -> BudgetsLeft:
    """The budgets of a cluster, each with what it still allows."""
    found = [
        each for each in cluster.objects[PodDisruptionBudget.KIND].values() if isinstance(each, PodDisruptionBudget)
    ]
    if all(each.status.disruptions_allowed is not None for each in found):
        return BudgetsLeft(found)
    counts = _counts(cluster)
    return BudgetsLeft([_counted(each, counts) for each in found])


def _counts(cluster: Cluster) -> dict[str, dict[_Labels, tuple[int, int]]]:
    """How many pods there are, and how many of them are healthy, by namespace and labels."""
    there: Counter[tuple[str, _Labels]] = Counter()
    healthy: Counter[tuple[str, _Labels]] = Counter()
    pods = cluster.pods
    for row in pods.row_of.values():
        pod = pods.objects[row]
        if pod is not None and is_active(pod):
            key = (pod.metadata.namespace or "default", tuple(sorted((pod.metadata.labels or {}).items())))
            there[key] += 1
            healthy[key] += pods.node[row] >= 0 and _is_ready(pod)
    counts: dict[str, dict[_Labels, tuple[int, int]]] = {}
    for (home, labels), number in there.items():
        counts.setdefault(home, {})[labels] = number, healthy[home, labels]
    return counts


def _is_ready(pod: Pod) -> bool:
    for condition in pod.status.conditions or ():
        if condition.type == "Ready":
            return condition.status == "True"
    return pod.status.phase in (None, "", "Running")


def _counted(budget: PodDisruptionBudget, counts: dict[str, dict[_Labels, tuple[int, int]]]) -> PodDisruptionBudget:
    if budget.status.disruptions_allowed is not None:
        return budget
    spec, selector = budget.spec, parse_label_selector(budget.spec.selector)
    there = healthy = 0
    for labels, (number, ready) in counts.get(budget.metadata.namespace or "default", {}).items():
        if selector.matches(dict(labels)):
            there, healthy = there + number, healthy + ready
    if spec.max_unavailable is not None:
        must = there - _share(spec.max_unavailable, there)
    else:
        must = _share(spec.min_available if spec.min_available is not None else 1, there)
    return replace(budget, status=replace(budget.status, disruptions_allowed=max(healthy - must, 0)))


def _share(text: int | str, whole: int) -> int:
    """A number of pods, or a percentage of them, rounded up; `kube.validate` has seen to its form."""
    if isinstance(text, int):
        return text
    return -(-int(text.removesuffix("%")) * whole // 100)
