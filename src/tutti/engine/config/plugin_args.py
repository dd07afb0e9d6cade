"""Plugin arguments of a KubeSchedulerConfiguration, judged as kube-scheduler judges them, and the plugins they make.

Contract: `make` gives the engine's plugin of a name, or None for one that has no part in the engine (its place is taken
by the profile, or it has nothing to say to pods that Tutti places). Arguments that kube-scheduler would refuse raise
`InputError` with the path of the field. Accepted without effect: bindTimeoutSeconds and the DynamicResources timeouts
(Tutti does not wait), and minCandidateNodesPercentage and -Absolute (every candidate is tried).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tutti.cluster.spec_classes import SpreadConstraint, parse_spread
from tutti.engine.config import configuration_types as wire
from tutti.engine.config.strict_parsing import FieldPath, read
from tutti.engine.plugins.base import MAX_SCORE, Plugin
from tutti.engine.plugins.image_locality import ImageLocality
from tutti.engine.plugins.inter_pod_affinity import InterPodAffinity
from tutti.engine.plugins.node_affinity import NodeAffinityPlugin
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

_TOP_POINT = 10
"""The best score of a point of a curve."""
_POLICIES = (None, "Honor", "Ignore")


def make(name: str, tree: dict[str, Any] | None, place: FieldPath) -> Plugin | None:
    """Make a plugin with its arguments; without any, it has those of the default profile."""
    kind, maker = _MAKERS.get(name, (wire.Args, None))
    if maker is None and tree:
        raise place.fault(f"{name} takes no arguments")
    args = read(tree or {}, kind, place)
    if args.api_version not in (None, wire.API_VERSION):
        raise place.at("apiVersion").fault(f'"{args.api_version}" is not {wire.API_VERSION}')
    if args.kind not in (None, f"{name}Args"):
        raise place.at("kind").fault(f'"{args.kind}" is not {name}Args')
    if maker is not None:
        return maker(args, place)
    return _PLAIN[name]() if name in _PLAIN else None


def _within(value: int | None, low: int, high: int, place: FieldPath, *, default: int = 0) -> int:
    if value is None:
        return default
    if not low <= value <= high:
        raise place.fault(f"must be from {low} to {high}, got {value}")
    return value


# Resources ------------------------------------------------------------------------------------------------------------


def _resources(specs: tuple[wire.ResourceSpec, ...] | None, most: int, place: FieldPath) -> tuple[tuple[str, int], ...]:
    """Read resources and their weights, cpu and memory when there are none; a weight of 0 counts as 1."""
    found = []
    for number, spec in enumerate(specs or ()):
        if not spec.name:
            raise place.at(number, "name").fault("a resource is required")
        found.append((spec.name, _within(spec.weight or None, 1, most, place.at(number, "weight"), default=1)))
    return tuple(found) or ScoringStrategy().resources


def _curve(points: tuple[wire.ShapePoint, ...] | None, place: FieldPath) -> FunctionShape:
    if not points:
        raise place.fault("at least one point is required")
    found: list[tuple[int, int]] = []
    for number, point in enumerate(points):
        here = place.at(number)
        used = _within(point.utilization, 0, MAX_SCORE, here.at("utilization"))
        if found and used <= found[-1][0]:
            raise here.at("utilization").fault(f"must be more than the one before, {found[-1][0]}, got {used}")
        score = _within(point.score, 0, _TOP_POINT, here.at("score"))
        found.append((used, score * (MAX_SCORE // _TOP_POINT)))
    return tuple(found)


def _fit(args: wire.NodeResourcesFitArgs, place: FieldPath) -> Plugin:
    for number, group in enumerate(args.ignored_resource_groups or ()):
        if "/" in group:
            raise place.at("ignoredResourceGroups", number).fault(f'"{group}" must be the part before the slash')
    return NodeResourcesFit(
        _strategy(args.scoring_strategy, place.at("scoringStrategy")),
        ignored=args.ignored_resources or (),
        ignored_groups=args.ignored_resource_groups or (),
    )


def _strategy(strategy: wire.ScoringStrategyConfig | None, place: FieldPath) -> ScoringStrategy:
    if strategy is None:
        return ScoringStrategy()
    resources = _resources(strategy.resources, MAX_SCORE, place.at("resources"))
    ratio, where = strategy.requested_to_capacity_ratio, place.at("requestedToCapacityRatio")
    match strategy.type:
        case "LeastAllocated" | "MostAllocated":
            if ratio is not None:
                raise where.fault(f"does not go with type {strategy.type}")
            return ScoringStrategy(strategy.type, resources)
        case "RequestedToCapacityRatio":
            if ratio is None:
                raise where.fault("is required with type RequestedToCapacityRatio")
            return ScoringStrategy(strategy.type, resources, _curve(ratio.shape, where.at("shape")))
        case _:
            known = "LeastAllocated, MostAllocated or RequestedToCapacityRatio"
            raise place.at("type").fault(f'must be {known}, got "{strategy.type}"')


def _balanced(args: wire.NodeResourcesBalancedAllocationArgs, place: FieldPath) -> Plugin:
    names = [name for name, _ in _resources(args.resources, 1, place.at("resources"))]
    for number, name in enumerate(names):
        if name in names[:number]:
            raise place.at("resources", number, "name").fault(f'"{name}" is there twice')
    return NodeResourcesBalancedAllocation(tuple(names))


# Other plugins --------------------------------------------------------------------------------------------------------


def _inter_pod_affinity(args: wire.InterPodAffinityArgs, place: FieldPath) -> Plugin:
    where = place.at("hardPodAffinityWeight")
    return InterPodAffinity(
        hard_weight=_within(args.hard_pod_affinity_weight, 0, 100, where, default=1),
        ignore_existing=bool(args.ignore_preferred_terms_of_existing_pods),
    )


def _node_affinity(args: wire.NodeAffinityArgs, place: FieldPath) -> Plugin:
    added = args.added_affinity
    if added is None:
        return NodeAffinityPlugin()
    place = place.at("addedAffinity")
    where = place.at("requiredDuringSchedulingIgnoredDuringExecution", "nodeSelectorTerms")
    for number, term in enumerate((added.required.node_selector_terms if added.required else None) or ()):
        _check_term(term, where.at(number))
    where = place.at("preferredDuringSchedulingIgnoredDuringExecution")
    for number, wished in enumerate(added.preferred or ()):
        if _within(wished.weight, 0, 2**31 - 1, where.at(number, "weight")):
            _check_term(wished.preference, where.at(number, "preference"))
    return NodeAffinityPlugin(added)


def _check_term(term: NodeSelectorTerm, place: FieldPath) -> None:
    """Refuse what a pod's own term may hold and simply never match with."""
    parsed = parse_node_term(term)
    if parsed is not None and parsed.broken:
        raise place.fault("an operator is not known, or its values do not go with it")


def _spread(args: wire.PodTopologySpreadArgs, place: FieldPath) -> Plugin:
    constraints, where = args.default_constraints or (), place.at("defaultingType")
    match args.defaulting_type or "System":
        case "System":
            if constraints:
                raise where.fault("must be List when there are defaultConstraints")
            return PodTopologySpread()
        case "List":
            place = place.at("defaultConstraints")
            return PodTopologySpread(tuple(_constraint(constraints, n, place.at(n)) for n in range(len(constraints))))
        case other:
            raise where.fault(f'must be System or List, got "{other}"')


def _constraint(constraints: tuple[wire.DefaultConstraint, ...], number: int, place: FieldPath) -> SpreadConstraint:
    asked = constraints[number]
    _within(asked.max_skew or 0, 1, 2**31 - 1, place.at("maxSkew"))
    if not asked.topology_key:
        raise place.at("topologyKey").fault("a label is required")
    when = asked.when_unsatisfiable
    if when not in ("DoNotSchedule", "ScheduleAnyway"):
        raise place.at("whenUnsatisfiable").fault(f'must be DoNotSchedule or ScheduleAnyway, got "{when or ""}"')
    if asked.label_selector is not None:
        raise place.at("labelSelector").fault("must not be there: it is that of the pod's Services and its owner")
    if any((c.topology_key, c.when_unsatisfiable) == (asked.topology_key, when) for c in constraints[:number]):
        raise place.fault(f"{asked.topology_key} with {when} is there twice")
    if asked.node_affinity_policy not in _POLICIES:
        raise place.at("nodeAffinityPolicy").fault("must be Honor or Ignore")
    if asked.node_taints_policy not in _POLICIES:
        raise place.at("nodeTaintsPolicy").fault("must be Honor or Ignore")
    # Without matchLabelKeys: the selector of Services and owner takes the place of theirs.
    constraint = TopologySpreadConstraint(
        max_skew=asked.max_skew or 0, topology_key=asked.topology_key, when_unsatisfiable=when,
        min_domains=asked.min_domains, node_affinity_policy=asked.node_affinity_policy,
        node_taints_policy=asked.node_taints_policy,
    )  # fmt: skip
    return parse_spread(constraint)


def _volume_binding(args: wire.VolumeBindingArgs, place: FieldPath) -> Plugin:
    _within(args.bind_timeout_seconds, 0, 2**63 - 1, place.at("bindTimeoutSeconds"))
    return VolumeBinding(_curve(args.shape, place.at("shape"))) if args.shape else VolumeBinding()


def _preemption(args: wire.DefaultPreemptionArgs, place: FieldPath) -> None:
    where = place.at("minCandidateNodesPercentage")
    share = _within(args.min_candidate_nodes_percentage, 0, 100, where, default=10)
    least = _within(args.min_candidate_nodes_absolute, 0, 2**31 - 1, place.at("minCandidateNodesAbsolute"), default=100)
    if not share and not least:
        raise where.fault("must not be 0 together with minCandidateNodesAbsolute")


_MAKERS: dict[str, tuple[type[wire.Args], Callable[[Any, FieldPath], Plugin | None]]] = {
    "NodeResourcesFit": (wire.NodeResourcesFitArgs, _fit),
    "NodeResourcesBalancedAllocation": (wire.NodeResourcesBalancedAllocationArgs, _balanced),
    "InterPodAffinity": (wire.InterPodAffinityArgs, _inter_pod_affinity),
    "NodeAffinity": (wire.NodeAffinityArgs, _node_affinity),
    "PodTopologySpread": (wire.PodTopologySpreadArgs, _spread),
    "VolumeBinding": (wire.VolumeBindingArgs, _volume_binding),
    "DefaultPreemption": (wire.DefaultPreemptionArgs, _preemption),
    "DynamicResources": (wire.DynamicResourcesArgs, lambda _args, _place: None),
}
_PLAIN: dict[str, Callable[[], Plugin]] = {
    plugin.name: plugin
    for plugin in (
        NodeName, NodeUnschedulable, TaintToleration, NodePorts, VolumeRestrictions, NodeVolumeLimits, VolumeZone,
        ImageLocality,
    )
}  # fmt: skip
