"""Tutti's own format of node pools: a small YAML file (`tutti_pools_schema` has its fields).

Contract: pure. There is one offering per type, zone and capacity type of a pool. The nodes of a pool are those whose
pool label (`market.pool_labels`) names it; new nodes get that label too. A node is as its template says, or as the
price book knows its instance type. Prices of the file take precedence over those of the price book.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tutti.exceptions import PoolError
from tutti.kube.objects import Node
from tutti.kube.reading.sources import Source
from tutti.market.instance_types import INSTANCE_TYPE, REGION, ZONE, amount_of, subtract, template_name, template_node
from tutti.market.offerings import NODES, Catalogue, NodePool, Offering, PoolLimit
from tutti.market.pool_context import MachineCapacity, PoolContext, label_of, unpriced_note
from tutti.market.pool_labels import capacity_labels, pool_of
from tutti.market.pool_limits import nodes_limit, resource_limit
from tutti.market.pool_members import members_of
from tutti.market.pools.tutti_pools_schema import PoolText, down_rules_of, parse_pools, price_of, taints_of
from tutti.market.price_book import SPOT, region_of


def read_tutti_pools(tree: Any, source: Source, *, market: PoolContext) -> Catalogue:
    """Return the catalogue that the text describes."""
    pools_text, texts = parse_pools(tree, source)
    if pools_text.region:
        market = PoolContext(market.book, region=pools_text.region, nodes=market.nodes)
    pools = tuple(_pool(text, market, file=source.name) for text in texts)
    limits = tuple(_cluster_limit(what, most, market.nodes, pools) for what, most in pools_text.limits.items())
    missing = (o.instance_type or o.pool for pool in pools for o in pool.offerings if o.price is None)
    typed = any(text.types for text in texts)
    notes = unpriced_note(missing, region=market.region, regions=market.book.regions if typed else ())
    return Catalogue(pools=pools, limits=limits, notes=tuple(notes))


def _cluster_limit(what: str, most: str | float, nodes: Sequence[Node], pools: Sequence[NodePool]) -> PoolLimit:
    """Return a limit over all pools; without nodes in the input, the pools tell the number of existing nodes."""
    if what == NODES and not nodes:
        return nodes_limit("all pools", amount_of(NODES, most), current=sum(pool.current for pool in pools))
    return resource_limit("all pools", what, most, nodes=nodes)


def _pool(text: PoolText, market: PoolContext, *, file: str) -> NodePool:
    own_nodes = [node for node in market.nodes if (found := pool_of(node)) is not None and found[1] == text.name]
    zones = text.zones or sorted({label_of(node, ZONE) for node in own_nodes}) or [""]
    current = text.current if text.current is not None else len(own_nodes)
    offerings = tuple(
        _offering(
            text, instance_type, zone=zone, capacity_type=capacity_type, own_nodes=own_nodes, market=market, file=file
        )
        for instance_type in text.types or [""]
        for zone in zones
        for capacity_type in text.capacity_types
    )
    return NodePool(
        name=text.name,
        offerings=offerings,
        limits=tuple(_limits(text, zones, current=current, own_nodes=own_nodes)),
        current=current,
        minimum=text.min,
        maximum=text.max,
        members=members_of(own_nodes, offerings, market),
        down_rules=down_rules_of(text.scale_down, file=file, who=f"pool {text.name}"),
    )


def _limits(text: PoolText, zones: Sequence[str], *, current: int, own_nodes: Sequence[Node]) -> list[PoolLimit]:
    owner = f"pool {text.name}"
    limits = []
    if text.max is not None:
        limits.append(nodes_limit(owner, text.max, current=current))
    if text.max_per_zone is not None:
        for zone in zones:
            zone_count = sum(label_of(node, ZONE) == zone for node in own_nodes)
            limits.append(nodes_limit(owner, text.max_per_zone, current=zone_count, zone=zone))
    return limits + [resource_limit(owner, what, most, nodes=own_nodes) for what, most in text.limits.items()]


def _offering(
    text: PoolText,
    instance_type: str,
    *,
    zone: str,
    capacity_type: str,
    own_nodes: Sequence[Node],
    market: PoolContext,
    file: str,
) -> Offering:
    machine = _machine(text, instance_type, market=market, file=file)
    template = text.template
    region = (region_of(zone) if zone else "") or market.region
    labels = machine.labels | ({INSTANCE_TYPE: instance_type} if instance_type else {})
    labels |= {key: value for key, value in ((REGION, region), (ZONE, zone)) if value}
    labels |= capacity_labels(capacity_type, market.nodes)
    labels |= dict(pool_of(node) or ("", "") for node in own_nodes[:1])
    labels |= (template.labels if template is not None else {}) | text.labels
    node = template_node(
        template_name(text.name, instance_type, zone=zone, capacity_type=capacity_type),
        labels=labels,
        taints=taints_of(text.taints, template.taints if template is not None else []),
        capacity=machine.capacity,
        allocatable=machine.allocatable,
    )
    price = price_of(text.spot_price if capacity_type == SPOT else text.price, instance_type)
    if price is None and instance_type:
        price = market.price(instance_type, zone=zone, capacity_type=capacity_type, region=region)
    return Offering(
        pool=text.name,
        instance_type=instance_type or text.name,
        zone=zone,
        capacity_type=capacity_type,
        price=price,
        node=node,
    )


def _machine(text: PoolText, instance_type: str, *, market: PoolContext, file: str) -> MachineCapacity:
    machine = market.machine(instance_type, reserved=text.reserved, disk=text.disk) if instance_type else None
    if text.template is not None:
        capacity = {"pods": "110"} | text.template.capacity
        allocatable = text.template.allocatable
        left = {"pods": capacity["pods"]} | allocatable if allocatable else subtract(capacity, text.reserved or {})
        labels = machine.labels if machine is not None else {"kubernetes.io/arch": "amd64", "kubernetes.io/os": "linux"}
        return MachineCapacity(capacity=capacity, allocatable=left, labels=labels)
    if machine is None:
        problem = (
            f"unknown instance type {instance_type}: give a template, its size with --prices, or a node of that type"
        )
        raise PoolError(problem, file=file, obj=f"pool {text.name}", field="instanceTypes")
    return machine
