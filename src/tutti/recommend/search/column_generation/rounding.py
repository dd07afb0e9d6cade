"""Rounding: from fractions of patterns to whole nodes.

Contract: `round_fractions` buys the whole part of each fraction and packs the uncovered items again;
`best_integer_packing` solves the integer programme over all known patterns. Both stop at the work budget, and return
packings that obey limits and rules.
"""

from __future__ import annotations

import numpy as np

from tutti.cluster.columns import Floats, Ints
from tutti.cluster.work.meter import SECOND, Meter
from tutti.cluster.work.work_budget import WorkBudget
from tutti.recommend.search.column_generation.generate import generate_columns
from tutti.recommend.search.column_generation.master import IntegerSolution, MasterProgram
from tutti.recommend.search.column_generation.packing import Packing, make_packing
from tutti.recommend.search.column_generation.packing_input import PackingInput, Pattern
from tutti.recommend.search.column_generation.pattern_heuristics import best_patterns, max_items_alone

_PRICING_ROUNDS = 12
"""Rounds of pricing for the uncovered items."""
_MAX_INTEGER_ITEMS = 150
"""Number of uncovered items up to which the integer programme is solved for them."""
_KEPT_PATTERNS = 500
"""How many known patterns are kept for the uncovered items."""
_INTEGER_LEAST, _INTEGER_MOST = SECOND // 20, 3 * SECOND // 2
"""Least and most work for the integer programme over the uncovered items."""


def best_integer_packing(master: MasterProgram, budget: WorkBudget) -> Packing | None:
    """Return the best packing over the known patterns that is found within the budget, or None."""
    solution = master.solve_integer(budget)
    return None if solution is None else _packing(master, solution)


def _packing(master: MasterProgram, solution: IntegerSolution) -> Packing:
    """Return an integer solution as a packing."""
    nodes = []
    for place in np.flatnonzero(solution.counts).tolist():
        nodes += [(master.kinds[place], master.patterns[place])] * int(solution.counts[place])
    return make_packing(master.inputs, nodes, solution.on_existing)


def round_fractions(master: MasterProgram, budget: WorkBudget) -> Packing | None:
    """Buy the whole counts of the linear solution, then price and pack the uncovered items, until all are covered.

    Return None when there are existing nodes: rounding does not place items there.
    """
    inputs = master.inputs
    if len(inputs.node_free):
        return None
    nodes: list[tuple[int, Pattern]] = []
    uncovered, limits = inputs.demand.copy(), inputs.limit_left.copy()
    current = master
    while uncovered.any():
        if not _buy_whole_counts(current, nodes, uncovered, limits) and not _buy_nearly_whole(
            current, nodes, uncovered, limits
        ):
            break
        if not uncovered.any():
            break
        rest = inputs.with_demand(uncovered.copy())._replace(limit_left=limits.copy())
        if budget.is_exhausted():
            nodes += buy_by_value(rest, _item_values(current, budget), budget)
            break
        current = _residual_master(current, rest, budget)
        cost = generate_columns(current, budget.share(0.3), prove=False, rounds=_PRICING_ROUNDS).cost
        if int(uncovered.sum()) <= _MAX_INTEGER_ITEMS:
            solution = current.solve_integer(budget.share(0.4).limited_to(_INTEGER_MOST).extended_to(_INTEGER_LEAST))
            if solution is not None and not solution.dropped.any() and solution.cost <= cost * 1.25:
                return make_packing(inputs, [*nodes, *_packing(current, solution).nodes])
    return make_packing(inputs, nodes)


def buy_by_value(inputs: PackingInput, values: Floats, budget: WorkBudget) -> list[tuple[int, Pattern]]:
    """Buy the pattern with the highest value per price until all items are covered or limits are reached.

    Meant for an exhausted budget: exceeds the budget by at most a tenth.
    """
    nodes: list[tuple[int, Pattern]] = []
    uncovered, limits = inputs.demand.copy(), inputs.limit_left.copy()
    while uncovered.any() and not budget.is_exceeded_by(budget.limit // 10):
        wanted = np.where(uncovered > 0, np.maximum(values, 1e-9), 0)
        patterns, pattern_values = best_patterns(inputs.with_demand(uncovered), wanted, budget.meter)
        is_usable = (inputs.limit_usage <= limits[:, None] + 1e-9).all(axis=0) & (pattern_values > 0)
        if not is_usable.any():
            break
        kind = int(np.where(is_usable, pattern_values / np.maximum(inputs.price, 1e-9), -1).argmax())
        times = int((uncovered[patterns[kind] > 0] // patterns[kind][patterns[kind] > 0]).min())
        if not _buy(inputs, nodes, uncovered, limits, kind, tuple(patterns[kind].tolist()), max(times, 1)):
            break
    return nodes


def _item_values(master: MasterProgram, budget: WorkBudget) -> Floats:
    """Return the dual values of the items; 1 for each when the solver fails."""
    duals = master.solve(budget)
    return duals.items if duals is not None else np.ones(len(master.inputs.demand))


def _residual_master(previous: MasterProgram, rest: PackingInput, budget: WorkBudget) -> MasterProgram:
    """Return a master problem for the uncovered items, with the most valuable of the known patterns."""
    residual = MasterProgram(rest, previous.penalty, budget.meter, scale=previous.scale)
    for kind, pattern in _single_class_patterns(rest):
        residual.add(kind, pattern)
    values = _item_values(previous, budget)
    patterns = np.array(previous.patterns, dtype=np.int64).reshape(len(previous.patterns), -1)
    trimmed = np.minimum(patterns, rest.demand)
    pattern_values = (trimmed @ values) / np.maximum(previous.inputs.price[previous.kinds], 1e-9)
    for place in np.argsort(-pattern_values, kind="stable")[:_KEPT_PATTERNS].tolist():
        residual.add(previous.kinds[place], tuple(trimmed[place].tolist()))
    return residual


def _buy_whole_counts(current: MasterProgram, nodes: list[tuple[int, Pattern]], uncovered: Ints, limits: Floats) -> int:
    """Buy each pattern as often as the whole part of its fraction; return how many nodes were bought."""
    levels = current.pattern_levels()
    bought = 0
    for place in np.flatnonzero(levels >= 1 - 1e-6).tolist():
        bought += _buy(
            current.inputs,
            nodes,
            uncovered,
            limits,
            current.kinds[place],
            current.patterns[place],
            int(levels[place] + 1e-6),
        )
    return bought


def _buy_nearly_whole(current: MasterProgram, nodes: list[tuple[int, Pattern]], uncovered: Ints, limits: Floats) -> int:
    """Buy one node of each of the fullest, most nearly whole patterns: a quarter of all. Return how many."""
    inputs, levels = current.inputs, current.pattern_levels()
    places = np.flatnonzero(levels > 1e-6)
    if not len(places):
        return 0
    used = np.array([current.patterns[place] for place in places.tolist()]) @ inputs.requests
    free = np.maximum(inputs.free[np.array(current.kinds)[places]], 1e-9)
    scores = levels[places] * (used / free)[:, :2].max(axis=1)
    chosen = places[np.argsort(-scores, kind="stable")][: max(len(places) // 4, 1)]
    return sum(
        _buy(inputs, nodes, uncovered, limits, current.kinds[place], current.patterns[place], 1)
        for place in chosen.tolist()
    )


def _buy(
    inputs: PackingInput,
    nodes: list[tuple[int, Pattern]],
    uncovered: Ints,
    limits: Floats,
    kind: int,
    pattern: Pattern,
    times: int,
) -> int:
    """Buy a pattern up to `times` times while it covers items and limits allow; return how often."""
    bought = 0
    counts = np.array(pattern)
    for _ in range(times):
        trimmed = np.minimum(counts, uncovered)
        if not trimmed.any() or (limits < inputs.limit_usage[:, kind]).any():
            break
        uncovered -= trimmed
        limits -= inputs.limit_usage[:, kind]
        nodes.append((kind, tuple(trimmed.tolist())))
        bought += 1
    return bought


def _single_class_patterns(inputs: PackingInput) -> list[tuple[int, Pattern]]:
    """Return for every class a pattern with this class alone, of its cheapest kind: they cover all demand."""
    max_items = max_items_alone(inputs)
    with np.errstate(divide="ignore"):
        price_per_item = np.where(max_items > 0, inputs.price[:, None] / np.maximum(max_items, 1), np.inf)
    patterns = []
    for number in np.flatnonzero((inputs.demand > 0) & (max_items > 0).any(axis=0)).tolist():
        kind = int(price_per_item[:, number].argmin())
        pattern = [0] * len(inputs.demand)
        pattern[number] = int(max_items[kind, number])
        patterns.append((kind, tuple(pattern)))
    return patterns


def add_seed_patterns(master: MasterProgram, meter: Meter) -> None:
    """Add first patterns to a master problem: one for every class alone, and mixtures by item size."""
    inputs = master.inputs
    for kind, pattern in _single_class_patterns(inputs):
        master.add(kind, pattern)
    sizes = inputs.requests / np.maximum(inputs.free.max(axis=0, initial=0.0), 1e-9)
    for values in (sizes.max(axis=1), sizes.sum(axis=1), sizes[:, 0] + 1e-9, sizes[:, 1] + 1e-9):
        patterns, pattern_values = best_patterns(inputs, values, meter)
        for kind in range(len(pattern_values)):
            if pattern_values[kind] > 0:
                master.add(kind, tuple(patterns[kind].tolist()))
