"""What can be bought: offerings, the pools that they belong to, and what limits them.

Contract: frozen records, made by the readers in `recommend.pools`, used by everything else. Prices are whole
nano-dollars an hour (`recommend.money`), amounts are counted as `kube.resources` counts them.
"""

from __future__ import annotations

import msgspec

from tutti.kube.objects import CsiNodeSpec, Node
from tutti.kube.quantity import milli, value

NODES = "nodes"
"""What a limit on the number of nodes counts; every other word is a resource."""
EMPTY, UNDERUTILIZED = "Empty", "Underutilized"
"""Why a node goes, in Karpenter's words."""


class Offering(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One thing that can be bought: a node of a pool, of an instance type, in a zone."""

    pool: str
    instance_type: str
    zone: str
    """Empty where the node would have no zone label."""
    capacity_type: str = "on-demand"
    """``on-demand``, ``spot`` or ``reserved``."""
    price: int | None = None
    """In nano-dollars an hour; None when nobody knows."""
    node: Node
    """The node as it would join: labels, taints, capacity, allocatable. Its name is that of the template."""
    csi: CsiNodeSpec | None = None
    """How many volumes of which CSI drivers the node takes; None where nobody says."""


class PoolLimit(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """How much may still be bought of something."""

    what: str = NODES
    """`NODES`, or a resource of the nodes' capacity."""
    left: int
    """How much is left after what is there already; never below 0."""
    zone: str | None = None
    """The only zone that counts; None stands for all."""
    reason: str
    """Why no more, as a user would say it: ``pool gpu has 4 of at most 4 nodes``."""


def takes(limit: PoolLimit, offering: Offering) -> int:
    """How much of a limit one node of an offering takes, if the limit is one of its pool or of all."""
    if limit.zone is not None and offering.zone != limit.zone:
        return 0
    if limit.what == NODES:
        return 1
    status = offering.node.status
    amount = (status.capacity or status.allocatable or {}).get(limit.what, 0)
    return milli(amount) if limit.what == "cpu" else value(amount)


class PoolMember(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A node that a pool has."""

    node: str
    instance_type: str
    zone: str
    capacity_type: str
    price: int | None = None
    """In nano-dollars an hour; None when nobody knows."""


class NodeBudget(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """How many nodes of a pool may be going at a time."""

    nodes: str
    """A number, or a percentage of the pool's nodes."""
    reasons: tuple[str, ...] = (EMPTY, UNDERUTILIZED)
    """For which nodes it holds: empty ones, others that are given back, or both."""
    schedule: str = ""
    """When it opens (`kube.cron`); empty: it is always open."""
    duration: int = 0
    """For how many seconds it is open then."""


class DownRules(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """What a pool says about giving nodes back; None where it leaves that to the options."""

    threshold: float | None = None
    unneeded: int | None = None
    """In seconds."""
    empty_only: bool = False
    """Whether only empty nodes may go."""
    disabled: bool = False
    """Whether no node may go."""
    budgets: tuple[NodeBudget, ...] = ()
    """How many may go at a time."""


class NodePool(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Nodes that are bought alike."""

    name: str
    offerings: tuple[Offering, ...]
    limits: tuple[PoolLimit, ...] = ()
    current: int = 0
    """How many nodes it has."""
    minimum: int = 0
    """How many it shall have at least."""
    zone_minimums: dict[str, int] = {}
    """How many it shall have at least in single zones."""
    maximum: int | None = None
    """How many it may have at most, over all zones; there is a limit for it as well."""
    members: tuple[PoolMember, ...] = ()
    """The nodes of the picture that are known to be its own."""
    down_rules: DownRules = DownRules()
    weight: int = 0
    """How much Karpenter prefers it to others: it asks heavier pools first. Here price decides."""


class Catalogue(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """All that can be bought for a cluster."""

    pools: tuple[NodePool, ...] = ()
    limits: tuple[PoolLimit, ...] = ()
    """Limits over all pools."""
    others: tuple[PoolMember, ...] = ()
    """Nodes of no pool: nobody buys such nodes or gives them back here, but they are on the bill."""
    currency: str = "USD"
    notes: tuple[str, ...] = ()
    """Lines for the user: where pools and prices were taken from, and what was guessed."""
