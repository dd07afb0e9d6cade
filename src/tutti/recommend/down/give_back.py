"""Giving back: from a cluster that has what it needs to the plan that makes it cheaper.

1. *Settle*: the cluster with what is being bought, and every pod where it goes (`recommend.settled`).
2. *Sort* the nodes: candidates, and those that must stay, with the reason (`down.candidates`).
3. *Shrink*: underused nodes go whose pods find room on others (`down.shrink`); then busier ones, if that pays.
4. *Consolidate*: nodes are replaced by cheaper ones, if that pays (`down.consolidate`).
5. *Order*: all nodes are drained once more from the beginning, so that nobody moves twice (`down.drainage`).

Contract: pure but for the deadline. Whatever the plan moves was placed by the engine, step by step.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from msgspec.structs import replace

from tutti.cluster.cluster import Cluster
from tutti.cluster.trial import Trial
from tutti.kube.owners import controller_of
from tutti.recommend.answer import Recommendation
from tutti.recommend.bought import NewNode
from tutti.recommend.down.bill import bill_of, change, unpriced
from tutti.recommend.down.budgets import budgets_of
from tutti.recommend.down.candidates import Candidate, find_candidates
from tutti.recommend.down.consolidate import Consolidation, Swap
from tutti.recommend.down.drainage import Drainage, Stuck
from tutti.recommend.down.plan import DownPlan, Removal, Stay, Step, Why
from tutti.recommend.down.shrink import Shrinking, Shrunk, stay_of
from tutti.recommend.drain import DrainRules, latest_moment
from tutti.recommend.merge import merge
from tutti.recommend.request import Deadline, Down, Request
from tutti.recommend.settled import Offered, settle

_OWNERS = ("ReplicaSet", "StatefulSet", "ReplicationController", "Job")


class _Found(NamedTuple):
    """What can go, and how it was found."""

    underused: Shrunk
    busy: Shrunk
    swaps: list[Swap]

    @property
    def gone(self) -> list[Candidate]:
        """All nodes that go, in the order in which they were found."""
        return [*self.underused.gone, *self.busy.gone, *(each for swap in self.swaps for each in swap.gone)]

    @property
    def nodes(self) -> list[NewNode]:
        """All nodes that come instead."""
        return [node for swap in self.swaps for node in swap.nodes]

    @property
    def steps(self) -> list[Step]:
        """The way on which they were found: right, but some may move twice."""
        return [*self.underused.steps, *self.busy.steps, *(step for swap in self.swaps for step in swap.steps)]


def give_back(request: Request, answer: Recommendation, deadline: Deadline, *, down: Down) -> DownPlan:
    """What the cluster can give back once an answer has been followed."""
    picture = settle(answer, request).picture
    cluster = picture.cluster
    now = down.now if down.now is not None else latest_moment(request.objects)
    rules = DrainRules(budgets_of(cluster), now=now, gone=_gone_controllers(cluster))
    found = find_candidates(cluster, request.catalogue, rules, down=down, new={node.name for node in answer.nodes})
    takers = {each.node for each in answer.on_existing}
    candidates = [each for each in found.candidates if each.node not in takers]
    stays = [
        *found.stays,
        *(
            stay_of(each, "TakesPendingPods", "a pending pod goes there")
            for each in found.candidates
            if each.node in takers
        ),
    ]
    offered = Offered(request.catalogue)
    drainage = Drainage(picture, rules)
    with Trial(cluster):
        shrinking = Shrinking(picture, drainage, request.catalogue.pools, down=down, deadline=deadline)
        underused = shrinking.run([each for each in candidates if each.underused])
        went = {each.node for each in underused.gone}
        rest = [each for each in candidates if each.node not in went and each.replaceable]
        busy = shrinking.run([each for each in rest if not each.underused])
        went |= {each.node for each in busy.gone}
        consolidation = Consolidation(request, picture, drainage, down=down, deadline=deadline)
        swaps = consolidation.run(
            [each for each in rest if each.node not in went],
            gone=(*underused.gone, *busy.gone),
            bought=map(offered.of, answer.nodes),
        )
    together = _Found(underused, busy, swaps)
    steps = drainage.drain([each.node for each in together.gone], {n.name: offered.of(n) for n in together.nodes})
    return _plan(
        request, together, together.steps if isinstance(steps, Stuck) else steps, candidates=candidates, stays=stays
    )


def _gone_controllers(cluster: Cluster) -> frozenset[str]:
    """Controllers that pods name and that are not there, where others of their kind and namespace are."""
    there = {
        f"{each.metadata.namespace or 'default'}/{kind}": True
        for kind in _OWNERS
        for each in cluster.objects.get(kind, {}).values()
    }
    gone = set()
    for row in cluster.pods.row_of.values():
        pod = cluster.pods.objects[row]
        owner = controller_of(pod) if pod is not None else None
        if pod is None or owner is None or owner.kind not in _OWNERS:
            continue
        home = pod.metadata.namespace or "default"
        if f"{home}/{owner.kind}" in there and f"{home}/{owner.name}" not in cluster.objects[owner.kind]:
            gone.add(f"{home}/{owner.kind}/{owner.name}")
    return frozenset(gone)


def _plan(
    request: Request, found: _Found, steps: Sequence[Step], *, candidates: Sequence[Candidate], stays: Iterable[Stay]
) -> DownPlan:
    gone, catalogue, down = found.gone, request.catalogue, request.options.down or Down()
    left = {move.pod: move.source for step in reversed(steps) for move in step.moves}
    moves = [move for step in steps for move in step.moves]
    where = {move.pod: move.target for move in moves}
    underused = {each.node for each in found.underused.gone}
    removals = [_removal(each, moves=sum(s == each.node for s in left.values()), underused=underused) for each in gone]
    nodes = tuple(
        replace(node, pods=tuple(sorted(pod for pod, target in where.items() if target == node.name)))
        for node in found.nodes
    )
    known = all(each.member.price is not None for each in gone)
    worth = change(
        removed=[each.price for each in gone], bought=[n.price or 0 for n in nodes], moves=len(moves), down=down
    )
    before = bill_of(catalogue)
    notes = []
    if number := unpriced(catalogue):
        notes.append(f"{number} node{'s have' if number > 1 else ' has'} no known price, and count for nothing")
    return DownPlan(
        removals=tuple(sorted(removals, key=lambda each: each.node)), scale_up=merge(nodes), nodes=nodes,
        stays=tuple(sorted([*stays, *_stayed(found, candidates, down)], key=lambda each: each.node)),
        steps=tuple(steps), moves=len(moves),
        before=before if known else None, after=before - worth.saving if known else None,
        saving=worth.saving if known else None, churn=worth.churn if known else None,
        payback=worth.payback if known and gone else None, notes=tuple(notes),
    )  # fmt: skip


def _removal(each: Candidate, *, moves: int, underused: set[str]) -> Removal:
    why = Why.EMPTY if not each.pods else Why.UNDERUSED if each.node in underused else Why.CONSOLIDATED
    member = each.member
    return Removal(
        node=each.node, pool=each.pool, zone=member.zone, instance_type=member.instance_type,
        capacity_type=member.capacity_type, price=member.price, why=why, utilization=each.utilization,
        moves=moves, wait=each.wait,
    )  # fmt: skip


def _stayed(found: _Found, candidates: Iterable[Candidate], down: Down) -> list[Stay]:
    """Why candidates stay: for want of room or of use, as far as that was found out; else because nothing pays."""
    gone = {each.node for each in found.gone}
    known = {stay.node: stay for stay in (*found.busy.stays, *found.underused.stays)}
    stays = []
    for each in candidates:
        if each.node in gone:
            continue
        if each.underused and each.node in known:
            stays.append(known[each.node])
            continue
        share = f"{each.utilization:.0%} of it is asked for, more than {down.threshold:.0%}"
        why = known[each.node].message if each.node in known else "nothing cheaper was found for its pods"
        stays.append(stay_of(each, "NotUnderutilized", f"{share}; and {why}"))
    return stays
