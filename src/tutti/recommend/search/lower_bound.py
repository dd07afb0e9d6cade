"""The lower bound: a cost that no plan for the same pods can undercut, which proves how near the optimum a plan is.

Contract: pure; stops at the work budget, with a weaker bound or 0. Column generation computes the bound
(`column_generation.solve.lower_bound`); this module decides which packing problem relaxes the whole problem.
"""

from __future__ import annotations

from collections.abc import Sequence

from tutti.cluster.columns import Floats, Ints
from tutti.cluster.work.work_budget import WorkBudget
from tutti.recommend.problem.problem import Problem
from tutti.recommend.records.draft import DraftNode
from tutti.recommend.search.column_generation.solve import lower_bound
from tutti.recommend.search.packing_problem import MAX_EXISTING_NODES, bound_packing_input


def is_pure_packing(problem: Problem) -> bool:
    """Return whether the first layout's packing problem is the whole problem: its bound then holds for every plan."""
    rules = problem.rules
    host = rules.host
    return (
        not rules.domains
        and not host.has_spread.any()
        and not host.affinity
        and len(problem.node_free) <= MAX_EXISTING_NODES
    )


def prove_bound(
    problem: Problem, demand: Ints, prices: Floats, budget: WorkBudget, *, purchase: Sequence[DraftNode]
) -> float:
    """Return the lower bound on the cost of every plan that places a demand, when one such purchase is known."""
    if not demand.any() or not len(problem.offerings):
        return 0.0
    cost = float(sum(prices[bought.offering] for bought in purchase))
    return lower_bound(bound_packing_input(problem, demand, prices), budget, cost=cost)
