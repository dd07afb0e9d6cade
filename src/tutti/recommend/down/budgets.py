"""Disruption budgets as they stand: what their controller wrote, or would write.

Contract: pure. A budget of a live cluster says itself how many disruptions it allows. One from a file has no status:
then it is counted, as its controller counts: the pods that it selects and that run, less those that must stay.
"""

from __future__ import annotations

from msgspec.structs import replace

from tutti.cluster.cluster import Cluster
from tutti.kube.objects import PodDisruptionBudget
from tutti.kube.owners import is_active
from tutti.kube.selectors import parse_label_selector
from tutti.recommend.drain import BudgetsLeft


def budgets_of(cluster: Cluster) -> BudgetsLeft:
    """The budgets of a cluster, each with what it still allows."""
    found = cluster.objects[PodDisruptionBudget.KIND].values()
    return BudgetsLeft([_counted(each, cluster) for each in found if isinstance(each, PodDisruptionBudget)])


def _counted(budget: PodDisruptionBudget, cluster: Cluster) -> PodDisruptionBudget:
    if budget.status.disruptions_allowed is not None:
        return budget
    home, selector = budget.metadata.namespace or "default", parse_label_selector(budget.spec.selector)
    pods = cluster.pods
    there = running = 0
    for row in pods.row_of.values():
        pod = pods.objects[row]
        if pod is None or (pod.metadata.namespace or "default") != home or not is_active(pod):
            continue
        if selector.matches(pod.metadata.labels or {}):
            there += 1
            running += pods.node[row] >= 0
    spec = budget.spec
    if spec.max_unavailable is not None:
        must = there - _share(spec.max_unavailable, there)
    else:
        must = _share(spec.min_available if spec.min_available is not None else 1, there)
    return replace(budget, status=replace(budget.status, disruptions_allowed=max(running - must, 0)))


def _share(text: int | str, whole: int) -> int:
    """A number of pods, or a percentage of them, rounded up."""
    if isinstance(text, int):
        return text
    number = int(text.removesuffix("%") or 0)
    return -(-number * whole // 100) if text.endswith("%") else number
