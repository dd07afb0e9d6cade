"""Whole nodes: from fractions of patterns to a packing.

Contract: pure but for the clock. `round_off` buys the whole part of the fractions and packs the rest anew, `choose`
asks for the best whole numbers over all known patterns. Both give a packing that obeys limits and rules.
"""

from __future__ import annotations

import numpy as np

from tutti.cluster.columns import Floats, Ints
from tutti.cluster.work.meter import SECOND, Meter
from tutti.cluster.work.work_budget import WorkBudget
from tutti.recommend.search.column_generation.generate import generate
from tutti.recommend.search.column_generation.master import IntegerSolution, MasterProgram
from tutti.recommend.search.column_generation.packing import Packing, packed
from tutti.recommend.search.column_generation.packing_input import PackingInput, Pattern
from tutti.recommend.search.column_generation.pattern_heuristics import alone, best_patterns

_ROUNDS = 12
"""Rounds of pricing for what is left."""
_FEW = 150
"""Items up to which what is left is settled in whole numbers."""
_KEPT = 500
"""Patterns that are kept for what is left."""
_WHOLE_LEAST, _WHOLE_MOST = SECOND // 20, 3 * SECOND // 2
"""Work for what is left in whole numbers."""


def choose(master: MasterProgram, budget: WorkBudget) -> Packing | None:
    """The best packing over the known patterns that is found in time."""
    whole = master.whole(budget)
    return None if whole is None else _packing(master, whole)


def _packing(master: MasterProgram, whole: IntegerSolution) -> Packing:
    nodes = []
    for place in np.flatnonzero(whole.times).tolist():
        nodes += [(master.kinds[place], master.patterns[place])] * int(whole.times[place])
    return packed(master.flat, nodes, whole.moved)


def round_off(master: MasterProgram, budget: WorkBudget) -> Packing | None:
    """Buy whole parts, and pack what is left with patterns made for it, again and again."""
    flat = master.flat
    if len(flat.room):
        return None
    nodes: list[tuple[int, Pattern]] = []
    left, limits = flat.demand.copy(), flat.left.copy()
    now = master
    while left.any():
        if not _buy_whole_parts(now, nodes, left, limits) and not _buy_near_whole(now, nodes, left, limits):
            break
        if not left.any():
            break
        rest = flat.with_demand(left.copy())._replace(left=limits.copy())
        if budget.is_exhausted():
            nodes += by_value(rest, _values(now, budget), budget)
            break
        now = _for_rest(now, rest, budget)
        cost = generate(now, budget.share(0.3), prove=False, rounds=_ROUNDS).cost
        if int(left.sum()) <= _FEW:
            whole = now.whole(budget.share(0.4).limited_to(_WHOLE_MOST).extended_to(_WHOLE_LEAST))
            if whole is not None and not whole.dropped.any() and whole.cost <= cost * 1.25:
                return packed(flat, [*nodes, *_packing(now, whole).nodes])
    return packed(flat, nodes)


def by_value(flat: PackingInput, values: Floats, budget: WorkBudget) -> list[tuple[int, Pattern]]:
    """Buy the pattern that is worth most for its price, again and again, until nothing is left, or limits bind.

    It is for an exhausted budget, and exceeds the budget by a tenth at most.
    """
    nodes: list[tuple[int, Pattern]] = []
    left, limits = flat.demand.copy(), flat.left.copy()
    while left.any() and not budget.is_exceeded_by(budget.limit // 10):
        wanted = np.where(left > 0, np.maximum(values, 1e-9), 0)
        patterns, worth = best_patterns(flat.with_demand(left), wanted, budget.meter)
        usable = (flat.takes <= limits[:, None] + 1e-9).all(axis=0) & (worth > 0)
        if not usable.any():
            break
        kind = int(np.where(usable, worth / np.maximum(flat.price, 1e-9), -1).argmax())
        times = int((left[patterns[kind] > 0] // patterns[kind][patterns[kind] > 0]).min())
        if not _buy(flat, nodes, left, limits, kind, tuple(patterns[kind].tolist()), max(times, 1)):
            break
    return nodes


def _values(master: MasterProgram, budget: WorkBudget) -> Floats:
    duals = master.solve(budget)
    return duals.items if duals is not None else np.ones(len(master.flat.demand))


def _for_rest(before: MasterProgram, rest: PackingInput, budget: WorkBudget) -> MasterProgram:
    """A master for what is left, with those known patterns that still serve."""
    inner = MasterProgram(rest, before.penalty, budget.meter, scale=before.scale)
    for kind, pattern in _seeds(rest):
        inner.add(kind, pattern)
    values = _values(before, budget)
    patterns = np.array(before.patterns, dtype=np.int64).reshape(len(before.patterns), -1)
    trimmed = np.minimum(patterns, rest.demand)
    worth = (trimmed @ values) / np.maximum(before.flat.price[before.kinds], 1e-9)
    for place in np.argsort(-worth, kind="stable")[:_KEPT].tolist():
        inner.add(before.kinds[place], tuple(trimmed[place].tolist()))
    return inner


def _buy_whole_parts(now: MasterProgram, nodes: list[tuple[int, Pattern]], left: Ints, limits: Floats) -> int:
    levels = now.levels()
    bought = 0
    for place in np.flatnonzero(levels >= 1 - 1e-6).tolist():
        bought += _buy(now.flat, nodes, left, limits, now.kinds[place], now.patterns[place], int(levels[place] + 1e-6))
    return bought


def _buy_near_whole(now: MasterProgram, nodes: list[tuple[int, Pattern]], left: Ints, limits: Floats) -> int:
    """Buy one of each of those that are nearest to a whole one and fullest: a quarter of the fractions."""
    flat, levels = now.flat, now.levels()
    places = np.flatnonzero(levels > 1e-6)
    if not len(places):
        return 0
    used = np.array([now.patterns[place] for place in places.tolist()]) @ flat.requests
    free = np.maximum(flat.free[np.array(now.kinds)[places]], 1e-9)
    merit = levels[places] * (used / free)[:, :2].max(axis=1)
    chosen = places[np.argsort(-merit, kind="stable")][: max(len(places) // 4, 1)]
    return sum(_buy(flat, nodes, left, limits, now.kinds[place], now.patterns[place], 1) for place in chosen.tolist())


def _buy(
    flat: PackingInput,
    nodes: list[tuple[int, Pattern]],
    left: Ints,
    limits: Floats,
    kind: int,
    pattern: Pattern,
    times: int,
) -> int:
    """Buy a pattern some times as long as it is wanted and within limits; give how often."""
    bought = 0
    counts = np.array(pattern)
    for _ in range(times):
        trimmed = np.minimum(counts, left)
        if not trimmed.any() or (limits < flat.takes[:, kind]).any():
            break
        left -= trimmed
        limits -= flat.takes[:, kind]
        nodes.append((kind, tuple(trimmed.tolist())))
        bought += 1
    return bought


def _seeds(flat: PackingInput) -> list[tuple[int, Pattern]]:
    """A pattern for every class alone, where it is cheapest, so that everything can be covered."""
    taken = alone(flat)
    with np.errstate(divide="ignore"):
        each = np.where(taken > 0, flat.price[:, None] / np.maximum(taken, 1), np.inf)
    seeds = []
    for number in np.flatnonzero((flat.demand > 0) & (taken > 0).any(axis=0)).tolist():
        kind = int(each[:, number].argmin())
        pattern = [0] * len(flat.demand)
        pattern[number] = int(taken[kind, number])
        seeds.append((kind, tuple(pattern)))
    return seeds


def seed(master: MasterProgram, meter: Meter) -> None:
    """Give a master a pattern for every class, and patterns that mix classes by their size."""
    flat = master.flat
    for kind, pattern in _seeds(flat):
        master.add(kind, pattern)
    sizes = flat.requests / np.maximum(flat.free.max(axis=0, initial=0.0), 1e-9)
    for values in (sizes.max(axis=1), sizes.sum(axis=1), sizes[:, 0] + 1e-9, sizes[:, 1] + 1e-9):
        patterns, worth = best_patterns(flat, values, meter)
        for kind in range(len(worth)):
            if worth[kind] > 0:
                master.add(kind, tuple(patterns[kind].tolist()))
