"""The binder: pods go to the first node that takes them.

Contract: pods in the order of their shapes, nodes in the order of their numbers, again and again until nobody moves.
The ground is changed.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tutti.autoscalers.shared.cluster_snapshot import ONE, Ground
from tutti.cluster.work_budget import WorkBudget


def bind(
    ground: Ground, waiting: dict[int, list[str]], *, since: int = 0, budget: WorkBudget | None = None
) -> Iterator[tuple[str, int]]:
    """Bind the waiting pods that fit, take them off the list, and give who went where.

    Whoever waits was found not to fit on the nodes before `since`. A plain shape need not be tried there again.
    """
    again = False
    moved = True
    while moved:
        moved = False
        for shape in list(waiting):
            if budget is not None and budget.is_exhausted():
                return
            pods = waiting[shape]
            plain = ground.is_plain(shape, pods[0])
            first = since if plain else 0
            if (plain and again) or ground.size <= first:
                continue
            went = _count(ground, shape, pods, first) if plain else _try(ground, shape, pods)
            if went:
                moved = True
                yield from zip(pods, went, strict=False)
                del pods[: len(went)]
                if not pods:
                    del waiting[shape]
        again = True


def _count(ground: Ground, shape: int, pods: list[str], first: int) -> list[int]:
    """Bind the pods of a plain shape; give the nodes of those that fit."""
    if len(pods) == 1:
        fits = ground.fits_plain(shape, pods[0])[first:]
        node = first + int(fits.argmax())
        if not fits[node - first]:
            return []
        ground.take(shape, pods, node, ONE)
        return [node]
    copies = ground.copies(shape, pods[0], first)
    before = np.cumsum(copies) - copies
    given = np.minimum(np.maximum(len(pods) - before, 0), copies)
    ground.take(shape, pods, first, given)
    nodes: list[int] = np.repeat(np.arange(first, ground.size), given).tolist()
    return nodes


def _try(ground: Ground, shape: int, pods: list[str]) -> list[int]:
    """Bind pods one by one until one does not fit; give the nodes of those that did."""
    went: list[int] = []
    for pod in pods:
        fits = ground.fits(pod)
        node = int(fits.argmax())
        if not fits[node]:
            break
        ground.take(shape, (pod,), node, ONE)
        went.append(node)
    return went
