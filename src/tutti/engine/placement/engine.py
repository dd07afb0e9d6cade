"""The engine: where pods go.

Contract: an engine belongs to one cluster and one profile. `decide` changes nothing; `place` decides and binds, pod by
pod in the given order, and gives the same answers as one decision at a time. Ties go to the first node name.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
import numpy as np

from tutti.cluster.cluster import Cluster
from tutti.cluster.columns import Ints
from tutti.cluster.edits import Bind, Edit
from tutti.cluster.node_table import RANK_BITS
from tutti.engine.placement.batch import pick
from tutti.engine.placement.evaluator import Evaluator
from tutti.engine.placement.node_plugin_cache import NEVER
from tutti.engine.placement.profile import Profile
from tutti.engine.plugins.base import Area, IncomingPod, controller
from tutti.engine.plugins.verdict import PASS, AttemptError, Reason
from tutti.engine.plugins.volume_binding import reserve

_WORTH_WHILE, _LONGEST = 8, 20_000
"""How many like pods in a row are placed as a batch: at least, and at once at most."""


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
    plugins: frozenset[str] = frozenset()
    """Who refused nodes, when all were refused."""
    volumes: tuple[Edit, ...] = ()
    """How the pod takes its volumes."""


class Engine:
    """See the module's contract."""

    def __init__(self, cluster: Cluster, profile: Profile | None = None) -> None:
        self.cluster = cluster
        self.profile = profile or Profile.default()
        self.evaluator = Evaluator(cluster, self.profile)
        self.caches: dict[Any, Any] = {}
        """The values of attached caches (`attached_cache`)."""

    def decide(self, pod: str, within: Area | None = None) -> Decision:
        """Say where a pending pod goes, if need be within an area only."""
        return self._decide(self.evaluator.incoming_pod(self.cluster.pod_row(pod), within))

    def place(
        self,
        pods: Sequence[str],
        within: Area | None = None,
        *,
        start: int | None = None,
        take_volumes: bool = True,
        give_up: bool = False,
    ) -> list[Decision]:
        """Decide and bind one pod after the other; with `take_volumes` they take the volumes found for them.

        With `give_up` it ends with the first pod that fits nowhere, and does not find out why.
        """
        cluster = self.cluster
        decisions: list[Decision] = []
        while len(decisions) < len(pods):
            done = len(decisions)
            incoming = self.evaluator.incoming_pod(cluster.pod_row(pods[done]), within)
            if done < len(pods) - _WORTH_WHILE and self._could_batch(incoming, pods, done):
                decisions += self._place_run(incoming, pods[done : done + _LONGEST], start)
                if len(decisions) > done:
                    continue
            decision = self._decide(incoming, why=not give_up)
            if decision.node is None and give_up:
                return [*decisions, decision]
            if decision.node is not None:
                cluster.apply(Bind(decision.pod, decision.node, start))
                if len(pods) - done > 1 and self._is_simple(incoming):
                    decisions.append(decision)
                    decisions += self._place_few(incoming, pods[done + 1 : done + _WORTH_WHILE], start)
                    continue
                if take_volumes:
                    for edit in decision.volumes:
                        cluster.apply(edit)
            decisions.append(decision)
        return decisions

    def stopped(self, incoming: IncomingPod) -> Decision | None:
        """Say why a pod may not be tried, or that there is nothing to try."""
        spec, nodes, pod = incoming.pod.spec, self.cluster.nodes, incoming.pod.key
        if spec.scheduling_gates and self.profile.gates:
            gates = " ".join(gate.name for gate in spec.scheduling_gates)
            held = Reason("SchedulingGates", (f"waiting for scheduling gates: [{gates}]",), resolvable=False)
            return Decision(pod, held=held, nodes=nodes.count)
        if not nodes.count:
            return Decision(pod, error="no nodes available to schedule pods")
        if spec.resource_claims and self.profile.devices:
            claims = ((c.resource_claim_name or c.resource_claim_template_name or c.name) for c in spec.resource_claims)
            message = f"resource claim(s) {', '.join(claims)}: Tutti does not allocate devices yet"
            refused = Reason("DynamicResources", (message,), resolvable=False)
            return Decision(pod, refused=refused, nodes=nodes.count)
        return None

    def _decide(self, incoming: IncomingPod, *, why: bool = True) -> Decision:
        stopped = self.stopped(incoming)
        if stopped is not None:
            return stopped
        pod, nodes, evaluator = incoming.pod.key, self.cluster.nodes, self.evaluator
        if self._looks_at_rows(incoming) and pod not in self.cluster.holds:
            row, key = self._best_row(incoming)
            if key >= 0:
                score = (key >> RANK_BITS) + evaluator.row_table(incoming).tier.constant
                return Decision(pod, nodes.names[row], score, nodes=nodes.count)
            if not why:
                return Decision(pod, nodes=nodes.count)
        try:
            filtered = evaluator.filter(incoming)
            if isinstance(filtered, Reason):
                return Decision(pod, refused=filtered, nodes=nodes.count)
            row, score = evaluator.best(incoming, filtered)
            if row < 0 and not why:
                return Decision(pod, nodes=nodes.count)
            if row < 0:
                reasons, plugins = evaluator.tally(incoming, filtered)
                return Decision(pod, nodes=nodes.count, reasons=reasons, plugins=plugins)
            volumes = tuple(reserve(incoming, filtered.states, row)) if incoming.spec.volumes else ()
        except AttemptError as error:
            return Decision(pod, error=str(error), nodes=nodes.count)
        return Decision(pod, nodes.names[row], score, nodes=nodes.count, volumes=volumes)

    def _best_row(self, incoming: IncomingPod) -> tuple[int, int]:
        """Give the row with the largest key, of those where promised pods leave room; the key says no if none does."""
        keys, area = self.evaluator.row_table(incoming).keys(incoming.spec), incoming.area
        held = {self.cluster.nodes.row_of.get(name) for name in self.cluster.held_on} if self.cluster.held_on else ()
        while True:
            row = int(keys.argmax()) if area is None else best_within(keys, area)
            key = int(keys[row]) if row >= 0 else NEVER
            if key < 0 or row not in held:
                return row, key
            # Only nodes whose turn comes are judged with the promised pods: to judge all would take far longer.
            if self.evaluator.filter_row_with_holds(incoming, [None] * len(incoming.applicable_plugins), row) == PASS:
                return row, key
            keys = keys.copy()
            keys[row] = NEVER

    def is_plain(self, incoming: IncomingPod) -> bool:
        """Say whether no other pod and no other node matters to how a node is judged."""
        return not self.cluster.held_on and self._looks_at_rows(incoming)

    def _looks_at_rows(self, incoming: IncomingPod) -> bool:
        """Say whether nodes are judged by what is on them alone."""
        if any(incoming.applicable_plugins):
            return False
        tier = self.evaluator.row_table(incoming).tier
        tier.sync()
        return not tier.raw and tier.narrowed is None

    # Batches ----------------------------------------------------------------------------------------------------------

    def _could_batch(self, incoming: IncomingPod, pods: Sequence[str], first: int) -> bool:
        """Say whether enough pods like the first follow it, which look at no other pods or nodes."""
        table, number = self.cluster.pods, incoming.spec.number
        for pod in (pods[first + 1], pods[first + _WORTH_WHILE - 1]):
            row = table.row_of.get(pod)
            if row is None or table.spec[row] != number:
                return False
        return self._is_simple(incoming) and self.stopped(incoming) is None

    def _is_simple(self, incoming: IncomingPod) -> bool:
        """Say whether pods like the asked one only ever look at room."""
        return not any(incoming.applicable_plugins) and not incoming.spec.ports and self.is_plain(incoming)

    def _place_few(self, incoming: IncomingPod, pods: Sequence[str], start: int | None) -> list[Decision]:
        """Place those of some pods that are like the asked one, one by one, until one does not fit."""
        cluster, nodes, table, area = (
            self.cluster,
            self.cluster.nodes,
            self.evaluator.row_table(incoming),
            incoming.area,
        )
        decisions = []
        for pod in self._alike(incoming, pods):
            keys = table.keys(incoming.spec)
            row = int(keys.argmax()) if area is None else best_within(keys, area)
            key = int(keys[row])
            if key < 0:
                break
            name = nodes.names[row]
            cluster.apply(Bind(pod, name, start))
            decisions.append(Decision(pod, name, (key >> RANK_BITS) + table.tier.constant, nodes=nodes.count))
        return decisions

    def _place_run(self, incoming: IncomingPod, pods: Sequence[str], start: int | None) -> list[Decision]:
        """Place as many of the pods that are like the first as can be placed at once."""
        cluster, nodes = self.cluster, self.cluster.nodes
        table = self.evaluator.row_table(incoming)
        usage = cluster.usages.matrix[cluster.pods.usage[incoming.row]]
        keys = table.keys(incoming.spec)
        if incoming.area is not None:
            keys = np.where(incoming.area.mask[: len(keys)], keys, NEVER)
        decisions = []
        alike = self._alike(incoming, pods)
        for pod, (row, score) in zip(alike, pick(cluster, table, incoming.spec, keys, usage, len(alike)), strict=False):
            name = nodes.names[row]
            cluster.apply(Bind(pod, name, start))
            decisions.append(Decision(pod, name, score + table.tier.constant, nodes=nodes.count))
        return decisions

    def _alike(self, incoming: IncomingPod, pods: Sequence[str]) -> list[str]:
        """Give the pods, up to the first other one, that the engine cannot tell from the asked one."""
        table = self.cluster.pods
        rows = [table.row_of.get(pod, -1) for pod in pods]
        looks = zip(table.spec[rows].tolist(), table.labels[rows].tolist(), strict=True)
        mine, owner = (incoming.spec.number, incoming.labels.number), controller(incoming.pod)
        objects, names = table.objects, table.node_names
        alike = []
        for pod, row, its in zip(pods, rows, looks, strict=True):
            obj = objects[row] if row >= 0 and its == mine else None
            if obj is None or obj.spec.scheduling_gates or names[row] is not None or controller(obj) != owner:
                break
            alike.append(pod)
        return alike


def best_within(keys: Ints, area: Area) -> int:
    """Give the row of an area with the largest key, -1 when the area is empty."""
    return int(area.rows[keys[area.rows].argmax()]) if len(area.rows) else -1
