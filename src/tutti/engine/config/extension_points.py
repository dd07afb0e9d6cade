"""Which plugins are enabled at which extension point, from what a profile enables and disables.

Contract: `expand_plugins` returns kube-scheduler's own lists in kube-scheduler's order. At each point come first the
plugins that both the point and multiPoint name, in the order of the point; then the other plugins of multiPoint; then
the other plugins of the point. `InputError` is raised for a combination with which kube-scheduler would not start or
would fail every pod, or that Tutti does not support.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from tutti.engine.config.configuration_types import PluginRef, Plugins, PluginSet
from tutti.engine.config.strict_parsing import FieldPath

_FILTER = ("preFilter", "filter")
_BOTH = (*_FILTER, "preScore", "score")
POINTS: dict[str, tuple[str, ...]] = {
    "SchedulingGates": ("preEnqueue",),
    "PrioritySort": ("queueSort",),
    "NodeName": _FILTER,
    "NodeUnschedulable": _FILTER,
    "TaintToleration": _BOTH,
    "NodeAffinity": _BOTH,
    "NodePorts": _FILTER,
    "NodeResourcesFit": (*_BOTH, "placementScore"),
    "VolumeRestrictions": _FILTER,
    "NodeVolumeLimits": _FILTER,
    "VolumeBinding": (*_BOTH, "reserve", "preBind"),
    "VolumeZone": _FILTER,
    "PodTopologySpread": _BOTH,
    "InterPodAffinity": _BOTH,
    "DynamicResources": (
        "preEnqueue", *_FILTER, "postFilter", "score", "reserve", "preBind", "podGroupPostFilter",
    ),
    "DefaultPreemption": ("preEnqueue", "postFilter", "podGroupPostFilter"),
    "NodeResourcesBalancedAllocation": ("preScore", "score"),
    "ImageLocality": ("score",),
    "DefaultBinder": ("bind",),
    "NodeDeclaredFeatures": _FILTER,
}  # fmt: skip
"""The plugins that Tutti knows, in the order of the default profile, and the extension points of each."""

_WEIGHTS = {"TaintToleration": 3, **dict.fromkeys(("NodeAffinity", "PodTopologySpread", "InterPodAffinity"), 2)}
_DEFAULTS = tuple(PluginRef(name=name, weight=_WEIGHTS.get(name)) for name in POINTS)
_ALL = "*"

_REPLACEMENTS = {
    "AzureDiskLimits": "NodeVolumeLimits",
    "CinderLimits": "NodeVolumeLimits",
    "EBSLimits": "NodeVolumeLimits",
    "GCEPDLimits": "NodeVolumeLimits",
    "NodeResourcesLeastAllocated": "NodeResourcesFit with scoringStrategy LeastAllocated",
    "NodeResourcesMostAllocated": "NodeResourcesFit with scoringStrategy MostAllocated",
    "RequestedToCapacityRatio": "NodeResourcesFit with scoringStrategy RequestedToCapacityRatio",
    "SelectorSpread": "PodTopologySpread",
    "DefaultPodTopologySpread": "PodTopologySpread",
    "NodeLabel": "NodeAffinity with addedAffinity",
    "NodePreferAvoidPods": "TaintToleration and a taint with effect PreferNoSchedule",
    "ServiceAffinity": "InterPodAffinity",
}
"""Plugins that Kubernetes has removed, and their replacements."""
_UNSUPPORTED = ("GangScheduling", "DeferredPodScheduling", "TopologyPlacementGenerator", "PodGroupPodsCount")
"""Plugins of Kubernetes 1.37 that are off by default and that Tutti does not have."""

_ALL_OR_NONE_POINTS = {
    "NodeAffinity": _FILTER,
    "VolumeRestrictions": _FILTER,
    "VolumeBinding": (*_FILTER, "reserve", "preBind"),
    "VolumeZone": _FILTER,
}
"""Points at which Tutti has a plugin at all of them or at none, because its pre-filter alone can refuse a pod."""
_STATE_READERS: dict[str, dict[str, tuple[str, ...]]] = {
    "preFilter": {
        "NodePorts": ("filter",),
        "NodeResourcesFit": ("filter",),
        "PodTopologySpread": ("filter",),
        "InterPodAffinity": ("filter",),
        "NodeDeclaredFeatures": ("filter",),
        "VolumeBinding": ("preScore", "score"),
        "DynamicResources": ("filter", "postFilter", "score", "reserve", "preBind"),
    },
    "preScore": dict.fromkeys(("TaintToleration", "PodTopologySpread", "InterPodAffinity"), ("score",)),
}
"""By earlier point and plugin: the later points that fail without the state written at the earlier point."""
_REFUSING_PRE_FILTERS = ("NodeAffinity", "VolumeRestrictions", "VolumeBinding", "VolumeZone")
"""Plugins whose pre-filter can refuse a pod."""


class EnabledPlugins(NamedTuple):
    """The enabled plugins at each extension point, and the weights of those that score."""

    points: dict[str, list[str]]
    weights: dict[str, int]


def expand_plugins(plugins: Plugins | None, path: FieldPath) -> EnabledPlugins:
    """Return the plugins that are enabled at each extension point, and their weights."""
    plugins, path = plugins or Plugins(), path.at("plugins")
    sets = {point: plugins.at(point) for point in plugins.__struct_encode_fields__}
    for point, own in sets.items():
        _check_names(own, path.at(point))
    multi_point = _merged_multi_point(sets.pop("multiPoint"))
    points = {point: _plugins_at(point, own, multi_point, path) for point, own in sets.items()}
    _check_points(points, path)
    weights: dict[str, int] = {}
    for ref in (*(sets["score"].enabled or ()), *multi_point):
        weights.setdefault(ref.name, ref.weight or 1)
    return EnabledPlugins(points, {name: weights[name] for name in points["score"]})


def _check_names(own: PluginSet, path: FieldPath) -> None:
    for number, ref in enumerate(own.enabled or ()):
        check_name(ref.name, path.at("enabled", number, "name"))
        if (ref.weight or 0) < 0:
            raise path.at("enabled", number, "weight").error("must not be negative")
    for number, ref in enumerate(own.disabled or ()):
        # kube-scheduler lets a profile disable plugins that are off by default or removed.
        if ref.name != _ALL and ref.name not in _REPLACEMENTS and ref.name not in _UNSUPPORTED:
            check_name(ref.name, path.at("disabled", number, "name"))


def check_name(name: str, path: FieldPath) -> None:
    """Raise an error for a plugin that Tutti does not have."""
    if name in _REPLACEMENTS:
        raise path.error(f"Kubernetes no longer has {name}: use {_REPLACEMENTS[name]}")
    if name not in POINTS:
        raise path.error(f'Tutti has no plugin "{name}"')


# Expansion, as kube-scheduler does it ---------------------------------------------------------------------------------


def _merged_multi_point(custom: PluginSet) -> list[PluginRef]:
    """Merge multiPoint into the default plugins: a default plugin that multiPoint names again keeps its position."""
    enabled = list(custom.enabled or ())
    position_of = {ref.name: number for number, ref in enumerate(enabled)}
    disabled = _names(custom.disabled)
    kept = [] if _ALL in disabled else [ref for ref in _DEFAULTS if ref.name not in disabled]
    merged_positions = {position_of[ref.name] for ref in kept if ref.name in position_of}
    merged = [enabled[position_of[ref.name]] if ref.name in position_of else ref for ref in kept]
    return merged + [ref for number, ref in enumerate(enabled) if number not in merged_positions]


def _plugins_at(point: str, own: PluginSet, multi_point: list[PluginRef], path: FieldPath) -> list[str]:
    """Return the names of the plugins that are enabled at one extension point, in order."""
    enabled = [ref.name for ref in own.enabled or ()]
    for number, name in enumerate(enabled):
        ref_path = path.at(point, "enabled", number)
        if point not in POINTS[name]:
            raise ref_path.error(f"{name} does not run at this extension point")
        if name in enabled[:number]:
            raise ref_path.error(f"{name} is there twice")
    disabled = _names(own.disabled)
    if _ALL in disabled:
        return enabled
    others: list[str] = []
    named_twice: set[str] = set()
    for ref in multi_point:
        if point not in POINTS[ref.name] or ref.name in disabled:
            continue
        if ref.name in enabled:
            named_twice.add(ref.name)
        elif ref.name in others:
            raise path.at("multiPoint", "enabled").error(f"{ref.name} is there twice")
        else:
            others.append(ref.name)
    first = [name for name in enabled if name in named_twice]
    return first + others + [name for name in enabled if name not in named_twice]


def _names(refs: Iterable[PluginRef] | None) -> set[str]:
    return {ref.name for ref in refs or ()}


# Unsupported combinations ---------------------------------------------------------------------------------------------


def _check_points(points: dict[str, list[str]], path: FieldPath) -> None:
    """Raise an error for combinations that kube-scheduler or Tutti does not support."""
    if points["queueSort"] != ["PrioritySort"]:
        raise path.at("queueSort").error("PrioritySort must be on: pods need an order")
    if not points["bind"]:
        raise path.at("bind").error("DefaultBinder must be on: no other plugin binds pods")
    for name, all_points in _ALL_OR_NONE_POINTS.items():
        on_points = [point for point in all_points if name in points[point]]
        if on_points and len(on_points) < len(all_points):
            on, off = ", ".join(on_points), ", ".join(point for point in all_points if point not in on_points)
            problem = f"{name} is on at {on} but off at {off}: Tutti supports it at all of these points or at none"
            raise path.error(problem)
    for earlier, plugins in _STATE_READERS.items():
        for name, later in plugins.items():
            readers_on = [point for point in later if name in points[point]]
            if readers_on and name not in points[earlier]:
                problem = f"kube-scheduler fails every pod where {name} is on at {readers_on[0]} but not here"
                raise path.at(earlier).error(problem)
    _check_order(points, path)


def _check_order(points: dict[str, list[str]], path: FieldPath) -> None:
    """Raise an error if pre-filters refuse pods in another order than Tutti runs them."""
    configured = [name for name in points["preFilter"] if name in _REFUSING_PRE_FILTERS]
    supported = [name for name in points["filter"] if name in _REFUSING_PRE_FILTERS]
    supported.sort(key=lambda name: name != "NodeAffinity")
    if configured != supported:
        orders = (
            f"{', '.join(configured)} at preFilter, but {', '.join(supported)} is the only order that Tutti supports"
        )
        raise path.at("preFilter").error(f"the order is {orders}")
