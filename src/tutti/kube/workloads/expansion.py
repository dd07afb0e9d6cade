"""Workloads into the pods they would make now.

Contract: pure and deterministic. `expand` looks at what is there and makes what is missing: a workload whose pods are
all in the dump makes none. Deployments make a ReplicaSet first (unless the dump has it), CronJobs a Job, and only when
asked; suspended ones, finished ones and ones being deleted make nothing. New pods are as a controller writes them:
they still need `kube.admission`. A Job that runs more pods in all than at once makes those that run at once. A number
of pods that nobody can mean (`kube.sizes`) raises `InputError` before any is made.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec
from msgspec.structs import replace

from tutti.kube.admission.pod_admission import is_stored
from tutti.kube.generated_names import suffixed, template_hash
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
from tutti.kube.workloads.jobs import job_of, job_pods
from tutti.kube.workloads.owners import OwnedPods, OwnerKey, controller_of, owner_reference, pod_from, uid_for
from tutti.kube.workloads.size_limits import check_size
from tutti.kube.workloads.stateful_sets import stateful_pods

HASH_LABEL = "pod-template-hash"
_REVISION = "deployment.kubernetes.io/revision"


class Expansion(msgspec.Struct, frozen=True):
    """What workloads make: pods, and the objects that stand between."""

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
    cron_jobs: bool = False,
    complete: bool = True,
) -> Expansion:
    """All that the workloads would make beside what is there; `cron_jobs` starts one run of every CronJob.

    Without `complete` only new workloads make pods: those that an API server has stored have made theirs.
    """
    owned = OwnedPods(pods)
    known = {claim.key for claim in claims}
    every = [workload for workload in workloads if workload.metadata.deletion_timestamp is None]
    at_work = [workload for workload in every if complete or not is_stored(workload)]
    replica_sets = _replica_sets(at_work, every, owned=owned)
    runs = [job_of(each) for each in every if cron_jobs and isinstance(each, CronJob) and not each.spec.suspend]
    enlarged = {each.key for each in replica_sets}
    unchanged = [each for each in at_work if not (isinstance(each, ReplicaSet) and each.key in enlarged)]
    made = Expansion(pods=[], claims=[], replica_sets=replica_sets, jobs=runs)
    for workload in (*unchanged, *replica_sets, *runs):
        match workload:
            case ReplicaSet() | ReplicationController():
                made.pods.extend(replica_pods(workload, owned))
            case StatefulSet():
                new_pods, new_claims = stateful_pods(workload, owned)
                made.pods.extend(new_pods)
                made.claims.extend(claim for claim in new_claims if claim.key not in known)
            case DaemonSet():
                made.pods.extend(daemon_pods(workload, owned, nodes=nodes))
            case Job():
                made.pods.extend(job_pods(workload, owned))
    return made


def _replica_sets(at_work: Iterable[Object], every: Iterable[Object], *, owned: OwnedPods) -> list[ReplicaSet]:
    """The ReplicaSets that Deployments make or enlarge."""
    present = [each for each in every if isinstance(each, ReplicaSet)]
    found = (_current_replica_set(each, present, owned=owned) for each in at_work if isinstance(each, Deployment))
    return [each for each in found if each is not None]


def _current_replica_set(
    deployment: Deployment, present: Iterable[ReplicaSet], *, owned: OwnedPods
) -> ReplicaSet | None:
    """The ReplicaSet that a Deployment would make or enlarge; None when there is nothing for it to do.

    One that an API server has stored has done its work. A manifest on top of a dump asks for its own number of pods.
    """
    mine = replica_sets_of(deployment, present)
    number = _replicas(deployment.spec.replicas)
    if not mine:
        check_size(deployment, number, "spec.replicas")
        return replica_set_of(deployment, owned)
    *older, current = mine
    wanted = number - sum(_replicas(each.spec.replicas) for each in older)
    if is_stored(deployment) or wanted <= _replicas(current.spec.replicas):
        return None
    check_size(deployment, number, "spec.replicas")
    return replace(current, spec=replace(current.spec, replicas=wanted))


def replica_sets_of(deployment: Deployment, replica_sets: Iterable[ReplicaSet]) -> list[ReplicaSet]:
    """The ReplicaSets of a Deployment, the current one last."""

    def revision(replica_set: ReplicaSet) -> tuple[int, str, str]:
        text = (replica_set.metadata.annotations or {}).get(_REVISION, "")
        created = replica_set.metadata.creation_timestamp or ""
        return (int(text) if text.isdigit() else 0, created, replica_set.metadata.name)

    uid = deployment.metadata.uid
    mine = []
    for replica_set in replica_sets:
        owner = controller_of(replica_set)
        if (
            owner is not None
            and owner.kind == deployment.KIND
            and owner.name == deployment.metadata.name
            and replica_set.metadata.namespace == deployment.metadata.namespace
            and (not uid or owner.uid in ("", uid))
        ):
            mine.append(replica_set)
    return sorted(mine, key=revision)


def replica_set_of(deployment: Deployment, owned: OwnedPods) -> ReplicaSet:
    """The ReplicaSet that a Deployment makes, or has made when only its pods are in the dump."""
    spec, metadata = deployment.spec, deployment.metadata
    namespace = metadata.namespace or "default"
    found = _lost_replica_set(deployment, owned)
    if found is not None:
        digest = found.name.removeprefix(f"{metadata.name}-")
        owner = controller_of(owned.named(found)[0])
        uid = owner.uid if owner is not None else ""
    else:
        digest, uid = template_hash(msgspec.json.encode(spec.template)), ""
    hashed = {HASH_LABEL: digest}
    template = spec.template
    labels = {**(template.metadata.labels or {}), **hashed}
    selector = spec.selector or LabelSelector(match_labels=template.metadata.labels)
    made = ReplicaSet(
        metadata=ObjectMeta(
            name=f"{metadata.name}-{digest}",
            namespace=namespace,
            uid=uid or None,
            labels=labels,
            owner_references=[owner_reference(deployment)],
        ),
        spec=WorkloadSpec(
            replicas=_replicas(spec.replicas),
            selector=replace(selector, match_labels={**(selector.match_labels or {}), **hashed}),
            template=PodTemplate(metadata=replace(template.metadata, labels=labels), spec=template.spec),
        ),
    )
    return made if uid else replace(made, metadata=replace(made.metadata, uid=uid_for(made)))


def replica_pods(workload: ReplicaSet | ReplicationController, owned: OwnedPods) -> list[Pod]:
    """The pods that a ReplicaSet or a ReplicationController lacks."""
    template = workload.spec.template or PodTemplate()
    number = _replicas(workload.spec.replicas)
    check_size(workload, number, "spec.replicas")
    missing = number - len(owned.of(workload))
    return [pod_from(template, workload, name=name) for name in new_names(workload, owned, count=missing)]


def new_names(owner: Object, owned: OwnedPods, *, count: int) -> list[str]:
    """Names for so many new pods, of which none is taken."""
    namespace = owner.metadata.namespace or "default"
    names: dict[str, None] = {}  # keeps its order, and finds a name that is drawn twice
    attempt = 0
    while len(names) < count:
        name = suffixed(f"{owner.metadata.name}-", str(attempt))
        attempt += 1
        if not owned.taken(f"{namespace}/{name}"):
            names[name] = None
    return list(names)


def _lost_replica_set(deployment: Deployment, owned: OwnedPods) -> OwnerKey | None:
    """The ReplicaSet that only its pods still tell of, for they bear its name and hash; of several the largest."""
    metadata = deployment.metadata
    candidates = []
    for key in owned.owners("ReplicaSet", metadata.namespace or "default"):
        digest = key.name.removeprefix(f"{metadata.name}-")
        pods = owned.named(key)
        if digest != key.name and all((pod.metadata.labels or {}).get(HASH_LABEL) == digest for pod in pods):
            candidates.append((len(pods), key.name, key))
    return max(candidates)[2] if candidates else None


def _replicas(number: int | None) -> int:
    return 1 if number is None else number
