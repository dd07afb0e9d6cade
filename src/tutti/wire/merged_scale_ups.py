"""The scale-ups and removals of a whole recommendation, for formats that have one list of each.

Contract: pure. A scale-down may buy nodes to replace the nodes that it removes. `purchases` and `removals` list all
scale-ups and all removals, for clients that carry out both. `free_removals` lists the nodes that can be removed before
any replacement is bought, for clients that may carry out only one of the lists.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from tutti.recommend.records.down_plan import Removal
from tutti.recommend.records.new_nodes import ScaleUp
from tutti.recommend.records.recommendation import Recommendation
from tutti.recommend.records.scale_ups import ScaleUpKey, scale_up_key


def purchases(answer: Recommendation) -> list[ScaleUp]:
    """Return all scale-ups in order, merged by pool, zone, instance type, capacity type and template."""
    more: Sequence[ScaleUp] = answer.down.scale_up if answer.down is not None else ()
    found: dict[ScaleUpKey, ScaleUp] = {}
    for each in (*answer.scale_up, *more):
        key = scale_up_key(each)
        before = found.get(key)
        if before is not None:
            names = (*before.node_names, *each.node_names)
            each = replace(before, increment=before.increment + each.increment, node_names=names)
        found[key] = each
    return list(found.values())


def removals(answer: Recommendation) -> list[Removal]:
    """Return all nodes to remove."""
    return list(answer.down.removals) if answer.down is not None else []


def free_removals(answer: Recommendation) -> list[Removal]:
    """Return the nodes to remove before the first replacement is bought, except nodes with a pod for a new node."""
    if answer.down is None:
        return []
    new_nodes = {node.name for node in answer.nodes}
    removed: set[str] = set()
    blocked: set[str] = set()
    for step in answer.down.steps:
        if not new_nodes.issuperset(step.adds):
            break
        if any(move.target in new_nodes for move in step.moves):
            blocked.update(move.source for move in step.moves)
            blocked.update(step.removes)
        removed.update(step.removes)
    return [each for each in answer.down.removals if each.node in removed - blocked]
