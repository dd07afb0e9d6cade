"""Merge single new nodes into scale-ups, one per pool, zone, type, capacity type and template."""

from __future__ import annotations

from collections.abc import Iterable

from tutti.market.offerings import Offering
from tutti.recommend.records.new_nodes import NewNode, ScaleUp

ScaleUpKey = tuple[str, str, str, str, str]


def scale_up_key(node: NewNode | ScaleUp | Offering) -> ScaleUpKey:
    """Return the key that nodes of one scale-up share; scale-ups are sorted by it."""
    template = node.node.metadata.name if isinstance(node, Offering) else node.template
    return node.pool, node.zone, node.instance_type, node.capacity_type, template


def merge(nodes: Iterable[NewNode]) -> tuple[ScaleUp, ...]:
    """Return the scale-ups for these nodes, in order."""
    groups: dict[ScaleUpKey, list[NewNode]] = {}
    for node in nodes:
        groups.setdefault(scale_up_key(node), []).append(node)
    return tuple(
        ScaleUp(
            pool=pool,
            zone=zone,
            instance_type=instance_type,
            capacity_type=capacity_type,
            increment=len(members),
            node_names=tuple(node.name for node in members),
            price=members[0].price,
            template=template,
        )
        for (pool, zone, instance_type, capacity_type, template), members in sorted(groups.items())
    )
