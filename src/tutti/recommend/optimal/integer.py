"""Whole nodes: from fractions of patterns to a packing.

Contract: pure but for the deadline. `round_off` buys the whole part of the fractions and packs the rest anew, `choose`
asks for the best whole numbers over all known patterns. Both give a packing that obeys limits and rules.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tutti.cluster.columns import Ints
from tutti.recommend.optimal.fill import best_patterns
from tutti.recommend.optimal.flat import Flat, Floats, Pattern
from tutti.recommend.optimal.generate import generate
from tutti.recommend.optimal.master import Master, Whole
from tutti.recommend.optimal.packing import Packing, packed
from tutti.recommend.request import Deadline


def choose(master: Master, seconds: float, start: Sequence[int] | None = None) -> Packing | None:
    """The best packing over the known patterns that some seconds give."""
    whole = master.whole(seconds, start)
    return None if whole is None else _packing(master, whole)


def _packing(master: Master, whole: Whole) -> Packing:
    nodes = []
    for place in np.flatnonzero(whole.times).tolist():
        nodes += [(master.kinds[place], master.patterns[place])] * int(whole.times[place])
    return packed(master.flat, nodes, whole.moved)


def round_off(master: Master, deadline: Deadline) -> Packing | None:
    """Buy whole parts, and pack what is left with patterns made for it, again and again."""
    flat = master.flat
    nodes: list[tuple[int, Pattern]] = []
    moved = np.zeros(flat.welcome.shape, dtype=np.int64)
    if len(flat.room):
        return None
    left, budget = flat.demand.copy(), flat.left.copy()
    patterns, kinds, levels = list(master.patterns), list(master.kinds), master.levels()
    while left.any():
        bought = 0
        for place in np.argsort(-levels, kind="stable").tolist():
            if levels[place] < 1 - 1e-6:
                break
            bought += _buy(flat, nodes, left, budget, kinds[place], patterns[place], int(levels[place] + 1e-6))
        if not bought:
            place = _most_whole(flat, patterns, kinds, levels, left)
            if place < 0 or not _buy(flat, nodes, left, budget, kinds[place], patterns[place], 1):
                break
        if not left.any():
            break
        rest = flat.with_demand(left.copy())._replace(left=budget.copy())
        inner = Master(rest, master.penalty, scale=master.scale)
        for kind, pattern in _seeds(rest):
            inner.add(kind, pattern)
        for kind, pattern in zip(master.kinds, master.patterns, strict=True):
            trimmed = tuple(np.minimum(pattern, left).tolist())
            inner.add(kind, trimmed)
        generate(inner, deadline, prove=False)
        if int(left.sum()) <= 400 or deadline.is_over():
            whole = inner.whole(max(min(deadline.left * 0.5, 2.0), 0.05))
            if whole is not None and not whole.dropped.any():
                rest_packing = _packing(inner, whole)
                return packed(flat, [*nodes, *rest_packing.nodes], moved)
        patterns, kinds, levels = list(inner.patterns), list(inner.kinds), inner.levels()
    return packed(flat, nodes, moved)


def _buy(
    flat: Flat, nodes: list[tuple[int, Pattern]], left: Ints, budget: Floats, kind: int, pattern: Pattern, times: int
) -> int:
    """Buy a pattern some times as long as it is wanted and within limits; give how often."""
    bought = 0
    counts = np.array(pattern)
    for _ in range(times):
        trimmed = np.minimum(counts, left)
        if not trimmed.any() or (budget < flat.takes[:, kind]).any():
            break
        left -= trimmed
        budget -= flat.takes[:, kind]
        nodes.append((kind, tuple(trimmed.tolist())))
        bought += 1
    return bought


def _most_whole(flat: Flat, patterns: list[Pattern], kinds: list[int], levels: Floats, left: Ints) -> int:
    """The fractional pattern that is nearest to one and fullest."""
    best, place = -1.0, -1
    for number in np.flatnonzero(levels > 1e-6).tolist():
        counts = np.minimum(patterns[number], left)
        share = float((counts @ flat.requests / np.maximum(flat.free[kinds[number]], 1e-9))[:2].max())
        if levels[number] * share > best:
            best, place = float(levels[number]) * share, number
    return place


def _seeds(flat: Flat) -> list[tuple[int, Pattern]]:
    """A pattern for every class alone, so that everything can be covered."""
    seeds = []
    for number in range(len(flat.demand)):
        if not flat.demand[number]:
            continue
        values = np.zeros(len(flat.demand))
        values[number] = 1.0
        patterns, worth = best_patterns(flat, values)
        if worth.max(initial=0) > 0:
            kind = int(np.argmin(np.where(worth > 0, flat.price / np.maximum(worth, 1e-9), np.inf)))
            seeds.append((kind, tuple(patterns[kind].tolist())))
    return seeds


def seed(master: Master) -> None:
    """Give a master a pattern for every class, and patterns that mix classes by their size."""
    flat = master.flat
    for kind, pattern in _seeds(flat):
        master.add(kind, pattern)
    sizes = flat.requests / np.maximum(flat.free.max(axis=0), 1e-9)
    for values in (sizes.max(axis=1), sizes.sum(axis=1), sizes[:, 0] + 1e-9, sizes[:, 1] + 1e-9):
        patterns, worth = best_patterns(flat, values)
        for kind in range(len(worth)):
            if worth[kind] > 0:
                master.add(kind, tuple(patterns[kind].tolist()))
