"""The greedy strategies in their literal form: simulate a node of every offering, keep the best, and repeat.

Contract: the planning cluster is left as it was. First the engine places what fits on existing nodes. Then, in each
round, every offering that may be bought gets a trial: one node of it joins, the engine places the pending pods on that
node alone, in the order of `buyer.py`, and the node is scored by what it took. The best node joins for good; the
engine places pods that now fit on other nodes (a spread's minimum rose, a pod that they follow arrived). The loop ends
when no pod is pending, no offering takes a pod, or time is up. `greedy/strategies.py` makes the same plan in far less
time; tests compare it with this definition.
"""

from __future__ import annotations

import numpy as np

from tutti.cluster.columns import Bools, Ints
from tutti.cluster.trial import Trial
from tutti.cluster.work.work_budget import WorkBudget
from tutti.market.planning_cluster import PlanningCluster
from tutti.recommend.problem.problem import Problem
from tutti.recommend.problem.scores import Scorer
from tutti.recommend.records.draft import Draft
from tutti.recommend.records.request import RecommendOptions, Strategy
from tutti.recommend.search.greedy.buyer import BuyingTask, GreedyBuyer
from tutti.recommend.search.greedy.whole_gangs import buy_whole_gangs


def simulate(
    planning: PlanningCluster,
    problem: Problem,
    options: RecommendOptions,
    strategy: Strategy = Strategy.LEAST_COST,
    *,
    eligible: Bools,
    budget: WorkBudget | None = None,
) -> Draft:
    """Buy node by node, every one of them tried by the engine; gangs whole or not at all."""
    scorer = Scorer(problem, strategy, options.weights)
    return buy_whole_gangs(planning, problem, scorer, _run, eligible=eligible, budget=budget)


def _run(task: BuyingTask) -> Draft:
    with Trial(task.planning.cluster):
        buyer = GreedyBuyer(task)
        buyer.place_on_nodes()
        while buyer.left.any() and not task.is_exhausted():
            open_rows = buyer.open_rows()
            taken = np.zeros((len(open_rows), len(task.pods)), dtype=np.int64)
            for offering in np.flatnonzero(open_rows).tolist():
                taken[offering] = _tried(buyer, offering)
            best = task.scorer.best_offering(taken, open_rows)
            if best is None:
                break
            name, area = buyer.join(best)
            buyer.confirm_node(best, name)
            for number in task.scorer.order:
                buyer.place_and_record(number, area, int(taken[best, number]))
            buyer.place_on_nodes()
        return buyer.draft()


def _tried(buyer: GreedyBuyer, offering: int) -> Ints:
    """How many pods of each class a node of an offering takes."""
    task = buyer.task
    taken = np.zeros(len(task.pods), dtype=np.int64)
    with Trial(task.planning.cluster):
        _, area = buyer.join(offering)
        for number in task.scorer.order:
            if buyer.left[number] and (number not in task.pins or task.allowed[offering, number]):
                taken[number] = len(buyer.place_within(number, area))
    return taken
