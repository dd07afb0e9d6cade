"""A handwritten scaling scenario: pools, pods and nodes in one small file.

Contract: pure. ``nodePools`` have zones, max, current and instanceType; ``pods`` have requests, labels, spread,
scheduledOn and count. The allocatable of ``nodes`` is the amount that their pods leave free, so the requests of these
pods are added, unless the price book has the size of the instance type. Missing sizes and all prices come from the
price book.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from tutti.exceptions import InputError, PoolError
from tutti.kube.admission.prepare import prepare
from tutti.kube.objects import Node, NodeSpec, NodeStatus, ObjectMeta, Pod, Quantities, Taint
from tutti.kube.reading.convert import convert, decode_error
from tutti.kube.reading.snapshot import Snapshot, by_kind
from tutti.kube.reading.sources import Source
from tutti.kube.reading.validation import validate
from tutti.kube.workloads.size_limits import MAX_PODS, too_many_pods
from tutti.market.instance_types import (
    HOSTNAME,
    INSTANCE_TYPE,
    REGION,
    ZONE,
    amounts,
    quantities,
    template_name,
    template_node,
)
from tutti.market.offerings import Catalogue, NodePool, Offering
from tutti.market.pool_context import PoolContext, unpriced_note
from tutti.market.pool_limits import nodes_limit
from tutti.market.pool_members import members_of
from tutti.market.price_book import PriceBook, region_of

POOL = "worker.gardener.cloud/pool"


class _Wire(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A part of a case."""


class _Pool(_Wire, frozen=True):
    """A pool of a case."""

    name: str
    max: int
    instance_type: str
    zones: list[str] | dict[str, Any] = []
    """A list, or a Go set (an object whose keys are the zones)."""
    current: int = 0


class _Place(_Wire, frozen=True):
    """The node that a pod is on."""

    name: str
    pool_name: str = ""
    zone: str = ""


class _Pods(_Wire, frozen=True):
    """`count` equal pods."""

    name_prefix: str = ""
    name: str = ""
    requests: Quantities = {}
    labels: dict[str, str] = {}
    topology_spread_constraints: list[Any] = []
    spec: dict[str, Any] = {}
    scheduled_on: _Place | None = None
    count: int = 1


class _Node(_Wire, frozen=True):
    """An existing node."""

    name: str
    labels: dict[str, str] = {}
    taints: list[Taint] | None = None
    allocatable: Quantities = {}
    capacity: Quantities = {}


class _Case(_Wire, frozen=True):
    """The whole case."""

    node_pools: list[_Pool]
    pods: list[_Pods] = []
    nodes: list[_Node] | None = None


def prepared(trees: Sequence[Any], nodes: Sequence[Node], source: Source) -> Snapshot:
    """Return the prepared snapshot of a scenario's pods and nodes."""
    pods = [convert(tree, Pod.KIND, source=source) for tree in trees]
    for obj in (*nodes, *pods):
        try:
            validate(obj)
        except InputError as error:
            where = f"{obj.KIND.lower()} {obj.key}"
            raise InputError(error.problem, file=source.name, obj=where, field=error.field) from None
    return prepare(Snapshot(objects=by_kind((*nodes, *pods)), present_kinds=frozenset((Node.KIND, Pod.KIND))))


def read_case(tree: Any, source: Source, *, book: PriceBook) -> tuple[Snapshot, Catalogue]:
    """Return the cluster of a case, and its catalogue."""
    try:
        case = msgspec.convert(tree, _Case)
    except msgspec.ValidationError as error:
        raise decode_error(error, source, tree=tree) from None
    bound: dict[str, list[Quantities]] = {}
    trees: list[Any] = []
    for pods in case.pods:
        if pods.count > MAX_PODS:
            who = f"pods {pods.name_prefix or pods.name}"
            raise InputError(too_many_pods(pods.count), file=source.name, obj=who, field="count")
        for number in range(pods.count):
            trees.append(_pod_tree(pods, number))
            if pods.scheduled_on is not None:
                bound.setdefault(pods.scheduled_on.name, []).append(pods.requests)
    places = {pods.scheduled_on.name: pods.scheduled_on for pods in case.pods if pods.scheduled_on is not None}
    nodes = [_node(each, places.get(each.name), bound=bound.get(each.name, []), book=book) for each in case.nodes or ()]
    market = PoolContext(book, nodes=nodes)
    pools = tuple(_pool(each, market, file=source.name) for each in case.node_pools)
    missing = (o.instance_type for pool in pools for o in pool.offerings if o.price is None)
    return prepared(trees, nodes, source), Catalogue(pools=pools, notes=tuple(unpriced_note(missing, region="")))


def _pod_tree(pods: _Pods, number: int) -> dict[str, Any]:
    container = {"name": "main", "resources": {"requests": pods.requests}}
    spec: dict[str, Any] = {"containers": [container]} | pods.spec
    if pods.topology_spread_constraints:
        spec["topologySpreadConstraints"] = pods.topology_spread_constraints
    if pods.scheduled_on is not None:
        spec["nodeName"] = pods.scheduled_on.name
    name = pods.name if pods.name and pods.count == 1 else f"{pods.name_prefix or pods.name + '-'}{number}"
    return {"metadata": {"name": name, "namespace": "default", "labels": pods.labels}, "spec": spec}


def _node(text: _Node, place: _Place | None, *, bound: Sequence[Quantities], book: PriceBook) -> Node:
    labels = dict(text.labels)
    if place is not None and place.pool_name:
        labels.setdefault(POOL, place.pool_name)
    if place is not None and place.zone:
        labels.setdefault(ZONE, place.zone)
    whole = book.allocatable(labels.get(INSTANCE_TYPE, ""))
    if whole is None:
        free = amounts(text.allocatable)
        for requests in bound:
            for resource, amount in amounts(requests).items():
                free[resource] = free.get(resource, 0) + amount
        whole = quantities(free)
    pods: Quantities = {"pods": "110"}
    status = NodeStatus(capacity=pods | text.capacity, allocatable=pods | whole)
    metadata = ObjectMeta(name=text.name, labels={HOSTNAME: text.name} | labels)
    return Node(metadata=metadata, spec=NodeSpec(taints=text.taints), status=status)


def _pool(text: _Pool, market: PoolContext, *, file: str) -> NodePool:
    who, kind = f"pool {text.name}", text.instance_type
    machine = market.machine(kind)
    if machine is None:
        problem = f"nobody knows what {kind} is: give its size with --prices"
        raise PoolError(problem, file=file, obj=who, field="instanceType")
    if not 0 <= text.current <= text.max:
        raise PoolError(f"it has {text.current} of {text.max} nodes", file=file, obj=who, field="current")
    own = {POOL: text.name, INSTANCE_TYPE: kind}
    offerings = []
    for zone in sorted(text.zones) or [""]:
        where = {ZONE: zone, REGION: region_of(zone)} if zone else {}
        node = template_node(
            template_name(text.name, kind, zone=zone),
            labels={key: value for key, value in (machine.labels | own | where).items() if value},
            capacity=machine.capacity,
            allocatable=machine.allocatable,
        )
        price = market.price(kind, zone=zone, capacity_type="on-demand")
        offerings.append(Offering(pool=text.name, instance_type=kind, zone=zone, price=price, node=node))
    mine = [node for node in market.nodes if (node.metadata.labels or {}).get(POOL) == text.name]
    return NodePool(
        name=text.name,
        offerings=tuple(offerings),
        limits=(nodes_limit(who, text.max, current=text.current),),
        current=text.current,
        maximum=text.max,
        members=members_of(mine, offerings, market),
    )
