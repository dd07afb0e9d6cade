"""Avoided nodes: where the binding of a pod failed lately, so that the pod is tried elsewhere for a while.

How often the bindings of a pod have failed is remembered as well, also where no node is avoided: the backoff of the
pod's turn grows with it, although a turn that finds room is forgotten until its binding fails.

Contract: the functions return new dicts by pod key and change none, so that the queue can undo.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

from tutti.cluster.cluster import Cluster


class AvoidedNodes(msgspec.Struct, frozen=True):
    """Nodes where the binding of a pod failed, and how often its bindings failed."""

    uid: str | None
    """The uid of the pod: a new pod of the same name avoids nothing."""
    until: dict[str, int]
    """The time until which each node is avoided, in microseconds."""
    failures: int = 1
    """How many plans bound the pod in vain."""
    failed_at: int = 0
    """The time of the last failure, in microseconds."""


def note_failure(
    avoided: Mapping[str, AvoidedNodes], cluster: Cluster, *, pod: str, node: str, now: int, avoided_for: int
) -> dict[str, AvoidedNodes]:
    """Note that the binding of a pod failed, and let the pod avoid the node for a while."""
    uid, known = cluster.pod(pod).metadata.uid, avoided.get(pod)
    if known is None or known.uid != uid:
        known = AvoidedNodes(uid, {}, failures=0)
    until = {**known.until, node: now + avoided_for} if avoided_for else known.until
    return {**avoided, pod: AvoidedNodes(uid, until, known.failures + 1, now)}


def nodes_avoided_by(
    pods: Iterable[str], avoided: Mapping[str, AvoidedNodes], *, cluster: Cluster, now: int
) -> set[str]:
    """Return the nodes that one of some pods avoids."""
    found = ((pod, avoided.get(pod)) for pod in pods)
    return {
        node
        for pod, nodes in found
        if nodes is not None and nodes.uid == cluster.pod(pod).metadata.uid
        for node, until in nodes.until.items()
        if until > now
    }


def forget_old(
    avoided: Mapping[str, AvoidedNodes], cluster: Cluster, *, now: int, remembered_for: int
) -> tuple[dict[str, AvoidedNodes], list[int]]:
    """Forget nodes that need not be avoided any more, pods that have gone, and failures that are old.

    Returns what is left, and the rows of pods that may use a node again.
    """
    rows, kept, freed = cluster.pods.row_of, {}, []
    for pod, nodes in avoided.items():
        if pod not in rows:
            continue
        until = {node: time for node, time in nodes.until.items() if time > now}
        if until or now - nodes.failed_at < remembered_for:
            kept[pod] = AvoidedNodes(nodes.uid, until, nodes.failures, nodes.failed_at)
        if len(until) < len(nodes.until):
            freed.append(rows[pod])
    return kept, freed
