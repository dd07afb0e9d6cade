"""What-ifs: cordon, drain, add and scale as edits of a cluster.

Contract: `apply_what_if` changes the cluster that it is given and returns the edits with remarks on them; the snapshot
tells which workloads there are. Nodes are added first, so that they can be like a node that is drained by the same
what-if; then workloads are scaled, then nodes are cordoned and drained.
- A drained node is cordoned and its pods are pending again under their names, as new as their controllers would make
  them; pods of DaemonSets and static pods stay, pods that were terminating are gone.
- An added node is like the one named: labels, size, CSI drivers, its daemon and static pods; not its other pods, not
  its images, and not what a cordon or passing trouble left on it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from msgspec.structs import replace

from tutti.app.scale_workload import scale_edits
from tutti.cluster.cluster import Cluster
from tutti.cluster.edits import Edit, Put, Remove
from tutti.cluster.node_edits import belongs_to_node, cordoned, new_node_edits, node_of, pods_on
from tutti.exceptions import InputError
from tutti.kube.objects import Pod, PodStatus
from tutti.kube.reading.snapshot import Snapshot
from tutti.kube.workloads.owners import controller_of
from tutti.kube.workloads.size_limits import MOST_PODS, too_many


class WhatIf(NamedTuple):
    """What is to be changed."""

    add: tuple[tuple[str, int], ...] = ()
    """Nodes, and how many more like each."""
    scale: tuple[tuple[str, int], ...] = ()
    """Workloads as ``KIND/NAME``, and how many pods each is to have."""
    cordon: tuple[str, ...] = ()
    drain: tuple[str, ...] = ()


def apply_what_if(
    snapshot: Snapshot, cluster: Cluster, what_if: WhatIf, *, namespace: str | None = None
) -> tuple[list[Edit], list[str]]:
    """Change the cluster; give the edits, and remarks on what they do."""
    for option, counts in (("--add", what_if.add), ("--scale", what_if.scale)):
        for name, count in counts:
            check_count(name, str(count), option)
    done: list[Edit] = []
    notes = []

    def apply(edits: Iterable[Edit]) -> list[Edit]:
        made = list(edits)
        for edit in made:
            cluster.apply(edit)
        done.extend(made)
        return made

    for node, count in what_if.add:
        apply(new_node_edits(cluster, node, count))
    for workload, count in what_if.scale:
        edits, note = scale_edits(snapshot, workload, count, namespace=namespace)
        apply(edits)
        notes.append(note)
    for name in (*what_if.cordon, *what_if.drain):
        apply([Put(cordoned(node_of(cluster, name)))])
    notes.extend(_drain_note(name, apply(drain_edits(cluster, name))) for name in what_if.drain)
    return done, notes


def check_count(name: str, count: str, option: str) -> None:
    """Refuse a number of nodes or pods that is negative, or larger than anybody can mean."""
    if not count.isdecimal():
        raise InputError(f"want a whole number that is not negative, got {count}", obj=option, field=name)
    if len(count) > len(str(MOST_PODS)) or int(count) > MOST_PODS:  # Python refuses to read numbers of 4,300 digits
        problem = too_many(count) if option == "--scale" else f"{count} is more than the {MOST_PODS} that can be added"
        raise InputError(problem, obj=option, field=name)


def drain_edits(cluster: Cluster, name: str) -> Iterator[Edit]:
    """The edits that make the pods of a drained node pending again."""
    for pod in pods_on(cluster, name):
        if belongs_to_node(pod):
            continue
        if pod.metadata.deletion_timestamp is not None:
            yield Remove(Pod.KIND, pod.key)
        else:
            metadata = replace(pod.metadata, creation_timestamp=None)
            yield Put(replace(pod, metadata=metadata, spec=replace(pod.spec, node_name=None), status=_PENDING))


_PENDING = PodStatus(phase="Pending")


def _drain_note(name: str, edits: Sequence[Edit]) -> str:
    moved = [edit.obj for edit in edits if isinstance(edit, Put)]
    alone = sum(controller_of(pod) is None for pod in moved)
    note = f"{name} is drained of {len(moved)} pod{'' if len(moved) == 1 else 's'}"
    return f"{note}, of which {alone} without a controller would not come back by themselves" if alone else note
