"""Scale-down: from the cluster after a purchase to the plan that makes it cheaper.

1. *Purchase*: build the cluster with the new nodes and all pods placed (`recommend.after_purchase`).
2. *Candidates*: find the nodes that may be removed, and the reason of every other node (`down.removal_candidates`).
3. *Removal*: remove underused nodes whose pods fit on other nodes, then busier nodes if that pays
   (`down.remove_nodes`).
4. *Consolidation*: replace nodes by cheaper ones, if that pays (`down.consolidate`).
5. *Final drain*: drain all chosen nodes again from the initial state, so that no pod moves twice (`down.final_drain`).

Contract: pure except for the clock of the budget. Every move in the plan was placed by the engine, step by step.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from msgspec.structs import replace

from tutti.autoscalers.cluster_autoscaler.drainability import REPLICATED, DrainabilityRules, latest_moment
from tutti.cluster.cluster import Cluster
from tutti.cluster.trial import Trial
from tutti.cluster.work.work_budget import WorkBudget
from tutti.engine.preemption.disruption_budgets import remaining_budgets
from tutti.kube.objects import Node, Pod
from tutti.kube.workloads.owners import controller_of
from tutti.market.planning_cluster import PlanningCluster
from tutti.recommend.after_purchase import OfferingIndex, apply_recommendation
from tutti.recommend.down.bill import bill_change, bill_of, count_unpriced
from tutti.recommend.down.consolidate import Consolidation
from tutti.recommend.down.drain import Drainer
from tutti.recommend.down.final_drain import DrainedGroups, RemovalGroup, drain_groups
from tutti.recommend.down.node_budgets import allowed_disruptions, schedule_notes
from tutti.recommend.down.pool_sizes import BUDGET, PoolSizes
from tutti.recommend.down.removal_candidates import RemovalCandidate, find_candidates
from tutti.recommend.down.remove_nodes import NodeRemover, staying_node
from tutti.recommend.records.down_plan import DownPlan, Removal, RemovalReason, ScaleDownStep, StayingNode
from tutti.recommend.records.recommendation import Recommendation
from tutti.recommend.records.request import DownOptions, Request
from tutti.recommend.records.scale_ups import merge


class _SearchInput(NamedTuple):
    """The inputs that all steps of the search share."""

    request: Request
    answer: Recommendation
    planning: PlanningCluster
    drainer: Drainer
    offerings: OfferingIndex
    sizes: PoolSizes
    down: DownOptions


class _SearchResult(NamedTuple):
    """The result of the search."""

    groups: Sequence[RemovalGroup]
    """The groups of nodes that can be removed, in the order in which they were found."""
    underused: frozenset[str]
    """The nodes that are removed because they are underused or empty."""
    staying_nodes: Mapping[str, StayingNode]
    """The reason of every node that cannot be removed alone."""
    is_incomplete: bool = False
    """Whether the budget was exhausted before all candidates were examined."""


def plan_scale_down(request: Request, answer: Recommendation, budget: WorkBudget, *, down: DownOptions) -> DownPlan:
    """Return the scale-down plan for the cluster after a recommendation."""
    if not any(isinstance(each, Pod) for each in request.objects):
        return _plan_without_pods(request)
    planning = apply_recommendation(answer, request, meter=budget.meter).planning
    cluster, pools = planning.cluster, request.catalogue.pools
    now = down.now if down.now is not None else latest_moment(request.objects)
    rules = DrainabilityRules(remaining_budgets(cluster), now=now, missing_controllers=missing_controllers(cluster))
    all_nodes = find_candidates(cluster, request.catalogue, rules, down=down, new={n.name for n in answer.nodes})
    existing_targets = {each.node for each in answer.on_existing}
    candidates = [each for each in all_nodes.candidates if each.node not in existing_targets]
    target_candidates = [each for each in all_nodes.candidates if each.node in existing_targets]
    staying_nodes = [
        *all_nodes.staying_nodes,
        *(staying_node(each, "TakesPendingPods", "a pending pod goes there") for each in target_candidates),
    ]
    offerings = OfferingIndex(request.catalogue)
    sizes = PoolSizes(pools, allowed_disruptions(pools, cluster, now=_execution_time(down)))
    inputs = _SearchInput(request, answer, planning, Drainer(planning, rules), offerings, sizes, down)
    # The purchase may have exhausted the budget; the scale-down gets at least half of it. The search gets only a part
    # of that, because the nodes that it finds are drained once more.
    result = _search(inputs, candidates, budget.extended_to(budget.limit // 2).share(0.6))
    chosen = drain_groups(planning, inputs.drainer, offerings, groups=result.groups, sizes=inputs.sizes, down=down)
    return _plan(inputs, result, chosen, candidates=candidates, staying_nodes=staying_nodes)


def _plan_without_pods(request: Request) -> DownPlan:
    """Return the plan for input without any pods: no node is removed, because every node would seem empty."""
    message = "there are no pods in the input, so which nodes are in use is unknown: dump pods too"
    pool_of_node = {member.node: pool.name for pool in request.catalogue.pools for member in pool.members}
    names = sorted(each.metadata.name for each in request.objects if isinstance(each, Node))
    staying_nodes = tuple(
        StayingNode(node=name, pool=pool_of_node.get(name, ""), reason="NoPodsKnown", message=message) for name in names
    )
    bill = bill_of(request.catalogue)
    return DownPlan(
        staying_nodes=staying_nodes, before=bill, after=bill, saving=0, churn=0, notes=(message,) if names else ()
    )


def _execution_time(down: DownOptions) -> int | None:
    """Return the moment at which the plan is carried out; None if unknown."""
    return down.present if down.present is not None else down.now


def _search(inputs: _SearchInput, candidates: Sequence[RemovalCandidate], budget: WorkBudget) -> _SearchResult:
    """Find nodes to remove, first alone, then with cheaper replacements; the planning cluster stays unchanged."""
    sizes, down = inputs.sizes.copy(), inputs.down
    with Trial(inputs.planning.cluster):
        remover = NodeRemover(inputs.planning, inputs.drainer, sizes, down=down, budget=budget)
        underused = remover.run([each for each in candidates if each.underused])
        removed = {each.node for each in underused.gone}
        replaceable = [each for each in candidates if each.node not in removed and each.replaceable]
        busy = remover.run([each for each in replaceable if not each.underused])
        removed |= {each.node for each in busy.gone}
        consolidation = Consolidation(
            inputs.request,
            inputs.planning,
            inputs.drainer,
            sizes=sizes,
            bought=map(inputs.offerings.find, inputs.answer.nodes),
            down=down,
            budget=budget,
        )
        replacements = consolidation.run(each for each in replaceable if each.node not in removed)
    groups = [*(RemovalGroup(gone=(each,)) for each in (*underused.gone, *busy.gone)), *replacements]
    staying_nodes = {staying.node: staying for staying in (*busy.staying_nodes, *underused.staying_nodes)}
    return _SearchResult(groups, frozenset(each.node for each in underused.gone), staying_nodes, budget.is_exhausted())


def missing_controllers(cluster: Cluster) -> frozenset[str]:
    """Return controllers that pods refer to and that do not exist, although others of their kind and namespace do."""
    existing = {
        (each.metadata.namespace or "default", kind)
        for kind in REPLICATED
        for each in cluster.objects.get(kind, {}).values()
    }
    missing = set()
    for row in cluster.pods.row_of.values():
        pod = cluster.pods.objects[row]
        owner = controller_of(pod) if pod is not None else None
        if pod is None or owner is None or owner.kind not in REPLICATED:
            continue
        namespace = pod.metadata.namespace or "default"
        if (namespace, owner.kind) in existing and f"{namespace}/{owner.name}" not in cluster.objects[owner.kind]:
            missing.add(f"{namespace}/{owner.kind}/{owner.name}")
    return frozenset(missing)


def _plan(
    inputs: _SearchInput,
    result: _SearchResult,
    chosen: DrainedGroups,
    *,
    candidates: Sequence[RemovalCandidate],
    staying_nodes: Iterable[StayingNode],
) -> DownPlan:
    catalogue, down, new_nodes = inputs.request.catalogue, inputs.down, inputs.answer.nodes
    removed = [each for group in chosen.groups for each in group.gone]
    moves = [move for step in chosen.steps for move in step.moves]
    moves_by_source = Counter(move.source for move in moves)
    removals = [_removal(each, moves=moves_by_source[each.node], underused=result.underused) for each in removed]
    nodes = tuple(
        replace(node, pods=tuple(sorted(move.pod for move in moves if move.target == node.name)))
        for group in chosen.groups
        for node in group.nodes
    )
    has_prices = any(each.member.price is not None for each in removed) or not removed
    change = bill_change(
        removed=[each.price for each in removed], bought=[n.price or 0 for n in nodes], moves=len(moves), down=down
    )
    purchase = sum(node.price or 0 for node in new_nodes)
    before = bill_of(catalogue) + purchase
    new_names = {node.name for node in new_nodes}
    uses_purchase = any(move.target in new_names for move in moves)  # then the purchase is the first step of the plan
    first = (ScaleDownStep(adds=tuple(node.name for node in new_nodes)),) if uses_purchase else ()
    notes = schedule_notes(catalogue.pools, now=_execution_time(down))
    notes += ["time was up: more may be found with a longer --time-limit"] if result.is_incomplete else []
    if number := count_unpriced(catalogue):
        subject = (
            "1 node has no known price, and counts" if number == 1 else f"{number} nodes have no known price, and count"
        )
        notes.append(f"{subject} for nothing in the bill")
    every_staying_node = [*staying_nodes, *_staying_candidates(inputs, result, chosen.groups, candidates)]
    return DownPlan(
        removals=tuple(sorted(removals, key=lambda each: each.node)), scale_up=merge(nodes), nodes=nodes,
        staying_nodes=tuple(sorted(every_staying_node, key=lambda each: each.node)),
        steps=(*first, *chosen.steps), moves=len(moves), purchase=purchase,
        before=before if has_prices else None, after=before - change.saving if has_prices else None,
        saving=change.saving if has_prices else None, churn=change.churn if has_prices else None,
        payback=change.payback if has_prices and removed else None, notes=tuple(notes),
    )  # fmt: skip


def _removal(each: RemovalCandidate, *, moves: int, underused: Collection[str]) -> Removal:
    reason = (
        RemovalReason.EMPTY
        if not each.pods
        else RemovalReason.UNDERUSED
        if each.node in underused
        else RemovalReason.CONSOLIDATED
    )
    member = each.member
    return Removal(
        node=each.node, pool=each.pool, zone=member.zone, instance_type=member.instance_type,
        capacity_type=member.capacity_type, price=member.price, why=reason, utilization=each.utilization,
        moves=moves, wait=each.wait,
    )  # fmt: skip


def _staying_candidates(
    inputs: _SearchInput, result: _SearchResult, chosen: Iterable[RemovalGroup], candidates: Iterable[RemovalCandidate]
) -> Iterator[StayingNode]:
    """Yield why candidates stay: no room, or too busy, as far as the search found out, or no change pays."""
    sizes, names = inputs.sizes.copy(), set()
    for group in chosen:
        sizes.change(group.gone, group.nodes)
        names.update(group.names)
    grouped_nodes = {each.node for group in result.groups for each in group.gone}
    for each in candidates:
        refusal = result.staying_nodes.get(each.node)
        if each.node in names:
            continue
        if each.node in grouped_nodes:
            yield staying_node(each, "NoPlaceToMovePods", "its pods find no place once other nodes have gone")
            continue
        budget_message = sizes.exhausted_budget(each)  # then no replacement was searched for
        if each.underused and refusal is not None:
            has_suffix = budget_message and each.replaceable and refusal.reason != BUDGET
            suffix = f"; and {budget_message}" if has_suffix else ""
            yield replace(refusal, message=f"{refusal.message}{suffix}")
        else:
            utilization = f"{each.utilization:.0%} of it is requested, more than {each.limit:.0%}"
            message = budget_message or "nothing cheaper was found for its pods"
            detail = refusal.message if refusal is not None else message
            yield staying_node(each, "NotUnderutilized", f"{utilization}; and {detail}")
