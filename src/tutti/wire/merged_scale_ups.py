"""Purchases and removals for formats that have one list of each.

Contract: pure. Where a plan that gives nodes back buys others in their place, the two belong together. `purchases` and
`removals` have all of both, for a format whose readers do both. `free_removals` has the nodes that can go before
anything is bought, for a format whose readers may do one and leave the other.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from tutti.recommend.records.down_plan import Removal
from tutti.recommend.records.new_nodes import ScaleUp
from tutti.recommend.records.recommendation import Recommendation
from tutti.recommend.records.scale_ups import Kind, in_order


def purchases(answer: Recommendation) -> list[ScaleUp]:
    """All scale-ups, one for each pool, zone, type, way of buying and template, in the order in which they come up."""
    more: Sequence[ScaleUp] = answer.down.scale_up if answer.down is not None else ()
    found: dict[Kind, ScaleUp] = {}
    for each in (*answer.scale_up, *more):
        key = in_order(each)
        before = found.get(key)
        if before is not None:
            names = (*before.node_names, *each.node_names)
            each = replace(before, increment=before.increment + each.increment, node_names=names)
        found[key] = each
    return list(found.values())


def removals(answer: Recommendation) -> list[Removal]:
    """All nodes that can go."""
    return list(answer.down.removals) if answer.down is not None else []


def free_removals(answer: Recommendation) -> list[Removal]:
    """The nodes that can go at once: before anything is bought in the place of others, and with nobody who goes to a
    node that is yet to be bought.
    """
    if answer.down is None:
        return []
    waited_for = {node.name for node in answer.nodes}
    gone: set[str] = set()
    leaning: set[str] = set()
    for step in answer.down.steps:
        if not waited_for.issuperset(step.adds):
            break
        if any(move.target in waited_for for move in step.moves):
            leaning.update(move.source for move in step.moves)
            leaning.update(step.removes)
        gone.update(step.removes)
    return [each for each in answer.down.removals if each.node in gone - leaning]
