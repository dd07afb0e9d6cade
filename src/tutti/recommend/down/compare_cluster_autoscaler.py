"""The nodes that Cluster Autoscaler would remove from the same cluster, for comparison with our plan.

Contract: pure except for the budget. The cluster is the one that our plan starts with: new nodes have joined, and pods
are placed. The model (`autoscalers.cluster_autoscaler.planner`) is tested against recorded runs. It runs in rounds on
the remaining cluster until a round removes no node: pods have moved where the model put them, and disruption budgets
allow as many evictions as before. Every round takes the time that nodes must be unneeded. A pool with minimums per zone
is one node group per zone, as clouds have it; a pool with disabled scale-down is in no group. Prices and waits are
those of our own plan.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import msgspec
from msgspec.structs import replace

from tutti.autoscalers.cluster_autoscaler.drainability import latest_moment
from tutti.autoscalers.cluster_autoscaler.planner import SECOND_PASS_DELAY, cluster_autoscaler_down
from tutti.autoscalers.cluster_autoscaler.scaledown_records import (
    ScaleDownDecision,
    ScaleDownNodeGroup,
    ScaleDownOptions,
    UnremovableNode,
)
from tutti.cluster.cluster import Cluster
from tutti.cluster.edits import Bind, Edit, Remove, Unbind
from tutti.cluster.work.work_budget import WorkBudget
from tutti.kube.objects import Node, Pod
from tutti.market.offerings import Catalogue, NodePool, PoolMember
from tutti.recommend.after_purchase import apply_recommendation
from tutti.recommend.down.node_pods import POD_REASONS
from tutti.recommend.down.removal_candidates import wait_of
from tutti.recommend.down.scale_down import missing_controllers
from tutti.recommend.records.recommendation import Recommendation
from tutti.recommend.records.request import DownOptions, Request
from tutti.recommend.request_cluster import copy_cluster

_MESSAGES = {
    "NotAutoscaled": "it is in no node group",
    "NodeGroupMinSizeReached": "its group would fall below its minimum",
    "ScaleDownDisabledAnnotation": "its annotation says that it stays",
    "NoPlaceToMovePods": "its pods find no room on the remaining nodes",
    "NotSimulated": "time was up before its turn",
    "BlockedByOnCompletionPod": "a pod on it must finish first",
    "UnexpectedError": "its capacity is unknown",
}


class DeletedNode(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A node that Cluster Autoscaler would delete."""

    node: str
    pool: str
    price: int | None = None
    """In nano-dollars an hour; None if unknown."""
    wait: int
    """The number of seconds after which the node is deleted at the earliest."""
    empty: bool
    """Whether no pod has to move."""


class PeerScaleDown(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """The scale-down of Cluster Autoscaler; see the module's contract."""

    gone: tuple[DeletedNode, ...] = ()
    """By name."""
    kept: Mapping[str, str] = {}
    """The reason of every node that stays, as a sentence for users."""
    saving: int | None = None
    """In nano-dollars an hour; None if a removed node has no known price."""
    late: int = 0
    """The number of nodes that were not checked for lack of time."""


def cluster_autoscaler_scale_down(request: Request, answer: Recommendation, budget: WorkBudget) -> PeerScaleDown | None:
    """Return what Cluster Autoscaler would delete; None without a plan of ours, or if the input has no pods."""
    down = request.options.down
    if answer.down is None or down is None or not any(isinstance(each, Pod) for each in request.objects):
        return None
    cluster = apply_recommendation(answer, request, meter=budget.meter).planning.cluster
    return _peer_scale_down(_rounds(request, answer, cluster, budget=budget, down=down), request, cluster, down=down)


def _rounds(
    request: Request, answer: Recommendation, cluster: Cluster, *, budget: WorkBudget, down: DownOptions
) -> list[ScaleDownDecision]:
    """Return the decision of every round; the last one deletes no node, unless the budget is exhausted."""
    groups, options = tuple(_groups(request.catalogue, answer)), ScaleDownOptions(threshold=down.threshold)
    now = down.now if down.now is not None else latest_moment(request.objects)
    missing, decisions = missing_controllers(cluster), list[ScaleDownDecision]()
    while not decisions or (_deleted(decisions[-1]) and not budget.is_exhausted()):
        copy = copy_cluster(cluster, meter=budget.meter)
        decisions.append(
            cluster_autoscaler_down(copy, groups, options=options, now=now, missing_controllers=missing, budget=budget)
        )
        deleted = frozenset(_deleted(decisions[-1]))
        cluster = copy_cluster(cluster, _deletion_edits(cluster, deleted, decisions[-1].places))
        groups = tuple(replace(each, members=tuple(n for n in each.members if n not in deleted)) for each in groups)
        now = None if now is None else now + SECOND_PASS_DELAY
    return decisions


def _deleted(found: ScaleDownDecision) -> tuple[str, ...]:
    return (*found.deleted.empty, *found.deleted.drain)


def _deletion_edits(cluster: Cluster, deleted: frozenset[str], places: Mapping[str, str]) -> Iterator[Edit]:
    """Yield the edits that remove deleted nodes: their pods move where the model put them, or are removed."""
    pods = cluster.pods
    for key, row in pods.row_of.items():
        if pods.node_names[row] not in deleted:
            continue
        if key in places:
            yield Unbind(key)
            yield Bind(key, places[key])
        else:
            yield Remove(Pod.KIND, key)
    for name in deleted:
        yield Remove(Node.KIND, name)


def _groups(catalogue: Catalogue, answer: Recommendation) -> Iterator[ScaleDownNodeGroup]:
    for pool in catalogue.pools:
        if pool.down_rules.disabled:
            continue
        members = [(each.node, each.zone) for each in pool.members]
        members += [(each.name, each.zone) for each in answer.nodes if each.pool == pool.name]
        if not pool.zone_minimums:
            yield _group(pool, pool.name, pool.minimum, tuple(name for name, _ in members))
            continue
        for zone in sorted({zone for _, zone in members}):
            names = tuple(name for name, node_zone in members if node_zone == zone)
            yield _group(pool, f"{pool.name}/{zone}", pool.zone_minimums.get(zone, 0), names)


def _group(pool: NodePool, name: str, minimum: int, members: tuple[str, ...]) -> ScaleDownNodeGroup:
    return ScaleDownNodeGroup(name=name, minimum=minimum, members=members, threshold=pool.down_rules.threshold)


def _peer_scale_down(
    rounds: Sequence[ScaleDownDecision], request: Request, cluster: Cluster, *, down: DownOptions
) -> PeerScaleDown:
    pool_of_node = {member.node: (pool, member) for pool in request.catalogue.pools for member in pool.members}
    deleted = [
        _deleted_node(
            name,
            pool_of_node[name],
            cluster,
            down=down,
            round_number=round_number,
            empty=name in decision.deleted.empty,
        )
        for round_number, decision in enumerate(rounds)
        for name in _deleted(decision)
        if name in pool_of_node  # new nodes of our purchase are not existing nodes
    ]
    last = rounds[-1]
    kept = {name: _message(each, last.utilization.get(name)) for name, each in last.kept.items()}
    kept |= {name: _MESSAGES.get(reason, reason) for name, reason in last.deleted.held.items()}
    prices = [each.price for each in deleted]
    return PeerScaleDown(
        gone=tuple(sorted(deleted, key=lambda each: each.node)),
        kept=kept,
        saving=None if None in prices else sum(price or 0 for price in prices),
        late=sum(each.reason == "NotSimulated" for each in last.kept.values()),
    )


def _deleted_node(
    name: str,
    membership: tuple[NodePool, PoolMember],
    cluster: Cluster,
    *,
    down: DownOptions,
    round_number: int,
    empty: bool,
) -> DeletedNode:
    pool, member = membership
    node = cluster.nodes.objects[cluster.nodes.row_of[name]]
    assert node is not None
    # Nodes deleted in later rounds were needed until then: they wait the whole time again, whatever their taint says.
    whole_wait = wait_of(node, pool, down=replace(down, now=None))
    wait = wait_of(node, pool, down=down) if not round_number else (round_number + 1) * whole_wait
    return DeletedNode(node=name, pool=pool.name, price=member.price, wait=wait, empty=empty)


def _message(kept: UnremovableNode, utilization: float | None) -> str:
    if kept.reason == "NotUnderutilized" and utilization is not None:
        return f"{utilization:.0%} of it is requested"
    if kept.pod:
        return f"pod {kept.pod} {POD_REASONS.get(kept.pod_reason, kept.pod_reason)}"
    return _MESSAGES.get(kept.reason, kept.reason)
