"""Column generation: patterns are added while some would lower the cost, and a bound is proved on the way.

Contract: `generate` fills a master with patterns until no pattern of any kind would help, or time is up, and gives the
best lower bound that was proved: no plan that covers the demand, whatever patterns it uses, costs less. The bound is
Farley's: the duals, scaled down until every pattern is worth no more than its price, are prices that no plan can beat.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from tutti.recommend.optimal.fill import best_patterns
from tutti.recommend.optimal.flat import Flat, Floats
from tutti.recommend.optimal.knapsack import exact, surrogate
from tutti.recommend.optimal.master import Duals, Master
from tutti.recommend.request import Deadline

_CLOSE = 2e-4
"""A bound this near to the cost of the linear programme is as good as the cost itself."""
_AT_ONCE = 40
"""How many patterns are added in a round at most."""


class Generated(NamedTuple):
    """How it went: the cost of the linear programme, the proved bound, and whether nothing can improve them."""

    cost: float
    bound: float
    done: bool


def generate(
    master: Master,
    deadline: Deadline,
    *,
    prove: bool = True,
    rounds: int = 10_000,
    tell: Callable[[float, float], None] | None = None,
) -> Generated:
    """Add patterns to a master, in so many rounds at most; see the module's contract."""
    flat, bound, cost, stalled = master.flat, 0.0, np.inf, 0
    while True:
        rounds -= 1
        duals = master.solve()
        if duals is None:
            return Generated(cost, bound, False)
        if duals.cost > cost * (1 - 1e-4):
            stalled += 1
        else:
            stalled = 0
        cost = duals.cost
        if tell is not None:
            tell(cost, bound)
        due = flat.price + duals.limits @ flat.takes
        added = _by_filling(master, duals, due)
        if deadline.is_over():
            return Generated(cost, max(bound, _quick_bound(flat, duals) if prove else bound), False)
        if added and stalled < 12 and rounds > 0:
            continue
        if not prove:
            return Generated(cost, bound, True)
        found, added = _by_proof(master, duals, due, deadline, bound)
        bound = max(bound, found)
        if bound >= cost * (1 - _CLOSE) or not added or deadline.is_over():
            return Generated(cost, min(bound, cost), not added or bound >= cost * (1 - _CLOSE))


def _by_filling(master: Master, duals: Duals, due: Floats) -> bool:
    """Add the patterns that packing by value finds; say whether there were any."""
    flat = master.flat
    patterns, worth = best_patterns(flat, duals.items)
    gain = worth - due
    ratio = worth / np.maximum(due, 1e-12)
    useful = np.flatnonzero(gain > 1e-6 * np.maximum(due, 1e-12))
    useful = useful[np.argsort(-ratio[useful], kind="stable")][:_AT_ONCE]
    added = False
    for kind in useful.tolist():
        added |= master.add(kind, tuple(patterns[kind].tolist()))
    return added


def _quick_bound(flat: Flat, duals: Duals) -> float:
    return _farley(flat, duals, surrogate(flat, duals.items))


def _by_proof(master: Master, duals: Duals, due: Floats, deadline: Deadline, known: float) -> tuple[float, bool]:
    """Bound the value of every kind's patterns, exactly where it matters; add what is found on the way."""
    flat = master.flat
    worth = surrogate(flat, duals.items)
    added = False
    tight: set[int] = set()
    while len(flat.price) and not deadline.is_over():
        excess = (worth - duals.limits @ flat.takes) / np.maximum(flat.price, 1e-12)
        excess[list(tight)] = np.minimum(excess[list(tight)], 1.0 + _CLOSE) if tight else excess[list(tight)]
        kind = int(excess.argmax())
        if excess[kind] <= 1 + _CLOSE or kind in tight:
            break
        value, pattern = exact(flat, kind, duals.items, seconds=min(max(deadline.left, 0.05), 0.6))
        worth[kind] = min(worth[kind], value)
        tight.add(kind)
        if pattern is not None and float(pattern @ duals.items) > due[kind] * (1 + 1e-6):
            added |= master.add(kind, tuple(pattern.tolist()))
        if len(tight) >= 12 and added:
            break
    return max(known, _farley(flat, duals, worth)), added


def _farley(flat: Flat, duals: Duals, worth: Floats) -> float:
    """The bound that some duals prove, when no pattern of a kind is worth more than this."""
    value = worth - duals.limits @ flat.takes
    with np.errstate(divide="ignore"):
        scale = np.where(value > 0, flat.price / np.maximum(value, 1e-15), np.inf)
    return float(duals.cost * min(1.0, scale.min(initial=np.inf)))
