"""The search context: what every search strategy reads, from the problem to the best plan.

Contract: made once per request. `prices` are what the objective minimises: money plus a small surcharge for every node,
or nodes with money as a tie-break. `pod_sizes` are the weighted requests of a pod of each class, the largest 1.
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
"""Callback that receives one line about the progress of the search."""
PRICE_TIE_BREAK = 1e-3
"""With the objective nodes, the dearest node counts this share more than a free node."""


NODE_SURCHARGE = 3e-4
"""Surcharge for every node, as a share of the lowest price: nine small nodes are not bought to save one cent."""


class SearchContext:
    """See the module's contract."""

    def __init__(
        self, request: Request, cluster: Cluster, planning: PlanningCluster, problem: Problem, *, objective: Objective
    ) -> None:
        self.request, self.planning, self.problem, self.objective = request, planning, problem, objective
        self.cluster = cluster
        """The cluster before planning; models of autoscalers get copies."""
        self.options: RecommendOptions = request.options
        self.strategy = self.options.strategy or Strategy.OPTIMAL
        self.is_tutti_binder = self.options.binder is Binder.TUTTI
        """Whether Tutti binds the pods: then pods go where the draft says."""
        self.prices = _prices(problem, objective)
        other_objective = Objective.COST if objective is Objective.NODES else Objective.NODES
        self.other_prices = _prices(problem, other_objective)
        """The prices by the other objective: nodes where `prices` count money, money where `prices` count nodes."""
        self.pod_sizes = _pod_sizes(problem, self.options)
        self.placeable: Bools = np.logical_or(problem.allowed.any(axis=0), problem.node_allowed.any(axis=0))
        """The classes that an offering or an existing node can take."""
        self.number_of_offering = {id(offering): number for number, offering in enumerate(problem.offerings)}
        """The number of each offering in the problem, by `id` of the offering."""

    def bound_in_money(self, counted: float) -> float:
        """Return a bound in the objective's prices as a bound in money, without the surcharges for nodes."""
        free = any(not offering.price for offering in self.problem.offerings)
        return counted if self.objective is Objective.NODES or free else counted / (1 + NODE_SURCHARGE)

    def problem_without(self, gangs: set[str]) -> Problem:
        """Return the problem without the pods of some gangs."""
        if not gangs:
            return self.problem
        classes = tuple(
            each._replace(pods=tuple(pod for pod in each.pods if self.gang_of(pod) not in gangs))
            for each in self.problem.classes
        )
        demand = np.array([len(each.pods) for each in classes], dtype=np.int64)
        return self.problem._replace(classes=classes, demand=demand)

    def gang_of(self, pod: str) -> str | None:
        """Return the gang of a pod, or None."""
        return self.planning.gangs.key_of(self.planning.cluster.pod_row(pod))


class Progress:
    """The work budget of the search, and the callback for progress."""

    def __init__(self, budget: WorkBudget, tell: Tell | None) -> None:
        self.budget, self.tell = budget, tell or (lambda _: None)

    def is_far_over_budget(self) -> bool:
        """Return whether more than twice the budget and two seconds of work were done: then repairs stop too."""
        return self.budget.is_exceeded_by(self.budget.limit + 2 * SECOND)

    def report_costs(self, cost: float, bound: float) -> None:
        """Report the best cost so far and the bound."""
        self.tell(f"cost {cost / NANO:.2f}, bound {bound / NANO:.2f} an hour")


def _prices(problem: Problem, objective: Objective) -> Floats:
    """Return the price of a node of each offering by the objective, with the surcharge for every node."""
    prices = np.array([offering.price or 0 for offering in problem.offerings], dtype=np.float64)
    if objective is Objective.NODES or not prices.any():
        return NANO * (1 + PRICE_TIE_BREAK * prices / max(float(prices.max(initial=0.0)), 1.0))
    if not prices.all():  # a free node must stay free: no surcharge
        return prices
    counted: Floats = prices + NODE_SURCHARGE * prices.min()
    return counted


def _pod_sizes(problem: Problem, options: RecommendOptions) -> Floats:
    """Return the weighted requests of a pod of each class, the largest 1."""
    pod_sizes = problem.requests @ unit_weights(problem.resources, options.weights).astype(np.float64)
    return pod_sizes / max(float(pod_sizes.max(initial=0.0)), 1.0)
