"""The account of one pod: what every node says to it, where it would go, and whom it would push away.

Contract: `account_of` asks the engine and leaves the cluster as it was. A pod that has a node is judged as if it were
pending again, on the cluster without it. A pending pod is judged on the cluster as it is, before any other pending pod
has been placed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from tutti.cluster.edits import Unbind
from tutti.engine.explain.gang_explanation import gang_outcome
from tutti.engine.explain.pod_explanation import Explanation, explain
from tutti.engine.gangs.gang_state import Gangs
from tutti.engine.placement.engine import Engine
from tutti.engine.reasons.pod_failure import Failure, failure
from tutti.engine.session.queue_order import not_considered
from tutti.exceptions import InputError, NotFoundError
from tutti.present.gang_explanation_text import outcome_text

if TYPE_CHECKING:
    from tutti.cluster.cluster import Cluster
    from tutti.kube.reading.snapshot import Snapshot

_LEFT_OUT = "node(s) didn't satisfy plugin(s) [NodeAffinity]"
"""What kube-scheduler says of nodes that the pod's affinity does not name; no plugin has looked at them."""


class NodeAccount(msgspec.Struct, frozen=True, rename="camel"):
    """What one node says."""

    name: str
    feasible: bool
    plugin: str | None = None
    """The first plugin that refused the node."""
    reasons: tuple[str, ...] = ()
    eviction_could_help: bool | None = None
    victims: tuple[str, ...] | None = None
    """Who would have to go for the pod to fit; None when that was not asked or is not possible."""
    total: int | None = None
    scores: dict[str, int] = {}


class PodAccount(msgspec.Struct, frozen=True, rename="camel"):
    """What all nodes say."""

    pod: str
    node: str | None
    """Where the pod is."""
    goes_to: str | None
    """Where it would go today."""
    message: str | None
    """Why it would go nowhere, as kube-scheduler words it."""
    remark: str | None = None
    """Why the scheduler would not even look at it."""
    evicts: tuple[str, ...] = ()
    """Whom it would push away from the node `nominated`."""
    nominated: str | None = None
    gang: str | None = None
    """The gang that it is part of; all else is said as if it were on its own."""
    gang_outcome: str | None = None
    """What would become of that gang now."""
    nodes: tuple[NodeAccount, ...] = ()


def account_of(engine: Engine, key: str) -> PodAccount:
    """Ask about one pod."""
    cluster = engine.cluster
    node = cluster.pods.node_names[cluster.pod_row(key)]
    skipped = not_considered(cluster.pod(key), engine.profile) if node is None else None
    mark = cluster.mark()
    try:
        if node is not None:
            cluster.apply(Unbind(key))
        told, decision = explain(engine, key), engine.decide(key)
        found = None if decision.node is not None else failure(engine, decision)
    finally:
        cluster.rollback(mark)
    gang = Gangs(cluster).key_of(cluster.pod_row(key))
    candidate = found.candidate if found is not None else None
    return PodAccount(
        pod=key,
        node=node,
        goes_to=decision.node,
        message=None if found is None else found.message,
        remark=None if skipped is None else skipped.message,
        evicts=() if candidate is None else candidate.victims,
        nominated=None if candidate is None else candidate.node,
        gang=gang,
        gang_outcome=None if gang is None else outcome_text(gang_outcome(engine, gang), gang.partition("/")[0]),
        nodes=tuple(_nodes(told, found)),
    )


def _nodes(told: Explanation, found: Failure | None) -> list[NodeAccount]:
    """The best first, then by name; refused ones after them."""
    candidates = {c.node: c.victims for c in found.candidates} if found is not None else {}
    feasible = [
        NodeAccount(
            name,
            True,
            total=told.scores.get(name),
            scores={plugin: scores[name] for plugin, scores in told.plugin_scores.items()},
        )
        for name in told.feasible
    ]
    feasible.sort(key=lambda each: (-(each.total or 0), each.name))
    refused = [
        NodeAccount(
            name,
            False,
            plugin=reason.plugin,
            reasons=tuple(sorted(reason.messages)) or (_LEFT_OUT,),
            eviction_could_help=reason.resolvable,
            victims=candidates.get(name),
        )
        for name, reason in sorted(told.rejected.items())
    ]
    return feasible + refused


def find_pod(snapshot: Snapshot, cluster: Cluster, text: str, namespace: str | None) -> str:
    """The key of the pod that a user means with ``pod/NAME`` or ``NAME``."""
    resource, slash, name = text.rpartition("/")
    if slash and resource.lower() not in ("pod", "pods", "po"):
        raise InputError(f'want pod/NAME, got "{text}"')
    found = [
        pod
        for pod in snapshot.pods
        if pod.metadata.name == name and (namespace is None or (pod.metadata.namespace or "default") == namespace)
    ]
    if not found:
        where = f"namespace {namespace} of the input" if namespace else "the input"
        raise NotFoundError(f"pod {name!r} is not in {where}")
    if len(found) > 1:
        places = ", ".join(sorted(pod.metadata.namespace or "default" for pod in found))
        raise InputError(f"pod {name!r} is in several namespaces ({places}): choose one with -n")
    if found[0].key not in cluster.pods.row_of:
        raise NotFoundError(
            f"pod {found[0].key!r} has finished ({found[0].status.phase}): the scheduler is done with it"
        )
    return found[0].key
