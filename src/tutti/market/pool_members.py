"""The existing nodes of a pool, with their prices.

Contract: pure. A node has the price of its pool's offering of the same type, zone and capacity type; without such an
offering, the price of the price book.
"""

from __future__ import annotations

from collections.abc import Iterable

from tutti.kube.objects import Node
from tutti.market.instance_types import INSTANCE_TYPE, ZONE
from tutti.market.offerings import Offering, PoolMember
from tutti.market.pool_context import PoolContext, label_of, region_of_node
from tutti.market.pool_labels import capacity_type_of


def members_of(nodes: Iterable[Node], offerings: Iterable[Offering], market: PoolContext) -> tuple[PoolMember, ...]:
    """Return these nodes as members of the pool with these offerings."""
    price_of_offering: dict[tuple[str, str, str], int | None] = {}
    for each in offerings:
        price_of_offering.setdefault((each.instance_type, each.zone, each.capacity_type), each.price)
    known_types = {instance_type for instance_type, _, _ in price_of_offering}
    members = []
    for node in nodes:
        # Machines without an instance type get the name that the pool uses for its only type.
        instance_type = label_of(node, INSTANCE_TYPE) or (next(iter(known_types)) if len(known_types) == 1 else "")
        zone, capacity_type = label_of(node, ZONE), capacity_type_of(node)
        price = price_of_offering.get((instance_type, zone, capacity_type))
        if price is None and instance_type:
            price = market.price(instance_type, zone=zone, capacity_type=capacity_type, region=region_of_node(node))
        members.append(
            PoolMember(
                node=node.metadata.name,
                instance_type=instance_type,
                zone=zone,
                capacity_type=capacity_type,
                price=price,
            )
        )
    return tuple(members)
