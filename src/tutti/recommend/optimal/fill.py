"""Packing nodes by value: many nodes at once, classes in the order of what they are worth for their size.

Contract: pure. Every pattern that comes out fits and keeps the rules within a node.
"""

from __future__ import annotations

import numpy as np

from tutti.cluster.columns import Ints, Rows
from tutti.recommend.optimal.flat import Flat, Floats

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


def best_patterns(flat: Flat, values: Floats, most: Ints | None = None) -> tuple[Ints, Floats]:
    """For every kind the most valuable pattern that was found, and what it is worth.

    `values` is what an item of each class is worth; one row for all kinds, or a row each.
    """
    most = flat.most if most is None else most
    limit = np.minimum(most, flat.demand)
    weights = mixes(flat.requests.shape[1])
    worth = np.broadcast_to(values, (len(flat.free), len(limit)))
    share = flat.requests[None, :, :] / np.maximum(flat.free[:, None, :], 1e-9)  # kind x class x resource
    size = np.einsum("kcr,wr->kwc", share, weights) + 1e-12
    density = np.where(flat.allowed[:, None, :] & (worth[:, None, :] > 0), worth[:, None, :] / size, -1.0)
    order = np.argsort(-density, axis=2, kind="stable")
    patterns = fill(flat, order, np.where(flat.allowed & (worth > 0), limit, 0))
    totals = np.einsum("kwc,kc->kw", patterns, worth)
    best = totals.argmax(axis=1)
    rows = np.arange(len(best))
    return patterns[rows, best], totals[rows, best]


def fill(flat: Flat, order: Rows, limit: Ints) -> Ints:
    """Fill nodes: `order` is kind x try x class, `limit` (kind x class) how many of each; gives kind x try x class."""
    kinds, tries, classes = order.shape
    left = np.broadcast_to(flat.free[:, None, :], (kinds, tries, flat.free.shape[1])).copy()
    patterns = np.zeros(order.shape, dtype=np.int64)
    shut = np.zeros(order.shape, dtype=bool) if flat.apart.any() else None
    inverse = np.where(flat.requests > 0, flat.requests, np.inf)
    rows, columns = np.indices((kinds, tries))
    shared_left = [np.full((kinds, tries), most, dtype=np.int64) for _, most in flat.shared]
    for place in range(classes):
        chosen = order[:, :, place]
        number = np.minimum(np.floor(left / inverse[chosen]).min(axis=2), limit[rows, chosen]).astype(np.int64)
        if shut is not None:
            number[shut[rows, columns, chosen]] = 0
        for (group, _), rest in zip(flat.shared, shared_left, strict=True):
            number = np.where(group[chosen], np.minimum(number, rest), number)
        if not number.any():
            continue
        for (group, _), rest in zip(flat.shared, shared_left, strict=True):
            rest -= np.where(group[chosen], number, 0)
        patterns[rows, columns, chosen] = number
        left -= number[:, :, None] * flat.requests[chosen]
        if shut is not None:
            shut |= (number > 0)[:, :, None] & flat.apart[chosen]
    return patterns
