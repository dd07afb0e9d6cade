"""The kinds that declare gangs: Workload, CompositePodGroup and the PodGroups of four API groups.

Four API groups have a kind ``PodGroup``, so `KIND` includes the API group. Counts are decoded without a lower bound: an
invalid count is a problem of one gang (`kube.gangs`), not a reason to refuse a whole file.
"""

from __future__ import annotations

from typing import Any

from tutti.kube.objects.meta import Int32, KubeStruct, Object
from tutti.kube.objects.pod import Condition

# Kubernetes: scheduling.k8s.io ----------------------------------------------------------------------------------------


class GangPolicy(KubeStruct, frozen=True):
    """The minimum of pods (PodGroup) or of groups (CompositePodGroup) that start together."""

    min_count: Int32 | None = None
    min_group_count: Int32 | None = None


class SchedulingPolicy(KubeStruct, frozen=True):
    """How a group starts: each pod alone (basic), or a minimum together (gang)."""

    basic: dict[str, Any] | None = None
    gang: GangPolicy | None = None


class TopologyConstraint(KubeStruct, frozen=True):
    """A node label; all pods of a group run on nodes with one value of the label."""

    key: str = ""


class SchedulingConstraints(KubeStruct, frozen=True):
    """The topology constraints of a group."""

    topology: list[TopologyConstraint] | None = None


class WorkloadReference(KubeStruct, frozen=True):
    """The template of a Workload from which a group was created."""

    workload_name: str = ""
    template_name: str = ""


class GroupPolicy(KubeStruct, frozen=True):
    """The fields that groups and their templates have in common."""

    scheduling_policy: SchedulingPolicy | None = None
    scheduling_constraints: SchedulingConstraints | None = None
    disruption_mode: Any = None
    """``{single: {}}`` or ``{all: {}}``; a string in older API versions."""
    priority_class_name: str | None = None
    priority: Int32 | None = None
    preemption_policy: str | None = None


class GroupTemplate(GroupPolicy, frozen=True):
    """The template of a PodGroup or of a CompositePodGroup."""

    name: str = ""
    pod_group_templates: list[GroupTemplate] | None = None
    composite_pod_group_templates: list[GroupTemplate] | None = None


class GroupSpec(GroupPolicy, frozen=True):
    """The spec of a PodGroup or of a CompositePodGroup."""

    parent_composite_pod_group_name: str | None = None
    workload_ref: WorkloadReference | None = None


class PodGroupStatus(KubeStruct, frozen=True):
    """The conditions of a PodGroup."""

    conditions: list[Condition] | None = None


class PodGroup(Object, frozen=True):
    """Kubernetes' own PodGroup: pods that start together."""

    KIND = "PodGroup.scheduling.k8s.io"
    API_VERSION = "scheduling.k8s.io/v1beta1"
    NAMESPACED = True
    spec: GroupSpec = GroupSpec()
    status: PodGroupStatus = PodGroupStatus()


class CompositePodGroup(Object, frozen=True):
    """A group of PodGroups or of other composite groups that start together."""

    KIND = "CompositePodGroup"
    API_VERSION = "scheduling.k8s.io/v1alpha3"
    NAMESPACED = True
    spec: GroupSpec = GroupSpec()


class WorkloadTemplates(KubeStruct, frozen=True):
    """The group templates of a Workload."""

    pod_group_templates: list[GroupTemplate] | None = None
    composite_pod_group_templates: list[GroupTemplate] | None = None


class Workload(Object, frozen=True):
    """A Workload of scheduling.k8s.io: templates of groups."""

    KIND = "Workload"
    API_VERSION = "scheduling.k8s.io/v1beta1"
    NAMESPACED = True
    spec: WorkloadTemplates = WorkloadTemplates()


# scheduler-plugins: scheduling.x-k8s.io -------------------------------------------------------------------------------


class CoschedulingSpec(KubeStruct, frozen=True):
    """The minimum of pods that start together."""

    min_member: Int32 | None = None


class CoschedulingStatus(KubeStruct, frozen=True):
    """Creation and start time of a group, which Fluence writes with microseconds."""

    creation_time: str | None = None
    schedule_start_time: str | None = None


class CoschedulingPodGroup(Object, frozen=True):
    """The PodGroup of the coscheduling plugin and of Fluence."""

    KIND = "PodGroup.scheduling.x-k8s.io"
    API_VERSION = "scheduling.x-k8s.io/v1alpha1"
    NAMESPACED = True
    spec: CoschedulingSpec = CoschedulingSpec()
    status: CoschedulingStatus = CoschedulingStatus()


# Volcano: scheduling.volcano.sh ---------------------------------------------------------------------------------------


class NetworkTopology(KubeStruct, frozen=True):
    """The HyperNode tier within which the pods of a group run."""

    mode: str | None = None
    highest_tier_allowed: Int32 | None = None
    highest_tier_name: str | None = None


class VolcanoSpec(KubeStruct, frozen=True):
    """The minimum of pods that start together, in total and of each task."""

    min_member: Int32 | None = None
    min_task_member: dict[str, Int32] | None = None
    priority_class_name: str | None = None
    network_topology: NetworkTopology | None = None
    sub_group_policy: list[dict[str, Any]] | None = None


class VolcanoPodGroup(Object, frozen=True):
    """The PodGroup of Volcano."""

    KIND = "PodGroup.scheduling.volcano.sh"
    API_VERSION = "scheduling.volcano.sh/v1beta1"
    NAMESPACED = True
    spec: VolcanoSpec = VolcanoSpec()


# KAI: scheduling.run.ai -----------------------------------------------------------------------------------------------


class KaiTopology(KubeStruct, frozen=True):
    """The node labels of whose values the pods share one: required and preferred."""

    topology: str | None = None
    required_topology_level: str | None = None
    preferred_topology_level: str | None = None


class KaiSubGroup(KubeStruct, frozen=True):
    """A sub-group of a PodGroup or of another sub-group."""

    name: str = ""
    parent: str | None = None
    min_member: Int32 | None = None
    min_sub_group: Int32 | None = None
    topology_constraint: KaiTopology | None = None


class KaiSpec(KubeStruct, frozen=True):
    """The minimum of pods or of sub-groups that start together."""

    min_member: Int32 | None = None
    min_sub_group: Int32 | None = None
    priority_class_name: str | None = None
    topology_constraint: KaiTopology | None = None
    sub_groups: list[KaiSubGroup] | None = None


class KaiPodGroup(Object, frozen=True):
    """The PodGroup of the KAI scheduler."""

    KIND = "PodGroup.scheduling.run.ai"
    API_VERSION = "scheduling.run.ai/v2alpha2"
    NAMESPACED = True
    spec: KaiSpec = KaiSpec()
