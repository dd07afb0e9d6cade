"""The table of all kinds that Tutti reads."""

from __future__ import annotations

from tutti.kube.objects.devices import DeviceClass
from tutti.kube.objects.karpenter import KarpenterPool
from tutti.kube.objects.meta import Object
from tutti.kube.objects.node import Node
from tutti.kube.objects.pod import Pod
from tutti.kube.objects.pod_groups import (
    CompositePodGroup,
    CoschedulingPodGroup,
    KaiPodGroup,
    PodGroup,
    VolcanoPodGroup,
    Workload,
)
from tutti.kube.objects.policy import LimitRange, Namespace, PodDisruptionBudget, PriorityClass, RuntimeClass
from tutti.kube.objects.storage import (
    CSIDriver,
    CSINode,
    CSIStorageCapacity,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
    VolumeAttachment,
)
from tutti.kube.objects.workloads import (
    CronJob,
    DaemonSet,
    Deployment,
    Job,
    ReplicaSet,
    ReplicationController,
    Service,
    StatefulSet,
)

KINDS: dict[str, type[Object]] = {
    cls.KIND: cls
    for cls in (
        Namespace, LimitRange, PriorityClass, RuntimeClass, KarpenterPool, DeviceClass, Node, Service,
        ReplicationController, ReplicaSet, StatefulSet, Deployment, DaemonSet, Job, CronJob, PodDisruptionBudget,
        StorageClass, CSINode, CSIDriver, CSIStorageCapacity, VolumeAttachment, PersistentVolume, PersistentVolumeClaim,
        Workload, CompositePodGroup, PodGroup, CoschedulingPodGroup, VolcanoPodGroup, KaiPodGroup, Pod,
    )
}  # fmt: skip
"""Class by kind, in loading order: no kind refers to a kind that follows."""
