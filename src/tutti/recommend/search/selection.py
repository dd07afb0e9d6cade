"""Selection: the best plan of all drafts, as the binder would carry them out.

Contract: pure but for the clock; the picture is left as it was. Less is better in `rank`: pods left by falling
priority, then the objective. Nothing is bought for a gang that could not start whole.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence

import numpy as np

from tutti.cluster.work.meter import SECOND
from tutti.recommend.problem.problem import Problem, pose_again
from tutti.recommend.problem.search_context import Progress, SearchContext
from tutti.recommend.records.draft import Draft
from tutti.recommend.records.request import Objective, Strategy
from tutti.recommend.replay.binding import BoundPurchase, draft_nodes
from tutti.recommend.replay.gang_check import incomplete_gangs
from tutti.recommend.replay.kube_scheduler_binder import KubeSchedulerBinder, purchases_between
from tutti.recommend.replay.tutti_binder import TuttiBinder
from tutti.recommend.search.drafts import greedy_drafts, optimal_drafts, peer_drafts, without
from tutti.recommend.search.exchange.exchange import exchanged
from tutti.recommend.search.exchange.fill_limits import filled
from tutti.recommend.search.greedy.strategies import greedy
from tutti.recommend.search.optimal_drafts import is_plain, prove

_FEW_OFFERINGS = 12
"""Up to so many offerings all of them are looked at for cheaper purchases."""
_PURCHASES = 300
"""Up to so many cheaper purchases are replayed one by one."""

_MENDING, _PROOF = SECOND, 3 * SECOND // 10
"""Work for buying for pods that were left, and for the bound, even when the budget is exhausted."""
_SEARCH = 0.5
"""The share of the budget for cheaper purchases, once a purchase that serves all pods is known."""


class Selection:
    """See the module's contract."""

    def __init__(self, context: SearchContext, progress: Progress) -> None:
        self.context, self._progress = context, progress
        self._demand = context.problem.demand
        self._proved = 0.0
        """A bound for all of the demand, when there is one."""
        self._levels = sorted({each.priority for each in context.problem.classes}, reverse=True)
        self._number_of = context.problem.of_pod

    def best(self) -> BoundPurchase:
        """The best outcome of all drafts; if gangs cannot start, also of drafts that do not count on them."""
        budget = self._progress.budget
        lacking = incomplete_gangs(self.context.planning, self._number_of)
        drafts = greedy_drafts(self.context, self._progress)
        best = self._best_of(drafts, lacking)
        if set(best.short) - lacking and not budget.is_below(0.25):
            best = self._better(best, self._best_of(drafts, lacking | set(best.short)))
        return best

    def _best_of(self, drafts: Sequence[Draft], given_up: set[str]) -> BoundPurchase:
        context, progress = self.context, self._progress
        problem = context.without(given_up)
        self._demand, self._proved = np.where(context.possible, problem.demand, 0), 0.0
        every = list(drafts)
        if context.strategy is Strategy.OPTIMAL and self._demand.any():
            every += peer_drafts(context, progress)
            every = [without(context, draft, given_up) for draft in every]
            found = optimal_drafts(context, progress, problem=problem, demand=self._demand, seeds=every)
            every, self._proved = [*found.drafts, *every], found.bound
        every = sorted(every, key=self._draft_rank) or [Draft("nothing")]
        return self._followed(every) if context.follows else self._replayed(every)

    def _followed(self, drafts: Sequence[Draft]) -> BoundPurchase:
        """The best of what becomes of drafts that pods follow, as far as there is time and they promise anything."""
        budget = self._progress.budget
        binding = TuttiBinder(self.context.planning, self.context.problem, buy=self._mend)
        best: BoundPurchase | None = None
        for place, draft in enumerate(drafts):
            late = budget.is_below(0.1)
            if best is None or (not late and self._draft_rank(draft) < self.rank(best)):
                self._progress.tell(f"trying plan {place + 1} of {len(drafts)}: {draft.maker}")
                best = self._better(best, binding.bind(draft, self._progress))
        assert best is not None
        return best

    def _replayed(self, drafts: Sequence[Draft]) -> BoundPurchase:
        """The best of what a scheduler makes of some drafts: as they are, and those that are cheaper mended."""
        budget = self._progress.budget
        binding = KubeSchedulerBinder(self.context.planning, self.context.problem, buy=self._mend)
        known: dict[tuple[int, ...], tuple[Draft, BoundPurchase]] = {}
        best: BoundPurchase | None = None
        roomiest = min(drafts, key=lambda draft: (len(draft.left), len(draft.bought)))  # large nodes waste least
        for place, draft in enumerate((drafts[0], roomiest, *drafts[1:])):
            purchase = tuple(sorted(each.offering for each in draft.bought))
            hopeful = best is None or self._draft_rank(draft) < self.rank(best)
            share = 0.2 if hopeful else _SEARCH  # a replay is short, and nobody else's purchase shall be better
            if purchase not in known and (place < 2 or not budget.is_below(share)):
                self._progress.tell(f"replaying {draft.maker}")
                known[purchase] = (draft, binding.replay(draft.maker, purchase))
                best = self._better(best, known[purchase][1])
        assert best is not None
        for draft, outcome in known.values():
            mine, late = self._draft_rank(draft), budget.is_below(_SEARCH)
            lacks = mine[: len(self._levels)] < self.rank(best)[: len(self._levels)]
            if mine < self.rank(best) and (lacks or not late):  # whoever can be placed is placed, also when it is late
                self._progress.tell(f"mending {draft.maker}")
                best = self._better(best, binding.buy_until_placed(draft, outcome, self._progress))
        self._progress.tell("filling limits")
        best = filled(binding, best, self.context.prices, self.rank, budget=budget)
        self._progress.tell("exchanging nodes for cheaper ones")
        best = exchanged(binding, best, self.context.prices, self.rank, budget=budget)
        self._progress.tell("giving back what is not needed")
        best = binding.drop_spare_nodes(best, budget)
        return self._any_cheaper(binding, drafts, best)

    def _any_cheaper(self, binding: KubeSchedulerBinder, drafts: Sequence[Draft], best: BoundPurchase) -> BoundPurchase:
        """Where few purchases cost less, but not less than any on paper, replay them all, the cheapest first."""
        prices = self.context.prices
        offerings = sorted({each.offering for draft in drafts for each in draft.bought})
        if len(self.context.problem.offerings) <= _FEW_OFFERINGS:
            offerings = list(range(len(self.context.problem.offerings)))
        least = float(sum(prices[each.offering] for each in drafts[0].bought))
        most = float(sum(prices[number] for _, number in best.nodes))
        found = purchases_between(prices[offerings], least * (1 - 1e-9), most * (1 - 1e-9), limit=_PURCHASES)
        pods = slice(len(self._levels))
        if not found or self.rank(best)[pods] > self._draft_rank(drafts[0])[pods]:
            return best
        self._progress.tell(f"replaying {len(found)} cheaper purchases")
        for numbers in found:
            if self._progress.budget.is_below(0.1):
                break
            bought = [offerings[number] for number in numbers]
            if binding.is_within_limits(bought):
                outcome = binding.replay(best.maker, bought)
                if self.rank(outcome) < self.rank(best):
                    return outcome._replace(minimal=True)  # whatever is less was tried before
        return best

    def _better(self, one: BoundPurchase | None, other: BoundPurchase) -> BoundPurchase:
        return other if one is None or self.rank(other) < self.rank(one) else one

    def _mend(self, problem: Problem, pods: Sequence[str]) -> Draft:
        """Buy for pods that were left, on the picture as it stands."""
        posed = pose_again(self.context.planning, problem, pods)
        every = np.ones(len(problem.offerings), dtype=bool)
        options = self.context.options
        budget = self._progress.budget.extended_to(_MENDING)
        return greedy(self.context.planning, posed, options, Strategy.LEAST_COST, eligible=every, budget=budget)

    # Ranks ------------------------------------------------------------------------------------------------------------

    def rank(self, outcome: BoundPurchase) -> tuple[float, ...]:
        """How good an outcome is; the least is best."""
        return self._rank(outcome.where, [number for _, number in outcome.nodes])

    def _draft_rank(self, draft: Draft) -> tuple[float, ...]:
        """How good a draft would be if it came out as it is."""
        placed = {pod for pod, _ in draft.on_existing}.union(*(each.pods for each in draft.bought))
        return self._rank(placed, [each.offering for each in draft.bought])

    def _rank(self, placed: Collection[str], bought: Sequence[int]) -> tuple[float, ...]:
        context = self.context
        counts, units = Counter[int](), 0.0
        for number, each in enumerate(context.problem.classes):
            left = sum(pod not in placed for pod in each.pods) if context.possible[number] else 0
            counts[each.priority] += left
            units += left * float(context.units[number])
        pods = tuple(counts[level] for level in self._levels)
        cost = round(float(context.prices[list(bought)].sum()))
        if context.objective is Objective.PODS:
            return (*pods, round(units, 9), cost, len(bought))
        return (*pods, cost, len(bought))

    def bound(self, outcome: BoundPurchase) -> float:
        """What no plan that places the same pods can cost less than, in the objective's prices; 0 when not known."""
        context = self.context
        if not outcome.nodes or context.strategy is not Strategy.OPTIMAL:
            return 0.0
        placed = np.array([sum(pod in outcome.where for pod in each.pods) for each in context.problem.classes])
        cost = float(sum(context.prices[number] for _, number in outcome.nodes))
        if self._proved and bool((placed == self._demand).all()) and is_plain(context.problem):
            return min(self._proved, cost)
        self._progress.tell("proving the bound")
        budget = self._progress.budget.extended_to(_PROOF)
        return prove(context.problem, placed.astype(np.int64), context.prices, budget, known=draft_nodes(outcome))
