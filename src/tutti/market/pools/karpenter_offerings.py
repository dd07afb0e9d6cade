"""Offerings and limits of a Karpenter node pool.

Contract: pure. `karpenter_pool` matches requirements with instance types as Karpenter's scheduler does
(`karpenter_requirements`). Every combination of type, zone, capacity type and own label is one offering. Limits are
reduced by the capacity of the pool's existing nodes. The weight of a pool is only for Karpenter's model: here price
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
    """Return a pool with an offering for every type that meets its requirements.

    `labels` and `taints` are those of every node of the pool. `limits` are Karpenter's (``cpu``, ``memory``,
    ``nodes``). `nodes` are all nodes of the cluster: nodes with the label karpenter.sh/nodepool=NAME count against the
    limits.
    """
    own_nodes = [node for node in nodes if (node.metadata.labels or {}).get(POOL) == name]
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
    pool_limits = tuple(
        resource_limit(f"pool {name}", what, most, nodes=own_nodes) for what, most in (limits or {}).items()
    )
    return NodePool(
        name=name,
        offerings=tuple(offerings),
        limits=pool_limits,
        current=len(own_nodes),
        maximum=_max_nodes(limits or {}, pool_limits),
    )


def _max_nodes(limits: Quantities, pool_limits: Iterable[PoolLimit]) -> int | None:
    return int(limits[NODES]) if NODES in limits and any(limit.what == NODES for limit in pool_limits) else None
