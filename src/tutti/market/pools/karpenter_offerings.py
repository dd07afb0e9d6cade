"""Karpenter's node pools.

Contract: pure. `karpenter_pool` is the core: requirements held against instance types, as Karpenter's scheduler does it
(`pools.requirements`). Every choice of type, zone, capacity type and own label becomes one offering. Limits are what is
left after the capacity of the nodes that the pool has. The weight of a pool is for Karpenter's model alone: here price
decides.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from tutti.kube.objects import LabelSelectorRequirement, Node, Quantities, Taint
from tutti.market.instance_types import InstanceType, template_name, template_node
from tutti.market.offerings import NODES, NodePool, Offering, PoolLimit
from tutti.market.pool_limits import resource_limit
from tutti.market.pools.karpenter_requirements import choices

POOL = "karpenter.sh/nodepool"


def karpenter_pool(
    *,
    name: str,
    requirements: Iterable[LabelSelectorRequirement] = (),
    labels: Mapping[str, str] | None = None,
    taints: Sequence[Taint] = (),
    limits: Quantities | None = None,
    types: Sequence[InstanceType],
    nodes: Iterable[Node] = (),
) -> NodePool:
    """A pool that buys from these types whatever meets its requirements.

    `labels` and `taints` are those of every node of the pool, `limits` Karpenter's (``cpu``, ``memory``, ``nodes``),
    `nodes` all nodes of the cluster: those with the label karpenter.sh/nodepool=NAME count against the limits.
    """
    mine = [node for node in nodes if (node.metadata.labels or {}).get(POOL) == name]
    own = dict(labels or {})
    offerings = []
    for choice in choices(requirements, types, labels=own):
        offer, kind = choice.offer, choice.type
        template = template_name(
            name, kind.name, zone=offer.zone, capacity_type=offer.capacity_type, variant=choice.variant
        )
        node = template_node(
            template,
            labels={**own, **choice.labels, POOL: name},
            taints=taints,
            capacity=kind.capacity,
            allocatable=kind.node_allocatable(),
        )
        offerings.append(
            Offering(
                pool=name,
                instance_type=kind.name,
                zone=offer.zone,
                capacity_type=offer.capacity_type,
                price=offer.price,
                node=node,
            )
        )
    made = tuple(resource_limit(f"pool {name}", what, most, nodes=mine) for what, most in (limits or {}).items())
    return NodePool(
        name=name, offerings=tuple(offerings), limits=made, current=len(mine), maximum=_most_nodes(limits or {}, made)
    )


def _most_nodes(limits: Quantities, made: Iterable[PoolLimit]) -> int | None:
    return int(limits[NODES]) if NODES in limits and any(limit.what == NODES for limit in made) else None
