"""The nodes that a pool has, with what each costs.

Contract: pure. A node costs what its pool pays for a node of its type, zone and way of buying; where the pool offers
none such, what the market asks.
"""

from __future__ import annotations

from collections.abc import Iterable

from tutti.kube.objects import Node
from tutti.market.instance_types import INSTANCE_TYPE, ZONE
from tutti.market.offerings import Offering, PoolMember
from tutti.market.pool_context import PoolContext, label_of, region_of_node
from tutti.market.pool_labels import capacity_type_of


def members_of(nodes: Iterable[Node], offerings: Iterable[Offering], market: PoolContext) -> tuple[PoolMember, ...]:
    """These nodes, as members of the pool that offers this."""
    offered: dict[tuple[str, str, str], int | None] = {}
    for each in offerings:
        offered.setdefault((each.instance_type, each.zone, each.capacity_type), each.price)
    only = {kind for kind, _, _ in offered}
    members = []
    for node in nodes:
        # A pool of machines without a type calls them by its own name.
        kind = label_of(node, INSTANCE_TYPE) or (next(iter(only)) if len(only) == 1 else "")
        zone, bought = label_of(node, ZONE), capacity_type_of(node)
        price = offered.get((kind, zone, bought))
        if price is None and kind:
            price = market.price(kind, zone=zone, capacity_type=bought, region=region_of_node(node))
        members.append(
            PoolMember(node=node.metadata.name, instance_type=kind, zone=zone, capacity_type=bought, price=price)
        )
    return tuple(members)
