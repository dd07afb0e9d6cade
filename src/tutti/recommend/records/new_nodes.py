"""New nodes in answers: one by one (`NewNode`), and counted by pool, zone, type and template (`ScaleUp`)."""

from __future__ import annotations

import msgspec


class ScaleUp(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """An increment of the nodes of one pool, zone, instance type and template."""

    pool: str
    zone: str
    instance_type: str
    capacity_type: str
    increment: int
    node_names: tuple[str, ...]
    price: int | None = None
    """The price of one node in nano-dollars an hour."""
    template: str = ""
    """The name of the offering's node, which distinguishes offerings of the same pool, zone and type."""


class NewNode(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One bought node, and the pending pods that it takes."""

    name: str
    pool: str
    zone: str
    instance_type: str
    capacity_type: str
    price: int | None = None
    template: str = ""
    """See `ScaleUp.template`."""
    pods: tuple[str, ...] = ()
