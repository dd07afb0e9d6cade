"""Which pool a node is of, and how it was bought, as the clouds' labels tell it."""

from __future__ import annotations

from collections.abc import Iterable

from tutti.cluster.node_edits import is_cordoned, is_passing
from tutti.kube.objects import Node
from tutti.market.price_book import ON_DEMAND, SPOT

POOL_LABELS = (
    "karpenter.sh/nodepool",
    "eks.amazonaws.com/nodegroup",
    "alpha.eksctl.io/nodegroup-name",
    "cloud.google.com/gke-nodepool",
    "kubernetes.azure.com/agentpool",
    "agentpool",
    "worker.gardener.cloud/pool",
)
"""Labels with the name of a node's pool; of several, the first counts."""
_CAPACITY_LABELS = {
    "karpenter.sh/capacity-type": {"spot": SPOT, "on-demand": ON_DEMAND, "reserved": "reserved"},
    "eks.amazonaws.com/capacityType": {"SPOT": SPOT, "ON_DEMAND": ON_DEMAND, "CAPACITY_BLOCK": "reserved"},
    "cloud.google.com/gke-spot": {"true": SPOT},
    "cloud.google.com/gke-preemptible": {"true": SPOT},
    "kubernetes.azure.com/scalesetpriority": {"spot": SPOT, "regular": ON_DEMAND},
    "node-lifecycle": {"spot": SPOT},
    "node.kubernetes.io/lifecycle": {"spot": SPOT, "normal": ON_DEMAND},
}
"""What each cloud calls the way in which a node was bought."""


def pool_of(node: Node) -> tuple[str, str] | None:
    """The label with the name of a node's pool, and the name."""
    labels = node.metadata.labels or {}
    return next(((key, labels[key]) for key in POOL_LABELS if labels.get(key)), None)


def capacity_type_of(node: Node) -> str:
    """How a node was bought; on demand when it does not say."""
    labels = node.metadata.labels or {}
    for key, words in _CAPACITY_LABELS.items():
        if found := words.get(labels.get(key, "")):
            return found
    return ON_DEMAND


def capacity_labels(capacity_type: str, nodes: Iterable[Node]) -> dict[str, str]:
    """The labels that tell how a node was bought, as these nodes bear them; Karpenter's when none does."""
    there = [node.metadata.labels or {} for node in nodes]
    keys = [key for key in _CAPACITY_LABELS if any(key in labels for labels in there)]
    found: dict[str, str] = {}
    for key in keys or ["karpenter.sh/capacity-type"]:
        word = next((word for word, meaning in _CAPACITY_LABELS[key].items() if meaning == capacity_type), None)
        if word is not None:
            found[key] = word
    return found


def is_ready(node: Node) -> bool:
    """Whether a node says that it is ready, or says nothing."""
    return all(each.status == "True" for each in node.status.conditions or () if each.type == "Ready")


def best_example(nodes: Iterable[Node]) -> Node:
    """The node that shows best what a new one would be: ready, with nothing on it that will pass."""

    def order(node: Node) -> tuple[bool, bool, str]:
        troubled = is_cordoned(node) or any(is_passing(taint) for taint in node.spec.taints or ())
        return not is_ready(node), troubled, node.metadata.name

    return min(nodes, key=order)
