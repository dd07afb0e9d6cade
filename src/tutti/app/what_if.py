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

from tutti.app.scale_workload import scaled
from tutti.cluster.cluster import Cluster
from tutti.cluster.edits import Edit, Put, Remove
from tutti.cluster.node_edits import added, belongs_to_node, cordoned, node_of, pods_on
from tutti.exceptions import InputError
from tutti.kube.objects import Pod, PodStatus
from tutti.kube.reading.snapshot import Snapshot
from tutti.kube.workloads.owners import controller_of
from tutti.kube.workloads.size_limits import MOST_PODS, too_many


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
    count = count.lstrip("0") or "0"
    if len(count) > len(str(MOST_PODS)) or int(count) > MOST_PODS:  # Python refuses to read numbers of 4,300 digits
        problem = too_many(count) if option == "--scale" else f"{count} is more than the {MOST_PODS} that can be added"
        raise InputError(problem, obj=option, field=name)
    return name, int(count)


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


def _drain_note(name: str, edits: Sequence[Edit]) -> str:
    moved = [edit.obj for edit in edits if isinstance(edit, Put)]
    alone = sum(controller_of(pod) is None for pod in moved)
    note = f"{name} is drained of {len(moved)} pod{'' if len(moved) == 1 else 's'}"
    return f"{note}, of which {alone} without a controller would not come back by themselves" if alone else note
