"""Limits on what may be bought, with what is there already taken off, and in words."""

from __future__ import annotations

from collections.abc import Collection

from tutti.kube.objects import Node
from tutti.kube.quantity import format_quantity
from tutti.market.instance_types import amount_of
from tutti.market.offerings import NODES, PoolLimit


def nodes_limit(who: str, most: int, *, current: int, zone: str | None = None) -> PoolLimit:
    """At most so many nodes; `who` is called ``pool gpu`` or ``all pools``."""
    where = f" in {zone}" if zone is not None else ""
    verb = "have" if who.startswith("all") else "has"
    reason = f"{who} {verb} {current} of at most {most} node{'s' if most != 1 else ''}{where}"
    return PoolLimit(what=NODES, left=max(most - current, 0), zone=zone, reason=reason)


def resource_limit(who: str, resource: str, most: str | float, *, nodes: Collection[Node]) -> PoolLimit:
    """At most so much capacity of a resource, or so many nodes, of which these have some."""
    if resource == NODES:
        return nodes_limit(who, amount_of(NODES, most), current=len(nodes))
    limit = amount_of(resource, most)
    there = sum(amount_of(resource, _capacity(node, resource)) for node in nodes)
    verb = "have" if who.startswith("all") else "has"
    has, allowed = format_quantity(resource, there), format_quantity(resource, limit)
    reason = f"{who} {verb} {has} of at most {allowed} {resource}"
    return PoolLimit(what=resource, left=max(limit - there, 0), reason=reason)


def _capacity(node: Node, resource: str) -> str | float:
    status = node.status
    return (status.capacity or status.allocatable or {}).get(resource, 0)
