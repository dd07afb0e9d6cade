"""Nodes that are bought: one by one, and counted by pool, zone, type and template."""

from __future__ import annotations

import msgspec


class ScaleUp(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """So many more nodes of one pool, zone, type and template."""

    pool: str
    zone: str
    instance_type: str
    capacity_type: str
    increment: int
    node_names: tuple[str, ...]
    price: int | None = None
    """Of one node."""
    template: str = ""
    """The name of the offering's node: what tells offerings of the same pool, zone and type apart."""


class NewNode(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One bought node, and the pending pods that it takes."""

    name: str
    pool: str
    zone: str
    instance_type: str
    capacity_type: str
    price: int | None = None
    template: str = ""
    """As for `ScaleUp`."""
    pods: tuple[str, ...] = ()
