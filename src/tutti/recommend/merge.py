"""Merging: single nodes into scale-ups, one for every pool, zone, type and capacity type."""

from __future__ import annotations

from collections.abc import Iterable

from tutti.recommend.bought import NewNode, ScaleUp
from tutti.recommend.offerings import Offering


def in_order(of: NewNode | Offering) -> tuple[str, str, str, str]:
    """What makes nodes one scale-up, and puts scale-ups in order."""
    return of.pool, of.zone, of.instance_type, of.capacity_type


def merge(nodes: Iterable[NewNode]) -> tuple[ScaleUp, ...]:
    """The scale-ups that bring these nodes, by pool, zone, type and capacity type."""
    groups: dict[tuple[str, str, str, str], list[NewNode]] = {}
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
        )
        for (pool, zone, instance_type, capacity_type), members in sorted(groups.items())
    )
