"""Profiles from a KubeSchedulerConfiguration file (kubescheduler.config.k8s.io/v1, YAML or JSON).

Contract: `load_profile` gives the profile with which kube-scheduler 1.37 would place pods under that configuration: its
plugins, their order, weights and arguments. What kube-scheduler would refuse is refused, and so is what could change an
answer and Tutti cannot follow: extenders, plugins that Tutti does not have, a pre-filter without its filter where that
matters. Each is an `InputError` that names the file and the field.

Accepted without effect: settings of the process and its connections, back-off times, and percentageOfNodesToScore.
Tutti always scores every node, so it gives the answer of kube-scheduler at 100 percent; with less, kube-scheduler gives
one of many answers, by where it happens to begin to look.
"""

from __future__ import annotations

from tutti.cluster.node_table import RANK_BITS
from tutti.engine.config.configuration_types import API_VERSION, KIND, Configuration, SchedulerProfile
from tutti.engine.config.extension_points import POINTS, EnabledPlugins, check_name, expand
from tutti.engine.config.plugin_args import make
from tutti.engine.config.strict_parsing import FieldPath, parse_one, read
from tutti.engine.placement.node_plugin_cache import INFEASIBLE
from tutti.engine.placement.profile import DEFAULT_SCHEDULER, EnabledPlugin, Profile
from tutti.engine.plugins.base import MAX_SCORE, Plugin

_GROUP = API_VERSION.partition("/")[0]
_MOST_WEIGHT = ((-INFEASIBLE >> RANK_BITS) - 1) // MAX_SCORE
"""What weights may add up to: the engine keeps scores and the nodes' places by name in one integer."""


def load_profile(text: bytes, *, file: str, scheduler_name: str | None = None) -> Profile:
    """Read the profile of a scheduler by its name; without one, that of default-scheduler or else the first."""
    place = FieldPath(file)
    configuration = _read(parse_one(text, file), place)
    number, name, profile = _chosen(configuration, scheduler_name, place)
    return _profile(profile, name, place.at("profiles", number))


def _read(tree: object, place: FieldPath) -> Configuration:
    if not isinstance(tree, dict):
        raise place.fault(f"expected a {KIND}, got {type(tree).__name__}")
    if tree.get("kind") != KIND:
        raise place.at("kind").fault(f'must be {KIND}, got "{tree.get("kind") or ""}"')
    version = tree.get("apiVersion")
    if version != API_VERSION:
        hint = ": Kubernetes no longer reads older versions" if str(version).startswith(_GROUP) else ""
        raise place.at("apiVersion").fault(f'must be {API_VERSION}, got "{version or ""}"{hint}')
    configuration = read(tree, Configuration, place)
    if configuration.extenders:
        raise place.at("extenders").fault("Tutti does not call extenders, which could change where pods go")
    _check_percentage(configuration.percentage_of_nodes_to_score, place)
    return configuration


def _check_percentage(percentage: int | None, place: FieldPath) -> None:
    if percentage is not None and not 0 <= percentage <= 100:
        raise place.at("percentageOfNodesToScore").fault(f"must be from 0 to 100, got {percentage}")


def _chosen(configuration: Configuration, wanted: str | None, place: FieldPath) -> tuple[int, str, SchedulerProfile]:
    """Find the profile that is asked for, and its place in the file."""
    profiles = configuration.profiles or (SchedulerProfile(),)
    names: list[str] = []
    for number, profile in enumerate(profiles):
        # Only a profile that is alone may go without a name.
        name = profile.scheduler_name
        if name is None and len(profiles) == 1:
            name = DEFAULT_SCHEDULER
        where = place.at("profiles", number, "schedulerName")
        if not name:
            raise where.fault("a name is required")
        if name in names:
            raise where.fault(f'"{name}" is there twice')
        names.append(name)
    if wanted is None:
        wanted = DEFAULT_SCHEDULER if DEFAULT_SCHEDULER in names else names[0]
    if wanted not in names:
        raise place.at("profiles").fault(f'no profile is named "{wanted}", only {", ".join(names)}')
    number = names.index(wanted)
    return number, wanted, profiles[number]


def _profile(profile: SchedulerProfile, name: str, place: FieldPath) -> Profile:
    _check_percentage(profile.percentage_of_nodes_to_score, place)
    expanded = expand(profile.plugins, place)
    total = sum(expanded.weights.values())
    if total > _MOST_WEIGHT:
        raise place.at("plugins").fault(f"the weights add up to {total}: Tutti can follow at most {_MOST_WEIGHT}")
    points = expanded.points
    return Profile(
        _enabled(expanded, _plugins(profile, place.at("pluginConfig"))),
        scheduler_name=name,
        gates="SchedulingGates" in points["preEnqueue"],
        preempts="DefaultPreemption" in points["postFilter"],
        devices="DynamicResources" in points["filter"],
    )


def _plugins(profile: SchedulerProfile, place: FieldPath) -> dict[str, Plugin]:
    """Make all plugins that have a part in the engine; arguments are judged also where the plugin is off."""
    made: dict[str, Plugin | None] = {}
    for number, config in enumerate(profile.plugin_config or ()):
        check_name(config.name, place.at(number, "name"))
        if config.name in made:
            raise place.at(number, "name").fault(f"{config.name} is there twice")
        made[config.name] = make(config.name, config.args, place.at(number, "args"))
    made |= {name: make(name, None, place) for name in POINTS if name not in made}
    return {name: plugin for name, plugin in made.items() if plugin is not None}


def _enabled(expanded: EnabledPlugins, plugins: dict[str, Plugin]) -> tuple[EnabledPlugin, ...]:
    """Give the plugins in the order in which they filter, and then those that only score."""
    filters, weights = expanded.points["filter"], expanded.weights
    return tuple(
        EnabledPlugin(plugins[name], weights.get(name, 0), filters=name in filters)
        for name in dict.fromkeys((*filters, *weights))
        if name in plugins
    )
