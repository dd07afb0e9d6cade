"""Column generation: patterns are added while some would lower the cost, and a bound is proved on the way.

Contract: `generate` fills a master with patterns until no pattern of any kind would help, or time is up, and gives the
best lower bound that was proved: no plan that covers the demand, whatever patterns it uses, costs less. The bound is
Farley's: the duals, scaled down until every pattern is worth no more than its price, are prices that no plan can beat.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from tutti.cluster.columns import Floats, Ints
from tutti.cluster.work.meter import SECOND, Meter
from tutti.cluster.work.work_budget import WorkBudget
from tutti.recommend.search.column_generation.knapsack_bounds import exact, surrogate
from tutti.recommend.search.column_generation.master import Duals, MasterProgram
from tutti.recommend.search.column_generation.packing_input import PackingInput
from tutti.recommend.search.column_generation.pattern_enumeration import patterns_above
from tutti.recommend.search.column_generation.pattern_heuristics import best_patterns, varied_patterns

_CLOSE = 2e-4
"""A bound this near to the cost of the linear programme is as good as the cost itself."""
_FEW = 4
"""How many patterns of a kind are added when all good ones are known."""
_STATES = 20_000
"""How far the search for all good patterns of a kind goes before HiGHS is asked."""
_PART = 0.4
"""How far from the duals that prove the best bound to those of the master patterns are looked for."""
_STALLED = 8
"""Rounds without progress after which the bound is looked at."""
_VARIED = 4_000
"""Kinds times classes up to which patterns with items set first are looked for: it takes long."""
_AT_ONCE = 40
"""How many patterns are added in a round at most."""
_EXACT_LEAST, _EXACT_MOST = SECOND // 20, 6 * SECOND // 10
"""Work for one kind when HiGHS is asked for its bound."""


Pack = Callable[[PackingInput, Floats, Meter], tuple[Ints, Floats]]
"""Finds for every kind a valuable pattern, and what it is worth."""


class GeneratedColumns(NamedTuple):
    """How it went: the cost of the linear programme, the duals that prove the bound, whether nothing can improve it."""

    cost: float
    proved: Duals
    done: bool

    @property
    def bound(self) -> float:
        """What no plan costs less than."""
        return min(self.proved.cost, self.cost)


def generate(
    master: MasterProgram,
    budget: WorkBudget,
    *,
    prove: bool = True,
    rounds: int = 10_000,
    tell: Callable[[float, float], None] | None = None,
    known: Duals | None = None,
) -> GeneratedColumns:
    """Add patterns to a master, in so many rounds at most; see the module's contract.

    `known` are duals that prove a bound, from an earlier round.
    """
    cost, stalled = np.inf, 0
    best = known or Duals(np.zeros(len(master.flat.demand)), np.zeros(len(master.flat.left)), 0.0)
    while True:
        rounds -= 1
        duals = master.solve(budget)
        if duals is None:
            return GeneratedColumns(cost, best, False)
        stalled = stalled + 1 if duals.cost > cost * (1 - 1e-4) else 0
        cost = duals.cost
        if tell is not None:
            tell(cost, best.cost)
        added = _by_filling(master, duals, best_patterns, budget.meter)
        if budget.is_exhausted():
            quick = _quickly_proved(master.flat, duals, budget.meter) if prove else best
            return GeneratedColumns(cost, _better(best, quick), False)
        if added and stalled < _STALLED and rounds > 0:
            continue
        few = master.flat.allowed.size <= _VARIED
        if not added and rounds > 0 and few and _by_filling(master, duals, varied_patterns, budget.meter):
            continue
        if not prove:
            return GeneratedColumns(cost, best, True)
        best, added = _by_proof(master, duals, best, budget)
        stalled = 0
        if best.cost >= cost * (1 - _CLOSE) or not added or budget.is_exhausted():
            return GeneratedColumns(cost, best, not added or best.cost >= cost * (1 - _CLOSE))


def _by_filling(master: MasterProgram, duals: Duals, pack: Pack, meter: Meter) -> bool:
    """Add the patterns that packing by value finds; say whether there were any."""
    due = master.flat.price + duals.limits @ master.flat.takes
    patterns, worth = pack(master.flat, duals.items, meter)
    ratio = worth / np.maximum(due, 1e-12)
    useful = np.flatnonzero(ratio > 1 + 1e-6)
    useful = useful[np.argsort(-ratio[useful], kind="stable")][:_AT_ONCE]
    return sum(master.add(kind, tuple(patterns[kind].tolist())) for kind in useful.tolist()) > 0


def _better(one: Duals, other: Duals) -> Duals:
    return other if other.cost > one.cost else one


def _quickly_proved(flat: PackingInput, duals: Duals, meter: Meter) -> Duals:
    return _scaled(flat, duals, surrogate(flat, duals.items, meter))


def _by_proof(master: MasterProgram, duals: Duals, best: Duals, budget: WorkBudget) -> tuple[Duals, bool]:
    """Bound the value of every kind's patterns, exactly where it matters; add what is found on the way.

    Not at the duals themselves, which jump from round to round, but part of the way from those that prove the best
    bound so far: what helps there helps on the way, and bounds there are better. Only if nothing is found there, at the
    duals themselves.
    """
    for part, near in ((_PART, 1e-2), (1.0, 1e-2), (1.0, _CLOSE)):
        if part < 1 and best.cost <= 0:
            continue
        proved, added = _proved_at(master, _between(best, duals, part), duals, budget=budget, near=near)
        best = _better(best, proved)
        if added or budget.is_exhausted() or best.cost >= duals.cost * (1 - _CLOSE):
            return best, added
    return best, False


def _between(one: Duals, other: Duals, part: float) -> Duals:
    """Duals part of the way from one to another."""
    return Duals(
        one.items + part * (other.items - one.items),
        one.limits + part * (other.limits - one.limits),
        one.cost + part * (other.cost - one.cost),
    )


def _proved_at(
    master: MasterProgram, there: Duals, duals: Duals, *, budget: WorkBudget, near: float
) -> tuple[Duals, bool]:
    """Bound all kinds at some duals; say whether a pattern was found that helps at the master's duals."""
    flat = master.flat
    due = flat.price + there.limits @ flat.takes
    worth = surrogate(flat, there.items, budget.meter)
    near = min(max(0.15 * (1 - _scaled(flat, there, worth).cost / max(duals.cost, 1e-9)), _CLOSE), near)
    added, settled = False, np.zeros(len(flat.price), dtype=bool)
    while len(flat.price) and not budget.is_exhausted():
        excess = np.where(settled, 0.0, worth / np.maximum(due, 1e-12))
        kind = int(excess.argmax())
        if excess[kind] <= max(1 + _CLOSE, (worth / np.maximum(due, 1e-12))[settled].max(initial=0.0)):
            break  # the others bind no more
        added |= _settle(master, there, due, worth, kind, budget=budget, near=near)
        settled[kind] = True
    return _scaled(flat, there, worth), added


def _settle(
    master: MasterProgram, duals: Duals, due: Floats, worth: Floats, kind: int, *, budget: WorkBudget, near: float
) -> bool:
    """Bound the value of one kind's patterns, and add those that help; say whether there were any."""
    flat = master.flat
    enough = float(due[kind]) * (1 + max(_CLOSE, near))
    above = patterns_above(flat, kind, duals.items, budget.meter, least=enough, most=flat.bound_most, states=_STATES)
    if above is not None:
        values = above @ duals.items
        worth[kind] = min(worth[kind], max(float(values.max(initial=0.0)) * (1 + 1e-9), enough))
        best = np.argsort(-values, kind="stable")[:_FEW]
        usable = [place for place in best.tolist() if flat.obeys(above[place])]
        return sum(master.add(kind, tuple(above[place].tolist())) for place in usable) > 0
    value, pattern = exact(
        flat, kind, duals.items, budget=budget.extended_to(_EXACT_LEAST).limited_to(_EXACT_MOST), near=near
    )
    worth[kind] = min(worth[kind], value)
    if pattern is None or float(pattern @ duals.items) <= due[kind] * (1 + 1e-6):
        return False
    return master.add(kind, tuple(pattern.tolist()))


def _scaled(flat: PackingInput, duals: Duals, worth: Floats) -> Duals:
    """Duals scaled down until no pattern is worth more than its price, when no pattern of a kind is worth more."""
    value = worth - duals.limits @ flat.takes
    with np.errstate(divide="ignore"):
        scale = np.where(value > 0, flat.price / np.maximum(value, 1e-15), np.inf)
    least = float(min(1.0, scale.min(initial=1.0)))
    return Duals(duals.items * least, duals.limits * least, duals.cost * least)
