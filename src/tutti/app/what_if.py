"""What-ifs: cordon, drain, add and scale as edits of a cluster.

Contract: `apply_what_if` changes the given cluster and returns the edits with notes; the snapshot has the workloads.
Nodes are added first, so that they can copy a node that the same what-if drains; then workloads are scaled; then nodes
are cordoned and drained.
- A drained node is cordoned, and its pods are pending again under their names, without a creation time because their
  controllers would create new ones. Pods of DaemonSets and static pods stay; terminating pods are removed.
- An added node has the labels, size, CSI drivers, and daemon and static pods of the named node, but not its other pods,
  its images, its cordon, or taints of temporary problems.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from msgspec.structs import replace

from tutti.app.scale_workload import scale_edits
from tutti.cluster.cluster import Cluster
from tutti.cluster.edits import Edit, Put, Remove, Unbind
from tutti.cluster.node_edits import belongs_to_node, cordoned, new_node_edits, node_of, pods_on
from tutti.exceptions import InputError
from tutti.kube.objects import Pod, PodStatus
from tutti.kube.reading.snapshot import Snapshot
from tutti.kube.workloads.owners import controller_of
from tutti.kube.workloads.size_limits import MAX_PODS, too_many_pods


class WhatIf(NamedTuple):
    """The changes of a what-if."""

    add: tuple[tuple[str, int], ...] = ()
    """Names of nodes, and the number of nodes like each to add."""
    scale: tuple[tuple[str, int], ...] = ()
    """Workloads as ``KIND/NAME``, and the new number of pods of each."""
    cordon: tuple[str, ...] = ()
    drain: tuple[str, ...] = ()


def apply_what_if(
    snapshot: Snapshot, cluster: Cluster, what_if: WhatIf, *, namespace: str | None = None
) -> tuple[list[Edit], list[str]]:
    """Change the cluster; return the edits, and notes that describe them."""
    for option, counts in (("--add", what_if.add), ("--scale", what_if.scale)):
        for name, count in counts:
            check_count(name, str(count), option)
    applied: list[Edit] = []
    notes = []

    def apply(edits: Iterable[Edit]) -> list[Edit]:
        new_edits = list(edits)
        for edit in new_edits:
            cluster.apply(edit)
        applied.extend(new_edits)
        return new_edits

    for node, count in what_if.add:
        apply(new_node_edits(cluster, node, count))
    for workload, count in what_if.scale:
        edits, note = scale_edits(snapshot, workload, count, namespace=namespace)
        apply(edits)
        notes.append(note)
    for name in (*what_if.cordon, *what_if.drain):
        apply([Put(cordoned(node_of(cluster, name)))])
    notes.extend(_drain_note(name, apply(drain_edits(cluster, name))) for name in what_if.drain)
    return applied, notes


def check_count(name: str, count: str, option: str) -> None:
    """Raise `InputError` for a number of nodes or pods that is negative, or above the limit."""
    if not count.isdecimal():
        raise InputError(f"want a whole number that is not negative, got {count}", obj=option, field=name)
    if len(count) > len(str(MAX_PODS)) or int(count) > MAX_PODS:  # Python refuses to read numbers of 4,300 digits
        problem = (
            too_many_pods(count) if option == "--scale" else f"{count} is more than the {MAX_PODS} that can be added"
        )
        raise InputError(problem, obj=option, field=name)


def drain_edits(cluster: Cluster, name: str) -> Iterator[Edit]:
    """Yield the edits that make the pods of a drained node pending again."""
    for pod in pods_on(cluster, name):
        if belongs_to_node(pod):
            continue
        if pod.metadata.deletion_timestamp is not None:
            yield Remove(Pod.KIND, pod.key)
        else:
            metadata = replace(pod.metadata, creation_timestamp=None)
            yield Unbind(pod.key)
            yield Put(replace(pod, metadata=metadata, spec=replace(pod.spec, node_name=None), status=_PENDING))


_PENDING = PodStatus(phase="Pending")


def _drain_note(name: str, edits: Sequence[Edit]) -> str:
    drained = [edit.obj for edit in edits if isinstance(edit, Put)]
    uncontrolled = sum(controller_of(pod) is None for pod in drained)
    note = f"{name} is drained of {len(drained)} pod{'' if len(drained) == 1 else 's'}"
    if not uncontrolled:
        return note
    return f"{note}, of which {uncontrolled} without a controller would not be created again"
