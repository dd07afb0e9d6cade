"""Avoided nodes: where the binding of a pod failed lately, so that the pod is tried elsewhere for a while.

Contract: the functions return new dicts by pod key and change none, so that the queue can undo.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

from tutti.cluster.cluster import Cluster


class AvoidedNodes(msgspec.Struct, frozen=True):
    """Nodes where the binding of a pod failed."""

    uid: str | None
    """The uid of the pod: a new pod of the same name avoids nothing."""
    until: dict[str, int]
    """The time until which each node is avoided, in microseconds."""


def avoid(
    avoided: Mapping[str, AvoidedNodes], cluster: Cluster, *, pod: str, node: str, until: int
) -> dict[str, AvoidedNodes]:
    """Let a pod avoid a node until a time."""
    uid, known = cluster.pod(pod).metadata.uid, avoided.get(pod)
    before = known.until if known is not None and known.uid == uid else {}
    return {**avoided, pod: AvoidedNodes(uid, {**before, node: until})}


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
    avoided: Mapping[str, AvoidedNodes], cluster: Cluster, *, now: int
) -> tuple[dict[str, AvoidedNodes], list[int]]:
    """Forget nodes that need not be avoided any more, and pods that have gone.

    Returns what is left, and the rows of pods that may use a node again.
    """
    rows, kept, freed = cluster.pods.row_of, {}, []
    for pod, nodes in avoided.items():
        if pod not in rows:
            continue
        until = {node: time for node, time in nodes.until.items() if time > now}
        if until:
            kept[pod] = AvoidedNodes(nodes.uid, until)
        if len(until) < len(nodes.until):
            freed.append(rows[pod])
    return kept, freed
