"""A scale-down for programs: the part ``scaleDown`` of an answer, in camel case.

Contract: pure; the same keys in the same order every time, money in dollars, times in seconds, null for what is not
known.
"""

from __future__ import annotations

from tutti.market.money import dollars
from tutti.recommend.records.down_plan import DownPlan, Removal, Stay, Step
from tutti.wire.tutti_api.response_parts import Data, money_data, scale_up_data


def down_data(plan: DownPlan, currency: str) -> Data:
    """The whole plan."""
    return {
        "remove": [_removal(each) for each in plan.removals],
        "replaceBy": [scale_up_data(each) for each in plan.scale_up],
        "stay": [_stay(each) for each in plan.stays],
        "steps": [_step(each) for each in plan.steps],
        "counts": {
            "remove": len(plan.removals),
            "replaceBy": len(plan.nodes),
            "stay": len(plan.stays),
            "moves": plan.moves,
            "steps": len(plan.steps),
        },
        "purchase": money_data(plan.purchase, currency),
        "before": money_data(plan.before, currency),
        "after": money_data(plan.after, currency),
        "saving": money_data(plan.saving, currency),
        "churn": None if plan.churn is None else dollars(plan.churn),
        "paybackHours": None if plan.payback is None else round(plan.payback, 4),
        "notes": list(plan.notes),
    }


def _removal(each: Removal) -> Data:
    return {
        "node": each.node,
        "nodePool": each.pool,
        "zone": each.zone,
        "instanceType": each.instance_type,
        "capacityType": each.capacity_type,
        "pricePerHour": None if each.price is None else dollars(each.price),
        "reason": each.why,
        "utilization": round(each.utilization, 6),
        "moves": each.moves,
        "unneededSecondsLeft": each.wait,
    }


def _stay(each: Stay) -> Data:
    return {
        "node": each.node,
        "nodePool": each.pool,
        "reason": each.reason,
        "message": each.message,
        "pod": each.pod or None,
        "utilization": None if each.utilization is None else round(each.utilization, 6),
    }


def _step(each: Step) -> Data:
    return {
        "add": list(each.adds),
        "move": [{"pod": move.pod, "from": move.source, "to": move.target} for move in each.moves],
        "remove": list(each.removes),
        "graceSeconds": each.grace,
    }
