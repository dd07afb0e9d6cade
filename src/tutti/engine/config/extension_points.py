"""Which plugins are on at which extension point, from what a profile switches on and off.

Contract: `expand` gives kube-scheduler's own lists, in its order: at each point first the plugins that the point itself
names among those of multiPoint, then the rest of multiPoint, then the others that the point names. A combination that
kube-scheduler would not start with, that makes it fail every pod, or that Tutti cannot follow raises `InputError`.
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
"""The plugins that Tutti knows, in the order of the default profile, and their extension points."""

_WEIGHTS = {"TaintToleration": 3, **dict.fromkeys(("NodeAffinity", "PodTopologySpread", "InterPodAffinity"), 2)}
_DEFAULTS = tuple(PluginRef(name=name, weight=_WEIGHTS.get(name)) for name in POINTS)
_ALL = "*"

_REPLACED = {
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
"""Plugins that Kubernetes has given up, and what does their work."""
_OFF = ("GangScheduling", "DeferredPodScheduling", "TopologyPlacementGenerator", "PodGroupPodsCount")
"""Plugins of Kubernetes 1.37 that are off by default and that Tutti does not have."""

_TOGETHER = {
    "NodeAffinity": _FILTER,
    "VolumeRestrictions": _FILTER,
    "VolumeBinding": (*_FILTER, "reserve", "preBind"),
    "VolumeZone": _FILTER,
}
"""Points at which Tutti has a plugin together or not at all: its pre-filter alone can turn a pod down."""
_NEEDS: dict[str, dict[str, tuple[str, ...]]] = {
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
"""What reads, at later points, the notes that a plugin takes at an earlier one: without them it fails."""
_TURN_DOWN = ("NodeAffinity", "VolumeRestrictions", "VolumeBinding", "VolumeZone")
"""Plugins whose pre-filter can turn a pod down."""


class EnabledPlugins(NamedTuple):
    """The plugins at each point, and the weights of those that score."""

    points: dict[str, list[str]]
    weights: dict[str, int]


def expand(plugins: Plugins | None, place: FieldPath) -> EnabledPlugins:
    """Work out which plugins are on where."""
    plugins, place = plugins or Plugins(), place.at("plugins")
    sets = {point: plugins.at(point) for point in plugins.__struct_encode_fields__}
    for point, own in sets.items():
        _check_names(own, place.at(point))
    everywhere = _merged(sets.pop("multiPoint"))
    points = {point: _at_point(point, own, everywhere, place) for point, own in sets.items()}
    _check_points(points, place)
    weights: dict[str, int] = {}
    for ref in (*(sets["score"].enabled or ()), *everywhere):
        weights.setdefault(ref.name, ref.weight or 1)
    return EnabledPlugins(points, {name: weights[name] for name in points["score"]})


def _check_names(own: PluginSet, place: FieldPath) -> None:
    for number, ref in enumerate(own.enabled or ()):
        check_name(ref.name, place.at("enabled", number, "name"))
        if (ref.weight or 0) < 0:
            raise place.at("enabled", number, "weight").fault("must not be negative")
    for number, ref in enumerate(own.disabled or ()):
        # What is off anyway may be switched off.
        if ref.name != _ALL and ref.name not in _REPLACED and ref.name not in _OFF:
            check_name(ref.name, place.at("disabled", number, "name"))


def check_name(name: str, place: FieldPath) -> None:
    """Refuse a plugin that Tutti does not have."""
    if name in _REPLACED:
        raise place.fault(f"Kubernetes no longer has {name}: use {_REPLACED[name]}")
    if name not in POINTS:
        raise place.fault(f'Tutti has no plugin "{name}"')


# Expansion, as kube-scheduler does it ---------------------------------------------------------------------------------


def _merged(custom: PluginSet) -> list[PluginRef]:
    """Merge what multiPoint says into the default plugins: what it names again keeps its place."""
    enabled = list(custom.enabled or ())
    again = {ref.name: number for number, ref in enumerate(enabled)}
    disabled = _names(custom.disabled)
    kept = [] if _ALL in disabled else [ref for ref in _DEFAULTS if ref.name not in disabled]
    replaced = {again[ref.name] for ref in kept if ref.name in again}
    merged = [enabled[again[ref.name]] if ref.name in again else ref for ref in kept]
    return merged + [ref for number, ref in enumerate(enabled) if number not in replaced]


def _at_point(point: str, own: PluginSet, everywhere: list[PluginRef], place: FieldPath) -> list[str]:
    enabled = [ref.name for ref in own.enabled or ()]
    for number, name in enumerate(enabled):
        here = place.at(point, "enabled", number)
        if point not in POINTS[name]:
            raise here.fault(f"{name} has no part at this point")
        if name in enabled[:number]:
            raise here.fault(f"{name} is there twice")
    disabled = _names(own.disabled)
    if _ALL in disabled:
        return enabled
    rest: list[str] = []
    named: set[str] = set()
    for ref in everywhere:
        if point not in POINTS[ref.name] or ref.name in disabled:
            continue
        if ref.name in enabled:
            named.add(ref.name)
        elif ref.name in rest:
            raise place.at("multiPoint", "enabled").fault(f"{ref.name} is there twice")
        else:
            rest.append(ref.name)
    return [n for n in enabled if n in named] + rest + [n for n in enabled if n not in named]


def _names(refs: Iterable[PluginRef] | None) -> set[str]:
    return {ref.name for ref in refs or ()}


# What cannot be followed ----------------------------------------------------------------------------------------------


def _check_points(points: dict[str, list[str]], place: FieldPath) -> None:
    if points["queueSort"] != ["PrioritySort"]:
        raise place.at("queueSort").fault("PrioritySort must be on: pods need an order")
    if not points["bind"]:
        raise place.at("bind").fault("DefaultBinder must be on: pods need somebody who binds them")
    for name, parts in _TOGETHER.items():
        there = [point for point in parts if name in points[point]]
        if there and len(there) < len(parts):
            on, off = ", ".join(there), ", ".join(point for point in parts if point not in there)
            raise place.fault(f"{name} is on at {on} but off at {off}: Tutti has it at all of these or at none")
    for earlier, readers in _NEEDS.items():
        for name, later in readers.items():
            blind = [point for point in later if name in points[point]]
            if blind and name not in points[earlier]:
                problem = f"kube-scheduler fails every pod where {name} is on at {blind[0]} but not here"
                raise place.at(earlier).fault(problem)
    _check_order(points, place)


def _check_order(points: dict[str, list[str]], place: FieldPath) -> None:
    """Refuse an order in which another plugin than Tutti's first would turn a pod down."""
    asked = [name for name in points["preFilter"] if name in _TURN_DOWN]
    followed = sorted((n for n in points["filter"] if n in _TURN_DOWN), key=lambda n: n != "NodeAffinity")
    if asked != followed:
        orders = f"{', '.join(asked)} at preFilter, but {', '.join(followed)} is what Tutti follows"
        raise place.at("preFilter").fault(f"the order is {orders}")
