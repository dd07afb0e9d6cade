"""Kubernetes objects as data: the fields that scheduling reads, and no others.

Contract: every field may be absent or null on the wire, so every field has a default; structs are frozen, hold no
cycles (``gc=False`` keeps a cluster of 50,000 pods out of the garbage collector's way) and encode without their
defaults, so equal bytes mean that the scheduler cannot tell two specs apart. Quantities stay as the wire sends them
(`kube.quantity` reads them), times stay as RFC 3339 text (`kube.times`).
"""

# ruff: noqa: PLC0414 - the types that every object is made of are given on from here

from __future__ import annotations

from typing import Any

import msgspec

from tutti.kube.group_objects import (
    CompositePodGroup,
    CoschedulingPodGroup,
    KaiPodGroup,
    PodGroup,
    VolcanoPodGroup,
    Workload,
)
from tutti.kube.wire import Count as Count
from tutti.kube.wire import Int32 as Int32
from tutti.kube.wire import Object as Object
from tutti.kube.wire import ObjectMeta as ObjectMeta
from tutti.kube.wire import OwnerReference as OwnerReference
from tutti.kube.wire import Quantities as Quantities
from tutti.kube.wire import Quantity as Quantity
from tutti.kube.wire import Wire as Wire

# Selectors ------------------------------------------------------------------------------------------------------------


class LabelSelectorRequirement(Wire, frozen=True):
    """One condition of a label selector."""

    key: str = ""
    operator: str = ""
    values: list[str] | None = None


class LabelSelector(Wire, frozen=True):
    """Conditions on labels, all of which must hold; without any, everything is selected."""

    match_labels: dict[str, str] | None = None
    match_expressions: list[LabelSelectorRequirement] | None = None


class NodeSelectorTerm(Wire, frozen=True):
    """Conditions on a node's labels and fields, all of which must hold."""

    match_expressions: list[LabelSelectorRequirement] | None = None
    match_fields: list[LabelSelectorRequirement] | None = None


class NodeSelector(Wire, frozen=True):
    """Terms of which one must hold."""

    node_selector_terms: list[NodeSelectorTerm] | None = None


# Affinity, tolerations, spreading -------------------------------------------------------------------------------------


class PreferredSchedulingTerm(Wire, frozen=True):
    """A node selector term that is wished for."""

    weight: Int32 = 0
    preference: NodeSelectorTerm = NodeSelectorTerm()


class NodeAffinity(Wire, frozen=True):
    """Which nodes a pod needs and prefers."""

    required: NodeSelector | None = msgspec.field(default=None, name="requiredDuringSchedulingIgnoredDuringExecution")
    preferred: list[PreferredSchedulingTerm] | None = msgspec.field(
        default=None, name="preferredDuringSchedulingIgnoredDuringExecution"
    )


class PodAffinityTerm(Wire, frozen=True):
    """Pods that a pod wants to be near to, or far from."""

    label_selector: LabelSelector | None = None
    namespaces: list[str] | None = None
    namespace_selector: LabelSelector | None = None
    topology_key: str = ""
    match_label_keys: list[str] | None = None
    mismatch_label_keys: list[str] | None = None


class WeightedPodAffinityTerm(Wire, frozen=True):
    """A term that is wished for."""

    weight: Int32 = 0
    pod_affinity_term: PodAffinityTerm = PodAffinityTerm()


class PodAffinity(Wire, frozen=True):
    """Affinity or anti-affinity between pods."""

    required: list[PodAffinityTerm] | None = msgspec.field(
        default=None, name="requiredDuringSchedulingIgnoredDuringExecution"
    )
    preferred: list[WeightedPodAffinityTerm] | None = msgspec.field(
        default=None, name="preferredDuringSchedulingIgnoredDuringExecution"
    )


class Affinity(Wire, frozen=True):
    """All affinities of a pod."""

    node_affinity: NodeAffinity | None = None
    pod_affinity: PodAffinity | None = None
    pod_anti_affinity: PodAffinity | None = None


class Toleration(Wire, frozen=True):
    """A taint that a pod bears."""

    key: str | None = None
    operator: str | None = None
    value: str | None = None
    effect: str | None = None
    toleration_seconds: int | None = None


class TopologySpreadConstraint(Wire, frozen=True):
    """How evenly pods are spread over the values of a node label."""

    max_skew: Int32 = 1
    topology_key: str = ""
    when_unsatisfiable: str = "DoNotSchedule"
    label_selector: LabelSelector | None = None
    min_domains: Int32 | None = None
    node_affinity_policy: str | None = None
    node_taints_policy: str | None = None
    match_label_keys: list[str] | None = None


# Containers -----------------------------------------------------------------------------------------------------------


class ResourceRequirements(Wire, frozen=True):
    """What a container, or a whole pod, asks for."""

    requests: Quantities | None = None
    limits: Quantities | None = None


class ContainerPort(Wire, frozen=True):
    """A port of a container; only one with a host port matters to the scheduler."""

    container_port: Int32 | None = None
    host_port: Int32 | None = None
    host_ip: str | None = msgspec.field(default=None, name="hostIP")
    protocol: str | None = None


class Container(Wire, frozen=True):
    """A container, or an init container."""

    name: str = ""
    image: str | None = None
    resources: ResourceRequirements | None = None
    ports: list[ContainerPort] | None = None
    restart_policy: str | None = None


# Volumes --------------------------------------------------------------------------------------------------------------


class ClaimVolume(Wire, frozen=True):
    """A volume by the name of its claim."""

    claim_name: str = ""
    read_only: bool | None = None


class ClaimSpec(Wire, frozen=True):
    """What a volume claim asks for."""

    access_modes: list[str] | None = None
    storage_class_name: str | None = None
    volume_name: str | None = None
    volume_mode: str | None = None
    resources: ResourceRequirements | None = None
    selector: LabelSelector | None = None
    volume_attributes_class_name: str | None = None


class ClaimTemplate(Wire, frozen=True):
    """The claim that an ephemeral volume makes."""

    metadata: ObjectMeta = ObjectMeta()
    spec: ClaimSpec = ClaimSpec()


class EphemeralVolume(Wire, frozen=True):
    """A volume whose claim is made with the pod."""

    volume_claim_template: ClaimTemplate | None = None


class GceDisk(Wire, frozen=True):
    """A Google disk."""

    pd_name: str = ""
    read_only: bool | None = None
    partition: int | None = None


class AwsDisk(Wire, frozen=True):
    """An Amazon disk."""

    volume_id: str = msgspec.field(default="", name="volumeID")
    read_only: bool | None = None
    partition: int | None = None


class AzureDisk(Wire, frozen=True):
    """An Azure disk."""

    disk_name: str = ""
    disk_uri: str = msgspec.field(default="", name="diskURI")


class CinderDisk(Wire, frozen=True):
    """An OpenStack disk."""

    volume_id: str = msgspec.field(default="", name="volumeID")


class PortworxVolume(Wire, frozen=True):
    """A Portworx volume."""

    volume_id: str = msgspec.field(default="", name="volumeID")


class IscsiDisk(Wire, frozen=True):
    """An iSCSI disk."""

    iqn: str = ""
    read_only: bool | None = None


class RbdDisk(Wire, frozen=True):
    """A Ceph block device."""

    monitors: list[str] | None = None
    image: str = ""
    pool: str | None = None
    read_only: bool | None = None


class ImageVolume(Wire, frozen=True):
    """A volume from a container image."""

    reference: str | None = None


class EmptyDir(Wire, frozen=True):
    """A directory that lives as long as its pod."""

    medium: str | None = None


class HostPath(Wire, frozen=True):
    """A directory of the node."""

    path: str = ""


class Volume(Wire, frozen=True):
    """A volume of a pod, if it is of a kind that decides where the pod can go, or whether it can leave."""

    name: str = ""
    persistent_volume_claim: ClaimVolume | None = None
    ephemeral: EphemeralVolume | None = None
    gce_persistent_disk: GceDisk | None = None
    aws_elastic_block_store: AwsDisk | None = None
    azure_disk: AzureDisk | None = None
    cinder: CinderDisk | None = None
    portworx_volume: PortworxVolume | None = None
    iscsi: IscsiDisk | None = None
    rbd: RbdDisk | None = None
    image: ImageVolume | None = None
    empty_dir: EmptyDir | None = None
    host_path: HostPath | None = None

    @property
    def decides(self) -> bool:
        """Whether it matters to where the pod can go."""
        return self != Volume(name=self.name, empty_dir=self.empty_dir, host_path=self.host_path)


# Pods -----------------------------------------------------------------------------------------------------------------


class SchedulingGate(Wire, frozen=True):
    """Something that a pod waits for before it may be scheduled."""

    name: str = ""


class PodResourceClaim(Wire, frozen=True):
    """A device claim of a pod."""

    name: str = ""
    resource_claim_name: str | None = None
    resource_claim_template_name: str | None = None


class SchedulingGroup(Wire, frozen=True):
    """The pod group that a pod starts with."""

    pod_group_name: str | None = None


class PodSpec(Wire, frozen=True):
    """What a pod asks of the scheduler."""

    containers: list[Container] | None = None
    init_containers: list[Container] | None = None
    node_name: str | None = None
    node_selector: dict[str, str] | None = None
    affinity: Affinity | None = None
    tolerations: list[Toleration] | None = None
    topology_spread_constraints: list[TopologySpreadConstraint] | None = None
    priority: Int32 | None = None
    priority_class_name: str | None = None
    preemption_policy: str | None = None
    scheduler_name: str | None = None
    overhead: Quantities | None = None
    resources: ResourceRequirements | None = None
    volumes: list[Volume] | None = None
    host_network: bool | None = None
    scheduling_gates: list[SchedulingGate] | None = None
    resource_claims: list[PodResourceClaim] | None = None
    runtime_class_name: str | None = None
    restart_policy: str | None = None
    scheduling_group: SchedulingGroup | None = None
    termination_grace_period_seconds: int | None = None


class Condition(Wire, frozen=True):
    """One condition of an object's status."""

    type: str = ""
    status: str = ""
    reason: str | None = None
    message: str | None = None
    last_heartbeat_time: str | None = None
    """Of a node's: when its kubelet spoke last, some minutes before a dump at most."""


class ContainerStatus(Wire, frozen=True):
    """What a container has been given."""

    name: str = ""
    allocated_resources: Quantities | None = None
    resources: ResourceRequirements | None = None


class PodStatus(Wire, frozen=True):
    """How a pod is doing."""

    phase: str | None = None
    nominated_node_name: str | None = None
    start_time: str | None = None
    conditions: list[Condition] | None = None
    container_statuses: list[ContainerStatus] | None = None
    init_container_statuses: list[ContainerStatus] | None = None
    allocated_resources: Quantities | None = None
    resources: ResourceRequirements | None = None


class Pod(Object, frozen=True):
    """A pod."""

    KIND = "Pod"
    NAMESPACED = True
    spec: PodSpec = PodSpec()
    status: PodStatus = PodStatus()


class PodTemplate(Wire, frozen=True):
    """The pod that a workload makes copies of."""

    metadata: ObjectMeta = ObjectMeta()
    spec: PodSpec = PodSpec()


# Nodes ----------------------------------------------------------------------------------------------------------------


class Taint(Wire, frozen=True):
    """What keeps pods off a node."""

    key: str = ""
    value: str | None = None
    effect: str = ""


class NodeSpec(Wire, frozen=True):
    """What is set on a node."""

    unschedulable: bool | None = None
    taints: list[Taint] | None = None
    provider_id: str | None = msgspec.field(default=None, name="providerID")


class NodeImage(Wire, frozen=True):
    """An image that a node has."""

    names: list[str] | None = None
    size_bytes: int | None = None


class NodeStatus(Wire, frozen=True):
    """What a node offers."""

    capacity: Quantities | None = None
    allocatable: Quantities | None = None
    conditions: list[Condition] | None = None
    images: list[NodeImage] | None = None


class Node(Object, frozen=True):
    """A node."""

    KIND = "Node"
    spec: NodeSpec = NodeSpec()
    status: NodeStatus = NodeStatus()


# Karpenter: karpenter.sh ----------------------------------------------------------------------------------------------


class PoolRequirement(LabelSelectorRequirement, frozen=True):
    """A condition on what a Karpenter pool may buy."""

    min_values: Int32 | None = None


class PoolTemplateSpec(Wire, frozen=True):
    """What the nodes of a Karpenter pool are."""

    requirements: list[PoolRequirement] | None = None
    taints: list[Taint] | None = None


class PoolTemplate(Wire, frozen=True):
    """A node of a Karpenter pool."""

    metadata: ObjectMeta = ObjectMeta()
    spec: PoolTemplateSpec = PoolTemplateSpec()


class DisruptionBudget(Wire, frozen=True):
    """How many nodes of a Karpenter pool may go at a time."""

    nodes: str | int | None = None
    reasons: list[str] | None = None
    schedule: str | None = None
    duration: str | None = None


class Disruption(Wire, frozen=True):
    """When Karpenter gives nodes of a pool back."""

    budgets: list[DisruptionBudget] | None = None
    consolidate_after: str | None = None
    consolidation_policy: str | None = None


class KarpenterPoolSpec(Wire, frozen=True):
    """What a Karpenter pool may buy, and how much of it."""

    template: PoolTemplate = PoolTemplate()
    limits: Quantities | None = None
    weight: Int32 | None = None
    disruption: Disruption | None = None


class KarpenterPool(Object, frozen=True):
    """A pool that Karpenter buys nodes for; scheduling does not look at it."""

    KIND = "NodePool.karpenter.sh"
    API_VERSION = "karpenter.sh/v1"
    spec: KarpenterPoolSpec = KarpenterPoolSpec()


# Storage --------------------------------------------------------------------------------------------------------------


class ClaimStatus(Wire, frozen=True):
    """How a claim is doing."""

    phase: str | None = None


class PersistentVolumeClaim(Object, frozen=True):
    """A wish for a volume."""

    KIND = "PersistentVolumeClaim"
    NAMESPACED = True
    spec: ClaimSpec = ClaimSpec()
    status: ClaimStatus = ClaimStatus()


class CsiSource(Wire, frozen=True):
    """A volume of a CSI driver."""

    driver: str = ""
    volume_handle: str = ""


class ObjectReference(Wire, frozen=True):
    """The name of another object."""

    kind: str | None = None
    namespace: str | None = None
    name: str | None = None
    uid: str | None = None


class VolumeNodeAffinity(Wire, frozen=True):
    """Which nodes can reach a volume."""

    required: NodeSelector | None = None


class VolumeSpec(Wire, frozen=True):
    """What a volume is."""

    capacity: Quantities | None = None
    access_modes: list[str] | None = None
    storage_class_name: str | None = None
    volume_mode: str | None = None
    node_affinity: VolumeNodeAffinity | None = None
    claim_ref: ObjectReference | None = None
    volume_attributes_class_name: str | None = None
    csi: CsiSource | None = None
    gce_persistent_disk: GceDisk | None = None
    aws_elastic_block_store: AwsDisk | None = None
    azure_disk: AzureDisk | None = None
    cinder: CinderDisk | None = None
    portworx_volume: PortworxVolume | None = None


class PersistentVolume(Object, frozen=True):
    """A volume."""

    KIND = "PersistentVolume"
    spec: VolumeSpec = VolumeSpec()
    status: ClaimStatus = ClaimStatus()


class TopologyRequirement(Wire, frozen=True):
    """Values a node label may have."""

    key: str = ""
    values: list[str] | None = None


class TopologySelectorTerm(Wire, frozen=True):
    """Conditions on where a class can make volumes."""

    match_label_expressions: list[TopologyRequirement] | None = None


class StorageClass(Object, frozen=True):
    """How volumes are made."""

    KIND = "StorageClass"
    API_VERSION = "storage.k8s.io/v1"
    provisioner: str = ""
    volume_binding_mode: str | None = None
    allowed_topologies: list[TopologySelectorTerm] | None = None


class VolumeLimit(Wire, frozen=True):
    """How many volumes a node takes."""

    count: int | None = None


class CsiNodeDriver(Wire, frozen=True):
    """A CSI driver on a node."""

    name: str = ""
    node_id: str | None = msgspec.field(default=None, name="nodeID")
    topology_keys: list[str] | None = None
    allocatable: VolumeLimit | None = None


class CsiNodeSpec(Wire, frozen=True):
    """The CSI drivers of a node."""

    drivers: list[CsiNodeDriver] | None = None


class CSINode(Object, frozen=True):
    """The CSI drivers of the node of the same name."""

    KIND = "CSINode"
    API_VERSION = "storage.k8s.io/v1"
    spec: CsiNodeSpec = CsiNodeSpec()


class CsiDriverSpec(Wire, frozen=True):
    """What a CSI driver wants of the scheduler."""

    storage_capacity: bool | None = None
    prevent_pod_scheduling_if_missing: bool | None = None


class CSIDriver(Object, frozen=True):
    """A CSI driver."""

    KIND = "CSIDriver"
    API_VERSION = "storage.k8s.io/v1"
    spec: CsiDriverSpec = CsiDriverSpec()


class CSIStorageCapacity(Object, frozen=True):
    """How much a storage class can still make, and where."""

    KIND = "CSIStorageCapacity"
    API_VERSION = "storage.k8s.io/v1"
    NAMESPACED = True
    storage_class_name: str = ""
    capacity: Quantity | None = None
    maximum_volume_size: Quantity | None = None
    node_topology: LabelSelector | None = None


class AttachmentSource(Wire, frozen=True):
    """The volume that is attached."""

    persistent_volume_name: str | None = None


class AttachmentSpec(Wire, frozen=True):
    """What is attached where."""

    attacher: str = ""
    node_name: str = ""
    source: AttachmentSource = AttachmentSource()


class VolumeAttachment(Object, frozen=True):
    """A volume attached to a node."""

    KIND = "VolumeAttachment"
    API_VERSION = "storage.k8s.io/v1"
    spec: AttachmentSpec = AttachmentSpec()


# Policy, namespaces, priorities ---------------------------------------------------------------------------------------


class BudgetSpec(Wire, frozen=True):
    """Which pods a disruption budget protects."""

    selector: LabelSelector | None = None
    min_available: int | str | None = None
    max_unavailable: int | str | None = None


class BudgetStatus(Wire, frozen=True):
    """How many of them may go now."""

    disruptions_allowed: Int32 | None = None
    disrupted_pods: dict[str, Any] | None = None


class PodDisruptionBudget(Object, frozen=True):
    """A limit on evictions."""

    KIND = "PodDisruptionBudget"
    API_VERSION = "policy/v1"
    NAMESPACED = True
    spec: BudgetSpec = BudgetSpec()
    status: BudgetStatus = BudgetStatus()


class Namespace(Object, frozen=True):
    """A namespace."""

    KIND = "Namespace"


class LimitRangeItem(Wire, frozen=True):
    """What a container gets that does not ask for itself."""

    type: str = ""
    default: Quantities | None = None
    default_request: Quantities | None = None
    max: Quantities | None = None
    min: Quantities | None = None


class LimitRangeSpec(Wire, frozen=True):
    """The limits of a namespace."""

    limits: list[LimitRangeItem] | None = None


class LimitRange(Object, frozen=True):
    """Defaults and bounds for the requests of a namespace's pods; read when a new pod is admitted."""

    KIND = "LimitRange"
    NAMESPACED = True
    spec: LimitRangeSpec = LimitRangeSpec()


class PriorityClass(Object, frozen=True):
    """A named priority."""

    KIND = "PriorityClass"
    API_VERSION = "scheduling.k8s.io/v1"
    value: Int32 = 0
    global_default: bool | None = None
    preemption_policy: str | None = None


class RuntimeOverhead(Wire, frozen=True):
    """What a runtime takes for itself."""

    pod_fixed: Quantities | None = None


class RuntimeScheduling(Wire, frozen=True):
    """Where a runtime is."""

    node_selector: dict[str, str] | None = None
    tolerations: list[Toleration] | None = None


class RuntimeClass(Object, frozen=True):
    """A container runtime."""

    KIND = "RuntimeClass"
    API_VERSION = "node.k8s.io/v1"
    handler: str = ""
    overhead: RuntimeOverhead | None = None
    scheduling: RuntimeScheduling | None = None


# Services and workloads -----------------------------------------------------------------------------------------------


class ServiceSpec(Wire, frozen=True):
    """Which pods a service stands before."""

    selector: dict[str, str] | None = None


class Service(Object, frozen=True):
    """A service."""

    KIND = "Service"
    NAMESPACED = True
    spec: ServiceSpec = ServiceSpec()


class ControllerSpec(Wire, frozen=True):
    """A replication controller's selector and size."""

    replicas: Count | None = None
    selector: dict[str, str] | None = None
    template: PodTemplate | None = None


class ReplicationController(Object, frozen=True):
    """The oldest kind of replica set."""

    KIND = "ReplicationController"
    NAMESPACED = True
    spec: ControllerSpec = ControllerSpec()


class Ordinals(Wire, frozen=True):
    """Where a stateful set starts to count."""

    start: Count | None = None


class WorkloadSpec(Wire, frozen=True):
    """Selector, size and template of a workload."""

    replicas: Count | None = None
    selector: LabelSelector | None = None
    template: PodTemplate = PodTemplate()
    volume_claim_templates: list[PersistentVolumeClaim] | None = None
    ordinals: Ordinals | None = None


class ReplicaSet(Object, frozen=True):
    """Equal pods."""

    KIND = "ReplicaSet"
    API_VERSION = "apps/v1"
    NAMESPACED = True
    spec: WorkloadSpec = WorkloadSpec()


class StatefulSet(Object, frozen=True):
    """Numbered pods with their own volumes."""

    KIND = "StatefulSet"
    API_VERSION = "apps/v1"
    NAMESPACED = True
    spec: WorkloadSpec = WorkloadSpec()


class Deployment(Object, frozen=True):
    """Equal pods, rolled out."""

    KIND = "Deployment"
    API_VERSION = "apps/v1"
    NAMESPACED = True
    spec: WorkloadSpec = WorkloadSpec()


class DaemonSet(Object, frozen=True):
    """A pod on every node."""

    KIND = "DaemonSet"
    API_VERSION = "apps/v1"
    NAMESPACED = True
    spec: WorkloadSpec = WorkloadSpec()


class JobSpec(Wire, frozen=True):
    """How many pods a job runs."""

    parallelism: Count | None = None
    completions: Count | None = None
    completion_mode: str | None = None
    suspend: bool | None = None
    template: PodTemplate = PodTemplate()


class JobStatus(Wire, frozen=True):
    """How far a job has come."""

    succeeded: int | None = None
    completed_indexes: str | None = None
    failed_indexes: str | None = None
    conditions: list[Condition] | None = None


class Job(Object, frozen=True):
    """Pods that run to their end."""

    KIND = "Job"
    API_VERSION = "batch/v1"
    NAMESPACED = True
    spec: JobSpec = JobSpec()
    status: JobStatus = JobStatus()


class JobTemplate(Wire, frozen=True):
    """The job that a cron job makes."""

    metadata: ObjectMeta = ObjectMeta()
    spec: JobSpec = JobSpec()


class CronJobSpec(Wire, frozen=True):
    """When a cron job runs, and what."""

    suspend: bool | None = None
    job_template: JobTemplate = JobTemplate()


class CronJob(Object, frozen=True):
    """A job that is started by the clock."""

    KIND = "CronJob"
    API_VERSION = "batch/v1"
    NAMESPACED = True
    spec: CronJobSpec = CronJobSpec()


KINDS: dict[str, type[Object]] = {
    cls.KIND: cls
    for cls in (
        Namespace, LimitRange, PriorityClass, RuntimeClass, KarpenterPool, Node, Service, ReplicationController,
        ReplicaSet, StatefulSet, Deployment, DaemonSet, Job, CronJob, PodDisruptionBudget, StorageClass, CSINode,
        CSIDriver, CSIStorageCapacity, VolumeAttachment, PersistentVolume, PersistentVolumeClaim, Workload,
        CompositePodGroup, PodGroup, CoschedulingPodGroup, VolcanoPodGroup, KaiPodGroup, Pod,
    )
}  # fmt: skip
"""Every kind that Tutti reads, in an order in which nothing refers to what comes later."""
