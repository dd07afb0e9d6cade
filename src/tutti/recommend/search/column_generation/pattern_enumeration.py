"""Enumeration of all patterns that a cheaper plan can use: closes the gap when there are few.

Let dual values be such that no pattern is worth more than its price. Then the cost of a plan is at least the bound plus
the excess of each of its patterns (price minus value). A plan that is cheaper than the best known plan therefore only
uses patterns with an excess below the difference between that plan and the bound. When all of these patterns can be
listed, the integer programme over them proves which plan is best.

Contract: pure. `improving_patterns` returns all maximal patterns within the excess, or None if there are too many.
"""

from __future__ import annotations

import numpy as np

from tutti.cluster.columns import Floats, Ints
from tutti.cluster.work.meter import ENUMERATION_CLASS, ENUMERATION_STATE, Meter
from tutti.cluster.work.work_budget import WorkBudget
from tutti.recommend.search.column_generation.packing_input import PackingInput, Pattern, select_kinds
from tutti.recommend.search.column_generation.pattern_heuristics import max_items_alone

_MAX_STATES = 60_000
_MAX_PATTERNS = 12_000


def improving_patterns(
    inputs: PackingInput, values: Floats, full_prices: Floats, *, excess: float, budget: WorkBudget
) -> list[tuple[int, Pattern]] | None:
    """Return the patterns of every kind with full price - value <= excess, or None when there are too many.

    `full_prices` are the prices of the kinds including the dual values of the limits.
    """
    found: list[tuple[int, Pattern]] = []
    for kind in np.argsort(inputs.price, kind="stable").tolist():
        min_value = float(full_prices[kind]) - excess
        patterns = patterns_above(
            inputs, kind, values, budget.meter, min_value=min_value, max_per_node=inputs.max_per_node
        )
        if patterns is None or budget.is_exhausted():
            return None
        found += ((kind, tuple(pattern)) for pattern in patterns.tolist())
        if len(found) > _MAX_PATTERNS:
            return None
    return found


def patterns_above(
    inputs: PackingInput,
    kind: int,
    values: Floats,
    meter: Meter,
    *,
    min_value: float,
    max_per_node: Ints,
    max_states: int = _MAX_STATES,
) -> Ints | None:
    """Return the maximal patterns of a kind with at least a value; None when the search exceeds `max_states`."""
    free = inputs.free[kind]
    max_items = max_items_alone(select_kinds(inputs, [kind]), max_per_node)[0]
    classes = np.flatnonzero(max_items > 0)
    if not len(classes):
        return np.zeros((0, len(inputs.demand)), dtype=np.int64)
    # Large items first: they restrict the pattern most, so the search is cut early.
    share = inputs.requests[classes] / np.maximum(free, 1e-9)
    classes = classes[np.argsort(-share.max(axis=1), kind="stable")]
    suffix_bounds = _suffix_bounds(inputs, kind, values, classes, max_items)
    counts = np.zeros((1, len(classes)), dtype=np.int64)
    left = free[None, :].copy()
    values_so_far = np.zeros(1)
    for place, number in enumerate(classes.tolist()):
        request = inputs.requests[number]
        requested = np.flatnonzero(request > 0)
        fits = np.minimum(
            np.floor(left[:, requested] / request[requested]).min(axis=1, initial=np.inf), max_items[number]
        )
        if inputs.conflicts.any():
            is_conflict = inputs.conflicts[number][classes[:place]]
            fits[(counts[:, :place][:, is_conflict] > 0).any(axis=1)] = 0
        times = fits.astype(np.int64) + 1
        next_states = int(times.sum())
        meter.count += ENUMERATION_CLASS + ENUMERATION_STATE * min(next_states, max_states * 4)
        if next_states > max_states * 4:
            return None
        parent = np.repeat(np.arange(len(times)), times)
        amount = np.arange(len(parent)) - np.repeat(np.cumsum(times) - times, times)
        counts, left, values_so_far = counts[parent], left[parent] - amount[:, None] * request, values_so_far[parent]
        counts[:, place] = amount
        values_so_far = values_so_far + amount * values[number]
        best_value = values_so_far + _max_gain(suffix_bounds[place + 1], left, free)
        keep = best_value >= min_value - 1e-9
        for group, cap in inputs.group_limits:
            inside = group[classes]
            keep &= counts[:, inside].sum(axis=1) <= cap
        counts, left, values_so_far = counts[keep], left[keep], values_so_far[keep]
        if len(counts) > max_states:
            return None
    result = np.zeros((len(counts), len(inputs.demand)), dtype=np.int64)
    result[:, classes] = counts
    return result[_is_maximal(inputs, result, left, max_items)]


def _suffix_bounds(
    inputs: PackingInput, kind: int, values: Floats, classes: Ints, max_items: Ints
) -> list[list[tuple[Floats, Floats, Floats]]]:
    """Return for every position the bounds on the value that classes from there on can add.

    A bound is a weighting of the resources, with sizes and values of the classes added up by value for size.
    """
    free = np.maximum(inputs.free[kind], 1e-9)
    resources = inputs.requests.shape[1]
    mixes = [np.eye(resources)[0], np.eye(resources)[1 % resources]]
    for share in (0.15, 0.3, 0.42, 0.5, 0.58, 0.7, 0.85):
        mix = np.zeros(resources)
        mix[0], mix[1 % resources] = share, 1 - share
        mixes.append(mix)
    suffix_bounds = []
    for place in range(len(classes) + 1):
        suffix = classes[place:]
        bounds = []
        for mix in mixes:
            size = (inputs.requests[suffix] / free) @ mix
            order = np.argsort(-values[suffix] / np.maximum(size, 1e-15), kind="stable")
            sizes = np.concatenate(([0.0], np.cumsum((size * max_items[suffix])[order])))
            gains = np.concatenate(([0.0], np.cumsum((values[suffix] * max_items[suffix])[order])))
            bounds.append((mix, sizes, gains))
        suffix_bounds.append(bounds)
    return suffix_bounds


def _max_gain(bounds: list[tuple[Floats, Floats, Floats]], left: Floats, free: Floats) -> Floats:
    """Return how much value each state can still gain at most."""
    max_gain = np.full(len(left), np.inf)
    share = left / np.maximum(free, 1e-9)
    for mix, sizes, gains in bounds:
        np.minimum(max_gain, np.interp(share @ mix + 1e-12, sizes, gains), out=max_gain)
    return max_gain


def _is_maximal(
    inputs: PackingInput, counts: Ints, left: Floats, max_items: Ints
) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """Return which patterns take no further item."""
    maximal = np.ones(len(counts), dtype=bool)
    for number in np.flatnonzero(max_items > 0).tolist():
        takes_more = (counts[:, number] < max_items[number]) & (left >= inputs.requests[number]).all(axis=1)
        if inputs.conflicts.any():
            takes_more &= ~(counts[:, inputs.conflicts[number]] > 0).any(axis=1)
        for group, cap in inputs.group_limits:
            if group[number]:
                takes_more &= counts[:, group].sum(axis=1) < cap
        maximal &= ~takes_more
    return maximal
