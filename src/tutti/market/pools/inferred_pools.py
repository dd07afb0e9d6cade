"""Pools inferred from the existing nodes.

Contract: pure. Nodes with the pool label of their cloud (`market.pool_labels`) form a pool; all other nodes form one
pool per instance type, or per size if the type is unknown. Every type of a pool is offered in every zone where the pool
has nodes, with the capacity type of its nodes; a new node copies an existing node, preferably a ready one.
Control-plane nodes are left out. Limits are unknown; a note says so.
"""

from __future__ import annotations

from collections.abc import Sequence

from tutti.cluster.node_edits import new_node_like
from tutti.kube.objects import Node
from tutti.market.instance_types import INSTANCE_TYPE, ZONE, amounts, in_zone, template_name
from tutti.market.offerings import NodePool, Offering
from tutti.market.pool_context import PoolContext, label_of, region_of_node, unpriced_note
from tutti.market.pool_labels import best_example, capacity_type_of, pool_of
from tutti.market.pool_members import members_of


def infer_pools(market: PoolContext) -> tuple[list[NodePool], list[str]]:
    """Return the pools that the nodes of a cluster form, and notes about them."""
    members: dict[str, list[Node]] = {}
    sizes: dict[str, str] = {}
    unnamed = 0
    for node in market.nodes:
        found = pool_of(node)
        if found is None:
            unnamed += 1
        members.setdefault(found[1] if found is not None else _pool_name(node, sizes), []).append(node)
    pools = [_pool(name, members[name], market=market) for name in sorted(members)]
    if not pools:
        return [], ["there are no nodes to infer node pools from: say with --pools what can be bought"]
    notes = [
        f"{len(pools)} node pool{'s' if len(pools) > 1 else ''} inferred from the nodes; "
        "their minimum and maximum are not known"
    ]
    if unnamed:
        notes.append(
            f"{unnamed} node{'s' if unnamed > 1 else ''} without a pool label: taken as pools by instance type"
        )
    missing = (
        o.instance_type or "nodes without an instance type" for p in pools for o in p.offerings if o.price is None
    )
    return pools, notes + unpriced_note(missing, region=market.region)


def _pool_name(node: Node, sizes: dict[str, str]) -> str:
    """Return the pool name of a node without a pool label; `sizes` maps each size so far to its first node."""
    kind = label_of(node, INSTANCE_TYPE)
    size = str(sorted(amounts(node.status.allocatable).items()))
    return f"nodes-like-{kind or sizes.setdefault(size, node.metadata.name)}"


def _pool(name: str, nodes: Sequence[Node], *, market: PoolContext) -> NodePool:
    kinds: dict[tuple[str, str], list[Node]] = {}
    for node in nodes:
        kinds.setdefault((label_of(node, INSTANCE_TYPE), capacity_type_of(node)), []).append(node)
    zones = sorted({label_of(node, ZONE) for node in nodes})
    if len(zones) > 1:
        zones = [zone for zone in zones if zone]
    offerings = []
    for (instance_type, capacity_type), nodes_of_kind in sorted(kinds.items()):
        for zone in zones:
            zone_nodes = [node for node in nodes_of_kind if label_of(node, ZONE) == zone]
            example = best_example(zone_nodes or nodes_of_kind)
            template = template_name(name, instance_type, zone=zone, capacity_type=capacity_type)
            template_node = new_node_like(example if zone_nodes else in_zone(example, zone), template)
            price = market.price(instance_type, zone=zone, capacity_type=capacity_type, region=region_of_node(example))
            offerings.append(
                Offering(
                    pool=name,
                    instance_type=instance_type,
                    zone=zone,
                    capacity_type=capacity_type,
                    price=price,
                    node=template_node,
                )
            )
    members = members_of(nodes, offerings, market)
    return NodePool(name=name, offerings=tuple(offerings), current=len(nodes), members=members)
