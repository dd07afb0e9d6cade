"""Recordings of real clusters with Cluster Autoscaler: pending pods, running pods, node groups and nodes.

Contract: pure. New nodes of a group are like a node of its pool, else like the machine type in the price book. The
requests of system components (SystemComponentRequests) are subtracted from new nodes, and from existing nodes whose
kube-system pods are not listed. Controllers of pods are guessed from their labels and affinity (`guess_controllers`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
from msgspec.structs import replace

from tutti.cluster.node_edits import new_node_like
from tutti.exceptions import InputError, PoolError
from tutti.kube.objects import Node, NodeSpec, NodeStatus, Object, ObjectMeta, Pod, Quantities, Taint
from tutti.kube.reading.convert import decode_error
from tutti.kube.reading.snapshot import Snapshot
from tutti.kube.reading.sources import Source
from tutti.market.instance_types import INSTANCE_TYPE, REGION, ZONE, in_zone, subtract, template_name, template_node
from tutti.market.offerings import Catalogue, NodePool, Offering, PoolLimit
from tutti.market.pool_context import PoolContext, unpriced_note
from tutti.market.pool_limits import nodes_limit
from tutti.market.pool_members import members_of
from tutti.market.price_book import PriceBook, region_of
from tutti.wire.guess_controllers import controllers_of
from tutti.wire.scenarios.small_case import POOL, prepared


class _Wire(msgspec.Struct, frozen=True, kw_only=True, rename="pascal"):
    """A part of a recording."""


class _Pod(_Wire, frozen=True):
    """A pod."""

    name: str
    namespace: str = "default"
    uid: str | None = msgspec.field(default=None, name="UID")
    creation_timestamp: str | None = None
    node_name: str | None = None
    labels: dict[str, str] | None = None
    spec: dict[str, Any] = {}


class _NodeText(_Wire, frozen=True):
    """A node."""

    name: str
    labels: dict[str, str] | None = None
    taints: list[Taint] | None = None
    allocatable: Quantities = {}
    capacity: Quantities = {}
    provider_id: str | None = msgspec.field(default=None, name="ProviderID")


class _Group(_Wire, frozen=True):
    """A node group: a pool in one zone."""

    name: str
    current_size: int = 0
    min_size: int = 0
    max_size: int = 0
    zone: str = ""
    machine_type: str = ""
    pool_name: str = ""
    pool_min: int | None = None
    pool_max: int | None = None


class _Settings(_Wire, frozen=True):
    """Settings of Cluster Autoscaler."""

    max_nodes_total: int = 0


class _Scenario(_Wire, frozen=True):
    """The recorded cluster."""

    system_component_requests: Quantities | None = None
    unscheduled_pods: list[_Pod] | None = None
    scheduled_pods: list[_Pod] | None = None
    node_groups: list[_Group] | None = None
    nodes: list[_NodeText] | None = None
    settings: _Settings | None = msgspec.field(default=None, name="CASettings")


def read_recording(tree: Mapping[str, Any], source: Source, *, book: PriceBook) -> tuple[Snapshot, Catalogue]:
    """Return the cluster of a recording, and its catalogue."""
    listed = tree["Scenarios"]
    if not isinstance(listed, list) or len(listed) != 1:
        raise InputError("want a list of one scenario", file=source.name, field="Scenarios")
    try:
        scenario = msgspec.convert(listed[0], _Scenario)
    except msgspec.ValidationError as error:
        raise decode_error(error, source, called="scenario", tree=listed[0]) from None
    pods = (*(scenario.scheduled_pods or ()), *(scenario.unscheduled_pods or ()))
    with_system = {pod.node_name for pod in pods if pod.namespace == "kube-system"}
    system = scenario.system_component_requests or {}
    whole = [_node(text) for text in scenario.nodes or ()]
    nodes = [node if node.metadata.name in with_system else _reduced(node, system) for node in whole]
    market = PoolContext(book, nodes=whole)
    groups: dict[str, list[_Group]] = {}
    for group in scenario.node_groups or ():
        groups.setdefault(group.pool_name or group.name, []).append(group)
    pools = tuple(_pool(name, groups[name], market=market, system=system, file=source.name) for name in sorted(groups))
    limits = []
    if scenario.settings is not None and scenario.settings.max_nodes_total > 0:
        limits.append(nodes_limit("all pools", scenario.settings.max_nodes_total, current=len(nodes)))
    missing = (o.instance_type for pool in pools for o in pool.offerings if o.price is None)
    notes = tuple(unpriced_note(missing, region=market.region))
    snapshot = _owned(prepared([_pod_tree(pod) for pod in pods], nodes, source))
    return snapshot, Catalogue(pools=pools, limits=tuple(limits), notes=notes)


def _node(text: _NodeText) -> Node:
    return Node(
        metadata=ObjectMeta(name=text.name, labels=text.labels),
        spec=NodeSpec(taints=text.taints, provider_id=text.provider_id),
        status=NodeStatus(capacity=text.capacity, allocatable=text.allocatable),
    )


def _reduced(node: Node, system: Quantities) -> Node:
    return replace(node, status=replace(node.status, allocatable=subtract(node.status.allocatable or {}, system)))


def _pod_tree(pod: _Pod) -> dict[str, Any]:
    spec = dict(pod.spec)
    spec["nodeName"] = pod.node_name or None
    metadata = {
        "name": pod.name,
        "namespace": pod.namespace,
        "labels": pod.labels,
        "uid": pod.uid,
        "creationTimestamp": pod.creation_timestamp,
    }
    return {"metadata": metadata, "spec": spec}


def _owned(snapshot: Snapshot) -> Snapshot:
    """Return the snapshot with owner references of guessed controllers."""
    pods: list[Object] = [
        replace(pod, metadata=replace(pod.metadata, owner_references=owners))
        if (owners := controllers_of(pod.metadata.name, pod.metadata.labels, pod.spec)) is not None
        else pod
        for pod in snapshot.pods
    ]
    return replace(snapshot, objects=snapshot.objects | {Pod.KIND: pods})


def _pool(name: str, groups: Sequence[_Group], *, market: PoolContext, system: Quantities, file: str) -> NodePool:
    who, current = f"pool {name}", sum(group.current_size for group in groups)
    maximum = groups[0].pool_max if groups[0].pool_max is not None else sum(group.max_size for group in groups)
    limits: list[PoolLimit] = [nodes_limit(who, maximum, current=current)]
    offerings = []
    minimums: dict[str, int] = {}
    for group in sorted(groups, key=lambda each: (each.zone, each.name)):
        node = _template(name, group, market=market, file=file)
        price = market.price(group.machine_type, zone=group.zone, capacity_type="on-demand")
        offerings.append(
            Offering(
                pool=name,
                instance_type=group.machine_type,
                zone=group.zone,
                price=price,
                node=_reduced(node, system),
            )
        )
        minimums[group.zone] = minimums.get(group.zone, 0) + group.min_size
        if len(groups) > 1:
            limits.append(nodes_limit(who, group.max_size, current=group.current_size, zone=group.zone))
    return NodePool(
        name=name,
        offerings=tuple(offerings),
        limits=tuple(limits),
        current=current,
        minimum=groups[0].pool_min if groups[0].pool_min is not None else sum(group.min_size for group in groups),
        zone_minimums={zone: least for zone, least in minimums.items() if zone and least > 0},
        maximum=maximum,
        members=members_of(_mine(name, market), offerings, market),
    )


def _mine(name: str, market: PoolContext) -> list[Node]:
    return [node for node in market.nodes if (node.metadata.labels or {}).get(POOL) == name]


def _template(name: str, group: _Group, *, market: PoolContext, file: str) -> Node:
    template = template_name(name, group.machine_type, zone=group.zone)
    if own := _mine(name, market):
        return new_node_like(in_zone(own[0], group.zone), template)
    machine = market.machine(group.machine_type)
    if machine is None:
        problem = f"nobody knows what {group.machine_type} is: give its size with --prices"
        raise PoolError(problem, file=file, obj=f"group {group.name}", field="MachineType")
    where = {ZONE: group.zone, REGION: region_of(group.zone)} if group.zone else {}
    labels = machine.labels | where | {INSTANCE_TYPE: group.machine_type, POOL: name}
    return template_node(
        template,
        labels={key: value for key, value in labels.items() if value},
        capacity=machine.capacity,
        allocatable=machine.allocatable,
    )
