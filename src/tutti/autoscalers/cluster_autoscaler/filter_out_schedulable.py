"""Cluster Autoscaler's filter-out-schedulable processor: bind pending pods to the first node that takes them.

Contract: pods are tried in the order of their groups, nodes in the order of their numbers, in rounds until a round
places no pod. The snapshot and the pending pods change.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tutti.autoscalers.shared.cluster_snapshot import ONE, ClusterSnapshot
from tutti.cluster.work.work_budget import WorkBudget


def bind(
    snapshot: ClusterSnapshot, pending: dict[int, list[str]], *, since: int = 0, budget: WorkBudget | None = None
) -> Iterator[tuple[str, int]]:
    """Bind the pending pods that fit, remove them from `pending`, and yield each pod with its node.

    No pending pod fitted on the nodes before `since` earlier; plain pod groups are not tried there again.
    """
    is_first_round = True
    has_progress = True
    while has_progress:
        has_progress = False
        for pod_group in list(pending):
            if budget is not None and budget.is_exhausted():
                return
            pods = pending[pod_group]
            is_plain = snapshot.is_plain(pod_group, pods[0])
            first = since if is_plain else 0
            if (is_plain and not is_first_round) or snapshot.size <= first:
                continue
            if is_plain:
                nodes = _bind_plain(snapshot, pod_group, pods, first)
            else:
                nodes = _bind_one_by_one(snapshot, pod_group, pods)
            if nodes:
                has_progress = True
                yield from zip(pods, nodes, strict=False)
                del pods[: len(nodes)]
                if not pods:
                    del pending[pod_group]
        is_first_round = False


def _bind_plain(snapshot: ClusterSnapshot, pod_group: int, pods: list[str], first: int) -> list[int]:
    """Bind the pods of a plain pod group to nodes from `first` on, and return the nodes of those that fit."""
    if len(pods) == 1:
        fits = snapshot.fits_plain(pod_group, pods[0])[first:]
        node = first + int(fits.argmax())
        if not fits[node - first]:
            return []
        snapshot.add_pods(pod_group, pods, node, ONE)
        return [node]
    copies = snapshot.copies(pod_group, pods[0], first)
    copies_before = np.cumsum(copies) - copies
    counts = np.minimum(np.maximum(len(pods) - copies_before, 0), copies)
    snapshot.add_pods(pod_group, pods, first, counts)
    nodes: list[int] = np.repeat(np.arange(first, snapshot.size), counts).tolist()
    return nodes


def _bind_one_by_one(snapshot: ClusterSnapshot, pod_group: int, pods: list[str]) -> list[int]:
    """Bind pods until a pod does not fit, and return the nodes of those that fit."""
    nodes: list[int] = []
    for pod in pods:
        fits = snapshot.fits(pod)
        node = int(fits.argmax())
        if not fits[node]:
            break
        snapshot.add_pods(pod_group, (pod,), node, ONE)
        nodes.append(node)
    return nodes
