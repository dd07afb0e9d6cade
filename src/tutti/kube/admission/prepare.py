"""Preparation of a loaded snapshot for the scheduler: defaults, pods of workloads, admission of new objects.

Contract: `prepare` is pure. In its result every object has its defaults, workloads have the pods that their controllers
would create, and new pods and claims are admitted as by an API server. Stored objects do not change: an API server has
admitted them, and its controllers have created the pods of stored workloads. Stored workloads create pods only if the
dump has no pods at all, or on request. ``missing_kinds`` has the kinds that admission looked up and the input lacks.
`prepare_files` does the same for the files of a user: a CronJob of a manifest starts one run, a stored CronJob none.
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
"""Kinds that create pods."""


def prepare(snapshot: Snapshot, *, start_cron_jobs: bool = False, expand_stored: bool | None = None) -> Snapshot:
    """Return the snapshot with defaults, with the pods that workloads lack, and with new objects admitted.

    `start_cron_jobs` starts one run of every CronJob. `expand_stored` says whether stored workloads create their
    missing pods too; None means only if the snapshot has no pods.
    """
    if expand_stored is None:
        expand_stored = Pod.KIND not in snapshot.present_kinds
    objects = {(obj.KIND, obj.key): with_defaults(obj) for listed in snapshot.objects.values() for obj in listed}
    expansion = expand(
        [objects[obj.KIND, obj.key] for kind in WORKLOADS for obj in snapshot.objects_of(kind)],
        expand_stored=expand_stored,
        pods=snapshot.pods,
        nodes=snapshot.nodes,
        claims=snapshot.objects_of(PersistentVolumeClaim),
        start_cron_jobs=start_cron_jobs,
    )
    for obj in (*expansion.replica_sets, *expansion.jobs, *expansion.claims):
        objects[obj.KIND, obj.key] = obj
    for kind in WORKLOADS:  # after `expand`: with a generated uid, `expand` would not find the stored pods
        for obj in snapshot.objects_of(kind):
            objects[obj.KIND, obj.key] = with_uid(objects[obj.KIND, obj.key])
    new_pods = [*(pod for pod in snapshot.pods if not is_stored(pod)), *expansion.pods]
    admit(objects, new_pods, admission_of(snapshot))
    return replace(
        snapshot,
        objects=by_kind(objects.values()),
        missing_kinds=snapshot.missing_kinds | _missing_kinds(new_pods, snapshot.present_kinds),
        notes=(*snapshot.notes, *_notes(expansion.pods)),
    )


def prepare_files(snapshot: Snapshot, *, file: str) -> Snapshot:
    """Prepare the snapshot of a user's files; errors name `file`, because objects do not record their file."""
    new_cron_jobs: list[Object] = [each for each in snapshot.objects_of(CronJob) if not is_stored(each)]
    objects = snapshot.objects | {CronJob.KIND: new_cron_jobs}
    try:
        return prepare(replace(snapshot, objects=objects), start_cron_jobs=True)
    except InputError as error:
        raise InputError(error.problem, file=file, obj=error.obj, field=error.field) from None


def admission_of(snapshot: Snapshot) -> Admission:
    """Return the admission with the classes and limit ranges of a snapshot."""
    return Admission(
        priority_classes=snapshot.objects_if_given(PriorityClass),
        runtime_classes=snapshot.objects_if_given(RuntimeClass),
        limit_ranges=snapshot.objects_of(LimitRange),
        storage_classes=[with_defaults(each) for each in snapshot.objects_of(StorageClass)],
    )


def admit(objects: dict[tuple[str, str], Object], new_pods: Iterable[Pod], admission: Admission) -> None:
    """Admit new pods and claims, in place: add the pods and the claims of their ephemeral volumes to `objects`.

    A new persistent volume gets the phase that the volume controller would set.
    """
    for pod in new_pods:
        if not pod.metadata.uid:
            pod = replace(pod, metadata=replace(pod.metadata, uid=made_uid(f"Pod/{pod.key}")))
        admitted = admission.admit_pod(pod)
        objects[pod.KIND, pod.key] = admitted
        for claim in ephemeral_claims(admitted):
            objects.setdefault((claim.KIND, claim.key), claim)
    for key, obj in objects.items():
        if isinstance(obj, PersistentVolumeClaim) and not is_stored(obj):
            objects[key] = admission.admit_claim(obj)
        elif isinstance(obj, PersistentVolume) and not is_stored(obj) and not obj.status.phase:
            # The volume controller sets the phase before a pod can use the volume.
            phase = "Bound" if obj.spec.claim_ref is not None and obj.spec.claim_ref.uid else "Available"
            objects[key] = replace(obj, status=replace(obj.status, phase=phase))


def ephemeral_claims(pod: Pod) -> list[PersistentVolumeClaim]:
    """Return the claims of a pod's ephemeral volumes, owned by the pod."""
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


def _missing_kinds(pods: Iterable[Pod], present_kinds: frozenset[str]) -> frozenset[str]:
    """Return the kinds that the admission of these pods looks up and the input does not have."""
    needed = set()
    for pod in pods:
        if pod.spec.priority_class_name and pod.spec.priority_class_name not in SYSTEM_PRIORITIES:
            needed.add(PriorityClass.KIND)
        if pod.spec.runtime_class_name:
            needed.add(RuntimeClass.KIND)
    return frozenset(needed) - present_kinds


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
