"""The utilization of a node as Cluster Autoscaler computes it.

Contract: pure. The utilization is the larger of the cpu share and the memory share: requests of the node's pods over
allocatable. On a node with GPUs only the GPU share counts. The caller leaves out pods that have been terminating for
too long. With `ignore_daemons`, the requests of DaemonSet pods are subtracted from allocatable instead. Requests are
summed in thousandths and divided as floats, as in Cluster Autoscaler, so that a node at exactly the threshold gets the
same result.
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
    """Return the utilization of a node; None if its allocatable cpu or memory is unknown."""
    pods = tuple(pods)
    if has_gpu(node):
        # GPUs that are not ready count as unused.
        return _share(node, pods, GPU, ignore_daemons=ignore_daemons) or 0.0
    cpu = _share(node, pods, "cpu", ignore_daemons=ignore_daemons)
    memory = _share(node, pods, "memory", ignore_daemons=ignore_daemons)
    return None if cpu is None or memory is None else max(cpu, memory)


def has_gpu(node: Node) -> bool:
    """Return whether a node has GPUs, or will have them when they are ready."""
    labels = node.metadata.labels or {}
    return any(label in labels for label in GPU_LABELS) or _allocatable(node, GPU) > 0


def _share(node: Node, pods: Iterable[Pod], resource: str, *, ignore_daemons: bool) -> float | None:
    total, requested = _allocatable(node, resource), 0
    if not total:
        return None
    unit = 1 if resource == "cpu" else 1000
    for pod in pods:
        amount = incoming_requests(pod).get(resource, 0) * unit
        if ignore_daemons and is_daemon(pod):
            total -= amount
        else:
            requested += amount
    return requested / total if total else None


def _allocatable(node: Node, resource: str) -> int:
    """Return an allocatable amount in thousandths."""
    return milli((node.status.allocatable or {}).get(resource, "0"))
