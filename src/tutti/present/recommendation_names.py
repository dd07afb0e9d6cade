"""The output of `tutti recommend -o name` for shell scripts: one line for each scale-up and each node to remove."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tutti.market.price_book import ON_DEMAND

if TYPE_CHECKING:
    from tutti.recommend.records.new_nodes import ScaleUp
    from tutti.recommend.records.recommendation import Recommendation


def recommendation_names(answer: Recommendation) -> str:
    """Return ``pool/zone/type +3`` for each scale-up and ``node/NAME -1`` for each node to remove.

    A scale-up that is not on demand has its capacity type, too: ``pool/zone/type/spot +3``.
    """
    lines = [_name(each) for each in answer.scale_up]
    if answer.down is not None:
        lines += [_name(each) for each in answer.down.scale_up]
        lines += [f"node/{each.node} -1" for each in answer.down.removals]
    return "\n".join(lines)


def _name(each: ScaleUp) -> str:
    parts = [each.pool, each.zone, each.instance_type]
    if each.capacity_type != ON_DEMAND:
        parts.append(each.capacity_type)
    return f"{'/'.join(parts)} +{each.increment}"
