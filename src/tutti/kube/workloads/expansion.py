"""Expansion of workloads: the pods that their controllers would create now.

Contract: pure and deterministic. `expand` creates only missing pods: a workload with all its pods in the dump gets no
new pod. A Deployment creates a ReplicaSet first, unless the dump has it. A CronJob creates a Job, only on request.
Workloads that are suspended, finished or being deleted create nothing. A Job with more completions than parallelism
creates the pods that run in parallel. New pods are as a controller writes them and still need `kube.admission`. A
workload with more pods than `size_limits` allows raises `InputError` before any pod is created.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec
from msgspec.structs import replace

from tutti.kube.admission.pod_admission import is_stored
from tutti.kube.generated_names import generated_name, template_hash
from tutti.kube.objects import (
    CronJob,
    DaemonSet,
    Deployment,
    Job,
    LabelSelector,
    Node,
    Object,
    ObjectMeta,
    PersistentVolumeClaim,
    Pod,
    PodTemplate,
    ReplicaSet,
    ReplicationController,
    StatefulSet,
    WorkloadSpec,
)
from tutti.kube.workloads.daemon_sets import daemon_pods
from tutti.kube.workloads.jobs import job_pods, next_job
from tutti.kube.workloads.owners import (
    OwnedPods,
    OwnerKey,
    controller_of,
    owner_reference,
    placeholder_uid,
    pod_from_template,
)
from tutti.kube.workloads.size_limits import check_size
from tutti.kube.workloads.stateful_sets import stateful_pods

HASH_LABEL = "pod-template-hash"
_REVISION = "deployment.kubernetes.io/revision"


class Expansion(msgspec.Struct, frozen=True):
    """The objects that workloads create: pods, claims, ReplicaSets and Jobs."""

    pods: list[Pod] = []
    claims: list[PersistentVolumeClaim] = []
    replica_sets: list[ReplicaSet] = []
    jobs: list[Job] = []


def expand(
    workloads: Iterable[Object],
    *,
    pods: Iterable[Pod] = (),
    nodes: Sequence[Node] = (),
    claims: Iterable[PersistentVolumeClaim] = (),
    start_cron_jobs: bool = False,
    expand_stored: bool = True,
) -> Expansion:
    """Return the objects that the workloads lack; `start_cron_jobs` starts one run of every CronJob.

    Without `expand_stored` only new workloads create pods: the controllers have already created the pods of workloads
    that an API server has stored.
    """
    owned = OwnedPods(pods)
    known_claims = {claim.key for claim in claims}
    every = [workload for workload in workloads if workload.metadata.deletion_timestamp is None]
    active = [workload for workload in every if expand_stored or not is_stored(workload)]
    replica_sets = _replica_sets(active, every, owned=owned)
    runs = [next_job(each) for each in every if start_cron_jobs and isinstance(each, CronJob) and not each.spec.suspend]
    enlarged = {each.key for each in replica_sets}
    unchanged = [each for each in active if not (isinstance(each, ReplicaSet) and each.key in enlarged)]
    expansion = Expansion(pods=[], claims=[], replica_sets=replica_sets, jobs=runs)
    for workload in (*unchanged, *replica_sets, *runs):
        match workload:
            case ReplicaSet() | ReplicationController():
                expansion.pods.extend(replica_pods(workload, owned))
            case StatefulSet():
                new_pods, new_claims = stateful_pods(workload, owned)
                expansion.pods.extend(new_pods)
                expansion.claims.extend(claim for claim in new_claims if claim.key not in known_claims)
            case DaemonSet():
                expansion.pods.extend(daemon_pods(workload, owned, nodes=nodes))
            case Job():
                expansion.pods.extend(job_pods(workload, owned))
    return expansion


def _replica_sets(active: Iterable[Object], every: Iterable[Object], *, owned: OwnedPods) -> list[ReplicaSet]:
    """Return the ReplicaSets that the active Deployments create or enlarge."""
    existing = [each for each in every if isinstance(each, ReplicaSet)]
    current = (_current_replica_set(each, existing, owned=owned) for each in active if isinstance(each, Deployment))
    return [each for each in current if each is not None]


def _current_replica_set(
    deployment: Deployment, existing: Iterable[ReplicaSet], *, owned: OwnedPods
) -> ReplicaSet | None:
    """Return the ReplicaSet that a Deployment creates or enlarges; None if the Deployment changes nothing.

    The controller has already scaled the ReplicaSets of a stored Deployment. A new Deployment that overrides a stored
    one enlarges the current ReplicaSet to the new number of replicas.
    """
    replica_sets = replica_sets_of(deployment, existing)
    number = _replicas(deployment.spec.replicas)
    if not replica_sets:
        check_size(deployment, number, "spec.replicas")
        return replica_set_of(deployment, owned)
    *older, current = replica_sets
    replicas = number - sum(_replicas(each.spec.replicas) for each in older)
    if is_stored(deployment) or replicas <= _replicas(current.spec.replicas):
        return None
    check_size(deployment, number, "spec.replicas")
    return replace(current, spec=replace(current.spec, replicas=replicas))


def replica_sets_of(deployment: Deployment, replica_sets: Iterable[ReplicaSet]) -> list[ReplicaSet]:
    """Return the ReplicaSets of a Deployment, the current ReplicaSet last."""

    def revision(replica_set: ReplicaSet) -> tuple[int, str, str]:
        text = (replica_set.metadata.annotations or {}).get(_REVISION, "")
        created = replica_set.metadata.creation_timestamp or ""
        return (int(text) if text.isdigit() else 0, created, replica_set.metadata.name)

    uid = deployment.metadata.uid
    owned_sets = []
    for replica_set in replica_sets:
        owner = controller_of(replica_set)
        if (
            owner is not None
            and owner.kind == deployment.KIND
            and owner.name == deployment.metadata.name
            and replica_set.metadata.namespace == deployment.metadata.namespace
            and (not uid or owner.uid in ("", uid))
        ):
            owned_sets.append(replica_set)
    return sorted(owned_sets, key=revision)


def replica_set_of(deployment: Deployment, owned: OwnedPods) -> ReplicaSet:
    """Return the ReplicaSet that a Deployment creates; if the dump has only its pods, the ReplicaSet of these pods."""
    spec, metadata = deployment.spec, deployment.metadata
    namespace = metadata.namespace or "default"
    absent = _absent_replica_set(deployment, owned)
    if absent is not None:
        digest = absent.name.removeprefix(f"{metadata.name}-")
        owner = controller_of(owned.pods_of_key(absent)[0])
        uid = owner.uid if owner is not None else ""
    else:
        digest, uid = template_hash(msgspec.json.encode(spec.template)), ""
    hash_label = {HASH_LABEL: digest}
    template = spec.template
    labels = {**(template.metadata.labels or {}), **hash_label}
    selector = spec.selector or LabelSelector(match_labels=template.metadata.labels)
    replica_set = ReplicaSet(
        metadata=ObjectMeta(
            name=f"{metadata.name}-{digest}",
            namespace=namespace,
            uid=uid or None,
            labels=labels,
            owner_references=[owner_reference(deployment)],
        ),
        spec=WorkloadSpec(
            replicas=_replicas(spec.replicas),
            selector=replace(selector, match_labels={**(selector.match_labels or {}), **hash_label}),
            template=PodTemplate(metadata=replace(template.metadata, labels=labels), spec=template.spec),
        ),
    )
    if uid:
        return replica_set
    return replace(replica_set, metadata=replace(replica_set.metadata, uid=placeholder_uid(replica_set)))


def replica_pods(workload: ReplicaSet | ReplicationController, owned: OwnedPods) -> list[Pod]:
    """Return the pods that a ReplicaSet or a ReplicationController lacks."""
    template = workload.spec.template or PodTemplate()
    number = _replicas(workload.spec.replicas)
    check_size(workload, number, "spec.replicas")
    missing = number - len(owned.active_pods(workload))
    return [pod_from_template(template, workload, name=name) for name in new_pod_names(workload, owned, count=missing)]


def new_pod_names(owner: Object, owned: OwnedPods, *, count: int) -> list[str]:
    """Return `count` names for new pods; no existing pod has such a name."""
    namespace = owner.metadata.namespace or "default"
    names: dict[str, None] = {}  # an ordered set: two attempts may give the same name
    attempt = 0
    while len(names) < count:
        name = generated_name(f"{owner.metadata.name}-", str(attempt))
        attempt += 1
        if not owned.has_pod(f"{namespace}/{name}"):
            names[name] = None
    return list(names)


def _absent_replica_set(deployment: Deployment, owned: OwnedPods) -> OwnerKey | None:
    """Return the ReplicaSet of which the dump has only the pods, known by its name and hash label.

    Of several ReplicaSets return that with the most pods; None if there is none.
    """
    metadata = deployment.metadata
    candidates = []
    for key in owned.owner_keys("ReplicaSet", metadata.namespace or "default"):
        digest = key.name.removeprefix(f"{metadata.name}-")
        pods = owned.pods_of_key(key)
        if digest != key.name and all((pod.metadata.labels or {}).get(HASH_LABEL) == digest for pod in pods):
            candidates.append((len(pods), key.name, key))
    return max(candidates)[2] if candidates else None


def _replicas(number: int | None) -> int:
    return 1 if number is None else number
