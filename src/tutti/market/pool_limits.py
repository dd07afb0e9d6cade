"""Limits of pools: what may still be bought besides the existing nodes, with the limit as text."""

from __future__ import annotations

from collections.abc import Collection

from tutti.kube.objects import Node
from tutti.kube.quantity import format_quantity
from tutti.market.instance_types import amount_of
from tutti.market.offerings import NODES, PoolLimit


def nodes_limit(owner: str, maximum: int, *, current: int, zone: str | None = None) -> PoolLimit:
    """Return a limit on the number of nodes; `owner` is the subject of its text: ``pool gpu`` or ``all pools``."""
    where = f" in {zone}" if zone is not None else ""
    verb = "have" if owner.startswith("all") else "has"
    reason = f"{owner} {verb} {current} of at most {maximum} node{'s' if maximum != 1 else ''}{where}"
    return PoolLimit(what=NODES, left=max(maximum - current, 0), zone=zone, reason=reason)


def resource_limit(owner: str, resource: str, maximum: str | float, *, nodes: Collection[Node]) -> PoolLimit:
    """Return a limit on the capacity of a resource, or on the number of nodes, less that of existing nodes."""
    if resource == NODES:
        return nodes_limit(owner, amount_of(NODES, maximum), current=len(nodes))
    limit = amount_of(resource, maximum)
    existing = sum(amount_of(resource, _capacity(node, resource)) for node in nodes)
    verb = "have" if owner.startswith("all") else "has"
    existing_text, limit_text = format_quantity(resource, existing), format_quantity(resource, limit)
    reason = f"{owner} {verb} {existing_text} of at most {limit_text} {resource}"
    return PoolLimit(what=resource, left=max(limit - existing, 0), reason=reason)


def _capacity(node: Node, resource: str) -> str | float:
    status = node.status
    return (status.capacity or status.allocatable or {}).get(resource, 0)
