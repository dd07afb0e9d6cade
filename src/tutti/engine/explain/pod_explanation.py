"""The explanation of one pod: the verdict of every node, where the pod would go, and which pods it would evict.

Contract: `explain_pod` leaves the cluster unchanged. A pod that has a node is explained as if it were pending, on the
cluster without that pod. A pending pod is explained on the cluster before any other pending pod is placed.
"""

from __future__ import annotations

import msgspec

from tutti.cluster.edits import Unbind
from tutti.cluster.indexes.groups import NO_GROUP
from tutti.cluster.trial import Trial
from tutti.engine.explain.gang_explanation import GangOutcome, gang_outcome
from tutti.engine.explain.node_verdicts import NodeVerdicts, node_verdicts
from tutti.engine.gangs.cluster_gangs import Gangs
from tutti.engine.placement.engine import Engine
from tutti.engine.preemption.default_preemption import Candidate
from tutti.engine.reasons.pod_failure import PodFailure, fit_error, pod_failure
from tutti.engine.session.queue_order import not_considered
from tutti.engine.session.schedule import schedule

_NOT_FILTERED = "node(s) didn't satisfy plugin(s) [NodeAffinity]"
"""kube-scheduler's message for nodes that the pod's required affinity excludes by name; no plugin filters them."""


class NodeExplanation(msgspec.Struct, frozen=True, rename="camel"):
    """The verdict of one node."""

    name: str
    feasible: bool
    plugin: str | None = None
    """The first plugin that refused the node."""
    reasons: tuple[str, ...] = ()
    eviction_could_help: bool | None = None
    victims: tuple[str, ...] | None = None
    """The pods to evict so that the pod fits; None if no evictions help or preemption was not tried."""
    total: int | None = None
    scores: dict[str, int] = {}


class PodExplanation(msgspec.Struct, frozen=True, rename="camel"):
    """The verdicts of all nodes, where the pod would go, and which pods it would evict."""

    pod: str
    node: str | None
    """The pod's current node."""
    goes_to: str | None
    """The node on which the scheduler would place the pod now."""
    message: str | None
    """Why the pod fits on no node, in kube-scheduler's words."""
    remark: str | None = None
    """Why the scheduler does not try the pod."""
    evicts: tuple[str, ...] = ()
    """The pods that the pod would evict from the node `nominated`, or from several nodes if a gang is evicted."""
    nominated: str | None = None
    """The node on which room is held for the pod, until its victims or other terminating pods have left."""
    gang: str | None = None
    """The pod's gang; the other fields treat the pod as if it had no gang."""
    gang_outcome: GangOutcome | None = None
    """What would become of that gang at its turn."""
    nodes: tuple[NodeExplanation, ...] = ()


def explain_pod(engine: Engine, key: str) -> PodExplanation:
    """Explain the pod with a key."""
    cluster, gangs = engine.cluster, Gangs.of(engine.cluster)
    node, gang = cluster.pods.node_names[cluster.pod_row(key)], gangs.key_of(cluster.pod_row(key))
    skip = not_considered(cluster.pod(key), engine.profile) if node is None else None
    with Trial(cluster):
        if node is not None:
            cluster.apply(Unbind(key))
        verdicts, attempt = node_verdicts(engine, key), engine.attempt(key)
        decision = attempt.decision
        failure = None if decision.node is not None else pod_failure(engine, attempt)
        if failure is not None and gang is None:
            failure = _as_scheduled(engine, failure)
    candidate = failure.candidate if failure is not None else None
    return PodExplanation(
        pod=key,
        node=node,
        goes_to=decision.node,
        message=None if failure is None else failure.message,
        remark=None if skip is None else skip.message,
        evicts=() if candidate is None else candidate.victims,
        nominated=None if candidate is None else candidate.node,
        gang=gang,
        gang_outcome=None if gang is None else gang_outcome(engine, gang),
        nodes=tuple(_node_explanations(verdicts, failure)),
    )


def _as_scheduled(engine: Engine, failure: PodFailure) -> PodFailure:
    """Return the failure of a pod without a gang, with the victims that the scheduler would choose.

    They differ from those of kube-scheduler if gangs of lower priority run: a gang is evicted as a whole.
    """
    cluster, key = engine.cluster, failure.decision.pod
    with Trial(cluster):
        plan = schedule(cluster, [key], engine.profile)
    places = [(each.node, each.budgets_broken) for each in plan.binds if each.pod == key]
    places += [(each.node, 0) for each in plan.nominated if each.pod == key]
    pods = cluster.pods
    others = tuple(
        each for each in failure.candidates if all(pods.group[pods.row_of[pod]] == NO_GROUP for pod in each.victims)
    )
    for node, violations in places:
        victims = tuple(each.pod for each in plan.evictions if each.by == key)
        chosen = Candidate(node, victims, violations)
        return failure._replace(candidate=chosen, candidates=(*(c for c in others if c.node != node), chosen))
    for refused in plan.unschedulable:
        # kube-scheduler's sentence about its own victims does not hold if they cannot be evicted as a whole.
        text = refused.message.removeprefix(fit_error(failure.decision)).strip()
        return failure._replace(candidate=None, candidates=others, preemption_message=text)
    return failure  # the scheduler does not try the pod


def _node_explanations(verdicts: NodeVerdicts, failure: PodFailure | None) -> list[NodeExplanation]:
    """Return the feasible nodes, the highest total score first, then the refused nodes by name."""
    candidates = {c.node: c.victims for c in failure.candidates if c.victims} if failure is not None else {}
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
            reasons=tuple(sorted(reason.messages)) or (_NOT_FILTERED,),
            eviction_could_help=reason.resolvable,
            victims=candidates.get(name),
        )
        for name, reason in sorted(verdicts.rejected.items())
    ]
    return feasible + refused
