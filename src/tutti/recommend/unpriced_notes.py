"""Notes on a recommendation that only the whole answer allows.

Contract: pure. Where prices decide, what has none is left out: the note names it, so that nobody takes the plan for the
best of all that could be bought.
"""

from __future__ import annotations

from tutti.market.offerings import Catalogue
from tutti.recommend.records.recommendation import Recommendation
from tutti.recommend.records.request import Objective

_SHOWN = 5
_REASON = "no price is known for it"
"""How the status of a pool begins that was left out for its price."""


def unpriced_left_out(answer: Recommendation, catalogue: Catalogue) -> list[str]:
    """A line about what was left out because only others have a price, if anything was."""
    decided = any(each.price is not None for each in answer.nodes)
    decided |= any(each.reason.startswith(_REASON) for each in answer.pools)
    if answer.objective != Objective.COST or not decided:
        return []
    missing = (each for pool in catalogue.pools for each in pool.offerings if each.price is None)
    names = sorted({f"{each.instance_type or each.pool} ({each.capacity_type})" for each in missing})
    if not names:
        return []
    shown = ", ".join(names[:_SHOWN]) + (f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else "")
    return [f"left out, because others have a price and these have none: {shown}"]
