"""Pods as data: containers, spec, status, and pod templates."""

from __future__ import annotations

from tutti.kube.objects.affinity import Affinity, Toleration, TopologySpreadConstraint
from tutti.kube.objects.containers import Container, ResourceRequirements
from tutti.kube.objects.meta import Int32, Object, ObjectMeta, Quantities, Wire
from tutti.kube.objects.volumes import Volume


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
