"""The judge: which nodes can take a pod, and how good each is.

Contract: a judge belongs to one cluster and one profile and changes nothing. Rows are numbered as in the cluster's
node table, and columns here end with its last row in use. What the row plugins say is kept from pod to pod; the
cluster plugins are asked for every pod, those of them that the pod concerns.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import NamedTuple

import numpy as np

from tutti.cluster.cluster import Cluster
from tutti.cluster.columns import Bools, Ints, Rows
from tutti.cluster.edits import Bind
from tutti.cluster.events import ALL_EVENTS, Event
from tutti.cluster.node_table import RANK_BITS
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
    SpecColumns,
    controller,
    default_normalize_score,
)
from tutti.engine.plugins.node_affinity import named_nodes
from tutti.engine.plugins.verdict import EXCLUDED_BY_PRE_FILTER, PASS, Reason, StatusCodes, Verdicts, decode, encode

States = list[PreFilterState | None]
"""What each cluster plugin of the profile prepared for a pod; None where it has nothing to filter."""


class FilterResult(NamedTuple):
    """Which rows are feasible for a pod, and how that was found."""

    feasible: Bools
    states: States
    reasons: dict[int, Reason]
    """Why rows on which room is held were refused: that cannot be asked again later."""
    alone: bool = False
    """Whether only the node that the pod was promised was looked at."""
    left_out: Bools | None = None
    """The rows that the pod's node affinity does not name, if it names nodes."""


class Evaluator:
    """See the module's contract."""

    def __init__(self, cluster: Cluster, profile: Profile) -> None:
        self.cluster, self.profile = cluster, profile
        self.rules = RowPlugins(profile)
        self._cluster_plugins = [
            (place, enabled, enabled.plugin)
            for place, enabled in enumerate(profile.plugins)
            if isinstance(enabled.plugin, ClusterPlugin)
        ]
        self._tiers: dict[bytes, NodePluginCache] = {}
        self._tables: dict[tuple[Hashable, ...], RowPluginCache] = {}
        self._table_of: dict[int, RowPluginCache] = {}
        self._recent = RecentNodes(cluster)
        self._named: tuple[int, RowPluginCache] | None = None
        self._concerned: dict[tuple[Hashable, ...], tuple[tuple[int, int], list[bool]]] = {}

    # What is asked ----------------------------------------------------------------------------------------------------

    def incoming_pod(self, row: int, within: Area | None = None) -> IncomingPod:
        """Start to ask about the pod in a row: find out which cluster plugins it concerns."""
        cluster = self.cluster
        pod = cluster.pods.objects[row]
        assert pod is not None
        incoming = IncomingPod(cluster, row, pod)
        incoming.area = within
        key = (incoming.spec.number, incoming.labels.number, controller(pod))
        known = self._concerned.get(key)
        version = (cluster.workloads_version, cluster.labels.version)
        if known is None or known[0] != version:
            concerned = [plugin.applies_to(incoming) for _, _, plugin in self._cluster_plugins]
            known = self._concerned[key] = (version, concerned)
        incoming.applicable_plugins = known[1]
        return incoming

    def row_table(self, incoming: IncomingPod) -> RowPluginCache:
        """Give the table that keeps what the row plugins say to the pod's spec class."""
        spec = incoming.spec
        table = self._table_of.get(spec.number)
        if table is None and self._named is not None and self._named[0] == spec.number:
            return self._named[1]
        if table is None and self.rules.narrows and named_nodes(spec) is not None:
            # Pods of a DaemonSet name a node each: a table for every node would be all nodes squared.
            named = NodePluginCache(self.cluster, spec, self.rules)
            self._named = (spec.number, RowPluginCache(named, self.rules, self._recent, spec))
            return self._named[1]
        if table is None:
            node_key = self.rules.node_key(spec)
            tier = self._tiers.get(node_key)
            if tier is None:
                tier = self._tiers[node_key] = NodePluginCache(self.cluster, spec, self.rules)
            key = (node_key, *self.rules.shape(spec))
            table = self._tables.get(key)
            if table is None:
                table = self._tables[key] = RowPluginCache(tier, self.rules, self._recent, spec)
            self._table_of[spec.number] = table
        return table

    # Filters ----------------------------------------------------------------------------------------------------------

    def filter(self, incoming: IncomingPod) -> FilterResult | Reason:
        """Find the feasible nodes; a reason when no node needs to be looked at."""
        self.cluster.meter.count += POD_PASS + POD_PASS_NODE * self.cluster.nodes.length
        table = self.row_table(incoming)
        keys = table.keys(incoming.spec)[: self.cluster.nodes.length]
        narrowed = table.tier.narrowed
        if isinstance(narrowed, Reason):
            return narrowed
        states = self._prepare(incoming)
        if isinstance(states, Reason):
            return states
        if incoming.pod.key in self.cluster.holds:
            own = self._promised(incoming, states)
            if own is not None:
                return own
        feasible = keys >= 0
        if incoming.area is not None:
            feasible &= incoming.area.mask[: len(feasible)]
        for state in states:
            if state is not None:
                rows = selection(feasible)
                answers = state.filter(rows)
                if isinstance(rows, slice):
                    feasible = answers == 0
                else:
                    feasible[rows[answers != 0]] = False
        left_out: Bools | None = None
        if narrowed is not None:
            left_out = np.ones(len(feasible), dtype=bool)
            left_out[[row for row in map(self.cluster.nodes.row_of.get, narrowed) if row is not None]] = False
            feasible &= ~left_out
        reasons = self._with_holds(incoming, states, feasible) if self.cluster.held_on else {}
        if left_out is not None:
            reasons = {row: reason for row, reason in reasons.items() if not left_out[row]}
        return FilterResult(feasible, states, reasons, left_out=left_out)

    def _prepare(self, incoming: IncomingPod) -> States | Reason:
        """Let the cluster plugins look at the cluster; the first reason to give up ends it."""
        states: States = []
        for (_, enabled, plugin), concerned in zip(self._cluster_plugins, incoming.applicable_plugins, strict=True):
            found = plugin.pre_filter(incoming) if concerned and enabled.filters else None
            if isinstance(found, Reason):
                return found
            states.append(found)
        return states

    def filter_rows(self, incoming: IncomingPod, states: States, rows: Rows) -> Verdicts:
        """Ask every filter about some rows as they are now, without what is kept from before."""
        window, specs = NodeRows(self.cluster, rows), SpecColumns(incoming.spec)
        verdict = np.full(len(rows), PASS, dtype=np.int16)
        for place, (plugin, _, filters) in enumerate(self.profile.plugins):
            answers: StatusCodes | None = None
            if filters and isinstance(plugin, NodePlugin):
                answers = plugin.filter(window, incoming.spec)
            elif filters and isinstance(plugin, PodPlugin):
                said = plugin.filter(window, specs)
                answers = None if said is None else said[:, 0]
            if answers is not None:
                np.minimum(verdict, encode(place, answers), out=verdict)
        for (place, _, _), state in zip(self._cluster_plugins, states, strict=True):
            if state is not None:
                np.minimum(verdict, encode(place, state.filter(rows)), out=verdict)
        return verdict

    def room_wanted(self, incoming: IncomingPod) -> list[tuple[int, int]]:
        """Give the resources, by their places, that filters check for room, and how much of each the pod wants."""
        return [
            want for plugin in self.rules.pod_filters for want in plugin.required_resources(self.cluster, incoming.spec)
        ]

    # Nominations ------------------------------------------------------------------------------------------------------

    def _promised(self, incoming: IncomingPod, states: States) -> FilterResult | None:
        """Give the node that the pod was promised, alone, if the pod fits there."""
        nodes = self.cluster.nodes
        row = nodes.row_of.get(self.cluster.holds[incoming.pod.key].node)
        if row is None or not nodes.on[row] or (incoming.area is not None and not incoming.area.mask[row]):
            return None
        if self.filter_row_with_holds(incoming, states, row) != PASS:
            return None
        feasible = np.zeros(nodes.length, dtype=bool)
        feasible[row] = True
        return FilterResult(feasible, states, {}, alone=True)

    def _with_holds(self, incoming: IncomingPod, states: States, feasible: Bools) -> dict[int, Reason]:
        """Judge the nodes on which room is held again, with those pods there; give why some are then refused."""
        nodes = self.cluster.nodes
        reasons: dict[int, Reason] = {}
        for name in list(self.cluster.held_on):
            row = nodes.row_of.get(name)
            if row is not None and nodes.on[row]:
                if incoming.area is not None and not incoming.area.mask[row]:
                    continue
                _, reason = self._filter_row_with_promised(incoming, states, row)
                if reason is not None:
                    feasible[row], reasons[row] = False, reason
        return reasons

    def filter_row_with_holds(self, incoming: IncomingPod, states: States, row: int) -> int:
        """Judge one row with the pods for which room is held there and, if it passes, without them."""
        with_them, _ = self._filter_row_with_promised(incoming, states, row)
        if with_them != PASS:
            return with_them
        return int(self.filter_rows(incoming, states, np.array([row]))[0])

    def _filter_row_with_promised(self, incoming: IncomingPod, states: States, row: int) -> tuple[int, Reason | None]:
        """Judge one row as if the pods of equal or higher priority that are promised it were there already."""
        cluster, pods = self.cluster, self.cluster.pods
        mine, priority = incoming.pod.key, incoming.pod.spec.priority or 0
        name = cluster.nodes.names[row]
        promised = [
            key
            for key, hold in cluster.held_on.get(name, {}).items()
            if key != mine and hold.effective_priority(int(pods.priority[pods.row_of[key]])) >= priority
        ]
        if not promised:
            return PASS, None
        forked = [state.clone() if state is not None else None for state in states]
        mark = cluster.mark()
        try:
            for key in promised:
                other = pods.row_of[key]
                for state in forked:
                    if state is not None:
                        state.update_with_pod(cluster.pod(key), cluster.spec_of(other), row, 1)
                cluster.apply(Bind(key, name))
            verdict = int(self.filter_rows(incoming, forked, np.array([row]))[0])
            return verdict, None if verdict == PASS else self.reason(incoming, row, verdict)
        finally:
            cluster.rollback(mark)

    # Scores -----------------------------------------------------------------------------------------------------------

    def best(self, incoming: IncomingPod, filtered: FilterResult) -> tuple[int, int]:
        """Give the row with the highest score (the first by name among equals) and the score; -1 when there is none."""
        rows = selection(filtered.feasible)
        table = self.row_table(incoming)
        keys = table.keys(incoming.spec)[: self.cluster.nodes.length][rows]
        if not len(keys):
            return -1, 0
        for plugin, weight in self.rules.scaled_scores:
            raw = table.tier.raw.get(plugin)
            if raw is not None:
                keys = keys + default_normalize_score(raw[rows], plugin.normalization) * (weight << RANK_BITS)
        for i, (_, enabled, cluster_plugin) in enumerate(self._cluster_plugins):
            if enabled.weight and incoming.applicable_plugins[i]:
                scored = cluster_plugin.score(incoming, filtered.states[i], rows)
                if scored is not None:
                    keys = keys + scored * (enabled.weight << RANK_BITS)
        best = int(keys.argmax())
        score = (int(keys[best]) >> RANK_BITS) + table.tier.constant
        return best if isinstance(rows, slice) else int(rows[best]), score

    def plugin_scores(self, incoming: IncomingPod, filtered: FilterResult, rows: Rows) -> dict[str, Ints]:
        """Give the weighted score of every plugin that scores the pod, for the feasible rows."""
        scores: dict[str, Ints] = {}
        window, specs = NodeRows(self.cluster, rows), SpecColumns(incoming.spec)
        states = {place: state for (place, _, _), state in zip(self._cluster_plugins, filtered.states, strict=True)}
        for place, (plugin, weight, _) in enumerate(self.profile.plugins):
            scored: Ints | None = None
            if weight and isinstance(plugin, NodePlugin):
                scored = plugin.score(window, incoming.spec)
                if scored is not None and plugin.normalization:
                    scored = default_normalize_score(scored, plugin.normalization)
            elif weight and isinstance(plugin, PodPlugin):
                lines = plugin.score(window, specs)
                scored = None if lines is None else lines[:, 0]
            elif weight and isinstance(plugin, ClusterPlugin):
                scored = plugin.score(incoming, states[place], rows)
            if scored is not None:
                scores[plugin.name] = weight * scored
        return scores

    # Reasons ----------------------------------------------------------------------------------------------------------

    def verdicts(self, incoming: IncomingPod, filtered: FilterResult) -> Verdicts:
        """Give the verdict of every row: that of the first plugin that refuses it."""
        verdict = self.filter_rows(incoming, filtered.states, np.arange(self.cluster.nodes.length))
        if filtered.left_out is not None:
            verdict[filtered.left_out] = EXCLUDED_BY_PRE_FILTER
        return verdict

    def reason(self, incoming: IncomingPod, row: int, verdict: int) -> Reason:
        """Say why a row was refused."""
        if verdict == EXCLUDED_BY_PRE_FILTER:
            return Reason("PreFilterResult", (), resolvable=False)
        place, code = decode(verdict)
        return self.profile.plugins[place].plugin.reason(incoming, row, code)

    def curable(self, incoming: IncomingPod, filtered: FilterResult) -> Bools:
        """Say for every row whether it was refused, and evicting pods could help."""
        curable = np.zeros(self.cluster.nodes.length, dtype=bool)
        for verdict, rows in self._by_verdict(incoming, filtered):
            if verdict != EXCLUDED_BY_PRE_FILTER:
                place, code = decode(verdict)
                curable[rows] = self.profile.plugins[place].plugin.resolvable(incoming, rows, code)
        for row, reason in filtered.reasons.items():
            curable[row] = reason.resolvable
        return curable

    def tally(self, incoming: IncomingPod, filtered: FilterResult) -> tuple[dict[str, int], frozenset[str]]:
        """Count the messages over all nodes that take part, and name the plugins that refused one."""
        counts: dict[str, int] = {}
        plugins = {reason.plugin for reason in filtered.reasons.values()}
        for reason in filtered.reasons.values():
            _add(counts, dict.fromkeys(reason.messages, 1))
        for verdict, rows in self._by_verdict(incoming, filtered):
            if verdict == EXCLUDED_BY_PRE_FILTER:
                _add(counts, {"node(s) didn't satisfy plugin(s) [NodeAffinity]": len(rows)})
                plugins.add("NodeAffinity")
            else:
                place, code = decode(verdict)
                plugin = self.profile.plugins[place].plugin
                plugins.add(plugin.name)
                _add(counts, plugin.count_messages(incoming, rows, code))
        return counts, frozenset(plugins)

    def cures(self, plugins: Iterable[str]) -> frozenset[Event]:
        """Give the events after which pods that were refused by some plugins may fit."""
        known = {enabled.plugin.name: enabled.plugin.events_to_register for enabled in self.profile.plugins}
        return frozenset(event for name in plugins for event in known.get(name, ALL_EVENTS))

    def _by_verdict(self, incoming: IncomingPod, filtered: FilterResult) -> list[tuple[int, Rows]]:
        """Give the rows of nodes that were refused without regard to holds, by their verdict."""
        verdict = self.verdicts(incoming, filtered)
        refused = self.cluster.nodes.on[: len(verdict)] & (verdict != PASS)
        if incoming.area is not None:
            refused &= incoming.area.mask[: len(verdict)]
        refused[list(filtered.reasons)] = False
        found = verdict[refused].astype(np.intp)
        least = int(found.min()) if len(found) else 0
        distinct = np.flatnonzero(np.bincount(found - least)) + least  # a lot faster than np.unique
        return [(v, np.flatnonzero(refused & (verdict == v))) for v in distinct.tolist()]


def selection(feasible: Bools) -> Selection:
    """Give the feasible rows; a slice when all are, for a slice of a column costs no copy."""
    return slice(0, len(feasible)) if feasible.all() else np.flatnonzero(feasible)


def _add(counts: dict[str, int], more: dict[str, int]) -> None:
    for message, number in more.items():
        counts[message] = counts.get(message, 0) + number
