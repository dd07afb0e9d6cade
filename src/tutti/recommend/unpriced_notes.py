"""Notes about offerings without a price.

Contract: pure. Where prices decide, offerings without a price are left out. The note names them, because the plan may
not be the best over all offerings.
"""

from __future__ import annotations

from tutti.market.offerings import Catalogue
from tutti.recommend.records.recommendation import Recommendation
from tutti.recommend.records.request import Objective

_MAX_NAMES = 5
_UNPRICED_REASON = "no known price"
"""How the reason of a pool begins that is ineligible for lack of a price (see `problem.eligible_pools`)."""


def unpriced_notes(answer: Recommendation, catalogue: Catalogue) -> list[str]:
    """Return a note about offerings that were left out because only other offerings have a price."""
    prices_decide = any(each.price is not None for each in answer.nodes)
    prices_decide |= any(each.reason.startswith(_UNPRICED_REASON) for each in answer.pools)
    if answer.objective != Objective.COST or not prices_decide:
        return []
    missing = (each for pool in catalogue.pools for each in pool.offerings if each.price is None)
    names = sorted({f"{each.instance_type or each.pool} ({each.capacity_type})" for each in missing})
    if not names:
        return []
    shown = ", ".join(names[:_MAX_NAMES]) + (f" and {len(names) - _MAX_NAMES} more" if len(names) > _MAX_NAMES else "")
    return [f"left out because they have no price, while other offerings have one: {shown}"]
