"""The verdict of every node on one pod: which plugin refuses the node and why, or the node's scores by plugin.

Contract: the verdicts come from the same filters and scores that place pods; the cluster stays unchanged.
"""

from __future__ import annotations

import msgspec
import numpy as np

from tutti.engine.placement.engine import Engine
from tutti.engine.placement.evaluator import FilterResult
from tutti.engine.plugins.base import IncomingPod
from tutti.engine.plugins.verdict import AttemptError, Reason


class NodeVerdicts(msgspec.Struct, frozen=True):
    """The verdicts of all nodes on one pod."""

    pod: str
    held: Reason | None = None
    """Why the scheduler does not try the pod."""
    refused: Reason | None = None
    """Why the pod is refused before any node is filtered."""
    error: str | None = None
    """The error that ended the attempt."""
    feasible: tuple[str, ...] = ()
    rejected: dict[str, Reason] = {}
    alone: bool = False
    """Whether only the pod's nominated node was filtered."""
    scores: dict[str, int] = {}
    """The total score of each feasible node; empty if fewer than two are feasible."""
    plugin_scores: dict[str, dict[str, int]] = {}
    """The part of each plugin in the totals: plugin -> node -> weighted score."""
    best: tuple[str, ...] = ()
    """The nodes that share the highest total."""


def node_verdicts(engine: Engine, pod: str) -> NodeVerdicts:
    """Return the verdicts of all nodes on the pod with a key."""
    incoming = engine.evaluator.incoming_pod(engine.cluster.pod_row(pod))
    stopped = engine.early_decision(incoming)
    if stopped is not None:
        return NodeVerdicts(pod, held=stopped.held, refused=stopped.refused, error=stopped.error)
    try:
        filtered = engine.evaluator.filter(incoming)
        if isinstance(filtered, Reason):
            return NodeVerdicts(pod, refused=filtered)
        return _verdicts(engine, incoming, filtered)
    except AttemptError as error:
        return NodeVerdicts(pod, error=str(error))


def _verdicts(engine: Engine, incoming: IncomingPod, filtered: FilterResult) -> NodeVerdicts:
    nodes = engine.cluster.nodes
    rows = np.flatnonzero(filtered.feasible)
    names = [nodes.names[row] for row in rows.tolist()]
    rejected = {}
    if not filtered.nominated_only:
        verdicts = engine.evaluator.verdicts(incoming, filtered).tolist()
        for row in np.flatnonzero(nodes.on[: nodes.length] & ~filtered.feasible).tolist():
            reason = filtered.reasons.get(row) or engine.evaluator.reason(incoming, row, verdicts[row])
            rejected[nodes.names[row]] = reason
    scores: dict[str, int] = {}
    plugin_scores: dict[str, dict[str, int]] = {}
    best: tuple[str, ...] = tuple(names)
    if len(names) > 1:
        parts = engine.evaluator.plugin_scores(incoming, filtered, rows)
        plugin_scores = {name: dict(zip(names, part.tolist(), strict=True)) for name, part in parts.items()}
        total = sum(parts.values(), start=np.zeros(len(rows), dtype=np.int64))
        scores = dict(zip(names, total.tolist(), strict=True))
        best = tuple(sorted(name for name, score in scores.items() if score == total.max()))
    return NodeVerdicts(
        pod=incoming.pod.key, feasible=tuple(sorted(names)), rejected=rejected, alone=filtered.nominated_only,
        scores=scores, plugin_scores=plugin_scores, best=best,
    )  # fmt: skip
