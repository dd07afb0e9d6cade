"""Our purchase beside those of peers, as text and as data.

Contract: pure. A line each, ours first, with the bound as the last line; then, where there is something to say, remarks
on how to read it. A peer that bought nothing for want of something has its line with the reason. Where a peer's
purchase is better than ours, the first remark says so.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from tutti.autoscalers.shared.agreement import agreement_of
from tutti.market.money import a_month as dollars_a_month
from tutti.market.money import dollars
from tutti.present.recommendation_text import bound_excludes_bound_pods, monthly_text
from tutti.present.tables import counted, table
from tutti.recommend.compare import OURS
from tutti.recommend.records.request import Binder, Objective

if TYPE_CHECKING:
    from tutti.recommend.compare import ComparedPurchase
    from tutti.recommend.records.recommendation import Recommendation

NAMES = {
    OURS: "Tutti",
    "cluster-autoscaler/least-waste": "Cluster Autoscaler, least-waste",
    "cluster-autoscaler/most-pods": "Cluster Autoscaler, most-pods",
    "cluster-autoscaler/price": "Cluster Autoscaler, price",
    "karpenter": "Karpenter",
    "original-recommender": "original recommender",
}
_HEADERS = ("PURCHASE BY", "NODES", "COST/MONTH", "VS OURS", "PLACED", "LEFT", "HOLDS", "AGREES", "BUYS")
_NOTHING = "-"
_TYPES = 4
_SMALL = 0.0005
_WIDE = 0.2
"""A gap, and a difference in cost, about which a reader must be warned."""


def comparison_text(compared: Sequence[ComparedPurchase], answer: Recommendation) -> str:
    """The table, and the remarks under it."""
    rows: list[Sequence[object]] = [_row(each, compared[0]) for each in compared]
    if answer.bound and answer.objective == Objective.NODES:
        rows.append((bound_label(answer), f"{answer.bound:,}", *(_NOTHING,) * 7))
    elif answer.bound:
        less = change_text(None if not answer.cost else answer.bound / answer.cost - 1)
        rows.append((bound_label(answer), _NOTHING, monthly_text(answer.bound), less, *(_NOTHING,) * 5))
    return "\n".join((table(_HEADERS, rows), "", *remarks(compared, answer)))


def bound_label(answer: Recommendation) -> str:
    """What the line of the bound is called."""
    what = "purchase" if bound_excludes_bound_pods(answer) else "plan"
    return f"no {what} {'has fewer' if answer.objective == Objective.NODES else 'costs less'} than"


def _row(each: ComparedPurchase, ours: ComparedPurchase) -> Sequence[object]:
    if each.problem:
        return (NAMES[each.who], *(_NOTHING,) * 7, each.problem)
    return (
        NAMES[each.who],
        f"{each.nodes:,}",
        monthly_text(each.cost),
        _NOTHING if each is ours else change_text(each.change),
        f"{each.placed:,}",
        f"{each.left:,}",
        holds_text(each),
        agreement_text(each.who),
        buys_text(each),
    )


def change_text(change: float | None) -> str:
    """How much more something costs than ours: ``+11.0 %``."""
    if change is None:
        return "<unknown>"
    if not change:
        return "same"
    return f"{100 * change:+.2f} %" if abs(change) < _SMALL else f"{100 * change:+.1f} %"


def holds_text(each: ComparedPurchase) -> str:
    """Whether kube-scheduler places as many pods on the nodes as they were bought for."""
    if each.kept is None:
        return "not tried"
    return "yes" if each.holds else f"{each.kept:,} of {each.placed:,}"


def agreement_text(who: str) -> str:
    """How often the model of a peer gave the real program's recorded answer."""
    if who == OURS:
        return _NOTHING
    known = agreement_of(who)
    return "not recorded" if known is None else str(known)


def buys_text(each: ComparedPurchase) -> str:
    """What is bought, by type, most first: ``2 m5.4xlarge, 1 m5.large``."""
    counts: Counter[str] = Counter()
    for offering, count in each.bought:
        counts[offering.instance_type or offering.pool] += count
    shown = counts.most_common(_TYPES)
    rest = each.nodes - sum(count for _, count in shown)
    said = ", ".join(f"{count:,} {name}" for name, count in shown)
    return f"{said}, {rest:,} others" if rest else said or "nothing"


# Remarks --------------------------------------------------------------------------------------------------------------


def remarks(compared: Sequence[ComparedPurchase], answer: Recommendation) -> Iterator[str]:
    """What a reader should know beside the numbers, the most important first."""
    ours, *peers = compared
    for each in peers:
        if each.better:
            yield f"{NAMES[each.who]} is better here: {_how(each, ours)}; a longer --time-limit may find that, too"
        elif _is_less_for_more_nodes(each, ours):
            more = counted(each.nodes - ours.nodes, "node")
            yield f"{NAMES[each.who]} costs less, with {more} more: too little to have them for"
    if any(each.real < ours.real and (each.change or 0) < 0 for each in peers):
        yield "a purchase that leaves more pods without a node costs less for that"
        if (answer.gap or 0) > _WIDE and any((each.change or 0) < -_WIDE for each in peers):
            yield f"ours may be far from the best (gap {100 * (answer.gap or 0):.0f} %): try a longer --time-limit"
    if ours.holds is False and answer.binder == Binder.TUTTI:
        yield "HOLDS of ours is with kube-scheduler as well; with --binder tutti pods go where the plan says"
    if answer.bound and bound_excludes_bound_pods(answer):
        yield f'"{bound_label(answer)}": once kube-scheduler has bound what fits now'
    yield "HOLDS: whether kube-scheduler gives a node to as many pods as the nodes were bought for"
    yield "AGREES: on how many recorded inputs our model of a program bought what the real program bought"
    yield "prices are the same for all; Cluster Autoscaler itself has none for AWS"
    yield "where Cluster Autoscaler draws lots among equals, the first is taken"


def _how(each: ComparedPurchase, ours: ComparedPurchase) -> str:
    if each.real > ours.real:
        more = each.real - ours.real
        return f"{counted(more, 'pod')} more {'gets' if more == 1 else 'get'} a node"
    if each.cost is not None and ours.cost is not None and each.cost < ours.cost:
        return f"as many pods for {monthly_text(ours.cost - each.cost)} a month less"
    return f"as many pods on {counted(ours.nodes - each.nodes, 'node')} fewer"


def _is_less_for_more_nodes(each: ComparedPurchase, ours: ComparedPurchase) -> bool:
    cheaper = each.change is not None and each.change < 0
    return cheaper and not each.problem and each.real == ours.real and each.nodes > ours.nodes


# Data -----------------------------------------------------------------------------------------------------------------


def comparison_data(compared: Sequence[ComparedPurchase], currency: str) -> list[dict[str, Any]]:
    """The same for programs; null for what is not known."""
    return [_data(each, currency) for each in compared]


def _data(each: ComparedPurchase, currency: str) -> dict[str, Any]:
    known, agreed = not each.problem, agreement_of(each.who)
    cost = None
    if each.cost is not None:
        cost = {"perHour": dollars(each.cost), "perMonth": dollars_a_month(each.cost), "currency": currency}
    return {
        "name": each.who,
        "problem": each.problem or None,
        "nodes": each.nodes if known else None,
        "cost": cost,
        "costToOurs": None if each.change is None else round(each.change, 6),
        "placed": each.placed if known else None,
        "pending": each.left if known else None,
        "placedByKubeScheduler": each.kept,
        "holds": each.holds,
        "betterThanOurs": each.better,
        "modelAgreement": None if agreed is None else {"cases": agreed.cases, "agree": agreed.agree},
        "scaleUp": [
            {
                "nodePool": offering.pool,
                "zone": offering.zone,
                "instanceType": offering.instance_type,
                "capacityType": offering.capacity_type,
                "incrementBy": count,
            }
            for offering, count in each.bought
        ],
    }
