"""Giving back: from a cluster that has what it needs to the plan that makes it cheaper.

1. *Settle*: the cluster with what is being bought, and every pod where it goes (`recommend.settled`).
2. *Sort* the nodes: candidates, and those that must stay, with the reason (`down.candidates`).
3. *Shrink*: underused nodes go whose pods find room on others (`down.shrink`); then busier ones, if that pays.
4. *Consolidate*: nodes are replaced by cheaper ones, if that pays (`down.consolidate`).
5. *Order*: all nodes are drained once more from the beginning, so that nobody moves twice (`down.one_pass`).

Contract: pure but for the clock. Whatever the plan moves was placed by the engine, step by step.
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
from tutti.recommend.after_purchase import OfferingIndex, settle
from tutti.recommend.down.bill import bill_of, change, unpriced
from tutti.recommend.down.candidates import RemovalCandidate, find_candidates
from tutti.recommend.down.consolidate import Consolidation
from tutti.recommend.down.disruption_pace import paces, undated
from tutti.recommend.down.drain import Drainer
from tutti.recommend.down.one_pass import OnePass, RemovalGroup, in_one_pass
from tutti.recommend.down.pool_sizes import BUDGET, PoolSizes
from tutti.recommend.down.remove_nodes import NodeRemover, stay_of
from tutti.recommend.records.down_plan import DownPlan, Removal, RemovalReason, ScaleDownStep, StayingNode
from tutti.recommend.records.recommendation import Recommendation
from tutti.recommend.records.request import DownOptions, Request
from tutti.recommend.records.scale_ups import merge


class _Ground(NamedTuple):
    """What the search goes on."""

    request: Request
    answer: Recommendation
    planning: PlanningCluster
    drainage: Drainer
    offered: OfferingIndex
    sizes: PoolSizes
    down: DownOptions


class _Found(NamedTuple):
    """What can go, and why."""

    bits: Sequence[RemovalGroup]
    """Those that were found, in order."""
    underused: frozenset[str]
    """The nodes that go for being underused or empty."""
    stays: Mapping[str, StayingNode]
    """Why single nodes cannot go."""
    is_incomplete: bool = False
    """Whether the budget was exhausted before all candidates were examined."""


def give_back(request: Request, answer: Recommendation, budget: WorkBudget, *, down: DownOptions) -> DownPlan:
    """What the cluster can give back once an answer has been followed."""
    if not any(isinstance(each, Pod) for each in request.objects):
        return _unknown(request)
    planning = settle(answer, request, meter=budget.meter).planning
    cluster, pools = planning.cluster, request.catalogue.pools
    now = down.now if down.now is not None else latest_moment(request.objects)
    rules = DrainabilityRules(remaining_budgets(cluster), now=now, missing_controllers=gone_controllers(cluster))
    every = find_candidates(cluster, request.catalogue, rules, down=down, new={n.name for n in answer.nodes})
    takers = {each.node for each in answer.on_existing}
    candidates = [each for each in every.candidates if each.node not in takers]
    taking = [each for each in every.candidates if each.node in takers]
    stays = [*every.stays, *(stay_of(each, "TakesPendingPods", "a pending pod goes there") for each in taking)]
    offered = OfferingIndex(request.catalogue)
    sizes = PoolSizes(pools, paces(pools, cluster, now=_present(down)))
    ground = _Ground(request, answer, planning, Drainer(planning, rules), offered, sizes, down)
    # Buying may have exhausted the budget; giving back gets at least half of it. The search gets a part of that: the
    # nodes that it finds are drained once more.
    found = _find(ground, candidates, budget.extended_to(budget.limit // 2).share(0.6))
    chosen = in_one_pass(planning, ground.drainage, offered, bits=found.bits, sizes=ground.sizes, down=down)
    return _plan(ground, found, chosen, candidates=candidates, stays=stays)


def _unknown(request: Request) -> DownPlan:
    """The plan for a cluster without any pods: nobody dumped them, and every node would seem empty."""
    why = "there are no pods in the input, so nothing tells what runs there: dump them too"
    homes = {member.node: pool.name for pool in request.catalogue.pools for member in pool.members}
    names = sorted(each.metadata.name for each in request.objects if isinstance(each, Node))
    stays = tuple(StayingNode(node=name, pool=homes.get(name, ""), reason="NoPodsKnown", message=why) for name in names)
    bill = bill_of(request.catalogue)
    return DownPlan(stays=stays, before=bill, after=bill, saving=0, churn=0, notes=(why,) if names else ())


def _present(down: DownOptions) -> int | None:
    """When the plan is carried out, as far as anybody knows."""
    return down.present if down.present is not None else down.now


def _find(ground: _Ground, candidates: Sequence[RemovalCandidate], budget: WorkBudget) -> _Found:
    """Look for what can go, first by itself, then for cheaper nodes; the picture is as before afterwards."""
    sizes, down = ground.sizes.copy(), ground.down
    with Trial(ground.planning.cluster):
        shrinking = NodeRemover(ground.planning, ground.drainage, sizes, down=down, budget=budget)
        underused = shrinking.run([each for each in candidates if each.underused])
        went = {each.node for each in underused.gone}
        rest = [each for each in candidates if each.node not in went and each.replaceable]
        busy = shrinking.run([each for each in rest if not each.underused])
        went |= {each.node for each in busy.gone}
        consolidation = Consolidation(
            ground.request,
            ground.planning,
            ground.drainage,
            sizes=sizes,
            bought=map(ground.offered.of, ground.answer.nodes),
            down=down,
            budget=budget,
        )
        swaps = consolidation.run(each for each in rest if each.node not in went)
    bits = [*(RemovalGroup(gone=(each,)) for each in (*underused.gone, *busy.gone)), *swaps]
    stays = {stay.node: stay for stay in (*busy.stays, *underused.stays)}
    return _Found(bits, frozenset(each.node for each in underused.gone), stays, budget.is_exhausted())


def gone_controllers(cluster: Cluster) -> frozenset[str]:
    """Controllers that pods name and that are not there, where others of their kind and namespace are."""
    there = {
        (each.metadata.namespace or "default", kind)
        for kind in REPLICATED
        for each in cluster.objects.get(kind, {}).values()
    }
    gone = set()
    for row in cluster.pods.row_of.values():
        pod = cluster.pods.objects[row]
        owner = controller_of(pod) if pod is not None else None
        if pod is None or owner is None or owner.kind not in REPLICATED:
            continue
        home = pod.metadata.namespace or "default"
        if (home, owner.kind) in there and f"{home}/{owner.name}" not in cluster.objects[owner.kind]:
            gone.add(f"{home}/{owner.kind}/{owner.name}")
    return frozenset(gone)


def _plan(
    ground: _Ground,
    found: _Found,
    chosen: OnePass,
    *,
    candidates: Sequence[RemovalCandidate],
    stays: Iterable[StayingNode],
) -> DownPlan:
    catalogue, down, bought_first = ground.request.catalogue, ground.down, ground.answer.nodes
    gone = [each for bit in chosen.bits for each in bit.gone]
    moves = [move for step in chosen.steps for move in step.moves]
    left = Counter(move.source for move in moves)
    removals = [_removal(each, moves=left[each.node], underused=found.underused) for each in gone]
    nodes = tuple(
        replace(node, pods=tuple(sorted(move.pod for move in moves if move.target == node.name)))
        for bit in chosen.bits
        for node in bit.nodes
    )
    known = any(each.member.price is not None for each in gone) or not gone
    worth = change(
        removed=[each.price for each in gone], bought=[n.price or 0 for n in nodes], moves=len(moves), down=down
    )
    purchase = sum(node.price or 0 for node in bought_first)
    before = bill_of(catalogue) + purchase
    new = {node.name for node in bought_first}
    leans = any(move.target in new for move in moves)  # then the purchase is the first step
    first = (ScaleDownStep(adds=tuple(node.name for node in bought_first)),) if leans else ()
    notes = undated(catalogue.pools, now=_present(down))
    notes += ["time was up: more may be found with a longer --time-limit"] if found.is_incomplete else []
    if number := unpriced(catalogue):
        said = (
            "1 node has no known price, and counts" if number == 1 else f"{number} nodes have no known price, and count"
        )
        notes.append(f"{said} for nothing in the bill")
    return DownPlan(
        removals=tuple(sorted(removals, key=lambda each: each.node)), scale_up=merge(nodes), nodes=nodes,
        stays=tuple(sorted([*stays, *_stayed(ground, found, chosen.bits, candidates)], key=lambda each: each.node)),
        steps=(*first, *chosen.steps), moves=len(moves), purchase=purchase,
        before=before if known else None, after=before - worth.saving if known else None,
        saving=worth.saving if known else None, churn=worth.churn if known else None,
        payback=worth.payback if known and gone else None, notes=tuple(notes),
    )  # fmt: skip


def _removal(each: RemovalCandidate, *, moves: int, underused: Collection[str]) -> Removal:
    why = (
        RemovalReason.EMPTY
        if not each.pods
        else RemovalReason.UNDERUSED
        if each.node in underused
        else RemovalReason.CONSOLIDATED
    )
    member = each.member
    return Removal(
        node=each.node, pool=each.pool, zone=member.zone, instance_type=member.instance_type,
        capacity_type=member.capacity_type, price=member.price, why=why, utilization=each.utilization,
        moves=moves, wait=each.wait,
    )  # fmt: skip


def _stayed(
    ground: _Ground, found: _Found, chosen: Iterable[RemovalGroup], candidates: Iterable[RemovalCandidate]
) -> Iterator[StayingNode]:
    """Why candidates stay: for want of room or of use, as far as that was found out; else because nothing pays."""
    sizes, names = ground.sizes.copy(), set()
    for bit in chosen:
        sizes.change(bit.gone, bit.nodes)
        names.update(bit.names)
    bits = {each.node for bit in found.bits for each in bit.gone}
    for each in candidates:
        known = found.stays.get(each.node)
        if each.node in names:
            continue
        if each.node in bits:
            yield stay_of(each, "NoPlaceToMovePods", "its pods find no place once other nodes have gone")
            continue
        spent = sizes.is_spent(each)  # then nobody has looked for something cheaper
        if each.underused and known is not None:
            more = f"; and {spent}" if spent and each.replaceable and known.reason != BUDGET else ""
            yield replace(known, message=f"{known.message}{more}")
        else:
            share = f"{each.utilization:.0%} of it is asked for, more than {each.limit:.0%}"
            why = spent or "nothing cheaper was found for its pods"
            yield stay_of(each, "NotUnderutilized", f"{share}; and {known.message if known is not None else why}")
