"""Decide on which node each pod goes, and bind it.

Contract: an engine belongs to one cluster and one profile. `decide` changes nothing. `place` decides and binds pod by
pod in the given order; its results equal those of one decision at a time. Of nodes with equal scores, the first by name
wins.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec
import numpy as np

from tutti.cluster.cluster import Cluster
from tutti.cluster.columns import Ints
from tutti.cluster.edits import Bind, Edit
from tutti.cluster.node_table import RANK_BITS
from tutti.engine.placement.batch import pick_rows
from tutti.engine.placement.evaluator import Evaluator, FilterResult, Refusals, States
from tutti.engine.placement.node_plugin_cache import INFEASIBLE
from tutti.engine.placement.profile import Profile
from tutti.engine.plugins.base import Area, IncomingPod, controller
from tutti.engine.plugins.verdict import PASS, AttemptError, Reason
from tutti.engine.plugins.volume_binding import reserve

_MIN_BATCH, _MAX_BATCH = 8, 20_000
"""The shortest and the longest run of identical pods that `place` binds as one batch."""


class Decision(msgspec.Struct, frozen=True, gc=False):
    """The result for one pod: a node, or the reason why there is none."""

    pod: str
    node: str | None = None
    score: int | None = None
    """Total weighted score of the node."""
    held: Reason | None = None
    """Why no attempt is made: scheduling gates."""
    refused: Reason | None = None
    """Why a pre-filter refused the pod before any node was filtered."""
    error: str | None = None
    """Why the attempt was aborted."""
    nodes: int = 0
    """Number of nodes in the cluster."""
    reasons: dict[str, int] = {}
    """Number of nodes refused with each message; empty unless all nodes were refused."""
    plugins: frozenset[str] = frozenset()
    """Plugins that refused nodes; empty unless all nodes were refused."""
    volumes: tuple[Edit, ...] = ()
    """Edits that bind or provision the pod's volumes."""


class Attempt(NamedTuple):
    """A decision, with what the filters found; None where no node was filtered."""

    decision: Decision
    incoming: IncomingPod
    filtered: FilterResult | None = None
    refusals: Refusals | None = None
    """The refused rows by verdict, if all nodes were refused."""


class Engine:
    """Places pods of one cluster by one profile (see the module's contract)."""

    def __init__(self, cluster: Cluster, profile: Profile | None = None) -> None:
        self.cluster = cluster
        self.profile = profile or Profile.default()
        self.evaluator = Evaluator(cluster, self.profile)
        self.caches: dict[Any, Any] = {}
        """Values of attached caches (`attached_cache`)."""

    def decide(self, pod: str, area: Area | None = None) -> Decision:
        """Return the decision for a pending pod, considering only the nodes of `area` if given."""
        return self._decide(self.evaluator.incoming_pod(self.cluster.pod_row(pod), area))

    def place(
        self,
        pods: Sequence[str],
        area: Area | None = None,
        *,
        start: int | None = None,
        take_volumes: bool = True,
        give_up: bool = False,
    ) -> list[Decision]:
        """Decide and bind one pod after the other; with `take_volumes`, also apply the volume edits of each decision.

        With `give_up`, stop after the first pod that fits nowhere and do not collect its reasons.
        """
        cluster = self.cluster
        decisions: list[Decision] = []
        while len(decisions) < len(pods):
            position = len(decisions)
            incoming = self.evaluator.incoming_pod(cluster.pod_row(pods[position]), area)
            if position < len(pods) - _MIN_BATCH and self._can_batch(incoming, pods, position):
                decisions += self._place_batch(incoming, pods[position : position + _MAX_BATCH], start)
                if len(decisions) > position:
                    continue
            decision = self._decide(incoming, explain=not give_up)
            if decision.node is None and give_up:
                return [*decisions, decision]
            if decision.node is not None:
                cluster.apply(Bind(decision.pod, decision.node, start))
                if len(pods) - position > 1 and self._needs_only_resources(incoming):
                    decisions.append(decision)
                    decisions += self._place_few(incoming, pods[position + 1 : position + _MIN_BATCH], start)
                    continue
                if take_volumes:
                    for edit in decision.volumes:
                        cluster.apply(edit)
            decisions.append(decision)
        return decisions

    def early_decision(self, incoming: IncomingPod) -> Decision | None:
        """Return the decision for a pod that is not filtered: gated, no nodes, or resource claims; else None."""
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

    def _decide(self, incoming: IncomingPod, *, explain: bool = True) -> Decision:
        """Return the decision for one pod; without `explain`, leave the reasons of a failure empty."""
        early = self.early_decision(incoming)
        if early is not None:
            return early
        pod, nodes, evaluator = incoming.pod.key, self.cluster.nodes, self.evaluator
        if self._uses_row_plugins_only(incoming) and pod not in self.cluster.holds:
            row, key = self._best_row(incoming)
            if key >= 0:
                score = (key >> RANK_BITS) + evaluator.row_cache(incoming).node_cache.constant_score
                return Decision(pod, nodes.names[row], score, nodes=nodes.count)
            if not explain:
                return Decision(pod, nodes=nodes.count)
        return self._filter_and_score(incoming, explain=explain).decision

    def attempt(self, pod: str, area: Area | None = None) -> Attempt:
        """Return the decision for a pending pod as `decide` does, with what the filters found."""
        incoming = self.evaluator.incoming_pod(self.cluster.pod_row(pod), area)
        early = self.early_decision(incoming)
        return Attempt(early, incoming) if early is not None else self._filter_and_score(incoming, explain=True)

    def _filter_and_score(self, incoming: IncomingPod, *, explain: bool) -> Attempt:
        pod, nodes, evaluator = incoming.pod.key, self.cluster.nodes, self.evaluator
        try:
            filtered = evaluator.filter(incoming)
            if isinstance(filtered, Reason):
                return Attempt(Decision(pod, refused=filtered, nodes=nodes.count), incoming)
            row, score = evaluator.best_row(incoming, filtered)
            if row < 0 and not explain:
                return Attempt(Decision(pod, nodes=nodes.count), incoming, filtered)
            if row < 0:
                refusals = evaluator.refusals(incoming, filtered)
                reasons, plugins = evaluator.tally(incoming, filtered, refusals)
                decision = Decision(pod, nodes=nodes.count, reasons=reasons, plugins=plugins)
                return Attempt(decision, incoming, filtered, refusals)
            volumes = tuple(reserve(incoming, filtered.states, row)) if incoming.spec.volumes else ()
        except AttemptError as error:
            return Attempt(Decision(pod, error=str(error), nodes=nodes.count), incoming)
        decision = Decision(pod, nodes.names[row], score, nodes=nodes.count, volumes=volumes)
        return Attempt(decision, incoming, filtered)

    def _best_row(self, incoming: IncomingPod) -> tuple[int, int]:
        """Return the feasible row with the largest key, and the key; the key is negative if no row is feasible.

        A row with holds is feasible only if the pod also fits beside the held pods.
        """
        evaluator, area = self.evaluator, incoming.area
        keys = evaluator.row_cache(incoming).keys(incoming.spec)
        rows_with_rules: set[int] = set()
        states: States = [None] * len(incoming.applicable_plugins)
        if self.cluster.holds:
            without_room = evaluator.rows_without_held_room(incoming)
            if len(without_room):
                keys = keys.copy()
                keys[without_room] = INFEASIBLE
            rows_with_rules = evaluator.rows_with_pod_rules(incoming, states)
        while True:
            row = int(keys.argmax()) if area is None else best_row_in_area(keys, area)
            key = int(keys[row]) if row >= 0 else INFEASIBLE
            if key < 0 or row not in rows_with_rules:
                return row, key
            # Only the current best row is filtered with held pods bound: filtering all such rows is far slower.
            if evaluator.filter_row_with_holds(incoming, states, row) == PASS:
                return row, key
            keys = keys.copy()
            keys[row] = INFEASIBLE

    def is_plain(self, incoming: IncomingPod) -> bool:
        """Return whether each node's filters and scores depend only on that node and its pods, and no room is held."""
        return not self.cluster.holds and self._uses_row_plugins_only(incoming)

    def _uses_row_plugins_only(self, incoming: IncomingPod) -> bool:
        """Return whether filters and scores of each node depend only on that node and the pods on it."""
        if any(incoming.applicable_plugins):
            return False
        node_cache = self.evaluator.row_cache(incoming).node_cache
        node_cache.sync()
        return not node_cache.raw_scores and node_cache.only_nodes is None

    # Batches ----------------------------------------------------------------------------------------------------------

    def _can_batch(self, incoming: IncomingPod, pods: Sequence[str], first: int) -> bool:
        """Return whether a batch can start here: enough pods of the same spec follow, and only free resources decide.

        Checks the spec of two of the following pods only; `_leading_identical_pods` checks each pod.
        """
        table, number = self.cluster.pods, incoming.spec.number
        for pod in (pods[first + 1], pods[first + _MIN_BATCH - 1]):
            row = table.row_of.get(pod)
            if row is None or table.spec[row] != number:
                return False
        return self._needs_only_resources(incoming) and self.early_decision(incoming) is None

    def _needs_only_resources(self, incoming: IncomingPod) -> bool:
        """Return whether only free resources decide where such pods go."""
        return not any(incoming.applicable_plugins) and not incoming.spec.ports and self.is_plain(incoming)

    def _place_few(self, incoming: IncomingPod, pods: Sequence[str], start: int | None) -> list[Decision]:
        """Bind the leading pods that are identical to the incoming pod, one by one, until a pod does not fit."""
        cluster, nodes, area = self.cluster, self.cluster.nodes, incoming.area
        row_cache = self.evaluator.row_cache(incoming)
        decisions = []
        for pod in self._leading_identical_pods(incoming, pods):
            keys = row_cache.keys(incoming.spec)
            row = int(keys.argmax()) if area is None else best_row_in_area(keys, area)
            key = int(keys[row])
            if key < 0:
                break
            name = nodes.names[row]
            cluster.apply(Bind(pod, name, start))
            score = (key >> RANK_BITS) + row_cache.node_cache.constant_score
            decisions.append(Decision(pod, name, score, nodes=nodes.count))
        return decisions

    def _place_batch(self, incoming: IncomingPod, pods: Sequence[str], start: int | None) -> list[Decision]:
        """Bind as many of the leading identical pods as one batch can place."""
        cluster, nodes = self.cluster, self.cluster.nodes
        row_cache = self.evaluator.row_cache(incoming)
        usage = cluster.usages.matrix[cluster.pods.usage[incoming.row]]
        keys = row_cache.keys(incoming.spec)
        if incoming.area is not None:
            keys = np.where(incoming.area.mask[: len(keys)], keys, INFEASIBLE)
        decisions = []
        identical = self._leading_identical_pods(incoming, pods)
        picked = pick_rows(cluster, row_cache, incoming.spec, keys, usage, len(identical))
        for pod, (row, score) in zip(identical, picked, strict=False):
            name = nodes.names[row]
            cluster.apply(Bind(pod, name, start))
            decisions.append(Decision(pod, name, score + row_cache.node_cache.constant_score, nodes=nodes.count))
        return decisions

    def _leading_identical_pods(self, incoming: IncomingPod, pods: Sequence[str]) -> list[str]:
        """Return the leading pods that are indistinguishable from the incoming pod for the engine."""
        table = self.cluster.pods
        rows = [table.row_of.get(pod, -1) for pod in pods]
        identities = zip(table.spec[rows].tolist(), table.labels[rows].tolist(), strict=True)
        identity, owner = (incoming.spec.number, incoming.labels.number), controller(incoming.pod)
        objects, node_names = table.objects, table.node_names
        identical = []
        for pod, row, pod_identity in zip(pods, rows, identities, strict=True):
            obj = objects[row] if row >= 0 and pod_identity == identity else None
            if obj is None or obj.spec.scheduling_gates or node_names[row] is not None or controller(obj) != owner:
                break
            identical.append(pod)
        return identical


def best_row_in_area(keys: Ints, area: Area) -> int:
    """Return the row of an area with the largest key; -1 if the area is empty."""
    return int(area.rows[keys[area.rows].argmax()]) if len(area.rows) else -1
