"""Knapsack heuristics: fill many nodes at once, with the classes in the order of value for size.

Contract: pure. Every returned pattern fits its kind and obeys the rules within a node.
"""

from __future__ import annotations

import numpy as np

from tutti.cluster.columns import Floats, Ints, Rows
from tutti.cluster.work.meter import HEURISTIC_CELL, HEURISTIC_CLASS, Meter
from tutti.recommend.search.column_generation.packing_input import PackingInput

_MOST_PAIRS = 40_000
"""Kinds times pairs of classes up to which pairs of first items are tried."""
_MIX_STEPS = 12
"""Number of weightings of the first two resources that are tried."""


def resource_mixes(resources: int) -> Floats:
    """Return weightings of the resources: each resource alone, and steps between the first two."""
    weights = [np.eye(resources)[place] for place in range(resources)]
    for share in np.linspace(0, 1, _MIX_STEPS):
        mix = np.full(resources, 0.05)
        mix[0] += share
        mix[1 % resources] += 1 - share
        weights.append(mix)
    return np.array(weights)


def max_items_alone(inputs: PackingInput, max_per_node: Ints | None = None) -> Ints:
    """Return kind x class: how many items of the class fit a node of the kind that has no other items."""
    max_per_node = inputs.max_per_node if max_per_node is None else max_per_node
    fits = np.full(inputs.allowed.shape, np.inf)
    for resource in range(inputs.requests.shape[1]):
        requested = inputs.requests[:, resource]
        requesting = np.flatnonzero(requested > 0)
        if len(requesting):
            fits[:, requesting] = np.minimum(
                fits[:, requesting], inputs.free[:, resource, None] / requested[requesting]
            )
    counts: Ints = np.where(
        inputs.allowed, np.minimum(np.floor(fits), np.minimum(max_per_node, inputs.demand)), 0
    ).astype(np.int64)
    return counts


def best_patterns(inputs: PackingInput, values: Floats, meter: Meter) -> tuple[Ints, Floats]:
    """Return for every kind the most valuable pattern found, and its value.

    `values` is the value of an item of each class: one row for all kinds, or one row per kind.
    """
    limit = np.minimum(inputs.max_per_node, inputs.demand)
    weights = resource_mixes(inputs.requests.shape[1])
    item_values = np.broadcast_to(values, (len(inputs.free), len(limit)))
    scaled = weights[None, :, :] / np.maximum(inputs.free[:, None, :], 1e-9)  # kind x mix x resource
    size = scaled @ inputs.requests.T + 1e-12
    density = np.where(inputs.allowed[:, None, :] & (item_values[:, None, :] > 0), item_values[:, None, :] / size, -1.0)
    order = np.argsort(-density, axis=2, kind="stable")
    patterns = fill_greedily(inputs, order, np.where(inputs.allowed & (item_values > 0), limit, 0), meter)
    totals = (patterns * item_values[:, None, :]).sum(axis=2)
    best = totals.argmax(axis=1)
    rows = np.arange(len(best))
    return patterns[rows, best], totals[rows, best]


def varied_patterns(inputs: PackingInput, values: Floats, meter: Meter) -> tuple[Ints, Floats]:
    """Return patterns as `best_patterns` does, and try every item and pair of items as first items of the pattern.

    This finds patterns that the order by value for size misses.
    """
    classes = np.flatnonzero((values > 0) & (inputs.demand > 0))
    limit = np.minimum(inputs.max_per_node, inputs.demand)
    best, values_found = best_patterns(inputs, values, meter)
    try_pairs = len(inputs.free) * len(classes) ** 2 <= _MOST_PAIRS
    seed_items: list[tuple[int, ...]] = [(first,) for first in classes.tolist()]
    if try_pairs:
        seed_items += [(first, second) for first in classes.tolist() for second in classes.tolist() if first <= second]
    seed_items = [
        items for items in seed_items if not any(inputs.conflicts[first, second] for first in items for second in items)
    ]
    seeds = np.zeros((len(seed_items), len(limit)), dtype=np.int64)
    for place, items in enumerate(seed_items):
        for first in items:
            seeds[place, first] += 1
    seeds = seeds[(seeds <= limit).all(axis=1)]
    if not len(seeds):
        return best, values_found
    used = seeds @ inputs.requests
    for kind in range(len(inputs.free)):
        usable = seeds[(used <= inputs.free[kind]).all(axis=1) & (inputs.allowed[kind] | (seeds == 0)).all(axis=1)]
        if len(usable):
            patterns = _complete_patterns(inputs, kind, values, usable, meter)
            totals = patterns @ values
            top = int(totals.argmax())
            if totals[top] > values_found[kind] * (1 + 1e-9):
                best[kind], values_found[kind] = patterns[top], totals[top]
    return best, values_found


def _complete_patterns(inputs: PackingInput, kind: int, values: Floats, seeds: Ints, meter: Meter) -> Ints:
    """Return patterns of one kind that start with given items and continue by value for size.

    The size weighs a resource more the less of it is left.
    """
    left = inputs.free[kind] - seeds @ inputs.requests
    scarcity = 1.0 / np.maximum(left, 1e-3 * inputs.free[kind] + 1e-9)
    size = scarcity @ inputs.requests.T + 1e-12
    density = np.where(inputs.allowed[kind] & (values > 0), values / size, -1.0)
    order = np.argsort(-density, axis=1, kind="stable")
    limit = np.where(inputs.allowed[kind] & (values > 0), np.minimum(inputs.max_per_node, inputs.demand), 0) - seeds
    if inputs.conflicts.any():
        limit = np.where((seeds > 0) @ inputs.conflicts, 0, limit)
    for group, max_items in inputs.group_limits:
        full = seeds[:, group].sum(axis=1) >= max_items
        limit[np.ix_(full, group)] = 0
    remaining = inputs._replace(free=left, allowed=np.ones((len(left), len(values)), dtype=bool))
    return seeds + fill_greedily(remaining, order[:, None, :], np.maximum(limit, 0), meter)[:, 0, :]


def fill_greedily(inputs: PackingInput, order: Rows, limit: Ints, meter: Meter) -> Ints:
    """Fill nodes class by class and return kind x try x class counts.

    `order` is kind x try x class, and `limit` is kind x class: how many items of the class at most.
    """
    kinds, tries, classes = order.shape
    meter.count += classes * (HEURISTIC_CLASS + HEURISTIC_CELL * kinds * tries)
    resources = [r for r in range(inputs.requests.shape[1]) if inputs.requests[:, r].any()]
    left = [np.repeat(inputs.free[:, r, None], tries, axis=1) for r in resources]
    requests = [inputs.requests[:, r] for r in resources]
    divisors = [np.where(request > 0, request, 1e-30) for request in requests]
    patterns = np.zeros(order.shape, dtype=np.int64)
    excluded = np.zeros(order.shape, dtype=bool) if inputs.conflicts.any() else None
    rows, columns = np.indices((kinds, tries))
    group_left = [np.full((kinds, tries), max_items, dtype=np.float64) for _, max_items in inputs.group_limits]
    max_items_left = limit.astype(np.float64)
    for place in range(classes):
        chosen = order[:, :, place]
        count = max_items_left[rows, chosen]
        for amount, divisor in zip(left, divisors, strict=True):
            np.minimum(count, amount / divisor[chosen], out=count)
        count = np.floor(count)
        if excluded is not None:
            count[excluded[rows, columns, chosen]] = 0
        for (group, _), left_in_group in zip(inputs.group_limits, group_left, strict=True):
            count = np.where(group[chosen], np.minimum(count, left_in_group), count)
        if not count.any():
            continue
        for (group, _), left_in_group in zip(inputs.group_limits, group_left, strict=True):
            left_in_group -= np.where(group[chosen], count, 0)
        patterns[rows, columns, chosen] = count
        for amount, request in zip(left, requests, strict=True):
            amount -= count * request[chosen]
        if excluded is not None:
            excluded |= (count > 0)[:, :, None] & inputs.conflicts[chosen]
    return patterns
