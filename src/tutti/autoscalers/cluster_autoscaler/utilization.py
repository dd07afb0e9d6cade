"""How much of a node is asked for, as Cluster Autoscaler counts it.

Contract: pure. The utilization_of is the larger one of cpu and memory, the requests of a node's pods over what the node
has to give; of a node with GPUs only those count. Pods that should long be gone are left out; daemons too if that is
wished, with what they ask for taken off the node. Requests are summed in thousandths and divided as floats, as there,
so that a node at exactly the threshold falls on the same side.
"""

from __future__ import annotations

from collections.abc import Iterable

from tutti.autoscalers.cluster_autoscaler.drainability import is_daemon
from tutti.kube.objects import Node, Pod
from tutti.kube.quantity import milli
from tutti.kube.resources import incoming_requests

GPU = "nvidia.com/gpu"
GPU_LABELS = ("k8s.amazonaws.com/accelerator", "cloud.google.com/gke-accelerator", "accelerator")
"""Labels that clouds put on nodes with GPUs, also while the GPUs are not ready yet."""


def utilization_of(node: Node, pods: Iterable[Pod], *, ignore_daemons: bool = False) -> float | None:
    """The share of a node that its pods ask for; None if the node does not say what it has."""
    pods = tuple(pods)
    if has_gpu(node):
        # A GPU that is not ready keeps no node.
        return _share(node, pods, GPU, ignore_daemons=ignore_daemons) or 0.0
    cpu = _share(node, pods, "cpu", ignore_daemons=ignore_daemons)
    memory = _share(node, pods, "memory", ignore_daemons=ignore_daemons)
    return None if cpu is None or memory is None else max(cpu, memory)


def has_gpu(node: Node) -> bool:
    """Whether a node has GPUs, or will have."""
    labels = node.metadata.labels or {}
    return any(label in labels for label in GPU_LABELS) or _allocatable(node, GPU) > 0


def _share(node: Node, pods: Iterable[Pod], resource: str, *, ignore_daemons: bool) -> float | None:
    total, asked = _allocatable(node, resource), 0
    if not total:
        return None
    unit = 1 if resource == "cpu" else 1000
    for pod in pods:
        amount = incoming_requests(pod).get(resource, 0) * unit
        if ignore_daemons and is_daemon(pod):
            total -= amount
        else:
            asked += amount
    return asked / total if total else None


def _allocatable(node: Node, resource: str) -> int:
    """In thousandths."""
    return milli((node.status.allocatable or {}).get(resource, "0"))
