"""The flow: from a request to a recommendation.

1. *Initialise the picture*: the cluster as it is, pods split into those with a node and those that wait (`planning`).
   Where kube-scheduler binds, whoever fits gets a node now: it does not wait for what is yet to be bought.
2. *Pose the problem*: every class of waiting pods on a node of every offering, in one pass (`problem`, `rules`).
3. *Filter the pools* that can help (`eligible`).
4. *Simulate*: strategies buy node by node (`greedy`), as the peers would (`peers`),
   and by column generation (`optimum`): drafts (`drafts`).
5. *Bind*: what becomes of each draft when its binder has had its say, mended and pruned (`followed`, `replayed`).
6. *Select* the best, and prove how near to the optimum it is (`selection`).
7. *Merge* the nodes into scale-ups, say why pods are left and what would do instead (`merge`, `reasons`, `compose`).

Reading files into a request comes before (`parse`).

Contract: pure but for the clock. The plan places as many pods as any draft would, the important ones first, and is
the cheapest of those by the objective. Whatever it promises was placed by the engine.
"""

from __future__ import annotations

from tutti.cluster.cluster import Cluster
from tutti.cluster.work.meter import REQUEST
from tutti.cluster.work.work_budget import WorkBudget
from tutti.market.planning_cluster import PlanningCluster
from tutti.recommend.compose import compose
from tutti.recommend.problem.eligible_pools import filter_eligible
from tutti.recommend.problem.problem import Problem, build_problem
from tutti.recommend.problem.search_context import Progress, SearchContext, Tell
from tutti.recommend.records.recommendation import Recommendation
from tutti.recommend.records.request import Binder, Objective, Request
from tutti.recommend.request_cluster import copied
from tutti.recommend.search.selection import Selection


def recommend(request: Request, budget: WorkBudget, *, tell: Tell | None = None) -> Recommendation:
    """What to buy for the pending pods of a request."""
    return recommend_for(request.cluster, request, budget, tell=tell)


def recommend_for(
    cluster: Cluster, request: Request, budget: WorkBudget, *, tell: Tell | None = None
) -> Recommendation:
    """What to buy for the pending pods of a cluster, by the daemon sets, catalogue and options of a request.

    The cluster is only copied. The request's own objects are not looked at.
    """
    budget.meter.count += REQUEST
    planning = PlanningCluster(copied(cluster, meter=budget.meter), request.daemon_sets)
    if request.options.binder is Binder.KUBE_SCHEDULER:
        planning.schedule_now()
    problem = build_problem(planning, request.catalogue)
    objective, notes = _objective(request, problem)
    eligible = filter_eligible(planning, problem, request.catalogue, objective=objective)
    context = SearchContext(request, cluster, planning, problem.with_offerings(eligible.mask), objective=objective)
    selection = Selection(context, Progress(budget, tell))
    outcome = selection.best()
    bound = selection.bound(outcome)
    return compose(context, outcome, bound, problem=problem, pools=eligible.pools, notes=notes)


def _objective(request: Request, problem: Problem) -> tuple[Objective, list[str]]:
    """What to measure by: without prices only nodes can be counted."""
    wanted = request.options.objective
    known = [offering.price is not None for offering in problem.offerings]
    if wanted is Objective.COST and known and not any(known):
        return Objective.NODES, ["no price is known: the plan is the one with the fewest nodes (--prices gives prices)"]
    return wanted, []
