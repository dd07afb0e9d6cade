"""Loaded objects as the scheduler would see them: with defaults, the pods of workloads, and admission.

Contract: `prepare` is pure and gives a snapshot in which every object has its defaults, workloads have the pods they
would make, and new pods and claims are admitted as by an API server. Objects that an API server has stored are not
changed by it, and its controllers have done their work, so a dump comes out as it went in: stored workloads make pods
only when the dump holds no pods at all, or when asked. Kinds that were looked for in vain are named in ``missing``.
`prepare_files` does the same for files that a user gives: CronJobs of manifests start one run, CronJobs of a dump
have started theirs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from msgspec.structs import replace

from tutti.exceptions import InputError
from tutti.kube.admission.defaults import with_defaults
from tutti.kube.admission.pod_admission import SYSTEM_PRIORITIES, Admission, is_stored
from tutti.kube.generated_names import made_uid
from tutti.kube.objects import (
    ClaimTemplate,
    CronJob,
    DaemonSet,
    Deployment,
    Job,
    LimitRange,
    Object,
    ObjectMeta,
    OwnerReference,
    PersistentVolume,
    PersistentVolumeClaim,
    Pod,
    PriorityClass,
    ReplicaSet,
    ReplicationController,
    RuntimeClass,
    StatefulSet,
    StorageClass,
)
from tutti.kube.reading.snapshot import Snapshot, by_kind
from tutti.kube.workloads.expansion import expand
from tutti.kube.workloads.owners import with_uid

WORKLOADS: tuple[type[Object], ...] = (
    ReplicationController, ReplicaSet, StatefulSet, Deployment, DaemonSet, Job, CronJob,
)  # fmt: skip
"""Kinds that make pods."""


def prepare(snapshot: Snapshot, *, cron_jobs: bool = False, complete: bool | None = None) -> Snapshot:
    """The snapshot with defaults, with the pods that workloads lack, and with new objects admitted.

    `cron_jobs` starts one run of every CronJob. `complete` says whether workloads that an API server has stored make
    their missing pods as well; None means only if there are no pods in the snapshot.
    """
    if complete is None:
        complete = Pod.KIND not in snapshot.present
    objects = {(obj.KIND, obj.key): with_defaults(obj) for listed in snapshot.objects.values() for obj in listed}
    made = expand(
        [objects[obj.KIND, obj.key] for kind in WORKLOADS for obj in snapshot.of(kind)],
        complete=complete,
        pods=snapshot.pods,
        nodes=snapshot.nodes,
        claims=snapshot.of(PersistentVolumeClaim),
        cron_jobs=cron_jobs,
    )
    for obj in (*made.replica_sets, *made.jobs, *made.claims):
        objects[obj.KIND, obj.key] = obj
    for kind in WORKLOADS:  # only now: a made-up uid would hide the pods that a stored namesake has
        for obj in snapshot.of(kind):
            objects[obj.KIND, obj.key] = with_uid(objects[obj.KIND, obj.key])
    new_pods = [*(pod for pod in snapshot.pods if not is_stored(pod)), *made.pods]
    admit(objects, new_pods, admission_of(snapshot))
    return replace(
        snapshot,
        objects=by_kind(objects.values()),
        missing=snapshot.missing | _missing(new_pods, snapshot.present),
        notes=(*snapshot.notes, *_notes(made.pods)),
    )


def prepare_files(snapshot: Snapshot, *, file: str) -> Snapshot:
    """The snapshot of a user's files, prepared; faults name `file`, for objects no longer know theirs."""
    new: list[Object] = [each for each in snapshot.of(CronJob) if not is_stored(each)]
    try:
        return prepare(replace(snapshot, objects=snapshot.objects | {CronJob.KIND: new}), cron_jobs=True)
    except InputError as error:
        raise InputError(error.problem, file=file, obj=error.obj, field=error.field) from None


def admission_of(snapshot: Snapshot) -> Admission:
    """The admission of the cluster that a snapshot shows."""
    return Admission(
        priority_classes=snapshot.given(PriorityClass),
        runtime_classes=snapshot.given(RuntimeClass),
        limit_ranges=snapshot.of(LimitRange),
        storage_classes=[with_defaults(each) for each in snapshot.of(StorageClass)],
    )


def admit(objects: dict[tuple[str, str], Object], new_pods: Iterable[Pod], admission: Admission) -> None:
    """Put new pods among the objects, admitted, with the claims of their ephemeral volumes; admit new claims."""
    for pod in new_pods:
        if not pod.metadata.uid:
            pod = replace(pod, metadata=replace(pod.metadata, uid=made_uid(f"Pod/{pod.key}")))
        admitted = admission.pod(pod)
        objects[pod.KIND, pod.key] = admitted
        for claim in ephemeral_claims(admitted):
            objects.setdefault((claim.KIND, claim.key), claim)
    for key, obj in objects.items():
        if isinstance(obj, PersistentVolumeClaim) and not is_stored(obj):
            objects[key] = admission.claim(obj)
        elif isinstance(obj, PersistentVolume) and not is_stored(obj) and not obj.status.phase:
            # The volume controller would have looked at it by the time a pod asks for it.
            phase = "Bound" if obj.spec.claim_ref is not None and obj.spec.claim_ref.uid else "Available"
            objects[key] = replace(obj, status=replace(obj.status, phase=phase))


def ephemeral_claims(pod: Pod) -> list[PersistentVolumeClaim]:
    """The claims that are made with a pod, owned by it."""
    owner = OwnerReference(
        api_version="v1", kind="Pod", name=pod.metadata.name, uid=pod.metadata.uid or "", controller=True
    )
    claims = []
    for volume in pod.spec.volumes or ():
        if volume.ephemeral is not None:
            template = volume.ephemeral.volume_claim_template or ClaimTemplate()
            metadata = ObjectMeta(
                name=f"{pod.metadata.name}-{volume.name}",
                namespace=pod.metadata.namespace,
                labels=template.metadata.labels,
                annotations=template.metadata.annotations,
                owner_references=[owner],
            )
            claims.append(PersistentVolumeClaim(metadata=metadata, spec=template.spec))
    return claims


def _missing(pods: Iterable[Pod], present: frozenset[str]) -> frozenset[str]:
    """Kinds that the admission of these pods looks up and the input does not have."""
    needed = set()
    for pod in pods:
        if pod.spec.priority_class_name and pod.spec.priority_class_name not in SYSTEM_PRIORITIES:
            needed.add(PriorityClass.KIND)
        if pod.spec.runtime_class_name:
            needed.add(RuntimeClass.KIND)
    return frozenset(needed) - present


def _notes(pods: Iterable[Pod]) -> list[str]:
    owners = Counter(
        (owner.kind, pod.metadata.namespace, owner.name)
        for pod in pods
        for owner in (pod.metadata.owner_references or ())[:1]
    )
    if not owners:
        return []
    total = sum(owners.values())
    return [f"{total} pod{'s' if total > 1 else ''} made for {len(owners)} workload{'s' if len(owners) > 1 else ''}"]
