"""What Karpenter would buy: passes of its scheduler until one buys nothing more.

Contract: `karpenter` is pure and works for any request, whatever its pools are made of: the offerings of a pool are
taken as instance types with zones and capacity types. Where Karpenter takes any of several equal zones, the first by
name is taken. A pass that bought nodes and left pods behind is followed by another one with those nodes in the cluster,
because limits then count what was really bought. When the work budget is exhausted, the rest of the pods is left.
Karpenter looks at neither priorities nor gangs. Volumes, minimum numbers of types and reserved capacity are not
modelled.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from tutti.autoscalers.karpenter.instancetypes import HOSTNAME
from tutti.autoscalers.karpenter.scheduler import Pass
from tutti.autoscalers.shared.purchase import Purchase
from tutti.cluster.work_budget import WorkBudget
from tutti.kube.generated_names import made_uid
from tutti.kube.objects import Node, Object, Pod
from tutti.kube.workloads.daemon_sets import daemon_pods, node_of
from tutti.kube.workloads.owners import OwnedPods
from tutti.market.offerings import Offering
from tutti.market.remaining_limits import spent
from tutti.recommend.records.request import Request

_MOST_PASSES = 50


def karpenter(
    request: Request,
    budget: WorkBudget | None = None,
    *,
    order: Sequence[str] = (),
    passes: int = _MOST_PASSES,
    as_in_go: bool = False,
) -> Purchase:
    """Buy as Karpenter would: from pools by falling weight, then by falling name; those that `order` names come first.

    `as_in_go` takes equals in the order in which Go's sort leaves them: exact, and several times slower.
    """
    bought: list[tuple[Offering, list[str]]] = []
    names: dict[str, int] = {}
    on_existing: list[tuple[str, str]] = []
    prefix = _free_prefix(request)
    for number in range(1, passes + 1):
        found = Pass(request, order, as_in_go=as_in_go).run(budget)
        for pod, node in found.on_existing:
            if node in names:
                bought[names[node]][1].append(pod)
            else:
                on_existing.append((pod, node))
        joined = {f"{prefix}-{number:02}-{place:05}": each for place, each in enumerate(found.nodes)}
        for name, (offering, pods) in joined.items():
            names[name] = len(bought)
            bought.append((offering, list(pods)))
        over = budget is not None and budget.is_exhausted()
        if not found.left or not found.nodes or over or number == passes:
            break
        request = _after(request, joined, dict(found.on_existing))
    return Purchase(
        nodes=tuple((offering, tuple(pods)) for offering, pods in bought),
        on_existing=tuple(on_existing),
        left=found.left,
    )


def _after(
    request: Request, joined: dict[str, tuple[Offering, tuple[str, ...]]], on_existing: dict[str, str]
) -> Request:
    """The request with the bought nodes in the cluster, their daemons running and the pods on their nodes."""
    nodes = [_node(offering, name) for name, (offering, _) in joined.items()]
    owned = OwnedPods(())
    daemons = [_started(pod) for each in request.daemon_sets for pod in daemon_pods(each, owned, nodes=nodes)]
    where = on_existing | {pod: name for name, (_, pods) in joined.items() for pod in pods}
    objects: list[Object] = []
    for each in request.objects:
        if isinstance(each, Pod) and each.key in where:
            each = replace(each, spec=replace(each.spec, node_name=where[each.key]))
        objects.append(each)
    return replace(
        request,
        objects=(*objects, *nodes, *daemons),
        catalogue=spent(request.catalogue, [offering for offering, _ in joined.values()]),
    )


def _free_prefix(request: Request) -> str:
    """How names of bought nodes begin: as those of no node that is there."""
    prefix, there = "new", [each.metadata.name for each in request.objects if isinstance(each, Node)]
    while any(name.startswith(prefix) for name in there):
        prefix += "-new"
    return prefix


def _node(offering: Offering, name: str) -> Node:
    metadata = offering.node.metadata
    labels = {**(metadata.labels or {}), HOSTNAME: name}
    return replace(offering.node, metadata=replace(metadata, name=name, uid=made_uid(f"Node/{name}"), labels=labels))


def _started(pod: Pod) -> Pod:
    return replace(pod, spec=replace(pod.spec, node_name=node_of(pod)))
