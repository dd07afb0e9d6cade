"""Scaling of a workload: which pods are added, and which are removed.

Contract: pure. Removed pods are chosen as the controllers choose them: pods without a node first, then pending pods,
then pods that are not ready, then by lower deletion cost, more pods of the workload on the same node, and later
creation; of a StatefulSet the highest ordinals. Snapshots have neither readiness times nor restarts, so these do not
count. New pods still need `kube.admission`.
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

_PHASE_ORDER = {"Pending": 0, "Unknown": 1, "Running": 2}
_DELETION_COST = "controller.kubernetes.io/pod-deletion-cost"


class ScalingChange(msgspec.Struct, frozen=True):
    """The changed, added and removed objects when a workload is scaled."""

    objects: list[Object]
    """The workload, and the ReplicaSet of a Deployment, with the new replica counts."""
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
    """Scale a workload to a number of replicas; of a Job, scale the parallelism."""
    owned = OwnedPods(pods)
    match workload:
        case Deployment():
            return _scale_deployment(workload, replicas, owned=owned, replica_sets=replica_sets)
        case ReplicaSet() | ReplicationController():
            return _scale_replicas(workload, replicas, owned=owned)
        case StatefulSet():
            return _scale_stateful_set(workload, replicas, owned=owned, claims=claims)
        case Job():
            scaled = replace(workload, spec=replace(workload.spec, parallelism=replicas))
            active = owned.active_pods(workload)
            return ScalingChange(
                [scaled], job_pods(scaled, owned), removal_order(active, active)[: max(len(active) - replicas, 0)]
            )
    raise InputError("it has no replica count to scale", obj=f"{workload.KIND.lower()} {workload.key}")


def removal_order(pods: Iterable[Pod], related: Iterable[Pod]) -> list[Pod]:
    """Sort pods in the order in which a controller removes them; `related` are all pods of the same workload."""
    pods_per_node = Counter(pod.spec.node_name for pod in related)

    def order(pod: Pod) -> tuple[bool, int, bool, int, int, float, str]:
        created = pod.metadata.creation_timestamp
        return (
            bool(pod.spec.node_name),
            _PHASE_ORDER.get(pod.status.phase or "Pending", 0),
            _is_ready(pod),
            _deletion_cost(pod),
            -pods_per_node[pod.spec.node_name],
            -micros(created) if created else float("-inf"),
            pod.key,
        )

    return sorted(pods, key=order)


def _scale_deployment(
    workload: Deployment, replicas: int, *, owned: OwnedPods, replica_sets: Sequence[ReplicaSet]
) -> ScalingChange:
    scaled = replace(workload, spec=replace(workload.spec, replicas=replicas))
    owned_sets = replica_sets_of(workload, replica_sets) or [replica_set_of(scaled, owned)]
    active = [pod for each in owned_sets for pod in owned.active_pods(each)]
    removed = removal_order(active, active)[: max(len(active) - replicas, 0)]
    *older, current = owned_sets
    older_pods = sum(len(owned.active_pods(each)) for each in older)
    scaled_set = replace(current, spec=replace(current.spec, replicas=max(replicas - older_pods, 0)))
    added = [] if removed else replica_pods(scaled_set, owned)
    return ScalingChange([scaled, scaled_set], added, removed)


def _scale_replicas(workload: ReplicaSet | ReplicationController, replicas: int, *, owned: OwnedPods) -> ScalingChange:
    scaled: ReplicaSet | ReplicationController
    if isinstance(workload, ReplicaSet):
        scaled = replace(workload, spec=replace(workload.spec, replicas=replicas))
    else:
        scaled = replace(workload, spec=replace(workload.spec, replicas=replicas))
    active = owned.active_pods(workload)
    removed = removal_order(active, active)[: max(len(active) - replicas, 0)]
    return ScalingChange([scaled], replica_pods(scaled, owned), removed)


def _scale_stateful_set(
    workload: StatefulSet, replicas: int, *, owned: OwnedPods, claims: Iterable[PersistentVolumeClaim]
) -> ScalingChange:
    scaled = replace(workload, spec=replace(workload.spec, replicas=replicas))
    kept = {f"{workload.metadata.name}-{ordinal}" for ordinal in ordinals(scaled)}
    removed = [pod for pod in owned.active_pods(workload) if pod.metadata.name not in kept]
    removed.sort(key=lambda pod: (-_ordinal(pod), pod.key))
    added, needed = stateful_pods(scaled, owned)
    known = {claim.key for claim in claims}
    return ScalingChange([scaled], added, removed, [claim for claim in needed if claim.key not in known])


def _ordinal(pod: Pod) -> int:
    number = pod.metadata.name.rpartition("-")[2]
    return int(number) if number.isdigit() else -1


def _is_ready(pod: Pod) -> bool:
    return any(condition.type == "Ready" and condition.status == "True" for condition in pod.status.conditions or ())


def _deletion_cost(pod: Pod) -> int:
    text = (pod.metadata.annotations or {}).get(_DELETION_COST, "0")
    return int(text) if text.lstrip("-").isdigit() else 0
