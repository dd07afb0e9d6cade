"""The explanation of one pod: what every node answers, where the pod would go, and which pods it would evict.

Contract: `explain_pod` asks the engine and leaves the cluster as it was. A pod that has a node is judged as if it were
pending again, on the cluster without it. A pending pod is judged on the cluster as it is, before any other pending pod
has been placed.
"""

from __future__ import annotations

import msgspec

from tutti.cluster.edits import Unbind
from tutti.engine.explain.gang_explanation import GangOutcome, gang_outcome
from tutti.engine.explain.node_verdicts import NodeVerdicts, node_verdicts
from tutti.engine.gangs.gang_state import Gangs
from tutti.engine.placement.engine import Engine
from tutti.engine.reasons.pod_failure import PodFailure, pod_failure
from tutti.engine.session.queue_order import not_considered

_LEFT_OUT = "node(s) didn't satisfy plugin(s) [NodeAffinity]"
"""kube-scheduler's message for nodes that the pod's affinity does not name; no plugin looks at them."""


class NodeExplanation(msgspec.Struct, frozen=True, rename="camel"):
    """What one node answers."""

    name: str
    feasible: bool
    plugin: str | None = None
    """The first plugin that refused the node."""
    reasons: tuple[str, ...] = ()
    eviction_could_help: bool | None = None
    victims: tuple[str, ...] | None = None
    """The pods to evict so that the pod fits; None when that was not asked or is not possible."""
    total: int | None = None
    scores: dict[str, int] = {}


class PodExplanation(msgspec.Struct, frozen=True, rename="camel"):
    """What all nodes answer, where the pod would go, and which pods it would evict."""

    pod: str
    node: str | None
    """Where the pod is."""
    goes_to: str | None
    """Where it would go today."""
    message: str | None
    """Why no node takes it, in kube-scheduler's words."""
    remark: str | None = None
    """Why the scheduler does not try the pod at all."""
    evicts: tuple[str, ...] = ()
    """The pods that it would evict from the node `nominated`."""
    nominated: str | None = None
    gang: str | None = None
    """The gang of the pod; the other fields treat the pod as if it had none."""
    gang_outcome: GangOutcome | None = None
    """What would become of that gang now."""
    nodes: tuple[NodeExplanation, ...] = ()


def explain_pod(engine: Engine, key: str) -> PodExplanation:
    """What all nodes answer to one pod."""
    cluster = engine.cluster
    node = cluster.pods.node_names[cluster.pod_row(key)]
    skipped = not_considered(cluster.pod(key), engine.profile) if node is None else None
    mark = cluster.mark()
    try:
        if node is not None:
            cluster.apply(Unbind(key))
        verdicts, decision = node_verdicts(engine, key), engine.decide(key)
        found = None if decision.node is not None else pod_failure(engine, decision)
    finally:
        cluster.rollback(mark)
    gang = Gangs(cluster).key_of(cluster.pod_row(key))
    candidate = found.candidate if found is not None else None
    return PodExplanation(
        pod=key,
        node=node,
        goes_to=decision.node,
        message=None if found is None else found.message,
        remark=None if skipped is None else skipped.message,
        evicts=() if candidate is None else candidate.victims,
        nominated=None if candidate is None else candidate.node,
        gang=gang,
        gang_outcome=None if gang is None else gang_outcome(engine, gang),
        nodes=tuple(_nodes(verdicts, found)),
    )


def _nodes(verdicts: NodeVerdicts, found: PodFailure | None) -> list[NodeExplanation]:
    """The best first, then by name; refused ones after them."""
    candidates = {c.node: c.victims for c in found.candidates} if found is not None else {}
    feasible = [
        NodeExplanation(
            name,
            True,
            total=verdicts.scores.get(name),
            scores={plugin: scores[name] for plugin, scores in verdicts.plugin_scores.items()},
        )
        for name in verdicts.feasible
    ]
    feasible.sort(key=lambda each: (-(each.total or 0), each.name))
    refused = [
        NodeExplanation(
            name,
            False,
            plugin=reason.plugin,
            reasons=tuple(sorted(reason.messages)) or (_LEFT_OUT,),
            eviction_could_help=reason.resolvable,
            victims=candidates.get(name),
        )
        for name, reason in sorted(verdicts.rejected.items())
    ]
    return feasible + refused
