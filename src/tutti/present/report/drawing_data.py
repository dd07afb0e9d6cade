"""The data of the drawing: every node that takes pods, with its resources, its running pods and its new pods.

Contract: pure. Pods are grouped by workload: their controller, or the common part of their names. Nodes that look the
same (same pool, zone and type, the same numbers of the same pods) share one box with a count. Boxes are grouped by pool
and zone, groups of new nodes first.
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
"""Number of workloads with a colour of their own, those with most pods; all other workloads share one colour."""
OTHERS = COLOURS
_ORDINAL = re.compile(r"-[0-9]+$")
_HASH = "pod-template-hash"
_BASICS = ("cpu", "memory")

Amounts = Mapping[str, int]


class DrawnWorkload(NamedTuple):
    """A workload: pods with the same controller."""

    name: str
    """``NAMESPACE/NAME``."""
    pods: int
    colour: int


class DrawnPod(NamedTuple):
    """A new pod on a node."""

    key: str
    workload: int
    """Index of the workload in `DrawingData.workloads`."""
    requests: Amounts


class NodeBox(NamedTuple):
    """Nodes that take pods and look the same."""

    names: tuple[str, ...]
    new: bool
    instance_type: str
    capacity_type: str
    price: int | None
    room: Amounts
    """Allocatable resources."""
    before: Amounts
    """Requests of the pods that run on the node already, or of the daemons of a new node."""
    running: int
    """Number of these pods."""
    loads: tuple[DrawnPod, ...]
    """The new pods."""


class PoolZone(NamedTuple):
    """A pool in a zone."""

    pool: str
    zone: str
    boxes: tuple[NodeBox, ...]

    @property
    def nodes(self) -> int:
        """Number of nodes in all boxes."""
        return sum(len(box.names) for box in self.boxes)


class DrawingData(NamedTuple):
    """All data of the drawing."""

    workloads: tuple[DrawnWorkload, ...]
    """Workloads with most pods first."""
    places: tuple[PoolZone, ...]
    resources: tuple[str, ...]
    """The resources that are drawn: cpu, memory, and the extended resources that the pods request."""
    untouched: int
    """Number of existing nodes that take none of the pods."""


def drawing_data_of(request: Request, answer: Recommendation) -> DrawingData:
    """Return the data of the drawing of a plan."""
    pods = {obj.key: obj for obj in request.objects if isinstance(obj, Pod)}
    nodes = {obj.metadata.name: obj for obj in request.objects if isinstance(obj, Node)}
    on_existing: dict[str, list[str]] = {}
    for each in answer.on_existing:
        on_existing.setdefault(each.node, []).append(each.pod)
    placed = [key for node in answer.nodes for key in node.pods] + [each.pod for each in answer.on_existing]
    workloads, index_of = _workloads(pods[key] for key in placed)
    loads = {key: DrawnPod(key, index_of[workload_of(pods[key])], incoming_requests(pods[key])) for key in placed}
    existing = {name: nodes[name] for name in sorted(on_existing)}
    boxes = [
        *_new_boxes(request, answer, loads=loads),
        *_existing_boxes(request, existing, placed=on_existing, loads=loads),
    ]
    extended = {name for load in loads.values() for name, amount in load.requests.items() if amount and "/" in name}
    return DrawingData(
        workloads, _group_by_pool_and_zone(boxes), (*_BASICS, *sorted(extended)), len(nodes) - len(on_existing)
    )


def workload_of(pod: Pod) -> str:
    """Return the name of a pod's workload: its controller, or the Deployment of its ReplicaSet."""
    owner = controller_of(pod)
    if owner is None:
        name = _ORDINAL.sub("", pod.metadata.name)
    else:
        suffix = f"-{(pod.metadata.labels or {}).get(_HASH, '')}"
        name = owner.name.removesuffix(suffix) if owner.kind == "ReplicaSet" and len(suffix) > 1 else owner.name
    return f"{pod.metadata.namespace or 'default'}/{name}"


def _workloads(pods: Iterable[Pod]) -> tuple[tuple[DrawnWorkload, ...], dict[str, int]]:
    """Return the workloads, and the index of each workload by its name."""
    counts: dict[str, int] = {}
    for pod in pods:
        name = workload_of(pod)
        counts[name] = counts.get(name, 0) + 1
    ordered = sorted(counts, key=lambda name: (-counts[name], name))
    drawn = tuple(DrawnWorkload(name, counts[name], min(index, OTHERS)) for index, name in enumerate(ordered))
    return drawn, {name: index for index, name in enumerate(ordered)}


LocatedBox = tuple[str, str, NodeBox]


def _new_boxes(request: Request, answer: Recommendation, *, loads: Mapping[str, DrawnPod]) -> list[LocatedBox]:
    """Return a box for each bought node."""
    offered = OfferingIndex(request.catalogue)
    by_offering: dict[int, tuple[Amounts, Amounts, int]] = {}
    boxes = []
    for node in answer.nodes:
        offering = offered.find(node)
        if id(offering) not in by_offering:
            daemons = daemon_pods_for(request.daemon_sets, offering.node)
            used = _sum(map(incoming_requests, daemons))
            by_offering[id(offering)] = allocatable(offering.node), used, len(daemons)
        room, before, running = by_offering[id(offering)]
        box = NodeBox(
            (node.name,), True, node.instance_type, node.capacity_type, node.price, room, before, running,
            tuple(loads[key] for key in node.pods),
        )  # fmt: skip
        boxes.append((node.pool, node.zone, box))
    return boxes


def _existing_boxes(
    request: Request, nodes: Mapping[str, Node], *, placed: Mapping[str, Sequence[str]], loads: Mapping[str, DrawnPod]
) -> list[LocatedBox]:
    """Return a box for each existing node that takes some of the pods."""
    running: dict[str, list[Amounts]] = {name: [] for name in nodes}
    for obj in request.objects:
        if isinstance(obj, Pod) and obj.spec.node_name in running and obj.status.phase not in ("Succeeded", "Failed"):
            running[obj.spec.node_name].append(placed_requests(obj).requests)
    prices = {member.node: member.price for pool in request.catalogue.pools for member in pool.members}
    boxes = []
    for name, node in nodes.items():
        box = NodeBox(
            (name,), False, label_of(node, INSTANCE_TYPE) or "", capacity_type_of(node), prices.get(name),
            allocatable(node), _sum(running[name]), len(running[name]), tuple(loads[key] for key in placed[name]),
        )  # fmt: skip
        boxes.append(((pool_of(node) or ("", ""))[1], label_of(node, ZONE) or "", box))
    return boxes


def _group_by_pool_and_zone(boxes: Sequence[LocatedBox]) -> tuple[PoolZone, ...]:
    """Return the boxes by pool and zone; nodes that look the same share a box."""
    groups: dict[tuple[bool, str, str], dict[object, NodeBox]] = {}
    for pool, zone, box in boxes:
        alike = groups.setdefault((not box.new, pool, zone), {})
        appearance = _appearance(box)
        if appearance in alike:
            box = alike[appearance]._replace(names=(*alike[appearance].names, *box.names))
        alike[appearance] = box
    return tuple(
        PoolZone(pool, zone, tuple(alike.values())) for (_, pool, zone), alike in sorted(groups.items(), key=_group_key)
    )


def _group_key(item: tuple[tuple[bool, str, str], object]) -> tuple[bool, str, str]:
    return item[0]


def _appearance(box: NodeBox) -> object:
    loads = sorted((load.workload, tuple(sorted(load.requests.items()))) for load in box.loads)
    size = tuple(sorted(box.room.items())) if box.new else ()  # templates of one instance type may differ
    return box.instance_type, box.capacity_type, box.price, size, tuple(sorted(box.before.items())), tuple(loads)


def _sum(amounts: Iterable[Amounts]) -> Amounts:
    total: dict[str, int] = {}
    for each in amounts:
        for name, amount in each.items():
            total[name] = total.get(name, 0) + amount
    return total
