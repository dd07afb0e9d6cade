"""Pods as data: containers, spec, status, and pod templates."""

from __future__ import annotations

from tutti.kube.objects.affinity import Affinity, Toleration, TopologySpreadConstraint
from tutti.kube.objects.containers import Container, ResourceRequirements
from tutti.kube.objects.meta import Int32, KubeStruct, Object, ObjectMeta, Quantities
from tutti.kube.objects.volumes import Volume


class SchedulingGate(KubeStruct, frozen=True):
    """A scheduling gate: while a pod has one, the scheduler does not try the pod."""

    name: str = ""


class PodResourceClaim(KubeStruct, frozen=True):
    """A claim for devices (dynamic resource allocation) of a pod."""

    name: str = ""
    resource_claim_name: str | None = None
    resource_claim_template_name: str | None = None


class SchedulingGroup(KubeStruct, frozen=True):
    """The PodGroup that a pod belongs to."""

    pod_group_name: str | None = None


class PodSpec(KubeStruct, frozen=True):
    """The fields of a pod's spec that Tutti reads."""

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
    host_users: bool | None = None
    scheduling_gates: list[SchedulingGate] | None = None
    resource_claims: list[PodResourceClaim] | None = None
    runtime_class_name: str | None = None
    restart_policy: str | None = None
    scheduling_group: SchedulingGroup | None = None
    termination_grace_period_seconds: int | None = None


class Condition(KubeStruct, frozen=True):
    """One condition of an object's status."""

    type: str = ""
    status: str = ""
    reason: str | None = None
    message: str | None = None
    last_transition_time: str | None = None
    last_heartbeat_time: str | None = None
    """Only on nodes: the kubelet's last report, at most some minutes before the time of a dump."""


class ContainerStatus(KubeStruct, frozen=True):
    """The allocated and actual resources of a container."""

    name: str = ""
    allocated_resources: Quantities | None = None
    resources: ResourceRequirements | None = None


class PodStatus(KubeStruct, frozen=True):
    """Phase, conditions, nominated node and resources of a pod."""

    phase: str | None = None
    nominated_node_name: str | None = None
    start_time: str | None = None
    conditions: list[Condition] | None = None
    container_statuses: list[ContainerStatus] | None = None
    init_container_statuses: list[ContainerStatus] | None = None
    allocated_resources: Quantities | None = None
    resources: ResourceRequirements | None = None
    reason: str | None = None
    """Why the pod is in its phase, such as OutOfcpu if its kubelet rejected it."""
    message: str | None = None


class Pod(Object, frozen=True):
    """A pod."""

    KIND = "Pod"
    NAMESPACED = True
    spec: PodSpec = PodSpec()
    status: PodStatus = PodStatus()


class PodTemplate(KubeStruct, frozen=True):
    """The template from which a workload creates pods."""

    metadata: ObjectMeta = ObjectMeta()
    spec: PodSpec = PodSpec()
