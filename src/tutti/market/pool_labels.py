"""The pool and the capacity type of a node, by the labels of the clouds; and the best example of a pool's nodes."""

from __future__ import annotations

from collections.abc import Iterable

from tutti.cluster.node_edits import is_cordoned, is_transient_taint
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
"""Labels with the name of a node's pool; the first one present counts."""
_CAPACITY_LABELS = {
    "karpenter.sh/capacity-type": {"spot": SPOT, "on-demand": ON_DEMAND, "reserved": "reserved"},
    "eks.amazonaws.com/capacityType": {"SPOT": SPOT, "ON_DEMAND": ON_DEMAND, "CAPACITY_BLOCK": "reserved"},
    "cloud.google.com/gke-spot": {"true": SPOT},
    "cloud.google.com/gke-preemptible": {"true": SPOT},
    "kubernetes.azure.com/scalesetpriority": {"spot": SPOT, "regular": ON_DEMAND},
    "node-lifecycle": {"spot": SPOT},
    "node.kubernetes.io/lifecycle": {"spot": SPOT, "normal": ON_DEMAND},
}
"""Each cloud's label and values for the capacity type."""


def pool_of(node: Node) -> tuple[str, str] | None:
    """Return the pool label of a node and its value; None without such a label."""
    labels = node.metadata.labels or {}
    return next(((key, labels[key]) for key in POOL_LABELS if labels.get(key)), None)


def capacity_type_of(node: Node) -> str:
    """Return the capacity type of a node; on-demand if no label tells."""
    labels = node.metadata.labels or {}
    for key, words in _CAPACITY_LABELS.items():
        if found := words.get(labels.get(key, "")):
            return found
    return ON_DEMAND


def capacity_labels(capacity_type: str, nodes: Iterable[Node]) -> dict[str, str]:
    """Return labels for a capacity type, with the keys that these nodes use; Karpenter's key if they use none."""
    label_sets = [node.metadata.labels or {} for node in nodes]
    keys = [key for key in _CAPACITY_LABELS if any(key in labels for labels in label_sets)]
    found: dict[str, str] = {}
    for key in keys or ["karpenter.sh/capacity-type"]:
        word = next((word for word, meaning in _CAPACITY_LABELS[key].items() if meaning == capacity_type), None)
        if word is not None:
            found[key] = word
    return found


def is_ready(node: Node) -> bool:
    """Return whether a node is ready, or has no such condition."""
    return all(each.status == "True" for each in node.status.conditions or () if each.type == "Ready")


def best_example(nodes: Iterable[Node]) -> Node:
    """Return the best example of a new node: ready, and without cordon or temporary taints."""

    def order(node: Node) -> tuple[bool, bool, str]:
        has_passing_state = is_cordoned(node) or any(is_transient_taint(taint) for taint in node.spec.taints or ())
        return not is_ready(node), has_passing_state, node.metadata.name

    return min(nodes, key=order)
