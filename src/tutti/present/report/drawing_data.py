"""What is to be drawn: every node that takes pods, with what it has, what runs there and what comes.

Contract: pure. Pods are counted by workload: their controller, or what their names have in common. Nodes that cannot be
told apart in a picture (same pool, zone and type, the same numbers of the same pods) are one box with a count. Boxes
come by pool and zone, those with new nodes first.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from tutti.kube.objects import Node, Pod
from tutti.kube.resources import allocatable, incoming_requests, placed_requests
from tutti.kube.workloads.owners import controller_of
from tutti.market.instance_types import INSTANCE_TYPE, ZONE
from tutti.market.node_daemons import daemon_pods_for
from tutti.market.pool_context import label_of
from tutti.market.pool_labels import capacity_type_of, pool_of
from tutti.recommend.after_purchase import OfferingIndex
from tutti.recommend.records.recommendation import Recommendation
from tutti.recommend.records.request import Request

COLOURS = 12
"""The workloads with most pods have a colour of their own; the others share one."""
OTHERS = COLOURS
_ORDINAL = re.compile(r"-[0-9]+$")
_HASH = "pod-template-hash"
_BASICS = ("cpu", "memory")

Amounts = Mapping[str, int]


class DrawnWorkload(NamedTuple):
    """Pods of one making."""

    name: str
    """With its namespace."""
    pods: int
    colour: int


class DrawnPod(NamedTuple):
    """A pod on a node."""

    key: str
    workload: int
    requests: Amounts


class NodeBox(NamedTuple):
    """A node that takes pods, and how many more look like it."""

    names: tuple[str, ...]
    new: bool
    instance_type: str
    capacity_type: str
    price: int | None
    room: Amounts
    """What pods can have."""
    before: Amounts
    """What runs there already, or comes with the node, takes."""
    running: int
    """How many pods that are."""
    loads: tuple[DrawnPod, ...]


class PoolZone(NamedTuple):
    """A pool in a zone."""

    pool: str
    zone: str
    boxes: tuple[NodeBox, ...]

    @property
    def nodes(self) -> int:
        """How many nodes its boxes stand for."""
        return sum(len(box.names) for box in self.boxes)


class DrawingData(NamedTuple):
    """See the module's contract."""

    workloads: tuple[DrawnWorkload, ...]
    """The ones with most pods first."""
    places: tuple[PoolZone, ...]
    resources: tuple[str, ...]
    """What is drawn: cpu and memory, and what else the pods ask for by name."""
    untouched: int
    """How many nodes are there that take none of the pods."""


def drawing_data_of(request: Request, answer: Recommendation) -> DrawingData:
    """Everything that a picture of the plan shows."""
    pods = {obj.key: obj for obj in request.objects if isinstance(obj, Pod)}
    nodes = {obj.metadata.name: obj for obj in request.objects if isinstance(obj, Node)}
    there: dict[str, list[str]] = {}
    for each in answer.on_existing:
        there.setdefault(each.node, []).append(each.pod)
    placed = [key for node in answer.nodes for key in node.pods] + [each.pod for each in answer.on_existing]
    workloads, number = _workloads(pods[key] for key in placed)
    loads = {key: DrawnPod(key, number[workload_of(pods[key])], incoming_requests(pods[key])) for key in placed}
    known = {name: nodes[name] for name in sorted(there)}
    boxes = [*_new(request, answer, loads=loads), *_existing(request, known, there=there, loads=loads)]
    wanted = {name for load in loads.values() for name, amount in load.requests.items() if amount and "/" in name}
    return DrawingData(workloads, _places(boxes), (*_BASICS, *sorted(wanted)), len(nodes) - len(there))


def workload_of(pod: Pod) -> str:
    """The name of a pod's workload; that of a Deployment where a ReplicaSet made the pod for it."""
    owner = controller_of(pod)
    if owner is None:
        name = _ORDINAL.sub("", pod.metadata.name)
    else:
        suffix = f"-{(pod.metadata.labels or {}).get(_HASH, '')}"
        name = owner.name.removesuffix(suffix) if owner.kind == "ReplicaSet" and len(suffix) > 1 else owner.name
    return f"{pod.metadata.namespace or 'default'}/{name}"


def _workloads(pods: Iterable[Pod]) -> tuple[tuple[DrawnWorkload, ...], dict[str, int]]:
    """The workloads, and the place of each by its name."""
    counts: dict[str, int] = {}
    for pod in pods:
        name = workload_of(pod)
        counts[name] = counts.get(name, 0) + 1
    ordered = sorted(counts, key=lambda name: (-counts[name], name))
    found = tuple(DrawnWorkload(name, counts[name], min(place, OTHERS)) for place, name in enumerate(ordered))
    return found, {name: place for place, name in enumerate(ordered)}


Located = tuple[str, str, NodeBox]


def _new(request: Request, answer: Recommendation, *, loads: Mapping[str, DrawnPod]) -> list[Located]:
    """The bought nodes."""
    offered = OfferingIndex(request.catalogue)
    known: dict[int, tuple[Amounts, Amounts, int]] = {}
    found = []
    for node in answer.nodes:
        offering = offered.find(node)
        if id(offering) not in known:
            daemons = daemon_pods_for(request.daemon_sets, offering.node)
            known[id(offering)] = allocatable(offering.node), _sum(map(incoming_requests, daemons)), len(daemons)
        room, before, running = known[id(offering)]
        box = NodeBox(
            (node.name,), True, node.instance_type, node.capacity_type, node.price, room, before, running,
            tuple(loads[key] for key in node.pods),
        )  # fmt: skip
        found.append((node.pool, node.zone, box))
    return found


def _existing(
    request: Request, nodes: Mapping[str, Node], *, there: Mapping[str, Sequence[str]], loads: Mapping[str, DrawnPod]
) -> list[Located]:
    """The nodes that are there and take some of the pods."""
    running: dict[str, list[Amounts]] = {name: [] for name in nodes}
    for obj in request.objects:
        if isinstance(obj, Pod) and obj.spec.node_name in running and obj.status.phase not in ("Succeeded", "Failed"):
            running[obj.spec.node_name].append(placed_requests(obj).requests)
    prices = {member.node: member.price for pool in request.catalogue.pools for member in pool.members}
    found = []
    for name, node in nodes.items():
        box = NodeBox(
            (name,), False, label_of(node, INSTANCE_TYPE) or "", capacity_type_of(node), prices.get(name),
            allocatable(node), _sum(running[name]), len(running[name]), tuple(loads[key] for key in there[name]),
        )  # fmt: skip
        found.append(((pool_of(node) or ("", ""))[1], label_of(node, ZONE) or "", box))
    return found


def _places(boxes: Sequence[Located]) -> tuple[PoolZone, ...]:
    """Boxes by pool and zone, with like ones put together."""
    groups: dict[tuple[bool, str, str], dict[object, NodeBox]] = {}
    for pool, zone, box in boxes:
        alike = groups.setdefault((not box.new, pool, zone), {})
        looks = _looks(box)
        if looks in alike:
            box = alike[looks]._replace(names=(*alike[looks].names, *box.names))
        alike[looks] = box
    return tuple(
        PoolZone(pool, zone, tuple(alike.values())) for (_, pool, zone), alike in sorted(groups.items(), key=_key)
    )


def _key(item: tuple[tuple[bool, str, str], object]) -> tuple[bool, str, str]:
    return item[0]


def _looks(box: NodeBox) -> object:
    loads = sorted((load.workload, tuple(sorted(load.requests.items()))) for load in box.loads)
    size = tuple(sorted(box.room.items())) if box.new else ()  # templates of one type may differ
    return box.instance_type, box.capacity_type, box.price, size, tuple(sorted(box.before.items())), tuple(loads)


def _sum(amounts: Iterable[Amounts]) -> Amounts:
    total: dict[str, int] = {}
    for each in amounts:
        for name, amount in each.items():
            total[name] = total.get(name, 0) + amount
    return total
