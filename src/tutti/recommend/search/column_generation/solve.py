"""One packing problem, from seeds to the best packing and its bound.

Contract: pure but for the clock. The packing is never dearer than a seed that covers as much. The bound holds for
every packing that covers the whole demand; it is 0 when nothing was proved.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

import numpy as np

from tutti.cluster.columns import Bools, Floats
from tutti.cluster.work.meter import PACKING_NODE, SECOND
from tutti.cluster.work.work_budget import WorkBudget
from tutti.recommend.search.column_generation.generate import GeneratedColumns, generate
from tutti.recommend.search.column_generation.master import MasterProgram
from tutti.recommend.search.column_generation.packing import Packing, packed
from tutti.recommend.search.column_generation.packing_input import PackingInput, only, undominated
from tutti.recommend.search.column_generation.pattern_enumeration import worthwhile
from tutti.recommend.search.column_generation.rounding import choose, round_off, seed

Tell = Callable[[float, float], None]
"""Told from time to time: the best cost so far, and the bound."""
Nodes = Sequence[tuple[int, Sequence[int]]]
_KINDS, _CLASSES = 20, 60
_WHOLE_LEAST, _WHOLE_MOST = SECOND // 20, 2 * SECOND
"""Work for the best whole numbers over the known patterns."""
_WORTH_MORE = SECOND // 5
"""Remaining work above which the search goes on when the gap cannot be closed."""
_PENALTY = 1e3
"""What an item that has no place costs, in prices of the dearest kind: more than any node that could take it."""


class SolvedPacking(NamedTuple):
    """The best packing that was found, and what none can cost less than."""

    packing: Packing
    bound: float


def solve(
    flat: PackingInput,
    budget: WorkBudget,
    *,
    seeds: Iterable[Nodes] = (),
    values: Floats | None = None,
    firm: Bools | None = None,
    tell: Tell | None = None,
) -> SolvedPacking:
    """Pack as much of the demand as possible, as cheaply as possible.

    `values` (up to 1) breaks ties between items; `firm` classes are packed whole, which some seed must show how to do.
    """
    search = _Search(flat, budget, tell, values=values, firm=firm)
    for nodes in seeds:
        search.offer(packed(flat, _sound(flat, nodes)))
    return search.run()


def bound_of(flat: PackingInput, budget: WorkBudget, *, cost: float, tell: Tell | None = None) -> float:
    """A bound on the cost of covering the whole demand, where a plan of some cost is known."""
    search = _Search(flat, budget, tell)
    generated = generate(search.master, budget.share(0.7), tell=tell)
    return search.close(generated, cost)


def _sound(flat: PackingInput, nodes: Nodes) -> list[tuple[int, Sequence[int]]]:
    """Nodes without the items that their kinds do not take; what still does not fit, or is too many, is left out."""
    found: list[tuple[int, Sequence[int]]] = []
    limits = flat.left.copy()
    for kind, pattern in nodes:
        counts = np.where(flat.allowed[kind], np.minimum(pattern, flat.most), 0)
        if (counts @ flat.requests <= flat.free[kind]).all() and (flat.takes[:, kind] <= limits + 1e-9).all():
            limits -= flat.takes[:, kind]
            found.append((kind, counts.tolist()))
    return found


class _Search:
    def __init__(
        self,
        flat: PackingInput,
        budget: WorkBudget,
        tell: Tell | None,
        *,
        values: Floats | None = None,
        firm: Bools | None = None,
    ) -> None:
        self.flat, self.budget, self.tell = flat, budget, tell
        self.firm = np.zeros(len(flat.demand), dtype=bool) if firm is None else firm
        self.values = np.zeros(len(flat.demand)) if values is None else values
        self.kinds = undominated(flat)
        self.small = only(flat, self.kinds)
        top = float(flat.price.max(initial=1.0))
        # Any number of pods outweighs what they are worth among themselves.
        self.penalty: Floats = _PENALTY * max(top, 1.0) * (1 + self.values / max(int(flat.demand.sum()), 1))
        prices = self.small.price[self.small.price > 0]
        scale = float(np.median(prices)) if len(prices) else 1.0
        self.master = MasterProgram(self.small, self.penalty, budget.meter, scale=scale, firm=self.firm)
        self.best: Packing | None = None
        seed(self.master, budget.meter)

    def offer(self, packing: Packing | None) -> None:
        """Keep a packing if it is the best so far, and learn its patterns."""
        if packing is None:
            return
        self.budget.meter.count += PACKING_NODE * len(packing.nodes)
        for _, pattern in packing.nodes:
            cheapest = self.small.cheapest(np.array(pattern))
            if cheapest >= 0:
                self.master.add(cheapest, pattern)
        if self.best is None or self._rank(packing) < self._rank(self.best):
            self.best = packing
            if self.tell is not None:
                self.tell(packing.cost(self.flat), 0.0)

    def _rank(self, packing: Packing) -> tuple[int, int, float, float, int]:
        worth = round(float(packing.dropped @ self.values), 9)
        firm = int(packing.dropped[self.firm].sum())
        return firm, int(packing.dropped.sum()), worth, round(packing.cost(self.flat), 6), len(packing.nodes)

    def run(self) -> SolvedPacking:
        # Where there are many kinds, good patterns for all of them are found only by looking exactly.
        exactly = len(self.small.price) > _KINDS and len(self.small.demand) <= _CLASSES
        generated = generate(self.master, self.budget.share(0.45 if exactly else 0.3), prove=exactly, tell=self.tell)
        if not len(self.small.room):  # rounding off is quicker, and better where there is much
            self.offer(self._rounded(None))
        chosen = choose(self.master, self.budget.share(0.3).limited_to(_WHOLE_MOST))
        self.offer(self._in_full(chosen))
        if len(self.small.room):
            self.offer(self._rounded(chosen))
        best = self.best or packed(self.flat, ())
        bound = 0.0
        if not best.dropped.any():
            bound = self.close(generated._replace(done=generated.done and exactly), best.cost(self.flat))
        elif generated.cost < np.inf:
            self.offer(self._in_full(choose(self.master, self.budget.extended_to(_WHOLE_LEAST))))
        return SolvedPacking(self.best or best, bound)

    def _in_full(self, packing: Packing | None) -> Packing | None:
        """A packing of the few kinds as one of all kinds."""
        if packing is None:
            return None
        nodes = [(self.kinds[kind], pattern) for kind, pattern in packing.nodes]
        return packed(self.flat, nodes, packing.moved)

    def _rounded(self, chosen: Packing | None) -> Packing | None:
        if not len(self.small.room):
            return self._in_full(round_off(self.master, self.budget.share(0.6)))
        if chosen is None:
            return None
        # What goes to nodes that are there is settled first; the rest is packed anew.
        rest = self.small.without_rooms().with_demand(self.small.demand - chosen.moved.sum(axis=0))
        if not rest.demand.any():
            return None
        inner = MasterProgram(rest, self.penalty, self.budget.meter, scale=self.master.scale)
        seed(inner, self.budget.meter)
        part = self.budget.share(0.4)
        generate(inner, part.share(0.5), prove=False)
        packing = round_off(inner, part)
        return None if packing is None else self._in_full(packing._replace(moved=chosen.moved))

    def close(self, generated: GeneratedColumns, cost: float) -> float:
        """Close the gap, where it can be closed: list all patterns that a cheaper plan could use."""
        if not generated.done:  # while plans were made of it, the bound was left alone
            part = self.budget.share(0.75)
            generated = generate(self.master, part, known=generated.proved, tell=self.tell)
        bound, duals = generated.bound, generated.proved
        if bound <= 0 or cost - bound <= 1e-7 * cost:
            return min(bound, cost)
        if not bool((self.small.bound_most == self.small.most).all()):
            return bound
        due = self.small.price + duals.limits @ self.small.takes
        excess = (cost - bound) * (1 + 1e-6)
        patterns = worthwhile(self.small, duals.items, due, excess=excess, budget=self.budget)
        if patterns is None:
            self._try_harder()
            return bound
        for kind, pattern in patterns:
            self.master.add(kind, pattern)
        whole = self.master.whole(self.budget.extended_to(_WHOLE_LEAST))
        if whole is None:
            return bound
        if not whole.dropped.any():
            nodes = []
            for place in np.flatnonzero(whole.times).tolist():
                nodes += [(self.master.kinds[place], self.master.patterns[place])] * int(whole.times[place])
            self.offer(self._in_full(packed(self.small, nodes, whole.moved)))
        return min(max(bound, whole.bound * (1 - 1e-7)), cost)

    def _try_harder(self) -> None:
        """Spend the time that is left on whole numbers over the known patterns."""
        if self.budget.remaining > _WORTH_MORE and self.best is not None:
            self.offer(self._rounded(None))
            self.offer(self._in_full(choose(self.master, self.budget)))
