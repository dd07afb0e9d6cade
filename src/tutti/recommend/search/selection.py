"""Selection: the best plan of all drafts, after a binder has placed the pods.

Contract: pure; stops at the work budget; the planning cluster is left as it was. `rank` orders outcomes, the least is
best: unplaced pods by falling priority, then the objective. No node is bought for a gang that could not start whole.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence

import numpy as np

from tutti.cluster.work.meter import SECOND
from tutti.recommend.problem.problem import Problem, rebuild_problem
from tutti.recommend.problem.search_context import Progress, SearchContext
from tutti.recommend.records.draft import Draft
from tutti.recommend.records.request import Objective, Strategy
from tutti.recommend.replay.binding import BoundPurchase, draft_nodes
from tutti.recommend.replay.gang_check import incomplete_gangs
from tutti.recommend.replay.kube_scheduler_binder import KubeSchedulerBinder, purchases_between
from tutti.recommend.replay.tutti_binder import TuttiBinder
from tutti.recommend.search.drafts import draft_without, greedy_drafts, optimal_drafts, peer_drafts
from tutti.recommend.search.exchange.exchange import exchange_nodes
from tutti.recommend.search.exchange.fill_limits import fill_limits
from tutti.recommend.search.greedy.strategies import greedy_draft
from tutti.recommend.search.lower_bound import is_pure_packing, prove_bound

_FEW_OFFERINGS = 12
"""Up to this many offerings, all of them are used to enumerate cheaper purchases."""
_MAX_PURCHASES = 300
"""Up to this many cheaper purchases are replayed one by one."""

_REPAIR_WORK, _PROOF_WORK = SECOND, 3 * SECOND // 10
"""Work for buying nodes for unplaced pods, and for the bound, even when the budget is exhausted."""
_SEARCH_SHARE = 0.5
"""The share of the budget that is reserved for cheaper purchases, once a purchase for all pods is known."""


class Selection:
    """See the module's contract."""

    def __init__(self, context: SearchContext, progress: Progress) -> None:
        self.context, self._progress = context, progress
        self._demand = context.problem.demand
        self._proved_bound = 0.0
        """A lower bound for the whole demand; 0 when there is none."""
        self._levels = sorted({each.priority for each in context.problem.classes}, reverse=True)
        self._class_of_pod = context.problem.class_of_pod

    def best(self) -> BoundPurchase:
        """Return the best outcome of all drafts; if gangs cannot start, also of drafts without those gangs."""
        budget = self._progress.budget
        lacking = incomplete_gangs(self.context.planning, self._class_of_pod)
        drafts = greedy_drafts(self.context, self._progress)
        best = self._best_of(drafts, lacking)
        if set(best.short) - lacking and not budget.is_below(0.25):
            best = self._better(best, self._best_of(drafts, lacking | set(best.short)))
        return best

    def _best_of(self, drafts: Sequence[Draft], excluded_gangs: set[str]) -> BoundPurchase:
        """Return the best outcome of the drafts without some gangs; the optimal strategy makes more drafts."""
        context, progress = self.context, self._progress
        problem = context.problem_without(excluded_gangs)
        self._demand, self._proved_bound = np.where(context.placeable, problem.demand, 0), 0.0
        all_drafts = list(drafts)
        if context.strategy is Strategy.OPTIMAL and self._demand.any():
            all_drafts += peer_drafts(context, progress)
            all_drafts = [draft_without(context, draft, excluded_gangs) for draft in all_drafts]
            result = optimal_drafts(context, progress, problem=problem, demand=self._demand, seeds=all_drafts)
            all_drafts, self._proved_bound = [*result.drafts, *all_drafts], result.bound
        all_drafts = sorted(all_drafts, key=self._draft_rank) or [Draft("nothing")]
        return (
            self._best_with_tutti(all_drafts) if context.is_tutti_binder else self._best_with_kube_scheduler(all_drafts)
        )

    def _best_with_tutti(self, drafts: Sequence[Draft]) -> BoundPurchase:
        """Return the best outcome when Tutti binds pods as drafted; try promising drafts while the budget lasts."""
        budget = self._progress.budget
        binding = TuttiBinder(self.context.planning, self.context.problem, buy=self._buy_for_unplaced)
        best: BoundPurchase | None = None
        for place, draft in enumerate(drafts):
            is_late = budget.is_below(0.1)
            if best is None or (not is_late and self._draft_rank(draft) < self.rank(best)):
                self._progress.tell(f"trying plan {place + 1} of {len(drafts)}: {draft.maker}")
                best = self._better(best, binding.bind(draft, self._progress))
        assert best is not None
        return best

    def _best_with_kube_scheduler(self, drafts: Sequence[Draft]) -> BoundPurchase:
        """Return the best outcome when kube-scheduler binds the pods.

        Replay the drafts, repair cheap drafts that leave pods unplaced, and then search for cheaper purchases.
        """
        budget = self._progress.budget
        binding = KubeSchedulerBinder(self.context.planning, self.context.problem, buy=self._buy_for_unplaced)
        replayed: dict[tuple[int, ...], tuple[Draft, BoundPurchase]] = {}
        best: BoundPurchase | None = None
        fewest_nodes = min(drafts, key=lambda draft: (len(draft.left), len(draft.nodes)))  # few large nodes waste less
        for place, draft in enumerate((drafts[0], fewest_nodes, *drafts[1:])):
            purchase = tuple(sorted(each.offering for each in draft.nodes))
            is_promising = best is None or self._draft_rank(draft) < self.rank(best)
            # A replay is cheap, and the result must not be worse than any draft.
            reserve = 0.2 if is_promising else _SEARCH_SHARE
            if purchase not in replayed and (place < 2 or not budget.is_below(reserve)):
                self._progress.tell(f"replaying {draft.maker}")
                replayed[purchase] = (draft, binding.replay(draft.maker, purchase))
                best = self._better(best, replayed[purchase][1])
        assert best is not None
        for draft, outcome in replayed.values():
            draft_rank, is_late = self._draft_rank(draft), budget.is_below(_SEARCH_SHARE)
            places_more = draft_rank[: len(self._levels)] < self.rank(best)[: len(self._levels)]
            # Pods that can be placed are placed, also when the budget is nearly exhausted.
            if draft_rank < self.rank(best) and (places_more or not is_late):
                self._progress.tell(f"adding nodes to {draft.maker}")
                best = self._better(best, binding.buy_until_placed(draft, outcome, self._progress))
        self._progress.tell("filling limits")
        best = fill_limits(binding, best, self.context.prices, self.rank, budget=budget)
        self._progress.tell("replacing nodes by cheaper nodes")
        best = exchange_nodes(binding, best, self.context.prices, self.rank, budget=budget)
        self._progress.tell("removing nodes that are not needed")
        best = binding.drop_spare_nodes(best, budget)
        return self._replay_cheaper_purchases(binding, drafts, best)

    def _replay_cheaper_purchases(
        self, binding: KubeSchedulerBinder, drafts: Sequence[Draft], best: BoundPurchase
    ) -> BoundPurchase:
        """Replay all purchases that cost less than the best outcome and at least as much as the best draft, if few.

        The cheapest purchases come first.
        """
        prices = self.context.prices
        offerings = sorted({each.offering for draft in drafts for each in draft.nodes})
        if len(self.context.problem.offerings) <= _FEW_OFFERINGS:
            offerings = list(range(len(self.context.problem.offerings)))
        min_cost = float(sum(prices[each.offering] for each in drafts[0].nodes))
        max_cost = float(sum(prices[number] for _, number in best.nodes))
        purchases = purchases_between(
            prices[offerings], min_cost * (1 - 1e-9), max_cost * (1 - 1e-9), limit=_MAX_PURCHASES
        )
        pod_counts = slice(len(self._levels))
        if not purchases or self.rank(best)[pod_counts] > self._draft_rank(drafts[0])[pod_counts]:
            return best
        self._progress.tell(f"replaying {len(purchases)} cheaper purchases")
        for numbers in purchases:
            if self._progress.budget.is_below(0.1):
                break
            bought = [offerings[number] for number in numbers]
            if binding.is_within_limits(bought):
                outcome = binding.replay(best.maker, bought)
                if self.rank(outcome) < self.rank(best):
                    return outcome._replace(minimal=True)  # all cheaper purchases were tried before
        return best

    def _better(self, first: BoundPurchase | None, second: BoundPurchase) -> BoundPurchase:
        """Return the outcome with the better rank; the first on a tie."""
        return second if first is None or self.rank(second) < self.rank(first) else first

    def _buy_for_unplaced(self, problem: Problem, pods: Sequence[str]) -> Draft:
        """Buy nodes for unplaced pods, on the planning cluster as it is now."""
        current_problem = rebuild_problem(self.context.planning, problem, pods)
        every_offering = np.ones(len(problem.offerings), dtype=bool)
        options = self.context.options
        budget = self._progress.budget.extended_to(_REPAIR_WORK)
        return greedy_draft(
            self.context.planning, current_problem, options, Strategy.LEAST_COST, eligible=every_offering, budget=budget
        )

    # Ranks ------------------------------------------------------------------------------------------------------------

    def rank(self, outcome: BoundPurchase) -> tuple[float, ...]:
        """Return how good an outcome is; the least is best."""
        return self._rank(outcome.node_of_pod, [number for _, number in outcome.nodes])

    def _draft_rank(self, draft: Draft) -> tuple[float, ...]:
        """Return how good a draft is if the binder places all pods as drafted."""
        placed = {pod for pod, _ in draft.on_existing}.union(*(each.pods for each in draft.nodes))
        return self._rank(placed, [each.offering for each in draft.nodes])

    def _rank(self, placed: Collection[str], bought: Sequence[int]) -> tuple[float, ...]:
        """Return unplaced pods by priority, then cost and node count; the objective pods puts sizes before cost."""
        context = self.context
        counts, unplaced_size = Counter[int](), 0.0
        for number, each in enumerate(context.problem.classes):
            left = sum(pod not in placed for pod in each.pods) if context.placeable[number] else 0
            counts[each.priority] += left
            unplaced_size += left * float(context.pod_sizes[number])
        pod_counts = tuple(counts[level] for level in self._levels)
        cost = round(float(context.prices[list(bought)].sum()))
        if context.objective is Objective.PODS:
            return (*pod_counts, round(unplaced_size, 9), cost, len(bought))
        return (*pod_counts, cost, len(bought))

    def bound(self, outcome: BoundPurchase) -> float:
        """Return the lower bound, in the objective's prices, for plans that place the same pods; 0: not known."""
        context = self.context
        if not outcome.nodes or context.strategy is not Strategy.OPTIMAL:
            return 0.0
        placed = np.array([sum(pod in outcome.node_of_pod for pod in each.pods) for each in context.problem.classes])
        cost = float(sum(context.prices[number] for _, number in outcome.nodes))
        if self._proved_bound and bool((placed == self._demand).all()) and is_pure_packing(context.problem):
            return min(self._proved_bound, cost)
        self._progress.tell("proving the bound")
        budget = self._progress.budget.extended_to(_PROOF_WORK)
        return prove_bound(
            context.problem, placed.astype(np.int64), context.prices, budget, purchase=draft_nodes(outcome)
        )
