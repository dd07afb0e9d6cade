"""The matter at hand: what everybody between the problem and the best plan needs to know.

Contract: made once per request. `prices` are what the objective counts: money, with a little for every node; or nodes,
with a little money. `units` is what a pod of each class is worth beside the others, the largest 1.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tutti.cluster.cluster import Cluster
from tutti.cluster.columns import Bools, Floats
from tutti.cluster.work.meter import SECOND
from tutti.cluster.work.work_budget import WorkBudget
from tutti.market.money import NANO
from tutti.market.planning_cluster import PlanningCluster
from tutti.recommend.problem.problem import Problem
from tutti.recommend.problem.scores import unit_weights
from tutti.recommend.records.request import Binder, Objective, RecommendOptions, Request, Strategy

Tell = Callable[[str], None]
"""Told how far it is, in a few words."""
TIE = 1e-3
"""What the dearest node counts more than a free one when nodes are counted."""


ONE_MORE = 3e-4
"""What a node costs for being one more, in prices of the cheapest: so that nobody gets nine nodes to save a cent."""


class SearchContext:
    """See the module's contract."""

    def __init__(
        self, request: Request, cluster: Cluster, planning: PlanningCluster, problem: Problem, *, objective: Objective
    ) -> None:
        self.request, self.planning, self.problem, self.objective = request, planning, problem, objective
        self.cluster = cluster
        """The cluster before anything was planned; models of autoscalers get copies of it."""
        self.options: RecommendOptions = request.options
        self.strategy = self.options.strategy or Strategy.OPTIMAL
        self.follows = self.options.binder is Binder.TUTTI
        """Whether pods go where the plan says."""
        self.prices = _prices(problem, objective)
        other = Objective.COST if objective is Objective.NODES else Objective.NODES
        self.other_prices = _prices(problem, other)
        """What money counts where nodes do, and the other way round."""
        self.units = _units(problem, self.options)
        self.possible: Bools = np.logical_or(problem.allowed.any(axis=0), problem.roomy.any(axis=0))
        """The classes that some node could take."""
        self.number_of = {id(offering): number for number, offering in enumerate(problem.offerings)}

    def money(self, counted: float) -> float:
        """A bound in the objective's prices as one in money: no price is smaller than its share of what is counted."""
        free = any(not offering.price for offering in self.problem.offerings)
        return counted if self.objective is Objective.NODES or free else counted / (1 + ONE_MORE)

    def without(self, gangs: set[str]) -> Problem:
        """The problem without the pods of some gangs."""
        if not gangs:
            return self.problem
        classes = tuple(
            each._replace(pods=tuple(pod for pod in each.pods if self.gang_of(pod) not in gangs))
            for each in self.problem.classes
        )
        demand = np.array([len(each.pods) for each in classes], dtype=np.int64)
        return self.problem._replace(classes=classes, demand=demand)

    def gang_of(self, pod: str) -> str | None:
        """The gang that a pod belongs to."""
        return self.planning.gangs.key_of(self.planning.cluster.pod_row(pod))


class Progress:
    """The work budget of the search, and whom to tell how far it is."""

    def __init__(self, budget: WorkBudget, tell: Tell | None) -> None:
        self.budget, self.tell = budget, tell or (lambda _: None)

    def is_enough(self) -> bool:
        """Whether as much work again was done as the budget allowed: then not even promised plans are mended."""
        return self.budget.is_exceeded_by(self.budget.limit + 2 * SECOND)

    def costs(self, cost: float, bound: float) -> None:
        """Tell how the numbers stand."""
        self.tell(f"cost {cost / NANO:.2f}, bound {bound / NANO:.2f} an hour")


def _prices(problem: Problem, objective: Objective) -> Floats:
    """What a node of each offering costs by the objective; a node costs a little for being one more."""
    prices = np.array([offering.price or 0 for offering in problem.offerings], dtype=np.float64)
    if objective is Objective.NODES or not prices.any():
        return NANO * (1 + TIE * prices / max(float(prices.max(initial=0.0)), 1.0))
    if not prices.all():  # what is for nothing must stay so
        return prices
    counted: Floats = prices + ONE_MORE * prices.min()
    return counted


def _units(problem: Problem, options: RecommendOptions) -> Floats:
    """What a pod of each class is worth, the largest 1."""
    units = problem.requests @ unit_weights(problem.resources, options.weights).astype(np.float64)
    return units / max(float(units.max(initial=0.0)), 1.0)
