"""Changed nodes: new nodes like an existing node, cordoned and uncordoned nodes.

Contract: pure functions that return objects and edits and change nothing. A new node has the labels, size, CSI drivers,
daemon pods and static pods of the existing node. It has none of the other pods, no images, and no taint that a cordon
or a transient problem left.
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
_TRANSIENT_PREFIXES = ("node.kubernetes.io/", "node.cloudprovider.kubernetes.io/", "karpenter.sh/disrupted")
_REMOVAL_TAINTS = ("ToBeDeletedByClusterAutoscaler", "DeletionCandidateOfClusterAutoscaler")


def node_of(cluster: Cluster, name: str) -> Node:
    """Return a node by name."""
    node = cluster.nodes.objects[cluster.node_row(name)]
    assert node is not None
    return node


def pods_on(cluster: Cluster, node: str) -> list[Pod]:
    """Return the pods on a node, sorted by name."""
    keys = sorted(cluster.pods.keys[row] for row in cluster.pods_on_row[cluster.node_row(node)])
    return [cluster.pod(key) for key in keys]


def belongs_to_node(pod: Pod) -> bool:
    """Return whether a pod exists because of its node: a static pod or a pod of a DaemonSet."""
    owner = controller_of(pod)
    return (owner is not None and owner.kind in ("DaemonSet", "Node")) or _MIRROR in (pod.metadata.annotations or {})


def is_transient_taint(taint: Taint) -> bool:
    """Return whether a taint marks a cordon, a problem or the node's removal, not the node's purpose."""
    return taint.key.startswith(_TRANSIENT_PREFIXES) or taint.key in _REMOVAL_TAINTS


def cordoned(node: Node) -> Node:
    """Return the node as `kubectl cordon` leaves it, with the taint that the node controller adds."""
    taints = [taint for taint in node.spec.taints or () if taint.key != CORDON.key]
    return replace(node, spec=replace(node.spec, unschedulable=True, taints=[*taints, CORDON]))


def uncordoned(node: Node) -> Node:
    """Return the node as `kubectl uncordon` leaves it."""
    taints = [taint for taint in node.spec.taints or () if taint.key != CORDON.key]
    return replace(node, spec=replace(node.spec, unschedulable=None, taints=taints or None))


def is_cordoned(node: Node) -> bool:
    """Return whether a node is cordoned, by `spec.unschedulable` or by the cordon taint."""
    return bool(node.spec.unschedulable) or any(taint.key == CORDON.key for taint in node.spec.taints or ())


def new_node_edits(cluster: Cluster, name: str, count: int) -> Iterator[Edit]:
    """Yield edits that add nodes like an existing node, with its daemon and static pods."""
    node, csi_node = node_of(cluster, name), cluster.objects[CSINode.KIND].get(name)
    node_pods = [pod for pod in pods_on(cluster, name) if belongs_to_node(pod) and not pod.metadata.deletion_timestamp]
    number = 0
    for _ in range(count):
        number += 1
        while (new_name := f"{name}-new-{number}") in cluster.nodes.row_of:
            number += 1
        yield Put(new_node_like(node, new_name))
        if csi_node is not None:
            yield Put(replace(csi_node, metadata=replace(csi_node.metadata, name=new_name, uid=None)))
        for pod in node_pods:
            yield Put(new_node_pod(pod, new_name))


def new_node_like(node: Node, name: str) -> Node:
    """Return a new node with the labels, taints and size of an existing node."""
    labels = dict(node.metadata.labels or {})
    if HOSTNAME in labels:
        labels[HOSTNAME] = name
    metadata = replace(node.metadata, name=name, uid=made_uid(f"Node/{name}"), labels=labels, creation_timestamp=None)
    taints = [taint for taint in node.spec.taints or () if not is_transient_taint(taint)]
    spec = replace(node.spec, unschedulable=None, taints=taints or None, provider_id=None)
    return replace(node, metadata=metadata, spec=spec, status=replace(node.status, images=None, conditions=None))


def new_node_pod(pod: Pod, node: str) -> Pod:
    """Return the copy of a daemon or static pod for a new node."""
    name = f"{pod.metadata.name}-{node}"
    metadata = replace(pod.metadata, name=name, uid=made_uid(f"{pod.key}-{node}"), creation_timestamp=None)
    affinity = affinity_to_node(pod.spec.affinity, node)
    return replace(
        pod,
        metadata=metadata,
        spec=replace(pod.spec, node_name=node, affinity=affinity),
        status=replace(pod.status, start_time=None),
    )
