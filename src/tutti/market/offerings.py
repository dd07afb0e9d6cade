"""Offerings, the pools that they belong to, and the limits of pools.

Contract: frozen records, made by the readers in `market.pools`. Prices are whole nano-dollars an hour (`market.money`);
amounts are counted as in `kube.resources`.
"""

from __future__ import annotations

import msgspec

from tutti.kube.objects import CsiNodeSpec, Node
from tutti.kube.quantity import milli, value

NODES = "nodes"
"""The name of a limit on the number of nodes; every other name is a resource."""
EMPTY, UNDERUTILIZED = "Empty", "Underutilized"
"""Why a node is removed, in Karpenter's words."""


class Offering(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A node that can be bought: of a pool, of an instance type, in a zone."""

    pool: str
    instance_type: str
    zone: str
    """Empty if the node would have no zone label."""
    capacity_type: str = "on-demand"
    """``on-demand``, ``spot`` or ``reserved``."""
    price: int | None = None
    """In nano-dollars an hour; None if unknown."""
    node: Node
    """The node as it would join: labels, taints, capacity, allocatable. It has the name of the template."""
    csi: CsiNodeSpec | None = None
    """The volume limits of the node by CSI driver; None if unknown."""


class PoolLimit(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """How much of a resource, or how many nodes, may still be bought."""

    what: str = NODES
    """`NODES`, or a resource of the nodes' capacity."""
    left: int
    """The amount that remains after the existing nodes; never below 0."""
    zone: str | None = None
    """The zone of the limit; None for all zones."""
    reason: str
    """The limit as text for users: ``pool gpu has 4 of at most 4 nodes``."""


def takes(limit: PoolLimit, offering: Offering) -> int:
    """Return how much of a limit one node of an offering takes, if the limit applies to its pool or to all pools."""
    if limit.zone is not None and offering.zone != limit.zone:
        return 0
    if limit.what == NODES:
        return 1
    status = offering.node.status
    amount = (status.capacity or status.allocatable or {}).get(limit.what, 0)
    return milli(amount) if limit.what == "cpu" else value(amount)


class PoolMember(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """An existing node of a pool."""

    node: str
    instance_type: str
    zone: str
    capacity_type: str
    price: int | None = None
    """In nano-dollars an hour; None if unknown."""


class NodeBudget(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A disruption budget of a pool: how many of its nodes may be removed at a time."""

    nodes: str
    """A number, or a percentage of the pool's nodes."""
    reasons: tuple[str, ...] = (EMPTY, UNDERUTILIZED)
    """The reasons for removal that it limits: empty nodes, underutilized nodes, or both."""
    schedule: str = ""
    """When the budget comes into force (`kube.cron`); empty: it is always in force."""
    duration: int = 0
    """The number of seconds that the budget stays in force."""


class DownRules(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """The scale-down rules of a pool; None if the options decide."""

    threshold: float | None = None
    unneeded: int | None = None
    """In seconds."""
    empty_only: bool = False
    """Whether only empty nodes may be removed."""
    disabled: bool = False
    """Whether no node may be removed."""
    budgets: tuple[NodeBudget, ...] = ()
    """Limits on the number of nodes removed at a time."""


class NodePool(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Nodes that are bought alike."""

    name: str
    offerings: tuple[Offering, ...]
    limits: tuple[PoolLimit, ...] = ()
    current: int = 0
    """The number of existing nodes."""
    minimum: int = 0
    """The minimum number of nodes."""
    zone_minimums: dict[str, int] = {}
    """The minimum number of nodes in single zones."""
    maximum: int | None = None
    """The maximum number of nodes over all zones; `limits` has it too."""
    members: tuple[PoolMember, ...] = ()
    """The existing nodes that are known to belong to the pool."""
    down_rules: DownRules = DownRules()
    weight: int = 0
    """Karpenter's weight: it tries heavier pools first. Here price decides."""


class Catalogue(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """All pools of a cluster."""

    pools: tuple[NodePool, ...] = ()
    limits: tuple[PoolLimit, ...] = ()
    """Limits over all pools."""
    others: tuple[PoolMember, ...] = ()
    """Nodes of no pool: they are neither bought nor removed here, but they are on the bill."""
    currency: str = "USD"
    notes: tuple[str, ...] = ()
    """Notes for users: where pools and prices come from, and what was inferred."""
