"""A workload made larger or smaller: which pods come, and which go.

Contract: pure. Pods that go are chosen as the controllers choose them: those without a node first, then pending ones,
then those that are not ready, of lower deletion cost, doubled up on a node, and the newest; of a StatefulSet the
highest numbers. Times of readiness and restarts are not in the picture and do not decide. New pods still need
`kube.admission`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

import msgspec
from msgspec.structs import replace

from tutti.exceptions import InputError
from tutti.kube.objects import (
    Deployment,
    Job,
    Object,
    PersistentVolumeClaim,
    Pod,
    ReplicaSet,
    ReplicationController,
    StatefulSet,
)
from tutti.kube.times import micros
from tutti.kube.workloads.expansion import replica_pods, replica_set_of, replica_sets_of
from tutti.kube.workloads.jobs import job_pods
from tutti.kube.workloads.owners import OwnedPods
from tutti.kube.workloads.stateful_sets import ordinals, stateful_pods

_PHASES = {"Pending": 0, "Unknown": 1, "Running": 2}
_COST = "controller.kubernetes.io/pod-deletion-cost"


class ScalingChange(msgspec.Struct, frozen=True):
    """What changes when a workload is scaled."""

    objects: list[Object]
    """The workload, and its ReplicaSet if it has one, with their new size."""
    added: list[Pod]
    removed: list[Pod]
    claims: list[PersistentVolumeClaim] = []


def scale(
    workload: Object,
    replicas: int,
    *,
    pods: Iterable[Pod],
    replica_sets: Sequence[ReplicaSet] = (),
    claims: Iterable[PersistentVolumeClaim] = (),
) -> ScalingChange:
    """The workload with so many pods; a Job with so many at once."""
    owned = OwnedPods(pods)
    match workload:
        case Deployment():
            return _scale_deployment(workload, replicas, owned=owned, replica_sets=replica_sets)
        case ReplicaSet() | ReplicationController():
            return _scale_replicas(workload, replicas, owned=owned)
        case StatefulSet():
            return _scale_stateful_set(workload, replicas, owned=owned, claims=claims)
        case Job():
            sized = replace(workload, spec=replace(workload.spec, parallelism=replicas))
            active = owned.of(workload)
            return ScalingChange(
                [sized], job_pods(sized, owned), going_first(active, active)[: max(len(active) - replicas, 0)]
            )
    raise InputError("it has no number of pods that could be scaled", obj=f"{workload.KIND.lower()} {workload.key}")


def going_first(pods: Iterable[Pod], related: Iterable[Pod]) -> list[Pod]:
    """Pods in the order in which a controller would remove them; `related` are all pods of the same workload."""
    neighbours = Counter(pod.spec.node_name for pod in related)

    def order(pod: Pod) -> tuple[bool, int, bool, int, int, float, str]:
        created = pod.metadata.creation_timestamp
        return (
            bool(pod.spec.node_name),
            _PHASES.get(pod.status.phase or "Pending", 0),
            _is_ready(pod),
            _deletion_cost(pod),
            -neighbours[pod.spec.node_name],
            -micros(created) if created else float("-inf"),
            pod.key,
        )

    return sorted(pods, key=order)


def _scale_deployment(
    workload: Deployment, replicas: int, *, owned: OwnedPods, replica_sets: Sequence[ReplicaSet]
) -> ScalingChange:
    sized = replace(workload, spec=replace(workload.spec, replicas=replicas))
    mine = replica_sets_of(workload, replica_sets) or [replica_set_of(sized, owned)]
    every = [pod for each in mine for pod in owned.of(each)]
    removed = going_first(every, every)[: max(len(every) - replicas, 0)]
    *older, current = mine
    elsewhere = sum(len(owned.of(each)) for each in older)
    grown = replace(current, spec=replace(current.spec, replicas=max(replicas - elsewhere, 0)))
    added = [] if removed else replica_pods(grown, owned)
    return ScalingChange([sized, grown], added, removed)


def _scale_replicas(workload: ReplicaSet | ReplicationController, replicas: int, *, owned: OwnedPods) -> ScalingChange:
    sized: ReplicaSet | ReplicationController
    if isinstance(workload, ReplicaSet):
        sized = replace(workload, spec=replace(workload.spec, replicas=replicas))
    else:
        sized = replace(workload, spec=replace(workload.spec, replicas=replicas))
    active = owned.of(workload)
    removed = going_first(active, active)[: max(len(active) - replicas, 0)]
    return ScalingChange([sized], replica_pods(sized, owned), removed)


def _scale_stateful_set(
    workload: StatefulSet, replicas: int, *, owned: OwnedPods, claims: Iterable[PersistentVolumeClaim]
) -> ScalingChange:
    sized = replace(workload, spec=replace(workload.spec, replicas=replicas))
    kept = {f"{workload.metadata.name}-{ordinal}" for ordinal in ordinals(sized)}
    removed = [pod for pod in owned.of(workload) if pod.metadata.name not in kept]
    removed.sort(key=lambda pod: (-_ordinal(pod), pod.key))
    added, needed = stateful_pods(sized, owned)
    known = {claim.key for claim in claims}
    return ScalingChange([sized], added, removed, [claim for claim in needed if claim.key not in known])


def _ordinal(pod: Pod) -> int:
    number = pod.metadata.name.rpartition("-")[2]
    return int(number) if number.isdigit() else -1


def _is_ready(pod: Pod) -> bool:
    return any(condition.type == "Ready" and condition.status == "True" for condition in pod.status.conditions or ())


def _deletion_cost(pod: Pod) -> int:
    text = (pod.metadata.annotations or {}).get(_COST, "0")
    return int(text) if text.lstrip("-").isdigit() else 0
