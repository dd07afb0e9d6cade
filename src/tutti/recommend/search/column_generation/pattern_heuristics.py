"""Packing nodes by value: many nodes at once, classes in the order of what they are worth for their size.

Contract: pure. Every pattern that comes out fits and keeps the rules within a node.
"""

from __future__ import annotations

import numpy as np

from tutti.cluster.columns import Floats, Ints, Rows
from tutti.cluster.work.meter import HEURISTIC_CELL, HEURISTIC_CLASS, Meter
from tutti.recommend.search.column_generation.packing_input import PackingInput

_MOST_PAIRS = 40_000
"""Kinds times pairs of classes up to which pairs are tried."""
_MIXES = 12
"""How many ways to weigh the resources against each other are tried."""


def mixes(resources: int) -> Floats:
    """Weights of resources: each alone, all alike, and steps between the first two."""
    steps = [np.eye(resources)[place] for place in range(resources)]
    for share in np.linspace(0, 1, _MIXES):
        mix = np.full(resources, 0.05)
        mix[0] += share
        mix[1 % resources] += 1 - share
        steps.append(mix)
    return np.array(steps)


def alone(flat: PackingInput, most: Ints | None = None) -> Ints:
    """Kind x class: how many items of a class one node of a kind takes, with nobody else there."""
    most = flat.most if most is None else most
    fits = np.full(flat.allowed.shape, np.inf)
    for resource in range(flat.requests.shape[1]):
        ask = flat.requests[:, resource]
        asked = np.flatnonzero(ask > 0)
        if len(asked):
            fits[:, asked] = np.minimum(fits[:, asked], flat.free[:, resource, None] / ask[asked])
    taken: Ints = np.where(flat.allowed, np.minimum(np.floor(fits), np.minimum(most, flat.demand)), 0).astype(np.int64)
    return taken


def best_patterns(flat: PackingInput, values: Floats, meter: Meter) -> tuple[Ints, Floats]:
    """For every kind the most valuable pattern that was found, and what it is worth.

    `values` is what an item of each class is worth; one row for all kinds, or a row each.
    """
    limit = np.minimum(flat.most, flat.demand)
    weights = mixes(flat.requests.shape[1])
    worth = np.broadcast_to(values, (len(flat.free), len(limit)))
    scaled = weights[None, :, :] / np.maximum(flat.free[:, None, :], 1e-9)  # kind x mix x resource
    size = scaled @ flat.requests.T + 1e-12
    density = np.where(flat.allowed[:, None, :] & (worth[:, None, :] > 0), worth[:, None, :] / size, -1.0)
    order = np.argsort(-density, axis=2, kind="stable")
    patterns = fill(flat, order, np.where(flat.allowed & (worth > 0), limit, 0), meter)
    totals = (patterns * worth[:, None, :]).sum(axis=2)
    best = totals.argmax(axis=1)
    rows = np.arange(len(best))
    return patterns[rows, best], totals[rows, best]


def varied_patterns(flat: PackingInput, values: Floats, meter: Meter) -> tuple[Ints, Floats]:
    """As `best_patterns`, with one item, or two, of every class set first: finds what the order by value misses."""
    classes = np.flatnonzero((values > 0) & (flat.demand > 0))
    limit = np.minimum(flat.most, flat.demand)
    best, worth = best_patterns(flat, values, meter)
    pairs = len(flat.free) * len(classes) ** 2 <= _MOST_PAIRS
    firsts: list[tuple[int, ...]] = [(one,) for one in classes.tolist()]
    if pairs:
        firsts += [(one, two) for one in classes.tolist() for two in classes.tolist() if one <= two]
    firsts = [first for first in firsts if not any(flat.apart[one, two] for one in first for two in first)]
    start = np.zeros((len(firsts), len(limit)), dtype=np.int64)
    for place, first in enumerate(firsts):
        for one in first:
            start[place, one] += 1
    start = start[(start <= limit).all(axis=1)]
    if not len(start):
        return best, worth
    used = start @ flat.requests
    for kind in range(len(flat.free)):
        mine = start[(used <= flat.free[kind]).all(axis=1) & (flat.allowed[kind] | (start == 0)).all(axis=1)]
        if len(mine):
            patterns = _filled_up(flat, kind, values, mine, meter)
            totals = patterns @ values
            top = int(totals.argmax())
            if totals[top] > worth[kind] * (1 + 1e-9):
                best[kind], worth[kind] = patterns[top], totals[top]
    return best, worth


def _filled_up(flat: PackingInput, kind: int, values: Floats, start: Ints, meter: Meter) -> Ints:
    """Patterns of one kind that begin with some items and go on by value for size, where what is left is scarce."""
    left = flat.free[kind] - start @ flat.requests
    scarce = 1.0 / np.maximum(left, 1e-3 * flat.free[kind] + 1e-9)
    size = scarce @ flat.requests.T + 1e-12
    density = np.where(flat.allowed[kind] & (values > 0), values / size, -1.0)
    order = np.argsort(-density, axis=1, kind="stable")
    limit = np.where(flat.allowed[kind] & (values > 0), np.minimum(flat.most, flat.demand), 0) - start
    if flat.apart.any():
        limit = np.where((start > 0) @ flat.apart, 0, limit)
    for group, most in flat.shared:
        full = start[:, group].sum(axis=1) >= most
        limit[np.ix_(full, group)] = 0
    rest = flat._replace(free=left, allowed=np.ones((len(left), len(values)), dtype=bool))
    return start + fill(rest, order[:, None, :], np.maximum(limit, 0), meter)[:, 0, :]


def fill(flat: PackingInput, order: Rows, limit: Ints, meter: Meter) -> Ints:
    """Fill nodes: `order` is kind x try x class, `limit` (kind x class) how many of each; gives kind x try x class."""
    kinds, tries, classes = order.shape
    meter.count += classes * (HEURISTIC_CLASS + HEURISTIC_CELL * kinds * tries)
    resources = [r for r in range(flat.requests.shape[1]) if flat.requests[:, r].any()]
    left = [np.repeat(flat.free[:, r, None], tries, axis=1) for r in resources]
    asks = [flat.requests[:, r] for r in resources]
    divisors = [np.where(ask > 0, ask, 1e-30) for ask in asks]
    patterns = np.zeros(order.shape, dtype=np.int64)
    shut = np.zeros(order.shape, dtype=bool) if flat.apart.any() else None
    rows, columns = np.indices((kinds, tries))
    shared_left = [np.full((kinds, tries), most, dtype=np.float64) for _, most in flat.shared]
    ceiling = limit.astype(np.float64)
    for place in range(classes):
        chosen = order[:, :, place]
        number = ceiling[rows, chosen]
        for amount, divisor in zip(left, divisors, strict=True):
            np.minimum(number, amount / divisor[chosen], out=number)
        number = np.floor(number)
        if shut is not None:
            number[shut[rows, columns, chosen]] = 0
        for (group, _), rest in zip(flat.shared, shared_left, strict=True):
            number = np.where(group[chosen], np.minimum(number, rest), number)
        if not number.any():
            continue
        for (group, _), rest in zip(flat.shared, shared_left, strict=True):
            rest -= np.where(group[chosen], number, 0)
        patterns[rows, columns, chosen] = number
        for amount, ask in zip(left, asks, strict=True):
            amount -= number * ask[chosen]
        if shut is not None:
            shut |= (number > 0)[:, :, None] & flat.apart[chosen]
    return patterns
