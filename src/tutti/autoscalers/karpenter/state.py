"""The cluster as Karpenter's provisioner reads it: nodes, running pods, and pods that need a node.

Contract: pure; the cluster is only read. Pods are in the order of the cluster's pod table. A pod with a nominated node
counts as running there. Pods that are gated or terminating, or that belong to a DaemonSet or a Node, are left out.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from tutti.cluster.cluster import Cluster
from tutti.cluster.spec_classes import SpecClass
from tutti.kube.objects import Namespace, Node, Pod
from tutti.kube.workloads.owners import controller_of, is_active


class RunningPod(NamedTuple):
    """A pod on a node."""

    pod: Pod
    spec: SpecClass
    node: str


class ProvisionablePod(NamedTuple):
    """A pending pod that needs a node."""

    pod: Pod
    spec: SpecClass


class ClusterState(NamedTuple):
    """See the module's contract."""

    nodes: list[Node]
    running: list[RunningPod]
    pending: list[ProvisionablePod]
    namespaces: Mapping[str, Mapping[str, str]]
    """The labels of each namespace."""


def cluster_state(cluster: Cluster) -> ClusterState:
    """Read a cluster."""
    nodes, pods = cluster.nodes, cluster.pods
    active = [node for row in nodes.row_of.values() if (node := nodes.objects[row]) is not None and nodes.on[row]]
    running, pending = list[RunningPod](), list[ProvisionablePod]()
    for key, row in pods.row_of.items():
        pod, node_name = pods.objects[row], pods.node_names[row]
        if pod is None:
            continue
        needs_node = node_name is None and is_provisionable(pod)
        if needs_node and (hold := cluster.holds.get(key)) is not None and hold.node in nodes.row_of:
            node_name = hold.node
        if node_name is not None:
            running.append(RunningPod(pod, cluster.spec_of(row), node_name))
        elif needs_node:
            pending.append(ProvisionablePod(pod, cluster.spec_of(row)))
    spaces = [each for each in cluster.objects["Namespace"].values() if isinstance(each, Namespace)]
    return ClusterState(active, running, pending, {each.metadata.name: each.metadata.labels or {} for each in spaces})


def is_provisionable(pod: Pod) -> bool:
    """Return whether Karpenter would provision a node for a pod that has none."""
    if pod.spec.scheduling_gates or not is_active(pod):
        return False
    owner = controller_of(pod)
    return owner is None or owner.kind not in ("DaemonSet", "Node")
