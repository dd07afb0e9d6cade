"""The comparison of Tutti's purchase with the purchases of peers (autoscaler models), as text and as data.

Contract: pure. The table has a line for each purchase, Tutti's first, and a last line for the lower bound; remarks
below the table explain how to read the numbers. A peer that could not buy has a line with the reason. If the purchase
of a peer is better than Tutti's, the first remark says so.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from tutti.autoscalers.shared.agreement import agreement_of
from tutti.market.money import a_month as dollars_a_month
from tutti.market.money import dollars
from tutti.present.recommendation_text import REMAINING_PODS, bound_excludes_bound_pods, monthly_text
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
_EMPTY = "-"
_MAX_TYPES = 4
_SMALL_CHANGE = 0.0005
_WIDE_GAP = 0.2
"""From this share on, a gap or a cost difference gets a warning."""


def comparison_text(compared: Sequence[ComparedPurchase], answer: Recommendation) -> str:
    """Return the table and the remarks below it."""
    rows: list[Sequence[object]] = [_row(each, compared[0]) for each in compared]
    if answer.bound and answer.objective == Objective.NODES:
        rows.append((bound_label(answer), f"{answer.bound:,}", *(_EMPTY,) * 7))
    elif answer.bound:
        less = change_text(None if not answer.cost else answer.bound / answer.cost - 1)
        rows.append((bound_label(answer), _EMPTY, monthly_text(answer.bound), less, *(_EMPTY,) * 5))
    return "\n".join((table(_HEADERS, rows), "", *remarks(compared, answer)))


def bound_label(answer: Recommendation) -> str:
    """Return the label of the bound's line in the table."""
    what = "purchase" if bound_excludes_bound_pods(answer) else "plan"
    return f"no {what} {'has fewer' if answer.objective == Objective.NODES else 'costs less'} than"


def _row(each: ComparedPurchase, ours: ComparedPurchase) -> Sequence[object]:
    if each.problem:
        return (NAMES[each.who], *(_EMPTY,) * 7, each.problem)
    return (
        NAMES[each.who],
        f"{each.nodes:,}",
        monthly_text(each.cost),
        _EMPTY if each is ours else change_text(each.change),
        f"{each.placed:,}",
        f"{each.left:,}",
        holds_text(each),
        agreement_text(each.who),
        buys_text(each),
    )


def change_text(change: float | None) -> str:
    """Return a relative cost difference to Tutti's purchase as text: ``+11.0 %``."""
    if change is None:
        return "<unknown>"
    if not change:
        return "same"
    return f"{100 * change:+.2f} %" if abs(change) < _SMALL_CHANGE else f"{100 * change:+.1f} %"


def holds_text(each: ComparedPurchase) -> str:
    """Return whether kube-scheduler places as many pods on the bought nodes as the purchase claims."""
    if each.kept is None:
        return "not tried"
    return "yes" if each.holds else f"{each.kept:,} of {each.placed:,}"


def agreement_text(who: str) -> str:
    """Return how often the model of a peer gave the recorded answer of the real program."""
    if who == OURS:
        return _EMPTY
    known = agreement_of(who)
    return "not recorded" if known is None else str(known)


def buys_text(each: ComparedPurchase) -> str:
    """Return the bought nodes by instance type, most first: ``2 m5.4xlarge, 1 m5.large``."""
    counts: Counter[str] = Counter()
    for offering, count in each.bought:
        counts[offering.instance_type or offering.pool] += count
    shown = counts.most_common(_MAX_TYPES)
    rest = each.nodes - sum(count for _, count in shown)
    text = ", ".join(f"{count:,} {name}" for name, count in shown)
    return f"{text}, {rest:,} others" if rest else text or "nothing"


# Remarks --------------------------------------------------------------------------------------------------------------


def remarks(compared: Sequence[ComparedPurchase], answer: Recommendation) -> Iterator[str]:
    """Yield remarks on the comparison, the most important first."""
    ours, *peers = compared
    for each in peers:
        if each.better:
            advantage = _advantage(each, ours)
            yield f"{NAMES[each.who]} is better here: {advantage}; a longer --time-limit may find that, too"
        elif _is_cheaper_with_more_nodes(each, ours):
            more = counted(each.nodes - ours.nodes, "node")
            yield f"{NAMES[each.who]} costs less, with {more} more: the saving is too small for the extra nodes"
    if any(each.real < ours.real and (each.change or 0) < 0 for each in peers):
        yield "a purchase may cost less because it leaves more pods without a node"
        if (answer.gap or 0) > _WIDE_GAP and any((each.change or 0) < -_WIDE_GAP for each in peers):
            yield f"ours may be far from the best (gap {100 * (answer.gap or 0):.0f} %): try a longer --time-limit"
    if ours.holds is False and answer.binder == Binder.TUTTI:
        yield "HOLDS always means kube-scheduler; with --binder tutti pods go where the plan says"
    if answer.bound and bound_excludes_bound_pods(answer):
        yield f'"{bound_label(answer)}": {REMAINING_PODS}'
    yield "HOLDS: whether kube-scheduler gives a node to as many pods as the nodes were bought for"
    yield "AGREES: on how many recorded inputs our model of a program bought what the real program bought"
    yield "all purchases use the same prices; Cluster Autoscaler itself has no prices for AWS"
    yield "where Cluster Autoscaler picks at random among equal options, its model takes the first"


def _advantage(each: ComparedPurchase, ours: ComparedPurchase) -> str:
    if each.real > ours.real:
        more = each.real - ours.real
        return f"{counted(more, 'pod')} more {'gets' if more == 1 else 'get'} a node"
    if each.cost is not None and ours.cost is not None and each.cost < ours.cost:
        return f"as many pods for {monthly_text(ours.cost - each.cost)} a month less"
    return f"as many pods on {counted(ours.nodes - each.nodes, 'node')} fewer"


def _is_cheaper_with_more_nodes(each: ComparedPurchase, ours: ComparedPurchase) -> bool:
    cheaper = each.change is not None and each.change < 0
    return cheaper and not each.problem and each.real == ours.real and each.nodes > ours.nodes


# Data -----------------------------------------------------------------------------------------------------------------


def comparison_data(compared: Sequence[ComparedPurchase], currency: str) -> list[dict[str, Any]]:
    """Return the comparison as data for programs; unknown values are null."""
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
