"""Kubernetes objects as frozen structs, with only the fields that Tutti reads (the contract is in `meta`).

Quantities stay in their JSON form (module kube.quantity parses them); times stay RFC 3339 text (module kube.times).

- `meta`: which fields does every object have, and what is the base class?
- `kinds`: which kinds does Tutti read?
- `pod`, `containers`, `volumes`, `affinity`, `selectors`: what is in a pod?
- `node`: what is in a node, its taints and images included?
- `storage`: what are claims, persistent volumes, storage classes and CSI objects?
- `workloads`: what are Deployments, StatefulSets, DaemonSets, Jobs, CronJobs and Services?
- `policy`: what are disruption budgets, namespaces, limit ranges, priority classes and runtime classes?
- `pod_groups`: what are the PodGroups of Kubernetes, scheduler-plugins, Volcano and KAI?
- `devices`: what is a DeviceClass?
- `karpenter`: what is a Karpenter NodePool?
"""

# fmt: off
# ruff: noqa: I001

from tutti.kube.objects.affinity import (Affinity, NodeAffinity, PodAffinity, PodAffinityTerm,
    PreferredSchedulingTerm, Toleration, TopologySpreadConstraint, WeightedPodAffinityTerm)
from tutti.kube.objects.containers import (Container, ContainerPort, ResourceRequirements, RestartRule, VolumeMount)
from tutti.kube.objects.devices import (DeviceClass, DeviceClassSpec)
from tutti.kube.objects.karpenter import (NodePoolDisruption, DisruptionBudget, KarpenterPool, KarpenterPoolSpec,
    PoolRequirement, PoolTemplate, PoolTemplateSpec)
from tutti.kube.objects.kinds import (KINDS)
from tutti.kube.objects.meta import (Count, Int32, Object, ObjectMeta, OwnerReference, Quantities, Quantity, KubeStruct)
from tutti.kube.objects.node import (Node, NodeImage, NodeSpec, NodeStatus, Taint)
from tutti.kube.objects.pod import (Condition, ContainerStatus, Pod, PodResourceClaim, PodSpec, PodStatus,
    PodTemplate, SchedulingGate, SchedulingGroup)
from tutti.kube.objects.pod_groups import (CompositePodGroup, CoschedulingPodGroup, CoschedulingSpec,
    CoschedulingStatus, GangPolicy, GroupPolicy, GroupSpec, GroupTemplate, KaiPodGroup, KaiSpec, KaiSubGroup,
    KaiTopology, NetworkTopology, PodGroup, SchedulingConstraints, SchedulingPolicy, TopologyConstraint,
    VolcanoPodGroup, VolcanoSpec, Workload, WorkloadReference, WorkloadTemplates)
from tutti.kube.objects.policy import (BudgetSpec, BudgetStatus, LimitRange, LimitRangeItem, LimitRangeSpec,
    Namespace, PodDisruptionBudget, PriorityClass, RuntimeClass, RuntimeOverhead, RuntimeScheduling)
from tutti.kube.objects.selectors import (LabelSelector, LabelSelectorRequirement, NodeSelector, NodeSelectorTerm)
from tutti.kube.objects.storage import (AttachmentSource, AttachmentSpec, CSIDriver, CSINode, CSIStorageCapacity,
    ClaimStatus, CsiDriverSpec, CsiNodeDriver, CsiNodeSpec, CsiSource, ObjectReference, PersistentVolume,
    PersistentVolumeClaim, StorageClass, TopologyRequirement, TopologySelectorTerm, VolumeAttachment, VolumeLimit,
    VolumeNodeAffinity, VolumeSpec)
from tutti.kube.objects.volumes import (AwsDisk, AzureDisk, CinderDisk, ClaimSpec, ClaimTemplate, ClaimVolume,
    EmptyDir, EphemeralVolume, GceDisk, HostPath, ImageVolume, IscsiDisk, PortworxVolume, RbdDisk, Volume)
from tutti.kube.objects.workloads import (ControllerSpec, CronJob, CronJobSpec, DaemonSet, Deployment, Job, JobSpec,
    JobStatus, JobTemplate, Ordinals, ReplicaSet, ReplicationController, Service, ServiceSpec, StatefulSet,
    WorkloadSpec)

__all__ = [
    "KINDS",
    "Affinity",
    "AttachmentSource",
    "AttachmentSpec",
    "AwsDisk",
    "AzureDisk",
    "BudgetSpec",
    "BudgetStatus",
    "CSIDriver",
    "CSINode",
    "CSIStorageCapacity",
    "CinderDisk",
    "ClaimSpec",
    "ClaimStatus",
    "ClaimTemplate",
    "ClaimVolume",
    "CompositePodGroup",
    "Condition",
    "Container",
    "ContainerPort",
    "ContainerStatus",
    "ControllerSpec",
    "CoschedulingPodGroup",
    "CoschedulingSpec",
    "CoschedulingStatus",
    "Count",
    "CronJob",
    "CronJobSpec",
    "CsiDriverSpec",
    "CsiNodeDriver",
    "CsiNodeSpec",
    "CsiSource",
    "DaemonSet",
    "Deployment",
    "DeviceClass",
    "DeviceClassSpec",
    "DisruptionBudget",
    "EmptyDir",
    "EphemeralVolume",
    "GangPolicy",
    "GceDisk",
    "GroupPolicy",
    "GroupSpec",
    "GroupTemplate",
    "HostPath",
    "ImageVolume",
    "Int32",
    "IscsiDisk",
    "Job",
    "JobSpec",
    "JobStatus",
    "JobTemplate",
    "KaiPodGroup",
    "KaiSpec",
    "KaiSubGroup",
    "KaiTopology",
    "KarpenterPool",
    "KarpenterPoolSpec",
    "KubeStruct",
    "LabelSelector",
    "LabelSelectorRequirement",
    "LimitRange",
    "LimitRangeItem",
    "LimitRangeSpec",
    "Namespace",
    "NetworkTopology",
    "Node",
    "NodeAffinity",
    "NodeImage",
    "NodePoolDisruption",
    "NodeSelector",
    "NodeSelectorTerm",
    "NodeSpec",
    "NodeStatus",
    "Object",
    "ObjectMeta",
    "ObjectReference",
    "Ordinals",
    "OwnerReference",
    "PersistentVolume",
    "PersistentVolumeClaim",
    "Pod",
    "PodAffinity",
    "PodAffinityTerm",
    "PodDisruptionBudget",
    "PodGroup",
    "PodResourceClaim",
    "PodSpec",
    "PodStatus",
    "PodTemplate",
    "PoolRequirement",
    "PoolTemplate",
    "PoolTemplateSpec",
    "PortworxVolume",
    "PreferredSchedulingTerm",
    "PriorityClass",
    "Quantities",
    "Quantity",
    "RbdDisk",
    "ReplicaSet",
    "ReplicationController",
    "ResourceRequirements",
    "RestartRule",
    "RuntimeClass",
    "RuntimeOverhead",
    "RuntimeScheduling",
    "SchedulingConstraints",
    "SchedulingGate",
    "SchedulingGroup",
    "SchedulingPolicy",
    "Service",
    "ServiceSpec",
    "StatefulSet",
    "StorageClass",
    "Taint",
    "Toleration",
    "TopologyConstraint",
    "TopologyRequirement",
    "TopologySelectorTerm",
    "TopologySpreadConstraint",
    "VolcanoPodGroup",
    "VolcanoSpec",
    "Volume",
    "VolumeAttachment",
    "VolumeLimit",
    "VolumeMount",
    "VolumeNodeAffinity",
    "VolumeSpec",
    "WeightedPodAffinityTerm",
    "Workload",
    "WorkloadReference",
    "WorkloadSpec",
    "WorkloadTemplates",
]
