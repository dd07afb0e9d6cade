"""The pipeline from a request to a recommendation.

1. *Planning cluster* (`market.planning_cluster`): a copy of the cluster; pods have a node or are pending. If
   kube-scheduler binds, pending pods that fit an existing node are bound first, because kube-scheduler does not wait
   for new nodes.
2. *Problem* (`problem`): every class of pending pods against a node of every offering, in one pass.
3. *Eligible pools* (`problem.eligible_pools`): pools that cannot help are left out.
4. *Drafts* (`search.drafts`): strategies buy node by node (`search.greedy`), models buy as other autoscalers would
   (`autoscalers`), and column generation optimises (`search.column_generation`).
5. *Binding* (`replay`): the binder places the pods of each draft; missing nodes are added, spare nodes removed.
6. *Selection* (`search.selection`): pick the best purchase and prove a bound on the optimum.
7. *Recommendation* (`compose`, `reasons`): merge the nodes into scale-ups, and say why pods are left.

`build_request` makes the request from files before.

Contract: pure except for the clock of the budget. The plan places as many pods as any draft would, pods with high
priority first, and is the cheapest of these plans by the objective. Every placement in the plan was made by the engine.
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
from tutti.recommend.request_cluster import copy_cluster
from tutti.recommend.search.selection import Selection


def recommend(request: Request, budget: WorkBudget, *, tell: Tell | None = None) -> Recommendation:
    """Return the recommendation for the pending pods of a request."""
    return recommend_for(request.cluster, request, budget, tell=tell)


def recommend_for(
    cluster: Cluster, request: Request, budget: WorkBudget, *, tell: Tell | None = None
) -> Recommendation:
    """Return the recommendation for the pending pods of a cluster.

    The request gives the daemon sets, the catalogue and the options; its objects are not read. The cluster is only
    copied.
    """
    budget.meter.count += REQUEST
    planning = PlanningCluster(copy_cluster(cluster, meter=budget.meter), request.daemon_sets)
    if request.options.binder is Binder.KUBE_SCHEDULER:
        planning.schedule_now()
    problem = build_problem(planning, request.catalogue)
    objective, notes = _objective(request, problem)
    eligible = filter_eligible(planning, problem, request.catalogue, objective=objective)
    context = SearchContext(request, cluster, planning, problem.with_offerings(eligible.mask), objective=objective)
    selection = Selection(context, Progress(budget, tell))
    purchase = selection.best()
    bound = selection.bound(purchase)
    return compose(context, purchase, bound, problem=problem, pools=eligible.pools, notes=notes)


def _objective(request: Request, problem: Problem) -> tuple[Objective, list[str]]:
    """Return the objective, and notes: without any price the objective is the number of nodes."""
    objective = request.options.objective
    has_price = [offering.price is not None for offering in problem.offerings]
    if objective is Objective.COST and has_price and not any(has_price):
        return Objective.NODES, ["no price is known: the plan is the one with the fewest nodes (--prices gives prices)"]
    return objective, []
