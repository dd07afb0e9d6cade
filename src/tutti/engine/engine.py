"""The engine: where one pod goes, and why.

Contract: an engine belongs to one cluster and one profile. `decide` changes nothing; `place` decides and binds, pod by
pod in the given order, and gives the same answers as one decision at a time. Ties go to the first node name.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import msgspec
import numpy as np

from tutti.cluster.cluster import Cluster
from tutti.cluster.columns import Bools, Ints, Rows
from tutti.cluster.edits import Bind, Edit
from tutti.engine.plugins.base import Asked, ClusterPlugin, Prepared, RowPlugin, Window, normalise
from tutti.engine.plugins.node_affinity import NodeAffinity, named_nodes
from tutti.engine.plugins.volume_binding import reserve
from tutti.engine.profile import Profile
from tutti.engine.row_cache import RowCache, RowRules
from tutti.engine.verdict import PASS, AttemptError, Reason, Verdicts, decode, encode

NARROWED = -1
"""The verdict of nodes that a pre-filter left out: below every plugin's."""


class Decision(msgspec.Struct, frozen=True, gc=False):
    """What the engine says of one pod: a node, or why there is none."""

    pod: str
    node: str | None = None
    score: int | None = None
    """The total score of the node; None when it was the only one."""
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
    """The verdict of every row, and what the cluster plugins prepared."""

    verdict: Verdicts
    prepared: list[Prepared | None]
    feasible: Bools
    reasons: dict[int, Reason] = {}  # noqa: RUF012 - a named tuple's default is never changed
    """Why rows on which room is held were refused: that cannot be asked again later."""
    alone: bool = False
    """Whether only the node that the pod was promised was looked at."""


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
        self._narrows = any(isinstance(e.plugin, NodeAffinity) and e.filters for e in self.profile.plugins)
        self._caches: dict[int, RowCache] = {}

    # One pod ----------------------------------------------------------------------------------------------------------

    def decide(self, pod: str) -> Decision:
        """Say where a pending pod goes."""
        cluster = self.cluster
        asked = Asked(cluster, cluster.pod_row(pod))
        stopped = self.stopped(asked)
        if stopped is not None:
            return stopped
        try:
            filtered = self.filter(asked)
            if isinstance(filtered, Reason):
                return Decision(pod, refused=filtered, nodes=cluster.nodes.count)
            row, score = self._best(asked, filtered)
        except AttemptError as error:
            return Decision(pod, error=str(error), nodes=cluster.nodes.count)
        if row < 0:
            return Decision(pod, nodes=cluster.nodes.count, reasons=self.tally(asked, filtered))
        volumes = tuple(reserve(asked, filtered.prepared, row)) if asked.spec.volumes else ()
        return Decision(pod, cluster.nodes.names[row], score, nodes=cluster.nodes.count, volumes=volumes)

    def place(self, pods: Sequence[str], *, start: int | None = None, take_volumes: bool = True) -> list[Decision]:
        """Decide and bind one pod after the other; `take_volumes` lets them have the volumes that were found for them."""
        decisions = []
        for pod in pods:
            decision = self.decide(pod)
            if decision.node is not None:
                self.cluster.apply(Bind(pod, decision.node, start))
                if take_volumes:
                    for edit in decision.volumes:
                        self.cluster.apply(edit)
            decisions.append(decision)
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

    def row_cache(self, asked: Asked) -> RowCache:
        """Give what the row plugins say to the pod's spec class, up to date."""
        number = asked.spec.number
        cache = self._caches.get(number)
        if cache is None:
            cache = self._caches[number] = RowCache(self.cluster, asked.spec, self.rules)
        cache.sync()
        return cache

    def prepare(self, asked: Asked) -> list[Prepared | None] | Reason:
        """Let the cluster plugins look at the cluster; the first reason to give up ends it."""
        prepared: list[Prepared | None] = []
        resolvable: Reason | None = None
        for _, enabled, plugin in self.cluster_plugins:
            found = plugin.prepare(asked) if enabled.filters else None
            if isinstance(found, Reason):
                if not found.resolvable:
                    return found
                resolvable, found = resolvable or found, None
            prepared.append(found)
        return prepared if resolvable is None else resolvable

    def filter(self, asked: Asked) -> Filtered | Reason:
        """Judge every node; a reason when no node needs to be looked at."""
        narrowed = named_nodes(asked.spec) if self._narrows else None
        if isinstance(narrowed, Reason):
            return narrowed
        prepared = self.prepare(asked)
        if isinstance(prepared, Reason):
            return prepared
        own = self._own_nomination(asked, prepared)
        if own is not None:
            return own
        cache = self.row_cache(asked)
        verdict = cache.verdict
        feasible = cache.key >= 0
        copied = False
        for (place, _, _), state in zip(self.cluster_plugins, prepared, strict=True):
            if state is None:
                continue
            rows = np.flatnonzero(feasible)
            answers = state.filter(rows)
            refused = answers != 0
            if refused.any():
                if not copied:
                    verdict, copied = verdict.copy(), True
                lost = rows[refused]
                verdict[lost] = encode(place, answers[refused])
                feasible[lost] = False
        reasons: dict[int, Reason] = {}
        if self.cluster.held_on:
            verdict, reasons = self._with_holds(asked, prepared, verdict, feasible)
        if narrowed is not None:
            rows_named = [row for row in map(self.cluster.nodes.row_of.get, narrowed) if row is not None]
            left_out = np.ones(len(verdict), dtype=bool)
            left_out[rows_named] = False
            verdict = np.where(left_out, np.int16(NARROWED), verdict)
            feasible &= ~left_out
        return Filtered(verdict, prepared, feasible, reasons)

    def judge(self, asked: Asked, prepared: Iterable[Prepared | None], rows: Rows) -> Verdicts:
        """Ask every filter about some rows as they are now, without what is kept from before."""
        window = Window(self.cluster, rows)
        verdict = np.full(len(rows), PASS, dtype=np.int16)
        for place, enabled in enumerate(self.profile.plugins):
            if enabled.filters and isinstance(enabled.plugin, RowPlugin):
                answers = enabled.plugin.filter(window, asked.spec)
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
        verdict = np.full(self.cluster.nodes.size, NARROWED, dtype=np.int16)
        verdict[row] = PASS
        return Filtered(verdict, prepared, verdict == PASS, alone=True)

    def _with_holds(
        self, asked: Asked, prepared: list[Prepared | None], verdict: Verdicts, feasible: Bools
    ) -> tuple[Verdicts, dict[int, Reason]]:
        """Judge the nodes on which room is held again, with those pods there."""
        cluster = self.cluster
        reasons: dict[int, Reason] = {}
        for name in list(cluster.held_on):
            row = cluster.nodes.row_of.get(name)
            if row is None or not cluster.nodes.on[row]:
                continue
            with_them, reason = self._judge_with_promised(asked, prepared, row)
            if reason is not None:
                if not reasons:
                    verdict = verdict.copy()
                verdict[row], feasible[row], reasons[row] = with_them, False, reason
        return verdict, reasons

    def judge_with_holds(self, asked: Asked, prepared: list[Prepared | None], row: int) -> int:
        """Judge one row with the pods for which room is held there and, if it passes, without them."""
        with_them, _ = self._judge_with_promised(asked, prepared, row)
        if with_them != PASS:
            return with_them
        return int(self.judge(asked, prepared, np.array([row], dtype=np.int32))[0])

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
            verdict = int(self.judge(asked, forked, np.array([row], dtype=np.int32))[0])
            return verdict, None if verdict == PASS else self.reason(asked, row, verdict)
        finally:
            cluster.rollback(mark)

    # Scores -----------------------------------------------------------------------------------------------------------

    def _best(self, asked: Asked, filtered: Filtered) -> tuple[int, int | None]:
        """Give the row with the highest score (the first by name among equals) and the score; -1 when there is none."""
        rows = np.flatnonzero(filtered.feasible).astype(np.int32)
        if not len(rows):
            return -1, None
        if len(rows) == 1:
            return int(rows[0]), None
        totals = self.totals(asked, filtered, rows)
        ranked = (totals << 42) - self.cluster.nodes.rank[rows]
        best = int(ranked.argmax())
        return int(rows[best]), int(totals[best])

    def totals(self, asked: Asked, filtered: Filtered, rows: Rows) -> Ints:
        """Give the total scores of the feasible rows."""
        cache = self.row_cache(asked)
        total = cache.score[rows] + cache.constant
        for plugin, weight in self.rules.scaled_scores:
            raw = cache.raw.get(plugin)
            if raw is not None:
                total += weight * normalise(raw[rows], plugin.normalised)
        for (_, enabled, plugin), state in zip(self.cluster_plugins, filtered.prepared, strict=True):
            if enabled.weight:
                scored = plugin.score(asked, state, rows)
                if scored is not None:
                    total += enabled.weight * scored
        return total

    def plugin_scores(self, asked: Asked, filtered: Filtered, rows: Rows) -> dict[str, Ints]:
        """Give the weighted score of every plugin that scores the pod, for the feasible rows."""
        scores: dict[str, Ints] = {}
        window = Window(self.cluster, rows)
        states = {place: state for (place, _, _), state in zip(self.cluster_plugins, filtered.prepared, strict=True)}
        for place, (plugin, weight, _) in enumerate(self.profile.plugins):
            scored: Ints | None = None
            if not weight:
                continue
            if isinstance(plugin, RowPlugin):
                scored = plugin.score(window, asked.spec)
                if scored is not None and plugin.normalised:
                    scored = normalise(scored, plugin.normalised)
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

    def resolvable(self, verdict: int) -> bool:
        """Say whether evicting pods could help where this was the verdict."""
        if verdict in (NARROWED, PASS):
            return False
        place, variant = decode(verdict)
        return self.profile.plugins[place].plugin.resolvable(variant)

    def tally(self, asked: Asked, filtered: Filtered) -> dict[str, int]:
        """Count the messages over all nodes that take part."""
        on, verdict = self.cluster.nodes.on, filtered.verdict
        asked_again = on.copy()
        counts: dict[str, int] = {}
        for row, reason in filtered.reasons.items():
            asked_again[row] = False
            _add(counts, dict.fromkeys(reason.messages, 1))
        for value in np.unique(verdict[asked_again]).tolist():
            rows = np.flatnonzero(asked_again & (verdict == value)).astype(np.int32)
            if value == NARROWED:
                _add(counts, {f"node(s) didn't satisfy plugin(s) [{NodeAffinity.name}]": len(rows)})
            elif value != PASS:
                place, variant = decode(value)
                _add(counts, self.profile.plugins[place].plugin.tally(asked, rows, variant))
        return counts


def _add(counts: dict[str, int], more: dict[str, int]) -> None:
    for message, number in more.items():
        counts[message] = counts.get(message, 0) + number
