"""What Cluster Autoscaler would take away from the same cluster, to stand beside our plan.

Contract: pure but for the budget. The cluster is the one that our plan begins with: what is bought has joined, and
pods are where they go. The model is that of `peers.scale_down`, which is held against recorded runs. It is asked again
on what is left until nothing more goes: pods have moved where it put them, and budgets allow as many evictions as
before. Every round takes the time that nodes must be unneeded. Where a pool has minimums for zones, it is a group for
each zone, as clouds have it; a pool that gives no node back is in no group. Prices and waits are those of our own plan.
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
from tutti.recommend.after_purchase import settle
from tutti.recommend.down.candidates import wait_of
from tutti.recommend.down.node_pods import WORDS
from tutti.recommend.down.scale_down import gone_controllers
from tutti.recommend.records.recommendation import Recommendation
from tutti.recommend.records.request import DownOptions, Request
from tutti.recommend.request_cluster import copied

_WHY = {
    "NotAutoscaled": "it is in no node group",
    "NodeGroupMinSizeReached": "its group comes to its minimum",
    "ScaleDownDisabledAnnotation": "its annotation says that it stays",
    "NoPlaceToMovePods": "its pods find no room on what remains",
    "NotSimulated": "time was up before its turn",
    "BlockedByOnCompletionPod": "a pod on it is to finish first",
    "UnexpectedError": "it does not say how much it has",
}


class DeletedNode(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A node that Cluster Autoscaler would delete."""

    node: str
    pool: str
    price: int | None = None
    """In nano-dollars an hour; None when nobody knows."""
    wait: int
    """After how many seconds it goes at the earliest."""
    empty: bool
    """Whether no pod has to move."""


class PeerScaleDown(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """See the module's contract."""

    gone: tuple[DeletedNode, ...] = ()
    """By name."""
    kept: Mapping[str, str] = {}
    """Why each other node stays, as a user would say it."""
    saving: int | None = None
    """In nano-dollars an hour; None when some node has no known price."""
    late: int = 0
    """How many nodes were not looked at because time was up."""


def cluster_autoscaler_beside(request: Request, answer: Recommendation, budget: WorkBudget) -> PeerScaleDown | None:
    """What Cluster Autoscaler would delete; None where there is no plan of ours, or nothing is known of pods."""
    down = request.options.down
    if answer.down is None or down is None or not any(isinstance(each, Pod) for each in request.objects):
        return None
    cluster = settle(answer, request, meter=budget.meter).planning.cluster
    return _told(_rounds(request, answer, cluster, budget=budget, down=down), request, cluster, down=down)


def _rounds(
    request: Request, answer: Recommendation, cluster: Cluster, *, budget: WorkBudget, down: DownOptions
) -> list[ScaleDownDecision]:
    """What goes in each round; the last one finds nothing, unless time is up."""
    groups, options = tuple(_groups(request.catalogue, answer)), ScaleDownOptions(threshold=down.threshold)
    now = down.now if down.now is not None else latest_moment(request.objects)
    gone, found = gone_controllers(cluster), list[ScaleDownDecision]()
    while not found or (_deleted(found[-1]) and not budget.is_exhausted()):
        twin = copied(cluster, meter=budget.meter)
        found.append(
            cluster_autoscaler_down(twin, groups, options=options, now=now, missing_controllers=gone, budget=budget)
        )
        left = frozenset(_deleted(found[-1]))
        cluster = copied(cluster, _after(cluster, left, found[-1].places))
        groups = tuple(replace(each, members=tuple(n for n in each.members if n not in left)) for each in groups)
        now = None if now is None else now + SECOND_PASS_DELAY
    return found


def _deleted(found: ScaleDownDecision) -> tuple[str, ...]:
    return (*found.deleted.empty, *found.deleted.drain)


def _after(cluster: Cluster, left: frozenset[str], places: Mapping[str, str]) -> Iterator[Edit]:
    """The edits for nodes that have left: their pods have gone where they were put, or with their node."""
    pods = cluster.pods
    for key, row in pods.row_of.items():
        if pods.node_names[row] not in left:
            continue
        if key in places:
            yield Unbind(key)
            yield Bind(key, places[key])
        else:
            yield Remove(Pod.KIND, key)
    for name in left:
        yield Remove(Node.KIND, name)


def _groups(catalogue: Catalogue, answer: Recommendation) -> Iterator[ScaleDownNodeGroup]:
    for pool in catalogue.pools:
        if pool.down_rules.disabled:
            continue
        homes = [(each.node, each.zone) for each in pool.members]
        homes += [(each.name, each.zone) for each in answer.nodes if each.pool == pool.name]
        if not pool.zone_minimums:
            yield _group(pool, pool.name, pool.minimum, tuple(name for name, _ in homes))
            continue
        for zone in sorted({zone for _, zone in homes}):
            names = tuple(name for name, its in homes if its == zone)
            yield _group(pool, f"{pool.name}/{zone}", pool.zone_minimums.get(zone, 0), names)


def _group(pool: NodePool, name: str, minimum: int, members: tuple[str, ...]) -> ScaleDownNodeGroup:
    return ScaleDownNodeGroup(name=name, minimum=minimum, members=members, threshold=pool.down_rules.threshold)


def _told(
    rounds: Sequence[ScaleDownDecision], request: Request, cluster: Cluster, *, down: DownOptions
) -> PeerScaleDown:
    homes = {member.node: (pool, member) for pool in request.catalogue.pools for member in pool.members}
    gone = [
        _gone(name, homes[name], cluster, down=down, number=number, empty=name in found.deleted.empty)
        for number, found in enumerate(rounds)
        for name in _deleted(found)
        if name in homes  # one that is only just being bought is none of those that are there
    ]
    last = rounds[-1]
    kept = {name: _why(each, last.utilization.get(name)) for name, each in last.kept.items()}
    kept |= {name: _WHY.get(reason, reason) for name, reason in last.deleted.held.items()}
    prices = [each.price for each in gone]
    return PeerScaleDown(
        gone=tuple(sorted(gone, key=lambda each: each.node)),
        kept=kept,
        saving=None if None in prices else sum(price or 0 for price in prices),
        late=sum(each.reason == "NotSimulated" for each in last.kept.values()),
    )


def _gone(
    name: str, home: tuple[NodePool, PoolMember], cluster: Cluster, *, down: DownOptions, number: int, empty: bool
) -> DeletedNode:
    pool, member = home
    node = cluster.nodes.objects[cluster.nodes.row_of[name]]
    assert node is not None
    # Nodes that go later were needed until then: they wait the whole time again, whatever they are marked with.
    again = wait_of(node, pool, down=replace(down, now=None))
    wait = wait_of(node, pool, down=down) if not number else (number + 1) * again
    return DeletedNode(node=name, pool=pool.name, price=member.price, wait=wait, empty=empty)


def _why(kept: UnremovableNode, share: float | None) -> str:
    if kept.reason == "NotUnderutilized" and share is not None:
        return f"{share:.0%} of it is asked for"
    if kept.pod:
        return f"pod {kept.pod} {WORDS.get(kept.pod_reason, kept.pod_reason)}"
    return _WHY.get(kept.reason, kept.reason)
