"""Karpenter NodePool objects as pools; their instance types come from the price book.

Contract: pure. Types have the labels of Karpenter's AWS provider, as far as the book knows them; a requirement on
another label of the provider is left out, with a note. Zones are those that the pool names, or those with nodes, or the
first three of the region. Without a capacity type in its requirements a pool may buy spot and on demand. If neither the
user nor the nodes tell the region, the zones and regions in the pools' requirements do.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence

from msgspec.structs import replace

from tutti.exceptions import InputError
from tutti.kube.objects import KarpenterPool, PoolRequirement
from tutti.market.instance_types import INSTANCE_TYPE, OLD_KEYS, REGION, ZONE, InstanceOffer, InstanceType
from tutti.market.offerings import NodePool
from tutti.market.pool_context import PoolContext, region_hint, unpriced_note
from tutti.market.pool_members import members_of
from tutti.market.pools.karpenter_disruption import down_rules
from tutti.market.pools.karpenter_offerings import POOL, karpenter_pool
from tutti.market.price_book import ON_DEMAND, SPOT, InstanceShape, region_of

NO_TYPE = "no known instance type"
"""The text in the note about a pool without offerings."""
_PROVIDERS = ("karpenter.k8s.aws", "eks.amazonaws.com")
"""Providers whose labels describe instance types: Karpenter on AWS, and EKS Auto Mode."""
_PROVIDER_LABELS = (
    "topology.k8s.aws/",
    "node.kubernetes.io/windows-build",
    "karpenter.k8s.aws/",
    "eks.amazonaws.com/instance-",
)
_TYPE_LABELS = (
    "instance-family", "instance-size", "instance-category", "instance-generation", "instance-cpu", "instance-memory",
    "instance-gpu-count", "instance-gpu-name", "instance-gpu-manufacturer",
)  # fmt: skip
_KNOWN_LABELS = frozenset(f"{provider}/{key}" for provider in _PROVIDERS for key in _TYPE_LABELS)
_FAMILY = re.compile(r"([a-z]+)(?:-[0-9]+tb)?([0-9]+)?")
_MIB = 2**20


def read_karpenter(pools: Iterable[KarpenterPool], market: PoolContext) -> tuple[list[NodePool], list[str]]:
    """Return the pools of these objects, and notes about them."""
    node_pools, notes = [], []
    pools = sorted(pools, key=lambda each: each.metadata.name)
    if not market.region:
        market = PoolContext(market.book, region=_region(pools), nodes=market.nodes)
    for pool in pools:
        name, spec = pool.metadata.name, pool.spec.template.spec
        requirements, left_out = _split_requirements(spec.requirements or ())
        notes += [f"pool {name}: the requirement on {key} is not looked at" for key in left_out]
        if any(each.min_values for each in requirements):
            notes.append(f"pool {name}: minValues is not looked at")
        try:
            node_pool = karpenter_pool(
                name=name,
                requirements=requirements,
                labels=pool.spec.template.metadata.labels,
                taints=spec.taints or (),
                limits=pool.spec.limits,
                types=_types(requirements, market),
                nodes=market.nodes,
            )
        except InputError as error:
            raise InputError(error.problem, obj=f"nodepool {name}", field=f"spec.template.spec.{error.field}") from None
        own_nodes = [node for node in market.nodes if (node.metadata.labels or {}).get(POOL) == name]
        members = members_of(own_nodes, node_pool.offerings, market)
        node_pool = replace(node_pool, members=members, down_rules=down_rules(pool), weight=pool.spec.weight or 0)
        if not node_pool.offerings:
            notes.append(f"pool {name}: {_no_offering_reason(market)}")
        unpriced = (o.instance_type for o in node_pool.offerings if o.price is None)
        notes += unpriced_note(unpriced, region=market.region, regions=market.book.regions)
        node_pools.append(node_pool)
    notes += _weight_note(node_pools)
    return node_pools, notes


def _weight_note(pools: Sequence[NodePool]) -> list[str]:
    """Return a note about ignored weights; none if all pools have the same weight."""
    if len({pool.weight for pool in pools}) < 2:
        return []
    order = [pool.name for pool in sorted(pools, key=lambda pool: (pool.weight, pool.name), reverse=True)]
    shown = ", ".join(order[:5]) + (f" and {len(order) - 5} more" if len(order) > 5 else "")
    return [f"weights of pools do not count, price decides; Karpenter would try them in this order: {shown}"]


def _region(pools: Iterable[KarpenterPool]) -> str:
    """Return the region of most zones and regions in the pools' requirements; empty if none is named."""
    regions: Counter[str] = Counter()
    for pool in pools:
        for each in pool.spec.template.spec.requirements or ():
            key = OLD_KEYS.get(each.key, each.key)
            if each.operator == "In" and key in (ZONE, REGION):
                regions.update(filter(None, (region_of(v) if key == ZONE else v for v in each.values or ())))
    return min(regions, key=lambda place: (-regions[place], place)) if regions else ""


def _no_offering_reason(market: PoolContext) -> str:
    """Return why a pool has no offerings."""
    if hint := region_hint(market.region, market.book.regions):
        where = f"in region {market.region}" if market.region else "without a region"
        return f"{NO_TYPE} {where}: {hint}"
    return f"{NO_TYPE} meets its requirements"


def _split_requirements(requirements: Iterable[PoolRequirement]) -> tuple[list[PoolRequirement], list[str]]:
    """Return the requirements that the book can check, and the labels of all others."""
    kept, left_out = [], []
    for each in requirements:
        if each.key.startswith(_PROVIDER_LABELS) and each.key not in _KNOWN_LABELS:
            left_out.append(each.key)
        else:
            kept.append(each)
    return kept, left_out


def _types(requirements: Sequence[PoolRequirement], market: PoolContext) -> list[InstanceType]:
    zones = _zones(requirements, market)
    auto = any(each.key.startswith("eks.amazonaws.com/") for each in requirements)
    provider = _PROVIDERS[1] if auto else _PROVIDERS[0]
    named = {
        value
        for each in requirements
        if each.key == INSTANCE_TYPE and each.operator == "In"
        for value in each.values or ()
    }
    names = market.book.types(market.region) or {*market.types, *named}
    rows = {row.instance_type for row in market.book.rows}
    return [
        made
        for name in sorted({*names, *rows})
        if (made := _type(name, market, zones=zones, provider=provider)) is not None
    ]


def _zones(requirements: Iterable[PoolRequirement], market: PoolContext) -> list[str]:
    for each in requirements:
        if each.key == ZONE and each.operator == "In":
            return sorted(each.values or ())
    if market.zones:
        return market.zones
    return [f"{market.region}{letter}" for letter in "abc"] if market.region else [""]


def _type(name: str, market: PoolContext, *, zones: Iterable[str], provider: str) -> InstanceType | None:
    machine = market.machine(name)
    if machine is None:
        return None
    shape = market.book.shape(name, market.region)
    labels = machine.labels | ({REGION: market.region} if market.region else {})
    if shape is not None:
        labels |= _labels(name, shape, provider=provider)
    offers = [
        InstanceOffer(zone=zone, capacity_type=kind, price=price)
        for zone in zones
        for kind in (ON_DEMAND, SPOT)
        if (price := market.price(name, zone=zone, capacity_type=kind)) is not None or kind == ON_DEMAND
    ]
    return InstanceType(
        name=name,
        capacity=machine.capacity,
        allocatable=machine.allocatable,
        labels=labels,
        offers=tuple(offers),
    )


def _labels(name: str, shape: InstanceShape, *, provider: str) -> dict[str, str]:
    """Return the labels that Karpenter's AWS provider gives a type."""
    family, _, size = name.partition(".")
    parts = _FAMILY.match(family)
    category, generation = (parts[1], parts[2]) if parts is not None else ("", "")
    values = (
        family,
        size,
        category,
        generation,
        str(shape.vcpus),
        str(shape.memory // _MIB),
        str(shape.gpus) if shape.gpus else "",
        shape.gpu_name,
        "nvidia" if shape.gpus else "",
    )
    return {f"{provider}/{key}": value for key, value in zip(_TYPE_LABELS, values, strict=True) if value}
