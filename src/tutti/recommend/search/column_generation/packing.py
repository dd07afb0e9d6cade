"""A packing: the nodes to buy with a pattern each, and the items on existing nodes, in whole numbers.

Contract: `Packing.nodes` holds a kind and a pattern for each bought node; patterns never add up to more than the
demand.
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
    on_existing: Ints
    """Existing node x class: how many items go there."""
    dropped: Ints
    """Number of items of each class that are on no node."""

    def cost(self, inputs: PackingInput) -> float:
        """Return the price of the bought nodes."""
        return float(sum(inputs.price[kind] for kind, _ in self.nodes))


def make_packing(
    inputs: PackingInput, nodes: Iterable[tuple[int, Sequence[int]]], on_existing: Ints | None = None
) -> Packing:
    """Make a packing from nodes: trim patterns to the demand, and replace kinds by cheaper kinds.

    The fullest nodes come first, so trimming empties the least used nodes. Nodes whose pattern becomes empty are left
    out.
    """
    on_existing = np.zeros(inputs.node_feasible.shape, dtype=np.int64) if on_existing is None else on_existing.copy()
    uncovered = inputs.demand.copy()
    for node in range(len(on_existing)):
        on_existing[node] = np.minimum(on_existing[node], uncovered)
        uncovered -= on_existing[node]
    limit_used = np.zeros(len(inputs.limit_left))
    bought: list[tuple[int, Pattern]] = []
    by_fullness = sorted(nodes, key=lambda each: (-_fullness(inputs, each), each[0], tuple(each[1])))
    for kind, _ in by_fullness:
        limit_used += inputs.limit_usage[:, kind]
    for kind, pattern in by_fullness:
        counts = np.minimum(np.asarray(pattern, dtype=np.int64), uncovered)
        if not counts.any():
            limit_used -= inputs.limit_usage[:, kind]
            continue
        uncovered -= counts
        cheapest = cheapest_replacement(inputs, kind, counts, limit_used)
        limit_used += inputs.limit_usage[:, cheapest] - inputs.limit_usage[:, kind]
        bought.append((cheapest, tuple(counts.tolist())))
    return Packing(tuple(bought), on_existing, uncovered)


def cheapest_replacement(
    inputs: PackingInput, kind: int, counts: Ints, limit_used: np.ndarray[tuple[int], np.dtype[np.float64]]
) -> int:
    """Return the cheapest kind for a pattern that has `kind` now; limits hold when `limit_used` is used already."""
    is_candidate = inputs.fitting_kinds(counts) & (inputs.price < inputs.price[kind])
    if not is_candidate.any():
        return kind
    if len(inputs.limit_left):
        limit_after = limit_used[:, None] - inputs.limit_usage[:, [kind]] + inputs.limit_usage
        is_candidate &= (
            (limit_after <= inputs.limit_left[:, None] + 1e-6) | (inputs.limit_usage <= inputs.limit_usage[:, [kind]])
        ).all(axis=0)
    candidate_prices = np.where(is_candidate, inputs.price, np.inf)
    best = int(candidate_prices.argmin())
    return best if candidate_prices[best] < inputs.price[kind] else kind


def _fullness(inputs: PackingInput, node: tuple[int, Sequence[int]]) -> float:
    """Return the used shares of cpu and memory of a node, added up."""
    kind, pattern = node
    used = np.asarray(pattern) @ inputs.requests
    return float((used[:2] / np.maximum(inputs.free[kind][:2], 1e-9)).sum())
