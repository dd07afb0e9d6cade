"""Merging: single nodes into scale-ups, one for every pool, zone, type, capacity type and template."""

from __future__ import annotations

from collections.abc import Iterable

from tutti.market.offerings import Offering
from tutti.recommend.records.new_nodes import NewNode, ScaleUp

ScaleUpKey = tuple[str, str, str, str, str]


def in_order(of: NewNode | ScaleUp | Offering) -> ScaleUpKey:
    """What makes nodes one scale-up, and puts scale-ups in order."""
    template = of.node.metadata.name if isinstance(of, Offering) else of.template
    return of.pool, of.zone, of.instance_type, of.capacity_type, template


def merge(nodes: Iterable[NewNode]) -> tuple[ScaleUp, ...]:
    """The scale-ups that bring these nodes, in order."""
    groups: dict[ScaleUpKey, list[NewNode]] = {}
    for node in nodes:
        groups.setdefault(in_order(node), []).append(node)
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
