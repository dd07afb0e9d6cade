"""The what-if `scale`: find the workload that ``KIND/NAME`` names, and the edits that set its number of pods.

Contract: pure. A workload is named as for kubectl (``deployment/web``, ``deploy/web``, ``statefulset.apps/db``), in the
given namespace or in the only namespace that has it. A Deployment that is not in the input is scaled through its
ReplicaSets, if the input has those. New pods go through admission.
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

_SHORT_NAMES: dict[type[Object], tuple[str, ...]] = {
    Deployment: ("deploy",), ReplicaSet: ("rs",), StatefulSet: ("sts",), ReplicationController: ("rc",), Job: (),
}  # fmt: skip
_KIND_BY_NAME = {
    name: kind
    for kind, short in _SHORT_NAMES.items()
    for name in (kind.KIND.lower(), f"{kind.KIND.lower()}s", *short)
}  # fmt: skip


def scale_edits(snapshot: Snapshot, text: str, replicas: int, *, namespace: str | None) -> tuple[list[Edit], str]:
    """Return the edits that set a workload's number of pods, and a note that describes them."""
    workload = _workload(snapshot, text, namespace)
    change = scale(
        workload,
        replicas,
        pods=snapshot.pods,
        replica_sets=snapshot.objects_of(ReplicaSet),
        claims=snapshot.objects_of(PersistentVolumeClaim),
    )
    new_objects: dict[tuple[str, str], Object] = {(claim.KIND, claim.key): claim for claim in change.claims}
    admit(new_objects, change.added, admission_of(snapshot))
    known_volumes = KnownVolumes(snapshot)
    edits: list[Edit] = [Put(obj) for obj in change.objects]
    edits += [
        Put(known_volumes.without_unknown_volumes(obj) if isinstance(obj, Pod) else obj) for obj in new_objects.values()
    ]
    edits += [Remove(Pod.KIND, pod.key) for pod in change.removed]
    difference = len(change.added) or -len(change.removed)
    note = f"{text} is scaled to {replicas}: {abs(difference)} pod{'' if abs(difference) == 1 else 's'}"
    return edits, f"{note} {'more' if difference > 0 else 'fewer'}" if difference else f"{text} has {replicas} already"


def _workload(snapshot: Snapshot, text: str, namespace: str | None) -> Object:
    """Return the workload object that a user means."""
    resource, slash, name = text.partition("/")
    kind = _KIND_BY_NAME.get(resource.lower().partition(".")[0])
    if not slash or not name or kind is None:
        kinds = ", ".join(sorted(each.KIND.lower() for each in _SHORT_NAMES))
        raise InputError(f'want KIND/NAME=COUNT with a kind of {kinds}, got "{text}"', obj="--scale")
    matches = _named(snapshot.objects_of(kind), name, namespace)
    if not matches and kind is Deployment:
        matches = _deployments_of_replica_sets(snapshot, name, namespace)
    if not matches:
        where = f" in namespace {namespace}" if namespace else ""
        missing = kind.KIND not in snapshot.present_kinds
        hint = f" (dump {kind.KIND.lower()}s too, or give its manifest with -f)" if missing else ""
        raise NotFoundError(f"{kind.KIND.lower()} {name!r} is not in the input{where}{hint}")
    if len(matches) > 1:
        namespaces = ", ".join(sorted(obj.metadata.namespace or "default" for obj in matches))
        raise InputError(f"{text} is in several namespaces ({namespaces}): choose one with -n", obj="--scale")
    return matches[0]


def _named(objects: Sequence[Object], name: str, namespace: str | None) -> list[Object]:
    return [
        obj
        for obj in objects
        if obj.metadata.name == name and (not namespace or (obj.metadata.namespace or "default") == namespace)
    ]


def _deployments_of_replica_sets(snapshot: Snapshot, deployment: str, namespace: str | None) -> list[Object]:
    """Return Deployments of this name that only the owner references of their ReplicaSets mention."""
    owners = ((each.metadata.namespace or "default", controller_of(each)) for each in snapshot.objects_of(ReplicaSet))
    wanted = (Deployment.KIND, deployment)
    namespaces = {each for each, owner in owners if owner and (owner.kind, owner.name) == wanted}
    return [
        Deployment(metadata=ObjectMeta(name=deployment, namespace=each))
        for each in sorted(namespaces)
        if not namespace or each == namespace
    ]
