"""A recommendation for programs: one record in camel case, and lines of names.

Contract: pure; the same keys in the same order every time, money in dollars, null for what is not known. `bound` is
what no plan for these pods can cost less than, in nodes where nodes are counted. `holds` tells where each pod goes when
Tutti binds: the purchase alone does not keep it there. Otherwise the scheduler finds the way, and there are none.
`scaleDown` is there when it was asked for.
"""

from __future__ import annotations

from tutti.market.price_book import ON_DEMAND
from tutti.recommend.records.new_nodes import NewNode, ScaleUp
from tutti.recommend.records.recommendation import Recommendation
from tutti.recommend.records.request import Binder, Objective
from tutti.wire.tutti_api.response_parts import Data, money_data, price_data, scale_up_data
from tutti.wire.tutti_api.scale_down_response import down_data


def recommendation_data(answer: Recommendation, currency: str) -> Data:
    """The whole answer."""
    new = sum(len(node.pods) for node in answer.nodes)
    on_existing = [{"pod": each.pod, "node": each.node} for each in answer.on_existing]
    on_new = [{"pod": pod, "node": node.name} for node in answer.nodes for pod in node.pods]
    by_nodes = answer.objective == Objective.NODES
    return {
        "scaleUp": [scale_up_data(each) for each in answer.scale_up],
        "nodes": [_node(each) for each in answer.nodes],
        "onExisting": on_existing,
        "pending": [{"pod": each.pod, "reason": each.reason, "gang": each.gang} for each in answer.left],
        "pools": [{"nodePool": each.pool, "eligible": each.eligible, "reason": each.reason} for each in answer.pools],
        "alternatives": [{"for": each.who, "evicting": list(each.evicting)} for each in answer.alternatives],
        "counts": {
            "pending": answer.pods,
            "placed": answer.placed,
            "onExisting": len(on_existing),
            "onNew": new,
            "newNodes": len(answer.nodes),
        },
        "cost": money_data(answer.cost, currency),
        "bound": {"nodes": answer.bound}
        if by_nodes and answer.bound is not None
        else money_data(answer.bound, currency),
        "gap": None if answer.gap is None else round(answer.gap, 6),
        "minimal": answer.minimal,
        "objective": answer.objective,
        "strategy": answer.strategy,
        "binder": answer.binder,
        "holds": on_existing + on_new if answer.binder == Binder.TUTTI else [],
        "notes": list(answer.notes),
    } | ({"scaleDown": down_data(answer.down, currency)} if answer.down is not None else {})


def names(answer: Recommendation) -> str:
    """A line for each scale-up, ``pool/zone/type +3`` (``pool/zone/type/spot +3`` where it is not on demand), and
    for each node that can go, ``node/NAME -1``.
    """
    lines = [_name(each) for each in answer.scale_up]
    if answer.down is not None:
        lines += [_name(each) for each in answer.down.scale_up]
        lines += [f"node/{each.node} -1" for each in answer.down.removals]
    return "\n".join(lines)


def _name(each: ScaleUp) -> str:
    bought = () if each.capacity_type == ON_DEMAND else (each.capacity_type,)
    return f"{'/'.join((each.pool, each.zone, each.instance_type, *bought))} +{each.increment}"


def _node(each: NewNode) -> Data:
    return {
        "name": each.name,
        "nodePool": each.pool,
        "zone": each.zone,
        "instanceType": each.instance_type,
        "capacityType": each.capacity_type,
        **price_data(each.price),
        "pods": list(each.pods),
    }
