"""The pods that must move before a node is removed, and the pods that block the removal.

Contract: pure. The rules are Cluster Autoscaler's (`autoscalers.cluster_autoscaler.drainability`), and three more: a
pod without a controller blocks even if it is annotated as safe to evict, because no pod may be lost; Karpenter's
``do-not-disrupt`` is obeyed; a pod under several disruption budgets blocks, because the eviction API refuses it.
"""

from __future__ import annotations

from tutti.autoscalers.cluster_autoscaler.drainability import DrainabilityOutcome, DrainabilityRules
from tutti.cluster.cluster import Cluster
from tutti.cluster.node_edits import belongs_to_node, pods_on
from tutti.kube.objects import Pod
from tutti.kube.workloads.owners import controller_of, is_active

DO_NOT_DISRUPT = "karpenter.sh/do-not-disrupt"
POD_REASONS = {
    "NotReplicated": "has no controller that would recreate it",
    "ControllerNotFound": "has a controller that no longer exists, so it would not be recreated",
    "LocalStorageRequested": "has local storage, which it would lose",
    "NotSafeToEvictAnnotation": "is annotated as not safe to evict",
    "UnmovableKubeSystemPod": "is a young pod of kube-system without a disruption budget",
    "NotEnoughPdb": "has a disruption budget that allows no eviction now",
}


def pods_to_move(cluster: Cluster, node: str, rules: DrainabilityRules) -> list[Pod]:
    """Return the pods that must move before the node can be removed, highest priority first."""
    own_pods = [pod for pod in pods_on(cluster, node) if not belongs_to_node(pod) and is_active(pod)]
    drainable_pods = [pod for pod in own_pods if rules.drainable(pod).outcome is not DrainabilityOutcome.SKIP_DRAIN]
    return sorted(drainable_pods, key=lambda pod: (-(pod.spec.priority or 0), pod.key))


def blocking_reason(pod: Pod, rules: DrainabilityRules) -> tuple[str, str] | None:
    """Return why a pod blocks the removal of its node, as one word and as text; None if it may move."""
    if (pod.metadata.annotations or {}).get(DO_NOT_DISRUPT) == "true":
        return "BlockedByPod", f"is annotated with {DO_NOT_DISRUPT}"
    drainable = rules.drainable(pod)
    if drainable.outcome is DrainabilityOutcome.WAIT_FOR_COMPLETION:
        return "BlockedByOnCompletionPod", "must finish first"
    if drainable.outcome is DrainabilityOutcome.BLOCK_DRAIN:
        return "BlockedByPod", POD_REASONS.get(drainable.reason, drainable.reason)
    if controller_of(pod) is None:
        return "BlockedByPod", POD_REASONS["NotReplicated"]
    left = rules.budgets.left(pod)
    if left is not None and left < 1:  # annotated as safe to evict, but the eviction API ignores that annotation
        return "BlockedByPod", POD_REASONS["NotEnoughPdb"]
    if rules.budgets.number(pod) > 1:
        return "BlockedByPod", "is under several disruption budgets, which the eviction API refuses"
    return None
