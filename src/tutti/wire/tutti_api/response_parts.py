"""Parts that several of our answers have: money, and scale-ups.

Contract: pure; money in dollars, null for what is not known.
"""

from __future__ import annotations

from typing import Any

from tutti.market.money import a_month, dollars
from tutti.recommend.records.new_nodes import ScaleUp

Data = dict[str, Any]


def money_data(nano: int | None, currency: str) -> Data | None:
    """An amount by the hour and by the month."""
    return None if nano is None else {"perHour": dollars(nano), "perMonth": a_month(nano), "currency": currency}


def price_data(price: int | None) -> Data:
    """What one node costs."""
    return {
        "pricePerHour": None if price is None else dollars(price),
        "pricePerMonth": None if price is None else a_month(price),
    }


def scale_up_data(each: ScaleUp) -> Data:
    """So many more nodes of one kind."""
    return {
        "nodePool": each.pool,
        "zone": each.zone,
        "instanceType": each.instance_type,
        "capacityType": each.capacity_type,
        "incrementBy": each.increment,
        "nodeNames": list(each.node_names),
        **price_data(each.price),
    }
