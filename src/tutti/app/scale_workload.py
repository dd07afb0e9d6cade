"""The what-if `scale`: which workload ``KIND/NAME`` names, and the edits that give it so many pods.

Contract: pure. A workload is named as for kubectl (``deployment/web``, ``deploy/web``, ``statefulset.apps/db``), in the
namespace given or in the only one that has it. A Deployment that is not in the input is scaled through its
ReplicaSets, as long as those are there. New pods are admitted as new pods are.
"""

from __future__ import annotations

from collections.abc import Sequence

from tutti.cluster.edits import Edit, Put, Remove
from tutti.exceptions import InputError, NotFoundError
from tutti.kube.admission.prepare import admission_of, admit
from tutti.kube.admission.unknown_volumes import KnownVolumes
from tutti.kube.objects import (
    Deployment,
    Job,
    Object,
    ObjectMeta,
    PersistentVolumeClaim,
    Pod,
    ReplicaSet,
    ReplicationController,
    StatefulSet,
)
from tutti.kube.reading.snapshot import Snapshot
from tutti.kube.workloads.owners import controller_of
from tutti.kube.workloads.scaling import scale

_SHORT: dict[type[Object], tuple[str, ...]] = {
    Deployment: ("deploy",), ReplicaSet: ("rs",), StatefulSet: ("sts",), ReplicationController: ("rc",), Job: (),
}  # fmt: skip
_KINDS = {
    name: kind
    for kind, short in _SHORT.items()
    for name in (kind.KIND.lower(), f"{kind.KIND.lower()}s", *short)
}  # fmt: skip


def scale_edits(snapshot: Snapshot, text: str, replicas: int, *, namespace: str | None) -> tuple[list[Edit], str]:
    """The edits that give a workload so many pods, and a remark on what they do."""
    workload = _workload(snapshot, text, namespace)
    change = scale(
        workload,
        replicas,
        pods=snapshot.pods,
        replica_sets=snapshot.objects_of(ReplicaSet),
        claims=snapshot.objects_of(PersistentVolumeClaim),
    )
    new: dict[tuple[str, str], Object] = {(claim.KIND, claim.key): claim for claim in change.claims}
    admit(new, change.added, admission_of(snapshot))
    known = KnownVolumes(snapshot)
    edits: list[Edit] = [Put(obj) for obj in change.objects]
    edits += [Put(known.without_unknown_volumes(obj) if isinstance(obj, Pod) else obj) for obj in new.values()]
    edits += [Remove(Pod.KIND, pod.key) for pod in change.removed]
    there = len(change.added) or -len(change.removed)
    note = f"{text} is scaled to {replicas}: {abs(there)} pod{'' if abs(there) == 1 else 's'}"
    return edits, f"{note} {'more' if there > 0 else 'fewer'}" if there else f"{text} has {replicas} already"


def _workload(snapshot: Snapshot, text: str, namespace: str | None) -> Object:
    """The object that a user means."""
    resource, slash, name = text.partition("/")
    kind = _KINDS.get(resource.lower().partition(".")[0])
    if not slash or not name or kind is None:
        known = ", ".join(sorted(each.KIND.lower() for each in _SHORT))
        raise InputError(f'want KIND/NAME=COUNT with a kind of {known}, got "{text}"', obj="--scale")
    found = _named(snapshot.objects_of(kind), name, namespace)
    if not found and kind is Deployment:
        found = _deployments_of_replica_sets(snapshot, name, namespace)
    if not found:
        where = f" in namespace {namespace}" if namespace else ""
        missing = kind.KIND not in snapshot.present_kinds
        hint = f" (dump {kind.KIND.lower()}s too, or give its manifest with -f)" if missing else ""
        raise NotFoundError(f"{kind.KIND.lower()} {name!r} is not in the input{where}{hint}")
    if len(found) > 1:
        places = ", ".join(sorted(obj.metadata.namespace or "default" for obj in found))
        raise InputError(f"{text} is in several namespaces ({places}): choose one with -n", obj="--scale")
    return found[0]


def _named(objects: Sequence[Object], name: str, namespace: str | None) -> list[Object]:
    return [
        obj
        for obj in objects
        if obj.metadata.name == name and (not namespace or (obj.metadata.namespace or "default") == namespace)
    ]


def _deployments_of_replica_sets(snapshot: Snapshot, deployment: str, namespace: str | None) -> list[Object]:
    """Deployments of this name that are known by their ReplicaSets alone."""
    owners = ((each.metadata.namespace or "default", controller_of(each)) for each in snapshot.objects_of(ReplicaSet))
    places = {place for place, owner in owners if owner and (owner.kind, owner.name) == (Deployment.KIND, deployment)}
    return [
        Deployment(metadata=ObjectMeta(name=deployment, namespace=place))
        for place in sorted(places)
        if not namespace or place == namespace
    ]
