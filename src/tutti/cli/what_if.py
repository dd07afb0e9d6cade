"""What-ifs: cordon, drain, add and scale as edits on the picture, never on the cluster itself.

Contract: functions here give the edits for one question and change nothing. Nodes are added first, so that they can be
like one that is drained in the same breath; then workloads are scaled, then nodes are cordoned and drained.
- A drained node is cordoned and its pods are pending again under their names, as new as their controllers would make
  them; pods of DaemonSets and static pods stay, pods that were on their way out are gone.
- An added node is like the one named: labels, size, CSI drivers, its daemon and static pods; not its other pods, not
  its images, and not what a cordon or a passing trouble left on it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from tutti.cli.scaling import scaled
from tutti.cluster import Cluster, Edit, Put, Remove
from tutti.exceptions import InputError
from tutti.kube.daemon_sets import bound_to
from tutti.kube.names import made_uid
from tutti.kube.objects import CSINode, Node, Pod, PodStatus, Taint
from tutti.kube.owners import controller_of
from tutti.kube.snapshot import Snapshot

HOSTNAME = "kubernetes.io/hostname"
CORDON = Taint(key="node.kubernetes.io/unschedulable", effect="NoSchedule")
_MIRROR = "kubernetes.io/config.mirror"
_PASSING = ("node.kubernetes.io/", "node.cloudprovider.kubernetes.io/", "karpenter.sh/disrupted")
_LEAVING = ("ToBeDeletedByClusterAutoscaler", "DeletionCandidateOfClusterAutoscaler")


def apply_what_ifs(
    snapshot: Snapshot,
    cluster: Cluster,
    *,
    add: Sequence[str] = (),
    scale: Sequence[str] = (),
    cordon: Sequence[str] = (),
    drain: Sequence[str] = (),
    namespace: str | None = None,
) -> list[str]:
    """Change the picture as asked, and give remarks on what was done."""
    notes = []
    for wish in add:
        node, count = count_of(wish, "--add")
        _apply(cluster, added(cluster, node, count))
    for wish in scale:
        workload, count = count_of(wish, "--scale")
        edits, note = scaled(snapshot, workload, count, namespace=namespace)
        _apply(cluster, edits)
        notes.append(note)
    for name in (*cordon, *drain):
        _apply(cluster, [Put(cordoned(node_of(cluster, name)))])
    for name in drain:
        edits = list(drained(cluster, name))
        _apply(cluster, edits)
        notes.append(_drain_note(name, edits))
    return notes


def _apply(cluster: Cluster, edits: Iterator[Edit] | Sequence[Edit]) -> None:
    for edit in list(edits):
        cluster.apply(edit)


def count_of(text: str, option: str) -> tuple[str, int]:
    """The two sides of ``NAME=COUNT``, as an option has it."""
    shape = "KIND/NAME" if option == "--scale" else "NODE"
    name, _, count = text.rpartition("=")
    if not name or not count.isascii() or not count.isdigit():
        raise InputError(f'want {shape}=COUNT, got "{text}"', obj=option)
    return name, int(count)


def node_of(cluster: Cluster, name: str) -> Node:
    """A node by its name."""
    node = cluster.nodes.objects[cluster.node_row(name)]
    assert node is not None
    return node


def pods_on(cluster: Cluster, node: str) -> list[Pod]:
    """The pods on a node, by name."""
    keys = sorted(cluster.pods.keys[row] for row in cluster.on_node[cluster.node_row(node)])
    return [cluster.pod(key) for key in keys]


def cordoned(node: Node) -> Node:
    """The node as `kubectl cordon` leaves it, with the taint that its controller adds."""
    taints = [taint for taint in node.spec.taints or () if taint.key != CORDON.key]
    return replace(node, spec=replace(node.spec, unschedulable=True, taints=[*taints, CORDON]))


def drained(cluster: Cluster, name: str) -> Iterator[Edit]:
    """What becomes of the pods of a node that is drained."""
    for pod in pods_on(cluster, name):
        if belongs_to_node(pod):
            continue
        if pod.metadata.deletion_timestamp is not None:
            yield Remove(Pod.KIND, pod.key)
        else:
            metadata = replace(pod.metadata, creation_timestamp=None)
            yield Put(replace(pod, metadata=metadata, spec=replace(pod.spec, node_name=None), status=_PENDING))


_PENDING = PodStatus(phase="Pending")


def belongs_to_node(pod: Pod) -> bool:
    """Whether a pod is there because of its node: a static pod, or one of a DaemonSet."""
    owner = controller_of(pod)
    return (owner is not None and owner.kind in ("DaemonSet", "Node")) or _MIRROR in (pod.metadata.annotations or {})


def _drain_note(name: str, edits: Sequence[Edit]) -> str:
    moved = [edit.obj for edit in edits if isinstance(edit, Put)]
    alone = sum(controller_of(pod) is None for pod in moved)
    note = f"{name} is drained of {len(moved)} pod{'' if len(moved) == 1 else 's'}"
    return f"{note}, of which {alone} without a controller would not come back by themselves" if alone else note


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
            yield Put(_companion(pod, new))


def like(node: Node, name: str) -> Node:
    """A fresh node of the same make."""
    labels = dict(node.metadata.labels or {})
    if HOSTNAME in labels:
        labels[HOSTNAME] = name
    metadata = replace(node.metadata, name=name, uid=made_uid(f"Node/{name}"), labels=labels, creation_timestamp=None)
    taints = [t for t in node.spec.taints or () if not t.key.startswith(_PASSING) and t.key not in _LEAVING]
    spec = replace(node.spec, unschedulable=None, taints=taints or None, provider_id=None)
    return replace(node, metadata=metadata, spec=spec, status=replace(node.status, images=None, conditions=None))


def _companion(pod: Pod, node: str) -> Pod:
    """The pod that a new node has in the place of an old one's."""
    name = f"{pod.metadata.name}-{node}"
    metadata = replace(pod.metadata, name=name, uid=made_uid(f"{pod.key}-{node}"), creation_timestamp=None)
    affinity = bound_to(pod.spec.affinity, node)
    return replace(
        pod,
        metadata=metadata,
        spec=replace(pod.spec, node_name=node, affinity=affinity),
        status=replace(pod.status, start_time=None),
    )
