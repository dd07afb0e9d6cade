"""All patterns that a better plan could use: what closes the gap when there are few of them.

With duals that no pattern beats, the cost of a plan is at least the bound plus what each of its patterns costs above
its worth. A plan that is cheaper than the best one known can therefore only use patterns whose excess is below the
difference. When all of those can be listed, whole numbers over them settle which plan is best.

Contract: pure. `worthwhile` gives all maximal patterns of every kind within the excess, or None if there are too many.
"""

from __future__ import annotations

import numpy as np

from tutti.cluster.columns import Floats, Ints
from tutti.cluster.work.meter import ENUMERATION_CLASS, ENUMERATION_STATE, Meter
from tutti.cluster.work.work_budget import WorkBudget
from tutti.recommend.search.column_generation.packing_input import PackingInput, Pattern, only
from tutti.recommend.search.column_generation.pattern_heuristics import alone

_MOST_STATES = 60_000
_MOST_PATTERNS = 12_000


def worthwhile(
    flat: PackingInput, values: Floats, due: Floats, *, excess: float, budget: WorkBudget
) -> list[tuple[int, Pattern]] | None:
    """The patterns of every kind with due - value <= excess, or None when there are too many."""
    found: list[tuple[int, Pattern]] = []
    for kind in np.argsort(flat.price, kind="stable").tolist():
        least = float(due[kind]) - excess
        patterns = patterns_above(flat, kind, values, budget.meter, least=least, most=flat.most)
        if patterns is None or budget.is_exhausted():
            return None
        found += ((kind, tuple(pattern)) for pattern in patterns.tolist())
        if len(found) > _MOST_PATTERNS:
            return None
    return found


def patterns_above(
    flat: PackingInput, kind: int, values: Floats, meter: Meter, *, least: float, most: Ints, states: int = _MOST_STATES
) -> Ints | None:
    """The maximal patterns of a kind that are worth at least this; None when the search takes too many states."""
    free = flat.free[kind]
    limit = alone(only(flat, [kind]), most)[0]
    classes = np.flatnonzero(limit > 0)
    if not len(classes):
        return np.zeros((0, len(flat.demand)), dtype=np.int64)
    # Large items first: they decide most.
    share = flat.requests[classes] / np.maximum(free, 1e-9)
    classes = classes[np.argsort(-share.max(axis=1), kind="stable")]
    tails = _tails(flat, kind, values, classes, limit)
    counts = np.zeros((1, len(classes)), dtype=np.int64)
    left = free[None, :].copy()
    worth = np.zeros(1)
    for place, number in enumerate(classes.tolist()):
        request = flat.requests[number]
        asked = np.flatnonzero(request > 0)
        fits = np.minimum(np.floor(left[:, asked] / request[asked]).min(axis=1, initial=np.inf), limit[number])
        if flat.apart.any():
            rivals = flat.apart[number][classes[:place]]
            fits[(counts[:, :place][:, rivals] > 0).any(axis=1)] = 0
        times = fits.astype(np.int64) + 1
        reached = int(times.sum())
        meter.count += ENUMERATION_CLASS + ENUMERATION_STATE * min(reached, states * 4)
        if reached > states * 4:
            return None
        parent = np.repeat(np.arange(len(times)), times)
        amount = np.arange(len(parent)) - np.repeat(np.cumsum(times) - times, times)
        counts, left, worth = counts[parent], left[parent] - amount[:, None] * request, worth[parent]
        counts[:, place] = amount
        worth = worth + amount * values[number]
        hope = worth + _hope(tails[place + 1], left, free)
        keep = hope >= least - 1e-9
        for group, cap in flat.shared:
            inside = group[classes]
            keep &= counts[:, inside].sum(axis=1) <= cap
        counts, left, worth = counts[keep], left[keep], worth[keep]
        if len(counts) > states:
            return None
    result = np.zeros((len(counts), len(flat.demand)), dtype=np.int64)
    result[:, classes] = counts
    return result[_maximal(flat, result, left, limit)]


def _tails(
    flat: PackingInput, kind: int, values: Floats, classes: Ints, limit: Ints
) -> list[list[tuple[Floats, Floats, Floats]]]:
    """For every place the bounds on what the classes from there on can add: per mix, sizes and gains added up."""
    free = np.maximum(flat.free[kind], 1e-9)
    resources = flat.requests.shape[1]
    mixes = [np.eye(resources)[0], np.eye(resources)[1 % resources]]
    for share in (0.15, 0.3, 0.42, 0.5, 0.58, 0.7, 0.85):
        mix = np.zeros(resources)
        mix[0], mix[1 % resources] = share, 1 - share
        mixes.append(mix)
    tails = []
    for place in range(len(classes) + 1):
        rest = classes[place:]
        bounds = []
        for mix in mixes:
            size = (flat.requests[rest] / free) @ mix
            order = np.argsort(-values[rest] / np.maximum(size, 1e-15), kind="stable")
            sizes = np.concatenate(([0.0], np.cumsum((size * limit[rest])[order])))
            gains = np.concatenate(([0.0], np.cumsum((values[rest] * limit[rest])[order])))
            bounds.append((mix, sizes, gains))
        tails.append(bounds)
    return tails


def _hope(bounds: list[tuple[Floats, Floats, Floats]], left: Floats, free: Floats) -> Floats:
    """How much more each state can be worth at most."""
    hope = np.full(len(left), np.inf)
    share = left / np.maximum(free, 1e-9)
    for mix, sizes, gains in bounds:
        np.minimum(hope, np.interp(share @ mix + 1e-12, sizes, gains), out=hope)
    return hope


def _maximal(flat: PackingInput, counts: Ints, left: Floats, limit: Ints) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """Which patterns take no further item."""
    maximal = np.ones(len(counts), dtype=bool)
    for number in np.flatnonzero(limit > 0).tolist():
        more = (counts[:, number] < limit[number]) & (left >= flat.requests[number]).all(axis=1)
        if flat.apart.any():
            more &= ~(counts[:, flat.apart[number]] > 0).any(axis=1)
        for group, cap in flat.shared:
            if group[number]:
                more &= counts[:, group].sum(axis=1) < cap
        maximal &= ~more
    return maximal
