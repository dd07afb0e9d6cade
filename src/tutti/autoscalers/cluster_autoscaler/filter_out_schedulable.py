"""Cluster Autoscaler's filter-out-schedulable: pods go to the first node that takes them.

Contract: pods in the order of their groups, nodes in the order of their numbers, repeated until no pod is placed. The
snapshot changes.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tutti.autoscalers.shared.cluster_snapshot import ONE, ClusterSnapshot
from tutti.cluster.work.work_budget import WorkBudget


def bind(
    snapshot: ClusterSnapshot, waiting: dict[int, list[str]], *, since: int = 0, budget: WorkBudget | None = None
) -> Iterator[tuple[str, int]]:
    """Bind the waiting pods that fit, take them off the list, and give who went where.

    Whoever waits was found not to fit on the nodes before `since`. A plain pod group need not be tried there again.
    """
    again = False
    moved = True
    while moved:
        moved = False
        for pod_group in list(waiting):
            if budget is not None and budget.is_exhausted():
                return
            pods = waiting[pod_group]
            plain = snapshot.is_plain(pod_group, pods[0])
            first = since if plain else 0
            if (plain and again) or snapshot.size <= first:
                continue
            went = _count(snapshot, pod_group, pods, first) if plain else _try(snapshot, pod_group, pods)
            if went:
                moved = True
                yield from zip(pods, went, strict=False)
                del pods[: len(went)]
                if not pods:
                    del waiting[pod_group]
        again = True


def _count(snapshot: ClusterSnapshot, pod_group: int, pods: list[str], first: int) -> list[int]:
    """Bind the pods of a plain pod group; give the nodes of those that fit."""
    if len(pods) == 1:
        fits = snapshot.fits_plain(pod_group, pods[0])[first:]
        node = first + int(fits.argmax())
        if not fits[node - first]:
            return []
        snapshot.take(pod_group, pods, node, ONE)
        return [node]
    copies = snapshot.copies(pod_group, pods[0], first)
    before = np.cumsum(copies) - copies
    given = np.minimum(np.maximum(len(pods) - before, 0), copies)
    snapshot.take(pod_group, pods, first, given)
    nodes: list[int] = np.repeat(np.arange(first, snapshot.size), given).tolist()
    return nodes


def _try(snapshot: ClusterSnapshot, pod_group: int, pods: list[str]) -> list[int]:
    """Bind pods one by one until one does not fit; give the nodes of those that did."""
    went: list[int] = []
    for pod in pods:
        fits = snapshot.fits(pod)
        node = int(fits.argmax())
        if not fits[node]:
            break
        snapshot.take(pod_group, (pod,), node, ONE)
        went.append(node)
    return went
