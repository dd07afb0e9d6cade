"""Solve one packing problem: from seeds to the best packing and its lower bound.

Contract: pure; stops at the work budget. The packing is never dearer than a seed that covers as many items. The bound
holds for every packing that covers the whole demand; it is 0 when no bound was proved.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

import numpy as np

from tutti.cluster.columns import Bools, Floats
from tutti.cluster.work.meter import PACKING_NODE, SECOND
from tutti.cluster.work.work_budget import WorkBudget
from tutti.recommend.search.column_generation.generate import GeneratedColumns, generate_columns
from tutti.recommend.search.column_generation.master import MasterProgram
from tutti.recommend.search.column_generation.packing import Packing, make_packing
from tutti.recommend.search.column_generation.packing_input import PackingInput, select_kinds, undominated_kinds
from tutti.recommend.search.column_generation.pattern_enumeration import improving_patterns
from tutti.recommend.search.column_generation.rounding import add_seed_patterns, best_integer_packing, round_fractions

ReportCosts = Callable[[float, float], None]
"""Callback that receives the best cost so far, and the bound."""
NodePatterns = Sequence[tuple[int, Sequence[int]]]
_MANY_KINDS, _FEW_CLASSES = 20, 60
"""With more kinds than this and at most this many classes, pricing is exact from the start."""
_INTEGER_LEAST, _INTEGER_MOST = SECOND // 20, 2 * SECOND
"""Least and most work for the integer programme over the known patterns."""
_MIN_WORK_LEFT = SECOND // 5
"""Remaining work above which the search continues when the gap cannot be closed."""
_PENALTY = 1e3
"""Penalty for a dropped item, in prices of the dearest kind: higher than the price of any node that could take it."""


class SolvedPacking(NamedTuple):
    """The best packing found, and the lower bound on the cost of every packing."""

    packing: Packing
    bound: float


def solve(
    inputs: PackingInput,
    budget: WorkBudget,
    *,
    seeds: Iterable[NodePatterns] = (),
    values: Floats | None = None,
    mandatory: Bools | None = None,
    report: ReportCosts | None = None,
) -> SolvedPacking:
    """Pack as many items as possible, as cheaply as possible.

    `values` (up to 1) breaks ties between items. No item of the `mandatory` classes is dropped; some seed must cover
    them.
    """
    solver = _Solver(inputs, budget, report, values=values, mandatory=mandatory)
    for nodes in seeds:
        solver.consider(make_packing(inputs, _feasible_nodes(inputs, nodes)))
    return solver.run()


def lower_bound(inputs: PackingInput, budget: WorkBudget, *, cost: float, report: ReportCosts | None = None) -> float:
    """Return a lower bound on the cost of covering the whole demand, when a plan with a cost is known."""
    solver = _Solver(inputs, budget, report)
    generated = generate_columns(solver.master, budget.share(0.7), report=report)
    return solver.close_gap(generated, cost)


def _feasible_nodes(inputs: PackingInput, nodes: NodePatterns) -> list[tuple[int, Sequence[int]]]:
    """Return nodes without items that their kind does not allow, and without nodes that do not fit or exceed limits."""
    feasible: list[tuple[int, Sequence[int]]] = []
    limits = inputs.limit_left.copy()
    for kind, pattern in nodes:
        counts = np.where(inputs.allowed[kind], np.minimum(pattern, inputs.max_per_node), 0)
        if (counts @ inputs.requests <= inputs.free[kind]).all() and (
            inputs.limit_usage[:, kind] <= limits + 1e-9
        ).all():
            limits -= inputs.limit_usage[:, kind]
            feasible.append((kind, counts.tolist()))
    return feasible


class _Solver:
    """The state of one solve: the input, the master problem over undominated kinds, and the best packing so far."""

    def __init__(
        self,
        inputs: PackingInput,
        budget: WorkBudget,
        report: ReportCosts | None,
        *,
        values: Floats | None = None,
        mandatory: Bools | None = None,
    ) -> None:
        self.inputs, self.budget, self.report = inputs, budget, report
        self.mandatory = np.zeros(len(inputs.demand), dtype=bool) if mandatory is None else mandatory
        self.values = np.zeros(len(inputs.demand)) if values is None else values
        self.kinds = undominated_kinds(inputs)
        self.reduced = select_kinds(inputs, self.kinds)
        highest_price = float(inputs.price.max(initial=1.0))
        # The number of dropped items outweighs their values, which only break ties.
        self.penalty: Floats = _PENALTY * max(highest_price, 1.0) * (1 + self.values / max(int(inputs.demand.sum()), 1))
        prices = self.reduced.price[self.reduced.price > 0]
        scale = float(np.median(prices)) if len(prices) else 1.0
        self.master = MasterProgram(self.reduced, self.penalty, budget.meter, scale=scale, mandatory=self.mandatory)
        self.best: Packing | None = None
        add_seed_patterns(self.master, budget.meter)

    def consider(self, packing: Packing | None) -> None:
        """Add the patterns of a packing to the master problem, and keep the packing if it is the best so far."""
        if packing is None:
            return
        self.budget.meter.count += PACKING_NODE * len(packing.nodes)
        for _, pattern in packing.nodes:
            cheapest = self.reduced.cheapest_kind(np.array(pattern))
            if cheapest >= 0:
                self.master.add(cheapest, pattern)
        if self.best is None or self._rank(packing) < self._rank(self.best):
            self.best = packing
            if self.report is not None:
                self.report(packing.cost(self.inputs), 0.0)

    def _rank(self, packing: Packing) -> tuple[int, int, float, float, int]:
        """Return how good a packing is; the least is best."""
        dropped_value = round(float(packing.dropped @ self.values), 9)
        dropped_mandatory = int(packing.dropped[self.mandatory].sum())
        return (
            dropped_mandatory,
            int(packing.dropped.sum()),
            dropped_value,
            round(packing.cost(self.inputs), 6),
            len(packing.nodes),
        )

    def run(self) -> SolvedPacking:
        """Return the best packing and its bound."""
        # With many kinds, heuristics miss good patterns: price exactly.
        price_exactly = len(self.reduced.price) > _MANY_KINDS and len(self.reduced.demand) <= _FEW_CLASSES
        generated = generate_columns(
            self.master, self.budget.share(0.45 if price_exactly else 0.3), prove=price_exactly, report=self.report
        )
        if not len(self.reduced.node_free):  # rounding is quicker, and better with many items
            self.consider(self._rounded_packing(None))
        integer_packing = best_integer_packing(self.master, self.budget.share(0.3).limited_to(_INTEGER_MOST))
        self.consider(self._with_all_kinds(integer_packing))
        if len(self.reduced.node_free):
            self.consider(self._rounded_packing(integer_packing))
        best = self.best or make_packing(self.inputs, ())
        bound = 0.0
        if not best.dropped.any():
            bound = self.close_gap(
                generated._replace(is_complete=generated.is_complete and price_exactly), best.cost(self.inputs)
            )
        elif generated.cost < np.inf:
            self.consider(
                self._with_all_kinds(best_integer_packing(self.master, self.budget.extended_to(_INTEGER_LEAST)))
            )
        return SolvedPacking(self.best or best, bound)

    def _with_all_kinds(self, packing: Packing | None) -> Packing | None:
        """Return a packing of the undominated kinds as a packing of all kinds."""
        if packing is None:
            return None
        nodes = [(self.kinds[kind], pattern) for kind, pattern in packing.nodes]
        return make_packing(self.inputs, nodes, packing.on_existing)

    def _rounded_packing(self, integer_packing: Packing | None) -> Packing | None:
        """Return a packing by rounding the linear solution.

        With existing nodes, the items that `integer_packing` puts there stay, and the remaining items are packed again.
        """
        if not len(self.reduced.node_free):
            return self._with_all_kinds(round_fractions(self.master, self.budget.share(0.6)))
        if integer_packing is None:
            return None
        # Items on existing nodes stay there; the remaining items are packed again.
        remaining = self.reduced.without_existing_nodes().with_demand(
            self.reduced.demand - integer_packing.on_existing.sum(axis=0)
        )
        if not remaining.demand.any():
            return None
        remaining_master = MasterProgram(remaining, self.penalty, self.budget.meter, scale=self.master.scale)
        add_seed_patterns(remaining_master, self.budget.meter)
        part_budget = self.budget.share(0.4)
        generate_columns(remaining_master, part_budget.share(0.5), prove=False)
        packing = round_fractions(remaining_master, part_budget)
        return (
            None if packing is None else self._with_all_kinds(packing._replace(on_existing=integer_packing.on_existing))
        )

    def close_gap(self, generated: GeneratedColumns, cost: float) -> float:
        """Return the bound, raised where all patterns that a cheaper plan can use are few enough to be listed."""
        if not generated.is_complete:  # the bound is not final yet
            part_budget = self.budget.share(0.75)
            generated = generate_columns(self.master, part_budget, known_duals=generated.best_duals, report=self.report)
        bound, duals = generated.bound, generated.best_duals
        if bound <= 0 or cost - bound <= 1e-7 * cost:
            return min(bound, cost)
        if not bool((self.reduced.bound_max_per_node == self.reduced.max_per_node).all()):
            return bound
        full_prices = self.reduced.price + duals.limits @ self.reduced.limit_usage
        excess = (cost - bound) * (1 + 1e-6)
        patterns = improving_patterns(self.reduced, duals.items, full_prices, excess=excess, budget=self.budget)
        if patterns is None:
            self._search_further()
            return bound
        for kind, pattern in patterns:
            self.master.add(kind, pattern)
        solution = self.master.solve_integer(self.budget.extended_to(_INTEGER_LEAST))
        if solution is None:
            return bound
        if not solution.dropped.any():
            nodes = []
            for place in np.flatnonzero(solution.counts).tolist():
                nodes += [(self.master.kinds[place], self.master.patterns[place])] * int(solution.counts[place])
            self.consider(self._with_all_kinds(make_packing(self.reduced, nodes, solution.on_existing)))
        return min(max(bound, solution.bound * (1 - 1e-7)), cost)

    def _search_further(self) -> None:
        """Spend the remaining budget on rounding and on the integer programme over the known patterns."""
        if self.budget.remaining > _MIN_WORK_LEFT and self.best is not None:
            self.consider(self._rounded_packing(None))
            self.consider(self._with_all_kinds(best_integer_packing(self.master, self.budget)))
