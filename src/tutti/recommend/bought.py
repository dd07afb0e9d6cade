"""Nodes that are bought: one by one, and counted by pool, type and zone."""

from __future__ import annotations

import msgspec


class ScaleUp(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """So many more nodes of one pool, type and zone."""

    pool: str
    zone: str
    instance_type: str
    capacity_type: str
    increment: int
    node_names: tuple[str, ...]
    price: int | None = None
    """Of one node."""


class NewNode(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One bought node, and the pending pods that it takes."""

    name: str
    pool: str
    zone: str
    instance_type: str
    capacity_type: str
    price: int | None = None
    pods: tuple[str, ...] = ()
