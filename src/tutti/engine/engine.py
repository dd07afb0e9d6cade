"""The engine: where one pod goes, and why.

Contract: an engine belongs to one cluster and one profile. `decide` changes nothing; `place` decides and binds, pod by
pod in the given order, and gives the same answers as one decision at a time. Ties go to the first node name.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from typing import NamedTuple

import msgspec
import numpy as np

from tutti.cluster.cluster import Cluster
from tutti.cluster.columns import Bools, Ints, Rows
from tutti.cluster.edits import Bind, Edit
from tutti.cluster.nodes import RANK_BITS
from tutti.engine.batch import pick
from tutti.engine.plugins.base import (
    Asked,
    ClusterPlugin,
    NodePlugin,
    PodPlugin,
    Prepared,
    Specs,
    Window,
    controller,
    normalise,
)
from tutti.engine.plugins.node_affinity import NodeAffinity
from tutti.engine.plugins.volume_binding import reserve
from tutti.engine.profile import Profile
from tutti.engine.node_tier import NodeTier
from tutti.engine.row_rules import RowRules
from tutti.engine.row_table import RowTable
from tutti.engine.verdict import PASS, AttemptError, Reason, Variants, Verdicts, decode, encode

_WORTH_WHILE, _LONGEST = 8, 20_000
"""How many like pods in a row are placed as a batch: at least, and at once at most."""
NARROWED = -1
"""The verdict of nodes that a pre-filter left out: below every plugin's."""


class Decision(msgspec.Struct, frozen=True, gc=False):
    """What the engine says of one pod: a node, or why there is none."""

    pod: str
    node: str | None = None
    score: int | None = None
    """The total score of the node."""
    held: Reason | None = None
    """Why the pod may not even be tried."""
    refused: Reason | None = None
    """Why no node was looked at."""
    error: str | None = None
    """Why the attempt was given up."""
    nodes: int = 0
    """How many nodes there are."""
    reasons: dict[str, int] = {}
    """How many nodes were refused with each message, when all were."""
    volumes: tuple[Edit, ...] = ()
    """How the pod takes its volumes."""


class Filtered(NamedTuple):
    """Which rows are feasible, and what the cluster plugins prepared."""

    feasible: Bools
    prepared: list[Prepared | None]
    """One entry for each cluster plugin of the profile; None where it has nothing to filter."""
    reasons: dict[int, Reason]
    """Why rows on which room is held were refused: that cannot be asked again later."""
    alone: bool = False
    """Whether only the node that the pod was promised was looked at."""
    left_out: Bools | None = None
    """The rows that the pod's node affinity does not name, if it names nodes."""


class Engine:
    """See the module's contract."""

    def __init__(self, cluster: Cluster, profile: Profile | None = None) -> None:
        self.cluster = cluster
        self.profile = profile or Profile.default()
        self.rules = RowRules(self.profile)
        self.cluster_plugins = [
            (place, enabled, enabled.plugin)
            for place, enabled in enumerate(self.profile.plugins)
            if isinstance(enabled.plugin, ClusterPlugin)
        ]
        self._tiers: dict[bytes, NodeTier] = {}
        self._tables: dict[tuple[Hashable, ...], RowTable] = {}
        self._table_of: dict[int, RowTable] = {}

    # One pod ----------------------------------------------------------------------------------------------------------

    def decide(self, pod: str) -> Decision:
        """Say where a pending pod goes."""
        cluster = self.cluster
        asked = Asked(cluster, cluster.pod_row(pod))
        stopped = self.stopped(asked)
        if stopped is not None:
            return stopped
        nodes = cluster.nodes
        try:
            row, score = self._quick_best(asked)
            if row >= 0:
                return Decision(pod, nodes.names[row], score, nodes=nodes.count)
            filtered = self.filter(asked)
            if isinstance(filtered, Reason):
                return Decision(pod, refused=filtered, nodes=nodes.count)
            row, score = self._best(asked, filtered)
            if row < 0:
                return Decision(pod, nodes=nodes.count, reasons=self.tally(asked, filtered))
            volumes = tuple(reserve(asked, filtered.prepared, row)) if asked.spec.volumes else ()
        except AttemptError as error:
            return Decision(pod, error=str(error), nodes=nodes.count)
        return Decision(pod, nodes.names[row], score, nodes=nodes.count, volumes=volumes)

    def _quick_best(self, asked: Asked) -> tuple[int, int]:
        """Give the best row and its score at once when no other node matters to a node's score; -1 when it may."""
        if self.cluster.held_on or any(plugin.concerns(asked) for _, _, plugin in self.cluster_plugins):
            return -1, 0
        table, keys = self.row_keys(asked)
        if table.tier.raw or table.tier.narrowed is not None:
            return -1, 0
        row = int(keys.argmax())
        key = int(keys[row])
        return (row, (key >> RANK_BITS) + table.tier.constant) if key >= 0 else (-1, 0)

    def place(self, pods: Sequence[str], *, start: int | None = None, take_volumes: bool = True) -> list[Decision]:
        """Decide and bind one pod after the other; `take_volumes` lets them have the volumes that were found for them."""
        decisions: list[Decision] = []
        while len(decisions) < len(pods):
            done = len(decisions)
            run = self._run(pods, done)
            if run > 1:
                decisions += self._place_run(pods[done : done + run], start)
                if len(decisions) > done:
                    continue
            decision = self.decide(pods[done])
            if decision.node is not None:
                self.cluster.apply(Bind(decision.pod, decision.node, start))
                if take_volumes:
                    for edit in decision.volumes:
                        self.cluster.apply(edit)
            decisions.append(decision)
        return decisions

    def _run(self, pods: Sequence[str], first: int) -> int:
        """Say how many pods from here on are alike and look at no other pods or nodes; 1 when it is not worth while."""
        table = self.cluster.pods
        rows = [table.row_of.get(pod, -1) for pod in pods[first : first + _WORTH_WHILE]]
        if len(rows) < _WORTH_WHILE or rows[0] < 0 or self.cluster.held_on:
            return 1
        spec, labels = table.spec, table.labels
        if spec[rows[-1]] != spec[rows[0]]:
            return 1
        asked = Asked(self.cluster, rows[0])
        tier = self.row_keys(asked)[0].tier
        if tier.raw or tier.narrowed is not None or asked.spec.ports or asked.spec.spec.resource_claims:
            return 1
        if any(plugin.concerns(asked) for _, _, plugin in self.cluster_plugins):
            return 1
        alike = (int(spec[rows[0]]), int(labels[rows[0]]), controller(asked.pod))
        length = 0
        for pod in pods[first : first + _LONGEST]:
            row = table.row_of.get(pod, -1)
            obj = table.objects[row] if row >= 0 else None
            if obj is None or obj.spec.scheduling_gates or table.node_names[row] is not None:
                break
            if (int(spec[row]), int(labels[row]), controller(obj)) != alike:
                break
            length += 1
        return max(length, 1)

    def _place_run(self, pods: Sequence[str], start: int | None) -> list[Decision]:
        """Place as many pods of a run as can be placed at once."""
        cluster, nodes = self.cluster, self.cluster.nodes
        asked = Asked(cluster, cluster.pod_row(pods[0]))
        table, keys = self.row_keys(asked)
        usage = cluster.usages.matrix[cluster.pods.usage[asked.row]]
        decisions = []
        for pod, (row, score) in zip(pods, pick(cluster, table, asked.spec, keys, usage, len(pods)), strict=False):
            name = nodes.names[row]
            cluster.apply(Bind(pod, name, start))
            decisions.append(Decision(pod, name, score + table.tier.constant, nodes=nodes.count))
        return decisions

    def stopped(self, asked: Asked) -> Decision | None:
        """Say why a pod may not be tried, or that there is nothing to try."""
        spec, nodes = asked.pod.spec, self.cluster.nodes
        if spec.scheduling_gates and self.profile.gates:
            gates = [gate.name for gate in spec.scheduling_gates]
            message = f"waiting for scheduling gates: [{' '.join(gates)}]"
            held = Reason("SchedulingGates", (message,), resolvable=False)
            return Decision(asked.pod.key, held=held, nodes=nodes.count)
        if not nodes.count:
            return Decision(asked.pod.key, error="no nodes available to schedule pods")
        if spec.resource_claims:
            names = ", ".join(c.resource_claim_name or c.resource_claim_template_name or c.name for c in spec.resource_claims)
            message = f"resource claim(s) {names}: Tutti does not allocate devices yet"
            return Decision(asked.pod.key, refused=Reason("DynamicResources", (message,), resolvable=False), nodes=nodes.count)
        return None

    # Filters ----------------------------------------------------------------------------------------------------------

    def row_keys(self, asked: Asked) -> tuple[RowTable, Ints]:
        """Give what the row plugins say to the pod's spec class, up to date."""
        spec = asked.spec
        table = self._table_of.get(spec.number)
        if table is None:
            node_key = self.rules.node_key(spec)
            tier = self._tiers.get(node_key)
            if tier is None:
                tier = self._tiers[node_key] = NodeTier(self.cluster, spec, self.rules)
            key = (node_key, *self.rules.shape(spec))
            table = self._tables.get(key)
            if table is None:
                table = self._tables[key] = RowTable(self.cluster, tier, self.rules)
            self._table_of[spec.number] = table
        return table, table.keys(spec)

    def prepare(self, asked: Asked) -> list[Prepared | None] | Reason:
        """Let the cluster plugins look at the cluster; the first reason to give up ends it."""
        prepared: list[Prepared | None] = []
        resolvable: Reason | None = None
        for _, enabled, plugin in self.cluster_plugins:
            found = plugin.prepare(asked) if enabled.filters and plugin.concerns(asked) else None
            if isinstance(found, Reason):
                if not found.resolvable:
                    return found
                resolvable, found = resolvable or found, None
            prepared.append(found)
        return prepared if resolvable is None else resolvable

    def filter(self, asked: Asked) -> Filtered | Reason:
        """Find the feasible nodes; a reason when no node needs to be looked at."""
        table, keys = self.row_keys(asked)
        narrowed = table.tier.narrowed
        if isinstance(narrowed, Reason):
            return narrowed
        prepared = self.prepare(asked)
        if isinstance(prepared, Reason):
            return prepared
        own = self._own_nomination(asked, prepared)
        if own is not None:
            return own
        feasible = keys >= 0
        for state in prepared:
            if state is not None:
                rows = np.flatnonzero(feasible)
                feasible[rows[state.filter(rows) != 0]] = False
        left_out: Bools | None = None
        if narrowed is not None:
            left_out = np.ones(len(feasible), dtype=bool)
            left_out[[row for row in map(self.cluster.nodes.row_of.get, narrowed) if row is not None]] = False
            feasible &= ~left_out
        reasons = self._with_holds(asked, prepared, feasible) if self.cluster.held_on else {}
        return Filtered(feasible, prepared, reasons, left_out=left_out)

    def verdicts(self, asked: Asked, filtered: Filtered) -> Verdicts:
        """Give the verdict of every row: that of the first plugin that refuses it."""
        rows = np.arange(self.cluster.nodes.size)
        verdict = self.judge(asked, filtered.prepared, rows)
        if filtered.left_out is not None:
            verdict[filtered.left_out] = NARROWED
        return verdict

    def judge(self, asked: Asked, prepared: Iterable[Prepared | None], rows: Rows) -> Verdicts:
        """Ask every filter about some rows as they are now, without what is kept from before."""
        window, specs = Window(self.cluster, rows), Specs((asked.spec,))
        verdict = np.full(len(rows), PASS, dtype=np.int16)
        for place, (plugin, _, filters) in enumerate(self.profile.plugins):
            answers: Variants | None = None
            if filters and isinstance(plugin, NodePlugin):
                answers = plugin.filter(window, asked.spec)
            elif filters and isinstance(plugin, PodPlugin):
                said = plugin.filter(window, specs)
                answers = None if said is None else said[0]
            if answers is not None:
                np.minimum(verdict, encode(place, answers), out=verdict)
        for (place, _, _), state in zip(self.cluster_plugins, prepared, strict=True):
            if state is not None:
                np.minimum(verdict, encode(place, state.filter(rows)), out=verdict)
        return verdict

    # Nominations ------------------------------------------------------------------------------------------------------

    def _own_nomination(self, asked: Asked, prepared: list[Prepared | None]) -> Filtered | None:
        """Give the node that the pod was promised, alone, if the pod fits there."""
        hold = self.cluster.holds.get(asked.pod.key)
        row = self.cluster.nodes.row_of.get(hold.node) if hold is not None else None
        if row is None or not self.cluster.nodes.on[row]:
            return None
        if self.judge_with_holds(asked, prepared, row) != PASS:
            return None
        feasible = np.zeros(self.cluster.nodes.size, dtype=bool)
        feasible[row] = True
        return Filtered(feasible, prepared, {}, alone=True)

    def _with_holds(self, asked: Asked, prepared: list[Prepared | None], feasible: Bools) -> dict[int, Reason]:
        """Judge the nodes on which room is held again, with those pods there; give why some are then refused."""
        nodes = self.cluster.nodes
        reasons: dict[int, Reason] = {}
        for name in list(self.cluster.held_on):
            row = nodes.row_of.get(name)
            if row is not None and nodes.on[row]:
                _, reason = self._judge_with_promised(asked, prepared, row)
                if reason is not None:
                    feasible[row], reasons[row] = False, reason
        return reasons

    def judge_with_holds(self, asked: Asked, prepared: list[Prepared | None], row: int) -> int:
        """Judge one row with the pods for which room is held there and, if it passes, without them."""
        with_them, _ = self._judge_with_promised(asked, prepared, row)
        if with_them != PASS:
            return with_them
        return int(self.judge(asked, prepared, np.array([row]))[0])

    def _judge_with_promised(
        self, asked: Asked, prepared: list[Prepared | None], row: int
    ) -> tuple[int, Reason | None]:
        """Judge one row as if the pods of equal or higher priority that are promised it were there already."""
        cluster, pods = self.cluster, self.cluster.pods
        mine, priority = asked.pod.key, asked.pod.spec.priority or 0
        promised = [
            key
            for key in cluster.held_on.get(cluster.nodes.names[row], ())
            if key != mine and pods.priority[pods.row_of[key]] >= priority
        ]
        if not promised:
            return PASS, None
        forked = [state.fork() if state is not None else None for state in prepared]
        mark = cluster.mark()
        try:
            for key in promised:
                other = pods.row_of[key]
                for state in forked:
                    if state is not None:
                        state.moved(cluster.pod(key), cluster.spec_of(other), row, 1)
                cluster.apply(Bind(key, cluster.nodes.names[row]))
            verdict = int(self.judge(asked, forked, np.array([row]))[0])
            return verdict, None if verdict == PASS else self.reason(asked, row, verdict)
        finally:
            cluster.rollback(mark)

    # Scores -----------------------------------------------------------------------------------------------------------

    def _best(self, asked: Asked, filtered: Filtered) -> tuple[int, int]:
        """Give the row with the highest score (the first by name among equals) and the score; -1 when there is none."""
        rows = np.flatnonzero(filtered.feasible)
        if not len(rows):
            return -1, 0
        totals = self.totals(asked, filtered, rows)
        best = int(((totals << RANK_BITS) - self.cluster.nodes.rank[rows]).argmax())
        return int(rows[best]), int(totals[best])

    def totals(self, asked: Asked, filtered: Filtered, rows: Rows) -> Ints:
        """Give the total scores of the feasible rows."""
        table, keys = self.row_keys(asked)
        total = table.scores(keys[rows])
        for plugin, weight in self.rules.scaled_scores:
            raw = table.tier.raw.get(plugin)
            if raw is not None:
                total += weight * normalise(raw[rows], plugin.scaled)
        for (_, enabled, plugin), state in zip(self.cluster_plugins, filtered.prepared, strict=True):
            if enabled.weight and plugin.concerns(asked):
                scored = plugin.score(asked, state, rows)
                if scored is not None:
                    total += enabled.weight * scored
        return total

    def plugin_scores(self, asked: Asked, filtered: Filtered, rows: Rows) -> dict[str, Ints]:
        """Give the weighted score of every plugin that scores the pod, for the feasible rows."""
        scores: dict[str, Ints] = {}
        window, specs = Window(self.cluster, rows), Specs((asked.spec,))
        states = {place: state for (place, _, _), state in zip(self.cluster_plugins, filtered.prepared, strict=True)}
        for place, (plugin, weight, _) in enumerate(self.profile.plugins):
            scored: Ints | None = None
            if not weight:
                continue
            if isinstance(plugin, NodePlugin):
                scored = plugin.score(window, asked.spec)
                if scored is not None and plugin.scaled:
                    scored = normalise(scored, plugin.scaled)
            elif isinstance(plugin, PodPlugin):
                lines = plugin.score(window, specs)
                scored = None if lines is None else lines[0]
            elif isinstance(plugin, ClusterPlugin):
                scored = plugin.score(asked, states[place], rows)
            if scored is not None:
                scores[plugin.name] = weight * scored
        return scores

    # Reasons ----------------------------------------------------------------------------------------------------------

    def reason(self, asked: Asked, row: int, verdict: int) -> Reason:
        """Say why a row was refused."""
        if verdict == NARROWED:
            return Reason("PreFilterResult", (), resolvable=False)
        place, variant = decode(verdict)
        return self.profile.plugins[place].plugin.reason(asked, row, variant)

    def curable(self, asked: Asked, filtered: Filtered) -> Bools:
        """Say for every row whether it was refused, and evicting pods could help."""
        verdict, on = self.verdicts(asked, filtered), self.cluster.nodes.on
        curable = np.zeros(len(verdict), dtype=bool)
        for value in np.unique(verdict[on]).tolist():
            if value not in (NARROWED, PASS):
                place, variant = decode(value)
                rows = np.flatnonzero(on & (verdict == value))
                curable[rows] = self.profile.plugins[place].plugin.resolvable(asked, rows, variant)
        for row, reason in filtered.reasons.items():
            curable[row] = reason.resolvable
        return curable

    def tally(self, asked: Asked, filtered: Filtered) -> dict[str, int]:
        """Count the messages over all nodes that take part."""
        verdict, ask = self.verdicts(asked, filtered), self.cluster.nodes.on.copy()
        counts: dict[str, int] = {}
        for row, reason in filtered.reasons.items():
            ask[row] = False
            _add(counts, dict.fromkeys(reason.messages, 1))
        for value in np.unique(verdict[ask]).tolist():
            rows = np.flatnonzero(ask & (verdict == value))
            if value == NARROWED:
                _add(counts, {f"node(s) didn't satisfy plugin(s) [{NodeAffinity.name}]": len(rows)})
            elif value != PASS:
                place, variant = decode(value)
                _add(counts, self.profile.plugins[place].plugin.tally(asked, rows, variant))
        return counts


def _add(counts: dict[str, int], more: dict[str, int]) -> None:
    for message, number in more.items():
        counts[message] = counts.get(message, 0) + number
