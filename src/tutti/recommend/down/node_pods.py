"""Who leaves a node that goes, and who keeps it.

Contract: pure. The rules are Cluster Autoscaler's (`recommend.evictable`), and three more: a pod that nobody would make
again stays even if it is marked as safe to evict, because nothing is lost here; Karpenter's ``do-not-disrupt`` holds;
and so does that the eviction API refuses a pod under several budgets.
"""

from __future__ import annotations

from tutti.autoscalers.cluster_autoscaler.drainability import DrainabilityOutcome, DrainabilityRules
from tutti.cluster.cluster import Cluster
from tutti.cluster.node_edits import belongs_to_node, pods_on
from tutti.kube.objects import Pod
from tutti.kube.workloads.owners import controller_of, is_active

DO_NOT_DISRUPT = "karpenter.sh/do-not-disrupt"
WORDS = {
    "NotReplicated": "has no controller that would make it again",
    "ControllerNotFound": "has a controller that is gone: nobody would make it again",
    "LocalStorageRequested": "has local storage, which it would lose",
    "NotSafeToEvictAnnotation": "is annotated as not safe to evict",
    "UnmovableKubeSystemPod": "is a young pod of kube-system without a disruption budget",
    "NotEnoughPdb": "has a disruption budget that allows no eviction now",
}


def leaving(cluster: Cluster, node: str, rules: DrainabilityRules) -> list[Pod]:
    """The pods that must find another node before this one can go, the most important first."""
    there = [pod for pod in pods_on(cluster, node) if not belongs_to_node(pod) and is_active(pod)]
    movers = [pod for pod in there if rules.drainable(pod).outcome is not DrainabilityOutcome.SKIP_DRAIN]
    return sorted(movers, key=lambda pod: (-(pod.spec.priority or 0), pod.key))


def blocking(pod: Pod, rules: DrainabilityRules) -> tuple[str, str] | None:
    """Why a pod keeps its node, as a word and in words; None if it may leave."""
    if (pod.metadata.annotations or {}).get(DO_NOT_DISRUPT) == "true":
        return "BlockedByPod", f"is annotated with {DO_NOT_DISRUPT}"
    drainable = rules.drainable(pod)
    if drainable.outcome is DrainabilityOutcome.WAIT_FOR_COMPLETION:
        return "BlockedByOnCompletionPod", "is to finish first"
    if drainable.outcome is DrainabilityOutcome.BLOCK_DRAIN:
        return "BlockedByPod", WORDS.get(drainable.reason, drainable.reason)
    if controller_of(pod) is None:
        return "BlockedByPod", WORDS["NotReplicated"]
    left = rules.budgets.left(pod)
    if left is not None and left < 1:  # marked as safe to evict, which the eviction API does not know
        return "BlockedByPod", WORDS["NotEnoughPdb"]
    if rules.budgets.number(pod) > 1:
        return "BlockedByPod", "is under several disruption budgets, which the eviction API refuses"
    return None
