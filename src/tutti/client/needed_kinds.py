"""Which kinds each use case reads, why, and what follows if a kind cannot be read.

Contract: pure; a table. A command that reads a cluster requests the kinds of its use case and no others; a dump has the
kinds of all use cases. All objects of a cluster are stored, so that admission and the expansion of workloads matter
only for pods that a what-if or a recommendation adds. CronJobs are never read: a stored CronJob starts no run. Secrets
and ConfigMaps are not among the kinds that Tutti knows.
"""

from __future__ import annotations

from collections.abc import Iterable

from tutti.kube.gangs.reader import GROUP_KINDS
from tutti.kube.objects import (
    KINDS,
    CSIDriver,
    CSINode,
    CSIStorageCapacity,
    DaemonSet,
    Deployment,
    DeviceClass,
    Job,
    KarpenterPool,
    LimitRange,
    Namespace,
    Node,
    PersistentVolume,
    PersistentVolumeClaim,
    Pod,
    PodDisruptionBudget,
    PriorityClass,
    ReplicaSet,
    ReplicationController,
    RuntimeClass,
    Service,
    StatefulSet,
    StorageClass,
    VolumeAttachment,
)

REQUIRED = (Node.KIND, Pod.KIND)
"""Without these kinds there is no answer."""
_SPREADING = (Service.KIND, ReplicationController.KIND, ReplicaSet.KIND, StatefulSet.KIND)
_PLACEMENT = (
    *REQUIRED,
    *_SPREADING,  # plugin PodTopologySpread: the default constraints of a pod select by its service and its owner
    Namespace.KIND,  # plugin InterPodAffinity: namespace selectors
    PodDisruptionBudget.KIND,  # preemption: which victims are protected
    PriorityClass.KIND,  # the priority of a gang is that of the class that its group names
    StorageClass.KIND, PersistentVolume.KIND, PersistentVolumeClaim.KIND,  # plugins VolumeBinding and VolumeZone
    CSIDriver.KIND, CSIStorageCapacity.KIND,  # plugin VolumeBinding: free storage for new volumes
    CSINode.KIND, VolumeAttachment.KIND,  # plugin NodeVolumeLimits
    DeviceClass.KIND,  # plugin NodeResourcesFit: why a node has too little of a resource
    *GROUP_KINDS,
)  # fmt: skip
"""What the engine reads to place or explain the pending pods."""
_NEW_PODS = (LimitRange.KIND, RuntimeClass.KIND)
"""What the admission of new pods reads, besides PriorityClasses and StorageClasses."""
_SCALING = (Deployment.KIND, Job.KIND, *_NEW_PODS)
"""What `--scale` reads besides: the workload, and the admission of its pods."""
_RECOMMENDATION = (DaemonSet.KIND, *_NEW_PODS)
"""What a recommendation reads besides: the daemons of new nodes, and their admission."""

_NO_CAPACITY = "free storage for new volumes is not checked"
_NO_VOLUMES = "volumes that need one are ignored"
CONSEQUENCES = {
    **dict.fromkeys(_SPREADING, "pods may be spread differently"),
    **dict.fromkeys(GROUP_KINDS, "gangs that need one cannot be placed"),
    Namespace.KIND: "namespace selectors of pods match no namespace by its labels",
    PodDisruptionBudget.KIND: "evictions may break budgets",
    PriorityClass.KIND: "gangs and new pods that name one may have another priority",
    StorageClass.KIND: _NO_VOLUMES,
    PersistentVolume.KIND: _NO_VOLUMES,
    PersistentVolumeClaim.KIND: _NO_VOLUMES,
    CSIDriver.KIND: _NO_CAPACITY,
    CSIStorageCapacity.KIND: _NO_CAPACITY,
    CSINode.KIND: "the volume limits of nodes are unknown",
    VolumeAttachment.KIND: "volumes that are attached without a pod do not count",
    DeviceClass.KIND: "pods that need a device of one are told only that the resource is insufficient",
    LimitRange.KIND: "new pods have no default requests from it",
    RuntimeClass.KIND: "new pods that name one have no overhead and no node selector from it",
    Deployment.KIND: "--scale finds a Deployment only by its ReplicaSets",
    Job.KIND: "--scale finds no Job, and --down does not notice Jobs that were deleted",
    DaemonSet.KIND: "the daemons of new nodes are inferred from running pods",
    KarpenterPool.KIND: "node pools are inferred from nodes, unless --pools names them",
}
"""By kind, what follows if it cannot be read: a part of a note."""


def kinds_to_schedule(*, scales: bool = False) -> list[str]:
    """Return the kinds that a schedule reads; `scales` says whether a what-if scales a workload."""
    return _in_loading_order((*_PLACEMENT, *(_SCALING if scales else ())))


def kinds_to_explain() -> list[str]:
    """Return the kinds that an explanation reads: those of a schedule."""
    return _in_loading_order(_PLACEMENT)


def kinds_to_recommend(*, has_pools: bool = False, down: bool = False) -> list[str]:
    """Return the kinds that a recommendation reads.

    `has_pools` says whether the pools come from a file; `down` whether nodes may be removed, which moves no pods of
    Jobs that do not exist any more.
    """
    pools = () if has_pools else (KarpenterPool.KIND,)
    return _in_loading_order((*_PLACEMENT, *_RECOMMENDATION, *pools, *((Job.KIND,) if down else ())))


def kinds_to_dump() -> list[str]:
    """Return the kinds of all use cases."""
    return _in_loading_order((*_PLACEMENT, *_SCALING, *_RECOMMENDATION, KarpenterPool.KIND))


def _in_loading_order(kinds: Iterable[str]) -> list[str]:
    chosen = set(kinds)
    return [kind for kind in KINDS if kind in chosen]
