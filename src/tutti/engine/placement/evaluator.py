"""Run the plugins of a profile for one pod: which nodes are feasible, how each scores, and why nodes are refused.

Contract: an evaluator belongs to one cluster and one profile and changes nothing. Rows are rows of the cluster's node
table; columns returned here end with the last row in use. Results of row plugins are cached from pod to pod
(`row_plugin_cache`). Cluster plugins run for every pod, but only those that concern the pod.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import NamedTuple

import numpy as np

from tutti.cluster.cluster import Cluster
from tutti.cluster.columns import Bools, Ints, Rows
from tutti.cluster.edits import Bind
from tutti.cluster.events import ALL_EVENTS, Event
from tutti.cluster.indexes.holds import HeldRoom
from tutti.cluster.node_table import RANK_BITS
from tutti.cluster.spec_classes import SpecClass
from tutti.cluster.work.meter import POD_PASS, POD_PASS_NODE
from tutti.engine.placement.node_plugin_cache import NodePluginCache
from tutti.engine.placement.profile import Profile
from tutti.engine.placement.row_plugin_cache import RecentNodes, RowPluginCache
from tutti.engine.placement.row_plugins import RowPlugins
from tutti.engine.plugins.base import (
    Area,
    ClusterPlugin,
    IncomingPod,
    NodePlugin,
    NodeRows,
    PodPlugin,
    PreFilterState,
    Selection,
    controller,
    default_normalize_score,
)
from tutti.engine.plugins.node_affinity import named_nodes
from tutti.engine.plugins.verdict import EXCLUDED_BY_PRE_FILTER, PASS, Reason, Verdicts, decode, encode

States = list[PreFilterState | None]
"""What each cluster plugin of the profile prepared for a pod; None for a plugin that filters nothing."""


Refusals = list[tuple[int, Rows]]
"""Refused rows by verdict."""


_NO_ROWS: Rows = np.zeros(0, dtype=np.intp)


_MAX_CONCERNED = 20_000
"""Largest number of kinds of pods for which the evaluator remembers which cluster plugins concern them."""


class FilterResult(NamedTuple):
    """The feasible rows for a pod, and what later steps need: prepared plugins and reasons."""

    feasible: Bools
    states: States
    reasons: dict[int, Reason]
    """Reasons for rows that are refused because of holds with more than resources; `verdicts` cannot compute these."""
    nominated_only: bool = False
    """Whether only the pod's nominated node was filtered."""
    excluded: Bools | None = None
    """Rows that the pod's node affinity does not name; None if the affinity names no nodes."""


class Evaluator:
    """Filters and scores nodes for pods (see the module's contract)."""

    def __init__(self, cluster: Cluster, profile: Profile) -> None:
        self.cluster, self.profile = cluster, profile
        self.row_plugins = RowPlugins(profile)
        self.row_plugin_names = frozenset(
            enabled.plugin.name for enabled in profile.plugins if isinstance(enabled.plugin, NodePlugin | PodPlugin)
        )
        self._cluster_plugins = [
            (index, enabled, enabled.plugin)
            for index, enabled in enumerate(profile.plugins)
            if isinstance(enabled.plugin, ClusterPlugin)
        ]
        self._node_caches: dict[bytes, NodePluginCache] = {}
        self._row_caches: dict[tuple[Hashable, ...], RowPluginCache] = {}
        self._row_cache_of: dict[int, RowPluginCache] = {}
        self._recent = RecentNodes(cluster)
        self._named_node_cache: tuple[int, RowPluginCache] | None = None
        self._concerned: dict[tuple[Hashable, ...], tuple[tuple[int, int], list[bool]]] = {}
        self._specs_generation = cluster.specs.generation

    # Incoming pods and caches -----------------------------------------------------------------------------------------

    def incoming_pod(self, row: int, within: Area | None = None) -> IncomingPod:
        """Return the pod in a row as plugins see it, with the cluster plugins that concern it."""
        cluster = self.cluster
        pod = cluster.pods.objects[row]
        assert pod is not None
        incoming = IncomingPod(cluster, row, pod)
        incoming.area = within
        if self._specs_generation != cluster.specs.generation:
            self._drop_collected_specs()
        key = (incoming.spec.number, incoming.labels.number, controller(pod))
        known = self._concerned.get(key)
        version = (cluster.workloads_version, cluster.labels.version)
        if known is None or known[0] != version:
            if len(self._concerned) >= _MAX_CONCERNED:
                self._concerned.clear()
            concerned = [plugin.applies_to(incoming) for _, _, plugin in self._cluster_plugins]
            known = self._concerned[key] = (version, concerned)
        incoming.applicable_plugins = known[1]
        return incoming

    def _drop_collected_specs(self) -> None:
        """Drop the results for spec classes that the cluster has given back."""
        live = self.cluster.specs.classes
        self._specs_generation = self.cluster.specs.generation
        self._row_cache_of = {number: cache for number, cache in self._row_cache_of.items() if number in live}
        row_caches = set(self._row_cache_of.values())
        for row_cache in row_caches:
            row_cache.keep(live)
        self._row_caches = {key: cache for key, cache in self._row_caches.items() if cache in row_caches}
        node_caches = {cache.node_cache for cache in row_caches}
        self._node_caches = {key: cache for key, cache in self._node_caches.items() if cache in node_caches}
        self._concerned.clear()

    def row_cache(self, incoming: IncomingPod) -> RowPluginCache:
        """Return the cache of row plugin results for the pod's spec class."""
        return self._row_cache(incoming.spec)

    def node_plugins_accept(self, spec: SpecClass, rows: Rows) -> bool:
        """Return whether the node plugins accept pods of a spec class on one of some rows."""
        node_cache = self._row_cache(spec).node_cache
        node_cache.sync()
        return node_cache.only_nodes is not None or bool((node_cache.base_keys[rows] >= 0).any())

    def has_room(self, number: int, row: int, held: HeldRoom | None = None) -> bool:
        """Return whether a node takes a pod of a spec class: its node plugins accept it, and enough is free.

        Room that is held for others counts as in use.
        """
        nodes, spec = self.cluster.nodes, self.cluster.specs.classes.get(number)
        if spec is None or not nodes.on[row]:
            return False
        node_cache = self._row_cache(spec).node_cache
        node_cache.sync()
        if node_cache.only_nodes is None and node_cache.base_keys[row] < 0:
            return False
        alloc, used = nodes.alloc[:, row].tolist(), nodes.used[:, row].tolist()
        if held is not None:
            held_amounts = held.amounts[:, row].tolist()
            used = [sum(amounts) for amounts in zip(used, held_amounts, strict=False)]
        return all(alloc[index] - used[index] >= amount for index, amount in self.spec_requests(spec))

    def _row_cache(self, spec: SpecClass) -> RowPluginCache:
        row_cache = self._row_cache_of.get(spec.number)
        if row_cache is None and self._named_node_cache is not None and self._named_node_cache[0] == spec.number:
            return self._named_node_cache[1]
        if row_cache is None and self.row_plugins.filters_node_affinity and named_nodes(spec) is not None:
            # Each pod of a DaemonSet names its node: one cache per pod would need memory for all nodes squared.
            own_node_cache = NodePluginCache(self.cluster, spec, self.row_plugins)
            own_row_cache = RowPluginCache(own_node_cache, self.row_plugins, self._recent, spec)
            self._named_node_cache = (spec.number, own_row_cache)
            return self._named_node_cache[1]
        if row_cache is None:
            node_key = self.row_plugins.node_key(spec)
            node_cache = self._node_caches.get(node_key)
            if node_cache is None:
                node_cache = self._node_caches[node_key] = NodePluginCache(self.cluster, spec, self.row_plugins)
            key = (node_key, *self.row_plugins.shape(spec))
            row_cache = self._row_caches.get(key)
            if row_cache is None:
                row_cache = self._row_caches[key] = RowPluginCache(node_cache, self.row_plugins, self._recent, spec)
            self._row_cache_of[spec.number] = row_cache
        return row_cache

    # Filters ----------------------------------------------------------------------------------------------------------

    def filter(self, incoming: IncomingPod) -> FilterResult | Reason:
        """Return the feasible nodes, or the reason why a pre-filter refuses every node."""
        self.cluster.meter.count += POD_PASS + POD_PASS_NODE * self.cluster.nodes.length
        row_cache = self.row_cache(incoming)
        keys = row_cache.keys(incoming.spec)[: self.cluster.nodes.length]
        only_nodes = row_cache.node_cache.only_nodes
        if isinstance(only_nodes, Reason):
            return only_nodes
        states = self._prepare(incoming)
        if isinstance(states, Reason):
            return states
        if incoming.pod.key in self.cluster.holds:
            nominated = self._filter_nominated_node(incoming, states)
            if nominated is not None:
                return nominated
        feasible = keys >= 0
        if incoming.area is not None:
            feasible &= incoming.area.mask[: len(feasible)]
        for state in states:
            if state is not None:
                rows = feasible_selection(feasible)
                answers = state.filter(rows)
                if isinstance(rows, slice):
                    feasible = answers == 0
                else:
                    feasible[rows[answers != 0]] = False
        excluded: Bools | None = None
        if only_nodes is not None:
            excluded = np.ones(len(feasible), dtype=bool)
            excluded[[row for row in map(self.cluster.nodes.row_of.get, only_nodes) if row is not None]] = False
            feasible &= ~excluded
        reasons = self._filter_held_rows(incoming, states, feasible) if self.cluster.holds else {}
        if excluded is not None:
            reasons = {row: reason for row, reason in reasons.items() if not excluded[row]}
        return FilterResult(feasible, states, reasons, excluded=excluded)

    def _prepare(self, incoming: IncomingPod) -> States | Reason:
        """Run the pre-filters of the cluster plugins; return the first reason to refuse the pod."""
        states: States = []
        for (_, enabled, plugin), concerned in zip(self._cluster_plugins, incoming.applicable_plugins, strict=True):
            prepared = plugin.pre_filter(incoming) if concerned and enabled.filters else None
            if isinstance(prepared, Reason):
                return prepared
            states.append(prepared)
        return states

    def filter_rows(self, incoming: IncomingPod, states: States, rows: Selection, *, held: bool = False) -> Verdicts:
        """Return the verdicts of all filters on some rows, with the pods that are on them now.

        With `held`, the room that is held for others (`IncomingPod.held`) counts as in use.
        """
        window = incoming.node_rows(rows) if held else NodeRows(self.cluster, rows)
        specs = incoming.columns
        node_cache = self.row_cache(incoming).node_cache
        node_cache.sync()
        verdict = node_cache.verdicts[rows].copy()
        for index, plugin in self.row_plugins.pod_filters:
            variants = plugin.filter(window, specs)
            if variants is not None:
                np.minimum(verdict, encode(index, variants[:, 0]), out=verdict)
        for (index, _, _), state in zip(self._cluster_plugins, states, strict=True):
            if state is not None:
                np.minimum(verdict, encode(index, state.filter(rows)), out=verdict)
        return verdict

    def resource_requests(self, incoming: IncomingPod) -> list[tuple[int, int]]:
        """Return the resources (by index) that filters check for room, and how much of each the pod requests."""
        return self.spec_requests(incoming.spec)

    def spec_requests(self, spec: SpecClass) -> list[tuple[int, int]]:
        """Return the resources that filters check for room for pods of a spec class, with the amounts."""
        filters = self.row_plugins.pod_filters
        return [want for _, plugin in filters for want in plugin.required_resources(self.cluster, spec)]

    # Holds ------------------------------------------------------------------------------------------------------------

    def _filter_nominated_node(self, incoming: IncomingPod, states: States) -> FilterResult | None:
        """Return a result with the pod's nominated node alone if the pod fits there; otherwise None."""
        nodes = self.cluster.nodes
        row = nodes.row_of.get(self.cluster.holds[incoming.pod.key].node)
        if row is None or not nodes.on[row] or (incoming.area is not None and not incoming.area.mask[row]):
            return None
        if self.filter_row_with_holds(incoming, states, row) != PASS:
            return None
        feasible = np.zeros(nodes.length, dtype=bool)
        feasible[row] = True
        return FilterResult(feasible, states, {}, nominated_only=True)

    def rows_without_held_room(self, incoming: IncomingPod) -> Rows:
        """Return the rows with too little room beside what is held for others, among the rows with holds.

        Sets `IncomingPod.held`. Holds count only by their resources; `rows_with_pod_rules` returns the other rows.
        """
        held = incoming.held = self._held_room(incoming)
        if held is None:
            return _NO_ROWS
        node_rows, rows = incoming.node_rows(held.rows), held.rows
        free = node_rows.alloc - node_rows.used
        lacking = np.zeros(len(rows), dtype=bool)
        for resource, amount in self.resource_requests(incoming):
            lacking |= free[resource] < amount
        return rows[lacking]

    def _held_room(self, incoming: IncomingPod) -> HeldRoom | None:
        priority = incoming.pod.spec.priority or 0
        return self.cluster.hold_index.room(priority, owner=incoming.pod.key)

    def rows_with_pod_rules(self, incoming: IncomingPod, states: States) -> set[int]:
        """Return the rows where a held pod affects the incoming pod by more than its resources.

        These are host ports, volumes, and rules between pods; such rows are filtered with the held pods bound.
        """
        held, spec = incoming.held, incoming.spec
        if held is None or not (spec.ports or spec.volumes or any(state is not None for state in states)):
            return set()
        cluster, pods, nodes = self.cluster, self.cluster.pods, self.cluster.nodes
        affects: dict[tuple[int, int], bool] = {}
        rows = set()
        for pod in held.pods:
            kind = int(pods.spec[pod]), int(pods.labels[pod])
            if kind not in affects:
                other, obj = cluster.spec_of(pod), pods.objects[pod]
                assert obj is not None
                affects[kind] = bool(
                    (spec.ports and other.ports)
                    or (spec.volumes and other.volumes)
                    or any(state is not None and state.is_affected_by(obj, other) for state in states)
                )
            if affects[kind]:
                row = nodes.row_of.get(cluster.holds[pods.keys[pod]].node)
                if row is not None:
                    rows.add(row)
        return rows

    def _filter_held_rows(self, incoming: IncomingPod, states: States, feasible: Bools) -> dict[int, Reason]:
        """Clear rows in `feasible` that are refused because of holds; return the reasons of rows with pod rules."""
        feasible[self.rows_without_held_room(incoming)] = False
        reasons: dict[int, Reason] = {}
        for row in sorted(self.rows_with_pod_rules(incoming, states)):
            if self.cluster.nodes.on[row] and (incoming.area is None or incoming.area.mask[row]):
                _, reason = self._filter_row_with_held_pods(incoming, states, row)
                if reason is not None:
                    feasible[row], reasons[row] = False, reason
        return reasons

    def filter_row_with_holds(self, incoming: IncomingPod, states: States, row: int) -> int:
        """Return the verdict on one row, first with the held pods on it and, if that passes, without them."""
        incoming.held = self._held_room(incoming)
        if row not in self.rows_with_pod_rules(incoming, states):
            return int(self.filter_rows(incoming, states, np.array([row]), held=True)[0])
        verdict_with_held, _ = self._filter_row_with_held_pods(incoming, states, row)
        if verdict_with_held != PASS:
            return verdict_with_held
        return int(self.filter_rows(incoming, states, np.array([row]))[0])

    def _filter_row_with_held_pods(self, incoming: IncomingPod, states: States, row: int) -> tuple[int, Reason | None]:
        """Return the verdict and reason for one row as if held pods of equal or higher priority were already bound.

        Holds with amounts of their own count as in use.
        """
        cluster, pods, held = self.cluster, self.cluster.pods, incoming.held
        name = cluster.nodes.names[row]
        held_keys = [pods.keys[pod] for pod in held.pods] if held is not None else []
        held_keys = [key for key in held_keys if cluster.holds[key].node == name]
        if not held_keys:
            return PASS, None
        forked_states = [state.clone() if state is not None else None for state in states]
        mark = cluster.mark()
        try:
            for key in held_keys:
                other = pods.row_of[key]
                for state in forked_states:
                    if state is not None:
                        state.update_with_pod(cluster.pod(key), cluster.spec_of(other), row, 1)
                cluster.apply(Bind(key, name))
            incoming.held = self._held_room(incoming)  # the bound pods no longer hold room
            verdict = int(self.filter_rows(incoming, forked_states, np.array([row]), held=True)[0])
            return verdict, None if verdict == PASS else self.reason(incoming, row, verdict)
        finally:
            cluster.rollback(mark)
            incoming.held = held

    # Scores -----------------------------------------------------------------------------------------------------------

    def best_row(self, incoming: IncomingPod, filtered: FilterResult) -> tuple[int, int]:
        """Return the feasible row with the highest score (the first by name among equals) and the score.

        The row is -1 if no row is feasible.
        """
        rows = feasible_selection(filtered.feasible)
        row_cache = self.row_cache(incoming)
        keys = row_cache.keys(incoming.spec)[: self.cluster.nodes.length][rows]
        if not len(keys):
            return -1, 0
        for plugin, weight in self.row_plugins.scaled_scores:
            raw = row_cache.node_cache.raw_scores.get(plugin)
            if raw is not None:
                keys = keys + default_normalize_score(raw[rows], plugin.normalization) * (weight << RANK_BITS)
        for i, (_, enabled, cluster_plugin) in enumerate(self._cluster_plugins):
            if enabled.weight and incoming.applicable_plugins[i]:
                scored = cluster_plugin.score(incoming, filtered.states[i], rows)
                if scored is not None:
                    keys = keys + scored * (enabled.weight << RANK_BITS)
        position = int(keys.argmax())
        score = (int(keys[position]) >> RANK_BITS) + row_cache.node_cache.constant_score
        return position if isinstance(rows, slice) else int(rows[position]), score

    def plugin_scores(self, incoming: IncomingPod, filtered: FilterResult, rows: Rows) -> dict[str, Ints]:
        """Return the weighted scores of some feasible rows, by name of the plugin."""
        scores: dict[str, Ints] = {}
        window, specs = NodeRows(self.cluster, rows), incoming.columns
        states = {index: state for (index, _, _), state in zip(self._cluster_plugins, filtered.states, strict=True)}
        for index, (plugin, weight, _) in enumerate(self.profile.plugins):
            scored: Ints | None = None
            if weight and isinstance(plugin, NodePlugin):
                scored = plugin.score(window, incoming.spec)
                if scored is not None and plugin.normalization:
                    scored = default_normalize_score(scored, plugin.normalization)
            elif weight and isinstance(plugin, PodPlugin):
                spec_scores = plugin.score(window, specs)
                scored = None if spec_scores is None else spec_scores[:, 0]
            elif weight and isinstance(plugin, ClusterPlugin):
                scored = plugin.score(incoming, states[index], rows)
            if scored is not None:
                scores[plugin.name] = weight * scored
        return scores

    # Reasons ----------------------------------------------------------------------------------------------------------

    def verdicts(self, incoming: IncomingPod, filtered: FilterResult) -> Verdicts:
        """Return the verdict of every row: that of the first plugin that refuses the row."""
        verdict = self.filter_rows(incoming, filtered.states, slice(0, self.cluster.nodes.length), held=True)
        if filtered.excluded is not None:
            verdict[filtered.excluded] = EXCLUDED_BY_PRE_FILTER
        return verdict

    def reason(self, incoming: IncomingPod, row: int, verdict: int) -> Reason:
        """Return why a row was refused."""
        if verdict == EXCLUDED_BY_PRE_FILTER:
            return Reason("PreFilterResult", (), resolvable=False)
        index, variant = decode(verdict)
        return self.profile.plugins[index].plugin.reason(incoming, row, variant)

    def resolvable_rows(self, incoming: IncomingPod, filtered: FilterResult, refusals: Refusals) -> Bools:
        """Return for every row whether it was refused for a reason that evicting pods could resolve."""
        resolvable_rows = np.zeros(self.cluster.nodes.length, dtype=bool)
        for verdict, rows in refusals:
            if verdict != EXCLUDED_BY_PRE_FILTER:
                index, variant = decode(verdict)
                resolvable_rows[rows] = self.profile.plugins[index].plugin.resolvable(incoming, rows, variant)
        for row, reason in filtered.reasons.items():
            resolvable_rows[row] = reason.resolvable
        return resolvable_rows

    def tally(
        self, incoming: IncomingPod, filtered: FilterResult, refusals: Refusals
    ) -> tuple[dict[str, int], frozenset[str]]:
        """Return the number of nodes refused with each message, and the plugins that refused a node."""
        counts: dict[str, int] = {}
        plugins = {reason.plugin for reason in filtered.reasons.values()}
        for reason in filtered.reasons.values():
            _add(counts, dict.fromkeys(reason.messages, 1))
        for verdict, rows in refusals:
            if verdict == EXCLUDED_BY_PRE_FILTER:
                _add(counts, {"node(s) didn't satisfy plugin(s) [NodeAffinity]": len(rows)})
                plugins.add("NodeAffinity")
            else:
                index, variant = decode(verdict)
                plugin = self.profile.plugins[index].plugin
                plugins.add(plugin.name)
                _add(counts, plugin.count_messages(incoming, rows, variant))
        return counts, frozenset(plugins)

    def retry_events(self, plugins: Iterable[str]) -> frozenset[Event]:
        """Return the events after which pods that these plugins refused may fit."""
        known = {enabled.plugin.name: enabled.plugin.events_to_register for enabled in self.profile.plugins}
        return frozenset(event for name in plugins for event in known.get(name, ALL_EVENTS))

    def refusals(self, incoming: IncomingPod, filtered: FilterResult) -> Refusals:
        """Return the refused rows by verdict, without rows that were refused because of holds."""
        verdict = self.verdicts(incoming, filtered)
        refused = self.cluster.nodes.on[: len(verdict)] & (verdict != PASS)
        if incoming.area is not None:
            refused &= incoming.area.mask[: len(verdict)]
        refused[list(filtered.reasons)] = False
        values = verdict[refused].astype(np.intp)
        lowest = int(values.min()) if len(values) else 0
        distinct = np.flatnonzero(np.bincount(values - lowest)) + lowest  # much faster than np.unique
        return [(value, np.flatnonzero(refused & (verdict == value))) for value in distinct.tolist()]


def feasible_selection(feasible: Bools) -> Selection:
    """Return the feasible rows; a slice if all rows are feasible, because slicing a column copies nothing."""
    return slice(0, len(feasible)) if feasible.all() else np.flatnonzero(feasible)


def _add(counts: dict[str, int], more: dict[str, int]) -> None:
    for message, number in more.items():
        counts[message] = counts.get(message, 0) + number
