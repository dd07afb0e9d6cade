"""Load a profile from a KubeSchedulerConfiguration file (kubescheduler.config.k8s.io/v1, YAML or JSON).

Contract: `load_profile` returns the profile with which kube-scheduler 1.37 would place pods under that configuration:
its plugins, their order, weights and arguments. `InputError`, with file and field, is raised for what kube-scheduler
would refuse, and for settings that could change a placement and that Tutti does not support: extenders, plugins that
Tutti does not have, a pre-filter without its filter where that matters.

Accepted without effect: settings of the process and its connections, back-off times, and percentageOfNodesToScore.
Tutti always scores every node, as kube-scheduler does at 100 percent. With a lower percentage, kube-scheduler's result
depends on the node at which the scan starts.
"""

from __future__ import annotations

from tutti.cluster.node_table import RANK_BITS
from tutti.engine.config.configuration_types import API_VERSION, KIND, Configuration, SchedulerProfile
from tutti.engine.config.extension_points import POINTS, EnabledPlugins, check_name, expand_plugins
from tutti.engine.config.plugin_args import make_plugin
from tutti.engine.config.strict_parsing import FieldPath, convert_tree, parse_document
from tutti.engine.placement.node_plugin_cache import INFEASIBLE
from tutti.engine.placement.profile import DEFAULT_SCHEDULER, EnabledPlugin, Profile
from tutti.engine.plugins.base import MAX_SCORE, Plugin

_GROUP = API_VERSION.partition("/")[0]
_MAX_WEIGHT_SUM = ((-INFEASIBLE >> RANK_BITS) - 1) // MAX_SCORE
"""Largest sum of weights: the engine keeps scores and the rank of a node's name in one integer."""


def load_profile(text: bytes, *, file: str, scheduler_name: str | None = None, preferred: str = "") -> Profile:
    """Return the profile of a scheduler by name.

    Without a name, return the profile of the preferred scheduler if there is one, else that of default-scheduler or the
    first one.
    """
    path = FieldPath(file)
    configuration = _read(parse_document(text, file), path)
    number, name, profile = _find_profile(configuration, scheduler_name, preferred, path)
    return _profile(profile, name, path.at("profiles", number))


def _read(tree: object, path: FieldPath) -> Configuration:
    if not isinstance(tree, dict):
        raise path.error(f"expected a {KIND}, got {type(tree).__name__}")
    if tree.get("kind") != KIND:
        raise path.at("kind").error(f'must be {KIND}, got "{tree.get("kind") or ""}"')
    version = tree.get("apiVersion")
    if version != API_VERSION:
        hint = ": Kubernetes no longer reads older versions" if str(version).startswith(_GROUP) else ""
        raise path.at("apiVersion").error(f'must be {API_VERSION}, got "{version or ""}"{hint}')
    configuration = convert_tree(tree, Configuration, path)
    if configuration.extenders:
        raise path.at("extenders").error("Tutti does not call extenders, which could change where pods go")
    _check_percentage(configuration.percentage_of_nodes_to_score, path)
    return configuration


def _check_percentage(percentage: int | None, path: FieldPath) -> None:
    if percentage is not None and not 0 <= percentage <= 100:
        raise path.at("percentageOfNodesToScore").error(f"must be from 0 to 100, got {percentage}")


def _find_profile(
    configuration: Configuration, wanted: str | None, preferred: str, path: FieldPath
) -> tuple[int, str, SchedulerProfile]:
    """Return the position, name and settings of the wanted profile."""
    profiles = configuration.profiles or (SchedulerProfile(),)
    names: list[str] = []
    for number, profile in enumerate(profiles):
        # Only a single profile may omit its name.
        name = profile.scheduler_name
        if name is None and len(profiles) == 1:
            name = DEFAULT_SCHEDULER
        name_path = path.at("profiles", number, "schedulerName")
        if not name:
            raise name_path.error("a name is required")
        if name in names:
            raise name_path.error(f'"{name}" is there twice')
        names.append(name)
    if wanted is None:
        wanted = next((name for name in (preferred, DEFAULT_SCHEDULER) if name in names), names[0])
    if wanted not in names:
        raise path.at("profiles").error(f'no profile is named "{wanted}", only {", ".join(names)}')
    number = names.index(wanted)
    return number, wanted, profiles[number]


def _profile(profile: SchedulerProfile, name: str, path: FieldPath) -> Profile:
    _check_percentage(profile.percentage_of_nodes_to_score, path)
    expanded = expand_plugins(profile.plugins, path)
    total = sum(expanded.weights.values())
    if total > _MAX_WEIGHT_SUM:
        raise path.at("plugins").error(f"the weights add up to {total}: Tutti supports at most {_MAX_WEIGHT_SUM}")
    points = expanded.points
    return Profile(
        _in_filter_order(expanded, _make_plugins(profile, path.at("pluginConfig"))),
        scheduler_name=name,
        gates="SchedulingGates" in points["preEnqueue"],
        preempts="DefaultPreemption" in points["postFilter"],
        devices="DynamicResources" in points["filter"],
    )


def _make_plugins(profile: SchedulerProfile, path: FieldPath) -> dict[str, Plugin]:
    """Make all plugins that the engine runs; validate the arguments of disabled plugins too."""
    plugins: dict[str, Plugin | None] = {}
    for number, config in enumerate(profile.plugin_config or ()):
        check_name(config.name, path.at(number, "name"))
        if config.name in plugins:
            raise path.at(number, "name").error(f"{config.name} is there twice")
        plugins[config.name] = make_plugin(config.name, config.args, path.at(number, "args"))
    plugins |= {name: make_plugin(name, None, path) for name in POINTS if name not in plugins}
    return {name: plugin for name, plugin in plugins.items() if plugin is not None}


def _in_filter_order(expanded: EnabledPlugins, plugins: dict[str, Plugin]) -> tuple[EnabledPlugin, ...]:
    """Return the plugins in filter order, followed by those that only score."""
    filters, weights = expanded.points["filter"], expanded.weights
    return tuple(
        EnabledPlugin(plugins[name], weights.get(name, 0), filters=name in filters)
        for name in dict.fromkeys((*filters, *weights))
        if name in plugins
    )
