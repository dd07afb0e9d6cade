"""Plugin arguments of a KubeSchedulerConfiguration: validate them as kube-scheduler does, and make the plugins.

Contract: `make_plugin` returns the engine's plugin of a name, or None for a plugin that the engine does not run (the
profile has its setting, or it has no effect on pods that Tutti places). Arguments that kube-scheduler would refuse
raise `InputError` with the path of the field. Accepted without effect: bindTimeoutSeconds and the DynamicResources
timeouts (Tutti does not wait), and minCandidateNodesPercentage and minCandidateNodesAbsolute (Tutti tries every
candidate).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tutti.cluster.spec_classes import SpreadConstraint, parse_spread
from tutti.engine.config import configuration_types as config_types
from tutti.engine.config.strict_parsing import FieldPath, convert_tree
from tutti.engine.plugins.base import MAX_SCORE, Plugin
from tutti.engine.plugins.image_locality import ImageLocality
from tutti.engine.plugins.inter_pod_affinity import InterPodAffinity
from tutti.engine.plugins.node_affinity import NodeAffinityPlugin
from tutti.engine.plugins.node_declared_features import NodeDeclaredFeatures
from tutti.engine.plugins.node_name import NodeName
from tutti.engine.plugins.node_ports import NodePorts
from tutti.engine.plugins.node_resources_balanced_allocation import NodeResourcesBalancedAllocation
from tutti.engine.plugins.node_resources_fit import FunctionShape, NodeResourcesFit, ScoringStrategy
from tutti.engine.plugins.node_unschedulable import NodeUnschedulable
from tutti.engine.plugins.node_volume_limits import NodeVolumeLimits
from tutti.engine.plugins.pod_topology_spread import PodTopologySpread
from tutti.engine.plugins.taint_toleration import TaintToleration
from tutti.engine.plugins.volume_binding import VolumeBinding
from tutti.engine.plugins.volume_restrictions import VolumeRestrictions
from tutti.engine.plugins.volume_zone import VolumeZone
from tutti.kube.objects import NodeSelectorTerm, TopologySpreadConstraint
from tutti.kube.selectors import parse_node_term

_MAX_POINT_SCORE = 10
"""The highest score of a point of a curve."""
_POLICIES = (None, "Honor", "Ignore")


def make_plugin(name: str, tree: dict[str, Any] | None, path: FieldPath) -> Plugin | None:
    """Return a plugin with its arguments; without arguments, with those of the default profile."""
    kind, maker = _MAKERS.get(name, (config_types.Args, None))
    if maker is None and tree:
        raise path.error(f"{name} takes no arguments")
    args = convert_tree(tree or {}, kind, path)
    if args.api_version not in (None, config_types.API_VERSION):
        raise path.at("apiVersion").error(f'"{args.api_version}" is not {config_types.API_VERSION}')
    if args.kind not in (None, f"{name}Args"):
        raise path.at("kind").error(f'"{args.kind}" is not {name}Args')
    if maker is not None:
        return maker(args, path)
    return _WITHOUT_ARGS[name]() if name in _WITHOUT_ARGS else None


def _checked(value: int | None, low: int, high: int, path: FieldPath, *, default: int = 0) -> int:
    """Return the value, or the default if there is none; raise an error outside the limits."""
    if value is None:
        return default
    if not low <= value <= high:
        raise path.error(f"must be from {low} to {high}, got {value}")
    return value


# Resources ------------------------------------------------------------------------------------------------------------


def _resources(
    specs: tuple[config_types.ResourceSpec, ...] | None, max_weight: int, path: FieldPath
) -> tuple[tuple[str, int], ...]:
    """Return resources and their weights, cpu and memory if the list is empty; a weight of 0 counts as 1."""
    weights = []
    for number, spec in enumerate(specs or ()):
        if not spec.name:
            raise path.at(number, "name").error("a resource is required")
        weights.append((spec.name, _checked(spec.weight or None, 1, max_weight, path.at(number, "weight"), default=1)))
    return tuple(weights) or ScoringStrategy().resources


def _curve(points: tuple[config_types.ShapePoint, ...] | None, path: FieldPath) -> FunctionShape:
    """Return the points of a scoring curve, scores scaled to 0..100."""
    if not points:
        raise path.error("at least one point is required")
    curve: list[tuple[int, int]] = []
    for number, point in enumerate(points):
        point_path = path.at(number)
        utilization = _checked(point.utilization, 0, MAX_SCORE, point_path.at("utilization"))
        if curve and utilization <= curve[-1][0]:
            raise point_path.at("utilization").error(
                f"must be more than the previous point, {curve[-1][0]}, got {utilization}"
            )
        score = _checked(point.score, 0, _MAX_POINT_SCORE, point_path.at("score"))
        curve.append((utilization, score * (MAX_SCORE // _MAX_POINT_SCORE)))
    return tuple(curve)


def _fit(args: config_types.NodeResourcesFitArgs, path: FieldPath) -> Plugin:
    for number, group in enumerate(args.ignored_resource_groups or ()):
        if "/" in group:
            raise path.at("ignoredResourceGroups", number).error(f'"{group}" must be the part before the slash')
    return NodeResourcesFit(
        _strategy(args.scoring_strategy, path.at("scoringStrategy")),
        ignored=args.ignored_resources or (),
        ignored_groups=args.ignored_resource_groups or (),
    )


def _strategy(strategy: config_types.ScoringStrategyConfig | None, path: FieldPath) -> ScoringStrategy:
    if strategy is None:
        return ScoringStrategy()
    resources = _resources(strategy.resources, MAX_SCORE, path.at("resources"))
    ratio, ratio_path = strategy.requested_to_capacity_ratio, path.at("requestedToCapacityRatio")
    match strategy.type:
        case "LeastAllocated" | "MostAllocated":
            if ratio is not None:
                raise ratio_path.error(f"cannot be combined with type {strategy.type}")
            return ScoringStrategy(strategy.type, resources)
        case "RequestedToCapacityRatio":
            if ratio is None:
                raise ratio_path.error("is required with type RequestedToCapacityRatio")
            return ScoringStrategy(strategy.type, resources, _curve(ratio.shape, ratio_path.at("shape")))
        case _:
            known = "LeastAllocated, MostAllocated or RequestedToCapacityRatio"
            raise path.at("type").error(f'must be {known}, got "{strategy.type}"')


def _balanced(args: config_types.NodeResourcesBalancedAllocationArgs, path: FieldPath) -> Plugin:
    names = [name for name, _ in _resources(args.resources, 1, path.at("resources"))]
    for number, name in enumerate(names):
        if name in names[:number]:
            raise path.at("resources", number, "name").error(f'"{name}" is there twice')
    return NodeResourcesBalancedAllocation(tuple(names))


# Other plugins --------------------------------------------------------------------------------------------------------


def _inter_pod_affinity(args: config_types.InterPodAffinityArgs, path: FieldPath) -> Plugin:
    weight_path = path.at("hardPodAffinityWeight")
    return InterPodAffinity(
        hard_weight=_checked(args.hard_pod_affinity_weight, 0, 100, weight_path, default=1),
        ignore_existing=bool(args.ignore_preferred_terms_of_existing_pods),
    )


def _node_affinity(args: config_types.NodeAffinityArgs, path: FieldPath) -> Plugin:
    added = args.added_affinity
    if added is None:
        return NodeAffinityPlugin()
    path = path.at("addedAffinity")
    terms_path = path.at("requiredDuringSchedulingIgnoredDuringExecution", "nodeSelectorTerms")
    for number, term in enumerate((added.required.node_selector_terms if added.required else None) or ()):
        _check_term(term, terms_path.at(number))
    terms_path = path.at("preferredDuringSchedulingIgnoredDuringExecution")
    for number, preferred in enumerate(added.preferred or ()):
        if _checked(preferred.weight, 0, 2**31 - 1, terms_path.at(number, "weight")):
            _check_term(preferred.preference, terms_path.at(number, "preference"))
    return NodeAffinityPlugin(added)


def _check_term(term: NodeSelectorTerm, path: FieldPath) -> None:
    """Raise an error for a term that would never match: kube-scheduler accepts such terms in pods only."""
    parsed = parse_node_term(term)
    if parsed is not None and parsed.is_invalid:
        raise path.error("an operator is unknown, or its values do not fit the operator")


def _spread(args: config_types.PodTopologySpreadArgs, path: FieldPath) -> Plugin:
    constraints, type_path = args.default_constraints or (), path.at("defaultingType")
    match args.defaulting_type or "System":
        case "System":
            if constraints:
                raise type_path.error("must be List when there are defaultConstraints")
            return PodTopologySpread()
        case "List":
            path = path.at("defaultConstraints")
            return PodTopologySpread(tuple(_constraint(constraints, n, path.at(n)) for n in range(len(constraints))))
        case other:
            raise type_path.error(f'must be System or List, got "{other}"')


def _constraint(
    constraints: tuple[config_types.DefaultConstraint, ...], number: int, path: FieldPath
) -> SpreadConstraint:
    """Return the default constraint with this number, validated."""
    spec = constraints[number]
    _checked(spec.max_skew or 0, 1, 2**31 - 1, path.at("maxSkew"))
    if not spec.topology_key:
        raise path.at("topologyKey").error("a label is required")
    when = spec.when_unsatisfiable
    if when not in ("DoNotSchedule", "ScheduleAnyway"):
        raise path.at("whenUnsatisfiable").error(f'must be DoNotSchedule or ScheduleAnyway, got "{when or ""}"')
    if spec.label_selector is not None:
        raise path.at("labelSelector").error(
            "must not be set: the selector comes from the pod's Services and its owner"
        )
    if any((c.topology_key, c.when_unsatisfiable) == (spec.topology_key, when) for c in constraints[:number]):
        raise path.error(f"{spec.topology_key} with {when} is there twice")
    if spec.node_affinity_policy not in _POLICIES:
        raise path.at("nodeAffinityPolicy").error("must be Honor or Ignore")
    if spec.node_taints_policy not in _POLICIES:
        raise path.at("nodeTaintsPolicy").error("must be Honor or Ignore")
    # matchLabelKeys has no effect: the selector comes from the pod's Services and its owner.
    constraint = TopologySpreadConstraint(
        max_skew=spec.max_skew or 0, topology_key=spec.topology_key, when_unsatisfiable=when,
        min_domains=spec.min_domains, node_affinity_policy=spec.node_affinity_policy,
        node_taints_policy=spec.node_taints_policy,
    )  # fmt: skip
    return parse_spread(constraint)


def _volume_binding(args: config_types.VolumeBindingArgs, path: FieldPath) -> Plugin:
    _checked(args.bind_timeout_seconds, 0, 2**63 - 1, path.at("bindTimeoutSeconds"))
    return VolumeBinding(_curve(args.shape, path.at("shape"))) if args.shape else VolumeBinding()


def _preemption(args: config_types.DefaultPreemptionArgs, path: FieldPath) -> None:
    percentage_path = path.at("minCandidateNodesPercentage")
    percentage = _checked(args.min_candidate_nodes_percentage, 0, 100, percentage_path, default=10)
    absolute = _checked(
        args.min_candidate_nodes_absolute, 0, 2**31 - 1, path.at("minCandidateNodesAbsolute"), default=100
    )
    if not percentage and not absolute:
        raise percentage_path.error("must not be 0 together with minCandidateNodesAbsolute")


_MAKERS: dict[str, tuple[type[config_types.Args], Callable[[Any, FieldPath], Plugin | None]]] = {
    "NodeResourcesFit": (config_types.NodeResourcesFitArgs, _fit),
    "NodeResourcesBalancedAllocation": (config_types.NodeResourcesBalancedAllocationArgs, _balanced),
    "InterPodAffinity": (config_types.InterPodAffinityArgs, _inter_pod_affinity),
    "NodeAffinity": (config_types.NodeAffinityArgs, _node_affinity),
    "PodTopologySpread": (config_types.PodTopologySpreadArgs, _spread),
    "VolumeBinding": (config_types.VolumeBindingArgs, _volume_binding),
    "DefaultPreemption": (config_types.DefaultPreemptionArgs, _preemption),
    "DynamicResources": (config_types.DynamicResourcesArgs, lambda _args, _place: None),
}
_WITHOUT_ARGS: dict[str, Callable[[], Plugin]] = {
    plugin.name: plugin
    for plugin in (
        NodeName, NodeUnschedulable, TaintToleration, NodePorts, VolumeRestrictions, NodeVolumeLimits, VolumeZone,
        ImageLocality, NodeDeclaredFeatures,
    )
}  # fmt: skip
