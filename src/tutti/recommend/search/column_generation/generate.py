"""Column generation: add patterns to the master problem while patterns can lower its cost, and prove a lower bound.

Contract: `generate_columns` adds patterns until no pattern of any kind has a negative reduced cost, or the budget is
exhausted. It returns the best lower bound that was proved: no plan that covers the demand costs less, whatever patterns
it uses. The bound is Farley's: the dual values, scaled down until no pattern is worth more than its price.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from tutti.cluster.columns import Floats, Ints
from tutti.cluster.work.meter import SECOND, Meter
from tutti.cluster.work.work_budget import WorkBudget
from tutti.recommend.search.column_generation.knapsack_bounds import exact_bound, surrogate_bounds
from tutti.recommend.search.column_generation.master import Duals, MasterProgram
from tutti.recommend.search.column_generation.packing_input import PackingInput
from tutti.recommend.search.column_generation.pattern_enumeration import patterns_above
from tutti.recommend.search.column_generation.pattern_heuristics import best_patterns, varied_patterns

_CLOSE_ENOUGH = 2e-4
"""Relative distance between the bound and the cost of the linear programme at which the search for a bound ends."""
_PATTERNS_PER_KIND = 4
"""How many patterns of a kind are added when all valuable patterns are enumerated."""
_MAX_STATES = 20_000
"""States of the enumeration of a kind's valuable patterns, before HiGHS solves the knapsack problem instead."""
_STEP_TO_DUALS = 0.4
"""Step from the dual values of the best bound towards those of the master problem, at which exact pricing starts."""
_STALLED = 8
"""Rounds without progress after which the bound is computed."""
_VARIED_CELLS = 4_000
"""Kinds times classes up to which `varied_patterns` is used, which takes long."""
_PATTERNS_PER_ROUND = 40
"""How many patterns are added in one round at most."""
_EXACT_LEAST, _EXACT_MOST = SECOND // 20, 6 * SECOND // 10
"""Least and most work for one kind when HiGHS computes its bound."""


PatternFinder = Callable[[PackingInput, Floats, Meter], tuple[Ints, Floats]]
"""Finds a valuable pattern for every kind; returns the patterns and their values."""


class GeneratedColumns(NamedTuple):
    """The cost of the linear programme, the dual values of the best bound, and whether the bound is final."""

    cost: float
    best_duals: Duals
    is_complete: bool

    @property
    def bound(self) -> float:
        """The lower bound on the cost of every plan."""
        return min(self.best_duals.cost, self.cost)


def generate_columns(
    master: MasterProgram,
    budget: WorkBudget,
    *,
    prove: bool = True,
    rounds: int = 10_000,
    report: Callable[[float, float], None] | None = None,
    known_duals: Duals | None = None,
) -> GeneratedColumns:
    """Add patterns to a master problem, in at most `rounds` rounds; see the module's contract.

    `known_duals` are dual values that prove a bound, from an earlier call.
    """
    cost, stalled = np.inf, 0
    best_duals = known_duals or Duals(np.zeros(len(master.inputs.demand)), np.zeros(len(master.inputs.limit_left)), 0.0)
    while True:
        rounds -= 1
        duals = master.solve(budget)
        if duals is None:
            return GeneratedColumns(cost, best_duals, False)
        stalled = stalled + 1 if duals.cost > cost * (1 - 1e-4) else 0
        cost = duals.cost
        if report is not None:
            report(cost, best_duals.cost)
        added = _price_heuristically(master, duals, best_patterns, budget.meter)
        if budget.is_exhausted():
            surrogate_duals = _surrogate_proof(master.inputs, duals, budget.meter) if prove else best_duals
            return GeneratedColumns(cost, _higher_bound(best_duals, surrogate_duals), False)
        if added and stalled < _STALLED and rounds > 0:
            continue
        is_small = master.inputs.allowed.size <= _VARIED_CELLS
        if not added and rounds > 0 and is_small and _price_heuristically(master, duals, varied_patterns, budget.meter):
            continue
        if not prove:
            return GeneratedColumns(cost, best_duals, True)
        best_duals, added = _price_exactly(master, duals, best_duals, budget)
        stalled = 0
        if best_duals.cost >= cost * (1 - _CLOSE_ENOUGH) or not added or budget.is_exhausted():
            return GeneratedColumns(cost, best_duals, not added or best_duals.cost >= cost * (1 - _CLOSE_ENOUGH))


def _price_heuristically(master: MasterProgram, duals: Duals, find_patterns: PatternFinder, meter: Meter) -> bool:
    """Add the improving patterns that a heuristic finds; return whether any was new."""
    full_prices = master.inputs.price + duals.limits @ master.inputs.limit_usage
    patterns, pattern_values = find_patterns(master.inputs, duals.items, meter)
    ratio = pattern_values / np.maximum(full_prices, 1e-12)
    improving = np.flatnonzero(ratio > 1 + 1e-6)
    improving = improving[np.argsort(-ratio[improving], kind="stable")][:_PATTERNS_PER_ROUND]
    return sum(master.add(kind, tuple(patterns[kind].tolist())) for kind in improving.tolist()) > 0


def _higher_bound(first: Duals, second: Duals) -> Duals:
    """Return the dual values that prove the higher bound."""
    return second if second.cost > first.cost else first


def _surrogate_proof(inputs: PackingInput, duals: Duals, meter: Meter) -> Duals:
    """Return the dual values, scaled by the surrogate bounds so that they prove a bound."""
    return _scaled_to_feasible(inputs, duals, surrogate_bounds(inputs, duals.items, meter))


def _price_exactly(master: MasterProgram, duals: Duals, best_duals: Duals, budget: WorkBudget) -> tuple[Duals, bool]:
    """Bound the value of every kind's patterns; return the best dual values, and whether patterns were added.

    The dual values of the master problem jump from round to round. So pricing starts between the dual values of the
    best bound and those of the master problem (dual stabilisation), where bounds are better. Only if no pattern is
    found there, pricing uses the dual values of the master problem.
    """
    for step, tolerance in ((_STEP_TO_DUALS, 1e-2), (1.0, 1e-2), (1.0, _CLOSE_ENOUGH)):
        if step < 1 and best_duals.cost <= 0:
            continue
        bound_duals, added = _bound_at(
            master, _interpolated(best_duals, duals, step), duals, budget=budget, tolerance=tolerance
        )
        best_duals = _higher_bound(best_duals, bound_duals)
        if added or budget.is_exhausted() or best_duals.cost >= duals.cost * (1 - _CLOSE_ENOUGH):
            return best_duals, added
    return best_duals, False


def _interpolated(first: Duals, second: Duals, step: float) -> Duals:
    """Return dual values between two others: `step` 0 is the first, 1 the second."""
    return Duals(
        first.items + step * (second.items - first.items),
        first.limits + step * (second.limits - first.limits),
        first.cost + step * (second.cost - first.cost),
    )


def _bound_at(
    master: MasterProgram, at_duals: Duals, duals: Duals, *, budget: WorkBudget, tolerance: float
) -> tuple[Duals, bool]:
    """Bound the patterns of all kinds at some dual values; return scaled dual values, and whether any was added."""
    inputs = master.inputs
    full_prices = inputs.price + at_duals.limits @ inputs.limit_usage
    value_bounds = surrogate_bounds(inputs, at_duals.items, budget.meter)
    tolerance = min(
        max(
            0.15 * (1 - _scaled_to_feasible(inputs, at_duals, value_bounds).cost / max(duals.cost, 1e-9)), _CLOSE_ENOUGH
        ),
        tolerance,
    )
    added, is_priced = False, np.zeros(len(inputs.price), dtype=bool)
    while len(inputs.price) and not budget.is_exhausted():
        ratios = np.where(is_priced, 0.0, value_bounds / np.maximum(full_prices, 1e-12))
        kind = int(ratios.argmax())
        if ratios[kind] <= max(
            1 + _CLOSE_ENOUGH, (value_bounds / np.maximum(full_prices, 1e-12))[is_priced].max(initial=0.0)
        ):
            break  # the scale is decided by a kind that is priced already
        added |= _price_kind(master, at_duals, full_prices, value_bounds, kind, budget=budget, tolerance=tolerance)
        is_priced[kind] = True
    return _scaled_to_feasible(inputs, at_duals, value_bounds), added


def _price_kind(
    master: MasterProgram,
    duals: Duals,
    full_prices: Floats,
    value_bounds: Floats,
    kind: int,
    *,
    budget: WorkBudget,
    tolerance: float,
) -> bool:
    """Lower the value bound of one kind, and add its improving patterns; return whether any was added."""
    inputs = master.inputs
    min_value = float(full_prices[kind]) * (1 + max(_CLOSE_ENOUGH, tolerance))
    patterns = patterns_above(
        inputs,
        kind,
        duals.items,
        budget.meter,
        min_value=min_value,
        max_per_node=inputs.bound_max_per_node,
        max_states=_MAX_STATES,
    )
    if patterns is not None:
        values = patterns @ duals.items
        value_bounds[kind] = min(value_bounds[kind], max(float(values.max(initial=0.0)) * (1 + 1e-9), min_value))
        most_valuable = np.argsort(-values, kind="stable")[:_PATTERNS_PER_KIND]
        usable = [place for place in most_valuable.tolist() if inputs.obeys_node_rules(patterns[place])]
        return sum(master.add(kind, tuple(patterns[place].tolist())) for place in usable) > 0
    value, pattern = exact_bound(
        inputs,
        kind,
        duals.items,
        budget=budget.extended_to(_EXACT_LEAST).limited_to(_EXACT_MOST),
        relative_gap=tolerance,
    )
    value_bounds[kind] = min(value_bounds[kind], value)
    if pattern is None or float(pattern @ duals.items) <= full_prices[kind] * (1 + 1e-6):
        return False
    return master.add(kind, tuple(pattern.tolist()))


def _scaled_to_feasible(inputs: PackingInput, duals: Duals, value_bounds: Floats) -> Duals:
    """Return the dual values, scaled down until no pattern is worth more than its price.

    `value_bounds` are upper bounds on the value of a pattern of each kind.
    """
    net_values = value_bounds - duals.limits @ inputs.limit_usage
    with np.errstate(divide="ignore"):
        factors = np.where(net_values > 0, inputs.price / np.maximum(net_values, 1e-15), np.inf)
    factor = float(min(1.0, factors.min(initial=1.0)))
    return Duals(duals.items * factor, duals.limits * factor, duals.cost * factor)
