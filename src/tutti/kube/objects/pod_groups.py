"""Groups of pods as data: the kinds in which schedulers say that pods start together, and the fields that decide it.

Four API groups have a kind ``PodGroup``, so their kinds bear the group in their names here. Numbers are read as they
come: what one group says wrong is that gang's problem (`kube.gangs`), not a reason to refuse a whole file.
"""

from __future__ import annotations

from typing import Any

from tutti.kube.objects.meta import Int32, Object, Wire

# Kubernetes: scheduling.k8s.io ----------------------------------------------------------------------------------------


class GangPolicy(Wire, frozen=True):
    """Pods, or groups, that start together."""

    min_count: Int32 | None = None
    min_group_count: Int32 | None = None


class SchedulingPolicy(Wire, frozen=True):
    """How a group starts: each for itself (basic), or a minimum together (gang)."""

    basic: dict[str, Any] | None = None
    gang: GangPolicy | None = None


class TopologyConstraint(Wire, frozen=True):
    """A node label whose value a group shares."""

    key: str = ""


class SchedulingConstraints(Wire, frozen=True):
    """Where a group runs."""

    topology: list[TopologyConstraint] | None = None


class WorkloadReference(Wire, frozen=True):
    """The template that a group was made from."""

    workload_name: str = ""
    template_name: str = ""


class GroupPolicy(Wire, frozen=True):
    """What groups and their templates have in common."""

    scheduling_policy: SchedulingPolicy | None = None
    scheduling_constraints: SchedulingConstraints | None = None
    disruption_mode: Any = None
    """``{single: {}}`` or ``{all: {}}``; a text in older versions."""
    priority_class_name: str | None = None
    priority: Int32 | None = None
    preemption_policy: str | None = None


class GroupTemplate(GroupPolicy, frozen=True):
    """What a workload's groups say; also the template of a composite group."""

    name: str = ""
    pod_group_templates: list[GroupTemplate] | None = None
    composite_pod_group_templates: list[GroupTemplate] | None = None


class GroupSpec(GroupPolicy, frozen=True):
    """What a group of pods, or of groups, says."""

    parent_composite_pod_group_name: str | None = None
    workload_ref: WorkloadReference | None = None


class PodGroup(Object, frozen=True):
    """Pods that start together."""

    KIND = "PodGroup.scheduling.k8s.io"
    API_VERSION = "scheduling.k8s.io/v1beta1"
    NAMESPACED = True
    spec: GroupSpec = GroupSpec()


class CompositePodGroup(Object, frozen=True):
    """Groups that start together."""

    KIND = "CompositePodGroup"
    API_VERSION = "scheduling.k8s.io/v1alpha3"
    NAMESPACED = True
    spec: GroupSpec = GroupSpec()


class WorkloadTemplates(Wire, frozen=True):
    """The templates of a workload's groups."""

    pod_group_templates: list[GroupTemplate] | None = None
    composite_pod_group_templates: list[GroupTemplate] | None = None


class Workload(Object, frozen=True):
    """Templates of groups."""

    KIND = "Workload"
    API_VERSION = "scheduling.k8s.io/v1beta1"
    NAMESPACED = True
    spec: WorkloadTemplates = WorkloadTemplates()


# scheduler-plugins: scheduling.x-k8s.io -------------------------------------------------------------------------------


class CoschedulingSpec(Wire, frozen=True):
    """How many pods start together."""

    min_member: Int32 | None = None


class CoschedulingStatus(Wire, frozen=True):
    """When a group was first seen, in microseconds; Fluence writes it."""

    creation_time: str | None = None
    schedule_start_time: str | None = None


class CoschedulingPodGroup(Object, frozen=True):
    """Pods that start together, for the coscheduling plugin and for Fluence."""

    KIND = "PodGroup.scheduling.x-k8s.io"
    API_VERSION = "scheduling.x-k8s.io/v1alpha1"
    NAMESPACED = True
    spec: CoschedulingSpec = CoschedulingSpec()
    status: CoschedulingStatus = CoschedulingStatus()


# Volcano: scheduling.volcano.sh ---------------------------------------------------------------------------------------


class NetworkTopology(Wire, frozen=True):
    """How near to each other pods run, in tiers of hyper nodes."""

    mode: str | None = None
    highest_tier_allowed: Int32 | None = None
    highest_tier_name: str | None = None


class VolcanoSpec(Wire, frozen=True):
    """How many pods start together, in all and of each task."""

    min_member: Int32 | None = None
    min_task_member: dict[str, Int32] | None = None
    priority_class_name: str | None = None
    network_topology: NetworkTopology | None = None
    sub_group_policy: list[dict[str, Any]] | None = None


class VolcanoPodGroup(Object, frozen=True):
    """Pods that start together, for Volcano."""

    KIND = "PodGroup.scheduling.volcano.sh"
    API_VERSION = "scheduling.volcano.sh/v1beta1"
    NAMESPACED = True
    spec: VolcanoSpec = VolcanoSpec()


# KAI: scheduling.run.ai -----------------------------------------------------------------------------------------------


class KaiTopology(Wire, frozen=True):
    """How near to each other pods run: node labels."""

    topology: str | None = None
    required_topology_level: str | None = None
    preferred_topology_level: str | None = None


class KaiSubGroup(Wire, frozen=True):
    """A part of a group, or of another part."""

    name: str = ""
    parent: str | None = None
    min_member: Int32 | None = None
    min_sub_group: Int32 | None = None
    topology_constraint: KaiTopology | None = None


class KaiSpec(Wire, frozen=True):
    """How many pods, or parts, start together."""

    min_member: Int32 | None = None
    min_sub_group: Int32 | None = None
    priority_class_name: str | None = None
    topology_constraint: KaiTopology | None = None
    sub_groups: list[KaiSubGroup] | None = None


class KaiPodGroup(Object, frozen=True):
    """Pods that start together, for the KAI scheduler."""

    KIND = "PodGroup.scheduling.run.ai"
    API_VERSION = "scheduling.run.ai/v2alpha2"
    NAMESPACED = True
    spec: KaiSpec = KaiSpec()
