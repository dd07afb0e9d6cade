"""A packing: nodes to buy with what each takes, and what goes to nodes that are there; in whole numbers.

Contract: `Packing.nodes` holds a kind and a pattern for each node; patterns never add up to more than the demand.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from tutti.cluster.columns import Ints
from tutti.recommend.search.column_generation.packing_input import PackingInput, Pattern


class Packing(NamedTuple):
    """See the module's contract."""

    nodes: tuple[tuple[int, Pattern], ...]
    moved: Ints
    """Existing node x class."""
    dropped: Ints
    """Items of each class that have no place."""

    def cost(self, flat: PackingInput) -> float:
        """What the nodes cost."""
        return float(sum(flat.price[kind] for kind, _ in self.nodes))


def packed(flat: PackingInput, nodes: Iterable[tuple[int, Sequence[int]]], moved: Ints | None = None) -> Packing:
    """Trim patterns to the demand (full nodes first), buy each as cheaply as it can be had, and count what is left."""
    moved = np.zeros(flat.welcome.shape, dtype=np.int64) if moved is None else moved.copy()
    left = flat.demand.copy()
    for node in range(len(moved)):
        moved[node] = np.minimum(moved[node], left)
        left -= moved[node]
    used = np.zeros(len(flat.left))
    kept: list[tuple[int, Pattern]] = []
    wanted = sorted(nodes, key=lambda each: (-_fullness(flat, each), each[0], tuple(each[1])))
    for kind, _ in wanted:
        used += flat.takes[:, kind]
    for kind, pattern in wanted:
        counts = np.minimum(np.asarray(pattern, dtype=np.int64), left)
        if not counts.any():
            used -= flat.takes[:, kind]
            continue
        left -= counts
        cheaper = downsized(flat, kind, counts, used)
        used += flat.takes[:, cheaper] - flat.takes[:, kind]
        kept.append((cheaper, tuple(counts.tolist())))
    return Packing(tuple(kept), moved, left)


def downsized(flat: PackingInput, kind: int, counts: Ints, used: np.ndarray[tuple[int], np.dtype[np.float64]]) -> int:
    """The cheapest kind for a pattern that now has this kind, within the limits of which so much is used."""
    fits = flat.fits(counts) & (flat.price < flat.price[kind])
    if not fits.any():
        return kind
    if len(flat.left):
        after = used[:, None] - flat.takes[:, [kind]] + flat.takes
        fits &= ((after <= flat.left[:, None] + 1e-6) | (flat.takes <= flat.takes[:, [kind]])).all(axis=0)
    costs = np.where(fits, flat.price, np.inf)
    best = int(costs.argmin())
    return best if costs[best] < flat.price[kind] else kind


def _fullness(flat: PackingInput, node: tuple[int, Sequence[int]]) -> float:
    kind, pattern = node
    used = np.asarray(pattern) @ flat.requests
    return float((used[:2] / np.maximum(flat.free[kind][:2], 1e-9)).sum())
