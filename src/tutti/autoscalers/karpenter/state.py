"""The cluster as Karpenter's provisioner reads it: nodes, pods on nodes, and pods that it provisions for.

Contract: pure; the cluster is only read, and pods come in the order of the cluster's pod table. A pod with a nominated
node counts as running there. Pods that are gated, terminating, or owned by a DaemonSet or a Node are not provisioned.
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
    """Labels by namespace."""


def cluster_state(cluster: Cluster) -> ClusterState:
    """Read a cluster."""
    nodes, pods = cluster.nodes, cluster.pods
    found = [node for row in nodes.row_of.values() if (node := nodes.objects[row]) is not None and nodes.on[row]]
    running, pending = list[RunningPod](), list[ProvisionablePod]()
    for key, row in pods.row_of.items():
        pod, where = pods.objects[row], pods.node_names[row]
        if pod is None:
            continue
        provisionable = where is None and is_provisionable(pod)
        if provisionable and (hold := cluster.holds.get(key)) is not None and hold.node in nodes.row_of:
            where = hold.node
        if where is not None:
            running.append(RunningPod(pod, cluster.spec_of(row), where))
        elif provisionable:
            pending.append(ProvisionablePod(pod, cluster.spec_of(row)))
    spaces = [each for each in cluster.objects["Namespace"].values() if isinstance(each, Namespace)]
    return ClusterState(found, running, pending, {each.metadata.name: each.metadata.labels or {} for each in spaces})


def is_provisionable(pod: Pod) -> bool:
    """Whether Karpenter would look for a node for a pod that has none."""
    if pod.spec.scheduling_gates or not is_active(pod):
        return False
    owner = controller_of(pod)
    return owner is None or owner.kind not in ("DaemonSet", "Node")
