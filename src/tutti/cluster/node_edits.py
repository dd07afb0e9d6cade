"""Nodes that are not there, or not like this: new ones like one that is there, cordoned and uncordoned ones.

Contract: pure; functions give objects and edits and change nothing. A new node is like the one named: labels, size, CSI
drivers, its daemon and static pods; not its other pods, not its images, and not what a cordon or a passing trouble left
on it.
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace

from tutti.cluster.cluster import Cluster
from tutti.cluster.edits import Edit, Put
from tutti.kube.generated_names import made_uid
from tutti.kube.objects import CSINode, Node, Pod, Taint
from tutti.kube.workloads.daemon_sets import affinity_to_node
from tutti.kube.workloads.owners import controller_of

HOSTNAME = "kubernetes.io/hostname"
CORDON = Taint(key="node.kubernetes.io/unschedulable", effect="NoSchedule")
_MIRROR = "kubernetes.io/config.mirror"
_PASSING = ("node.kubernetes.io/", "node.cloudprovider.kubernetes.io/", "karpenter.sh/disrupted")
_LEAVING = ("ToBeDeletedByClusterAutoscaler", "DeletionCandidateOfClusterAutoscaler")


def node_of(cluster: Cluster, name: str) -> Node:
    """A node by its name."""
    node = cluster.nodes.objects[cluster.node_row(name)]
    assert node is not None
    return node


def pods_on(cluster: Cluster, node: str) -> list[Pod]:
    """The pods on a node, by name."""
    keys = sorted(cluster.pods.keys[row] for row in cluster.on_node[cluster.node_row(node)])
    return [cluster.pod(key) for key in keys]


def belongs_to_node(pod: Pod) -> bool:
    """Whether a pod is there because of its node: a static pod, or one of a DaemonSet."""
    owner = controller_of(pod)
    return (owner is not None and owner.kind in ("DaemonSet", "Node")) or _MIRROR in (pod.metadata.annotations or {})


def is_passing(taint: Taint) -> bool:
    """Whether a taint tells of a cordon, of trouble, or of the node's removal, rather than what the node is for."""
    return taint.key.startswith(_PASSING) or taint.key in _LEAVING


def cordoned(node: Node) -> Node:
    """The node as `kubectl cordon` leaves it, with the taint that its controller adds."""
    taints = [taint for taint in node.spec.taints or () if taint.key != CORDON.key]
    return replace(node, spec=replace(node.spec, unschedulable=True, taints=[*taints, CORDON]))


def uncordoned(node: Node) -> Node:
    """The node as `kubectl uncordon` leaves it."""
    taints = [taint for taint in node.spec.taints or () if taint.key != CORDON.key]
    return replace(node, spec=replace(node.spec, unschedulable=None, taints=taints or None))


def is_cordoned(node: Node) -> bool:
    """Whether a node takes no new pods because somebody said so."""
    return bool(node.spec.unschedulable) or any(taint.key == CORDON.key for taint in node.spec.taints or ())


def added(cluster: Cluster, name: str, count: int) -> Iterator[Edit]:
    """New nodes like one that is there, with the pods that every such node has."""
    node, csi = node_of(cluster, name), cluster.objects[CSINode.KIND].get(name)
    companions = [pod for pod in pods_on(cluster, name) if belongs_to_node(pod) and not pod.metadata.deletion_timestamp]
    number = 0
    for _ in range(count):
        number += 1
        while (new := f"{name}-new-{number}") in cluster.nodes.row_of:
            number += 1
        yield Put(like(node, new))
        if csi is not None:
            yield Put(replace(csi, metadata=replace(csi.metadata, name=new, uid=None)))
        for pod in companions:
            yield Put(companion(pod, new))


def like(node: Node, name: str) -> Node:
    """A fresh node of the same make."""
    labels = dict(node.metadata.labels or {})
    if HOSTNAME in labels:
        labels[HOSTNAME] = name
    metadata = replace(node.metadata, name=name, uid=made_uid(f"Node/{name}"), labels=labels, creation_timestamp=None)
    taints = [taint for taint in node.spec.taints or () if not is_passing(taint)]
    spec = replace(node.spec, unschedulable=None, taints=taints or None, provider_id=None)
    return replace(node, metadata=metadata, spec=spec, status=replace(node.status, images=None, conditions=None))


def companion(pod: Pod, node: str) -> Pod:
    """The pod that a new node has in the place of an old one's."""
    name = f"{pod.metadata.name}-{node}"
    metadata = replace(pod.metadata, name=name, uid=made_uid(f"{pod.key}-{node}"), creation_timestamp=None)
    affinity = affinity_to_node(pod.spec.affinity, node)
    return replace(
        pod,
        metadata=metadata,
        spec=replace(pod.spec, node_name=node, affinity=affinity),
        status=replace(pod.status, start_time=None),
    )
