"""KubeSchedulerConfiguration (kubescheduler.config.k8s.io/v1) as data: every field that kube-scheduler 1.37 knows.

Contract: a null means an absent field, so every field has a default. `plugin_args` validates the values, not this
module; plugin arguments stay trees until their plugin is known. Settings that cannot change where a pod goes are only
declared, so that `strict_parsing.convert_tree` can refuse unknown fields.
"""

from __future__ import annotations

from typing import Any

import msgspec

from tutti.kube.objects import NodeAffinity

KIND = "KubeSchedulerConfiguration"
API_VERSION = "kubescheduler.config.k8s.io/v1"


class ConfigurationPart(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """Base of all parts of the file."""


# Profiles -------------------------------------------------------------------------------------------------------------


class PluginRef(ConfigurationPart, frozen=True):
    """A plugin by name, with the weight of its score."""

    name: str = ""
    weight: int | None = None


class PluginSet(ConfigurationPart, frozen=True):
    """The plugins that are enabled and disabled at an extension point; "*" stands for all default plugins."""

    enabled: tuple[PluginRef, ...] | None = None
    disabled: tuple[PluginRef, ...] | None = None


class Plugins(ConfigurationPart, frozen=True):
    """The plugins that are enabled and disabled at each extension point, or at all points of a plugin (multiPoint)."""

    pre_enqueue: PluginSet | None = None
    queue_sort: PluginSet | None = None
    pre_filter: PluginSet | None = None
    filter: PluginSet | None = None
    post_filter: PluginSet | None = None
    pre_score: PluginSet | None = None
    score: PluginSet | None = None
    reserve: PluginSet | None = None
    permit: PluginSet | None = None
    pre_bind: PluginSet | None = None
    bind: PluginSet | None = None
    post_bind: PluginSet | None = None
    multi_point: PluginSet | None = None
    placement_generate: PluginSet | None = None
    placement_score: PluginSet | None = None
    pod_group_post_filter: PluginSet | None = None

    def at(self, point: str) -> PluginSet:
        """Return the settings of an extension point, by its name in the file."""
        field = next(f.name for f in msgspec.structs.fields(self) if f.encode_name == point)
        plugin_set: PluginSet | None = getattr(self, field)
        return plugin_set or PluginSet()


class PluginConfig(ConfigurationPart, frozen=True):
    """The arguments of one plugin."""

    name: str = ""
    args: dict[str, Any] | None = None


class SchedulerProfile(ConfigurationPart, frozen=True):
    """One profile, for the pods that name its scheduler."""

    scheduler_name: str | None = None
    percentage_of_nodes_to_score: int | None = None
    plugins: Plugins | None = None
    plugin_config: tuple[PluginConfig, ...] | None = None


class Configuration(ConfigurationPart, frozen=True):
    """The whole file; most fields are declared only, because they cannot change where a pod goes."""

    api_version: str | None = None
    kind: str | None = None
    profiles: tuple[SchedulerProfile, ...] | None = None
    extenders: list[Any] | None = None
    percentage_of_nodes_to_score: int | None = None
    parallelism: int | None = None
    pod_initial_backoff_seconds: int | None = None
    pod_max_backoff_seconds: int | None = None
    delay_cache_until_active: bool | None = None
    enable_profiling: bool | None = None
    enable_contention_profiling: bool | None = None
    leader_election: dict[str, Any] | None = None
    client_connection: dict[str, Any] | None = None


# Arguments of plugins -------------------------------------------------------------------------------------------------


class Args(ConfigurationPart, frozen=True):
    """Base of all plugin arguments, which may state their own type."""

    api_version: str | None = None
    kind: str | None = None


class ResourceSpec(ConfigurationPart, frozen=True):
    """A resource that is scored."""

    name: str = ""
    weight: int | None = None


class ShapePoint(ConfigurationPart, frozen=True):
    """A point of a scoring curve: utilization from 0 to 100, score from 0 to 10."""

    utilization: int | None = None
    score: int | None = None


class RatioParam(ConfigurationPart, frozen=True):
    """The scoring curve of RequestedToCapacityRatio."""

    shape: tuple[ShapePoint, ...] | None = None


class ScoringStrategyConfig(ConfigurationPart, frozen=True):
    """How NodeResourcesFit scores."""

    type: str = ""
    resources: tuple[ResourceSpec, ...] | None = None
    requested_to_capacity_ratio: RatioParam | None = None


class NodeResourcesFitArgs(Args, frozen=True):
    """Arguments of NodeResourcesFit."""

    ignored_resources: tuple[str, ...] | None = None
    ignored_resource_groups: tuple[str, ...] | None = None
    scoring_strategy: ScoringStrategyConfig | None = None


class NodeResourcesBalancedAllocationArgs(Args, frozen=True):
    """Arguments of NodeResourcesBalancedAllocation."""

    resources: tuple[ResourceSpec, ...] | None = None


class InterPodAffinityArgs(Args, frozen=True):
    """Arguments of InterPodAffinity."""

    hard_pod_affinity_weight: int | None = None
    ignore_preferred_terms_of_existing_pods: bool | None = None


class NodeAffinityArgs(Args, frozen=True):
    """Arguments of NodeAffinity."""

    added_affinity: NodeAffinity | None = None


class DefaultConstraint(ConfigurationPart, frozen=True):
    """A topology spread constraint for pods without their own; without the defaults that a pod's constraint has."""

    max_skew: int | None = None
    topology_key: str | None = None
    when_unsatisfiable: str | None = None
    label_selector: dict[str, Any] | None = None
    min_domains: int | None = None
    node_affinity_policy: str | None = None
    node_taints_policy: str | None = None
    match_label_keys: tuple[str, ...] | None = None


class PodTopologySpreadArgs(Args, frozen=True):
    """Arguments of PodTopologySpread."""

    default_constraints: tuple[DefaultConstraint, ...] | None = None
    defaulting_type: str | None = None


class VolumeBindingArgs(Args, frozen=True):
    """Arguments of VolumeBinding."""

    bind_timeout_seconds: int | None = None
    shape: tuple[ShapePoint, ...] | None = None


class DefaultPreemptionArgs(Args, frozen=True):
    """Arguments of DefaultPreemption."""

    min_candidate_nodes_percentage: int | None = None
    min_candidate_nodes_absolute: int | None = None


class DynamicResourcesArgs(Args, frozen=True):
    """Arguments of DynamicResources."""

    filter_timeout: str | None = None
    binding_timeout: str | None = None
