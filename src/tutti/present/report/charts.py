"""Bar charts: the comparison with peers, and the cost by pool.

Contract: pure. Every bar is an SVG image that stretches with the page. Names and numbers are text next to the bar, so
that they stay readable on a phone and can be selected.
"""

from __future__ import annotations

from collections.abc import Sequence

from tutti.present.comparison_text import (
    NAMES,
    agreement_text,
    bound_label,
    buys_text,
    change_text,
    holds_text,
    remarks,
)
from tutti.present.recommendation_text import monthly_text
from tutti.present.report.markup import Markup, el, joined
from tutti.present.report.report_tables import data_table
from tutti.present.tables import counted
from tutti.recommend.compare import OURS, ComparedPurchase
from tutti.recommend.records.recommendation import Recommendation
from tutti.recommend.records.request import Objective

_COLUMNS = ("Purchase by", "#Nodes", "#Cost a month", "#Vs ours", "#Placed", "#Left", "Holds", "Agrees", "Buys")
_NONE = "–"


def comparison_section(compared: Sequence[ComparedPurchase], answer: Recommendation) -> Markup:
    """Return the bars, the table and the remarks."""
    by_nodes = answer.objective == Objective.NODES or any(each.cost is None for each in compared if not each.problem)
    ours = compared[0]
    most = max((_measure(each, by_nodes) for each in compared), default=0) or 1
    bound = answer.bound if by_nodes == (answer.objective == Objective.NODES) else None
    bars = [_bar_row(each, ours, most=most, bound=bound, by_nodes=by_nodes) for each in compared]
    label = bound_label(answer)
    meaning = label.replace("fewer", "fewer nodes")
    mark = el("p", el("span", class_="mark"), f"{meaning} this", class_="key")
    rows = [_row(each, ours) for each in compared]
    if bound and by_nodes:
        rows.append([label, f"{bound:,}", *("–",) * 7])
    elif bound:
        less = change_text(bound / answer.cost - 1 if answer.cost else None)
        rows.append([label, "–", monthly_text(bound), less, *("–",) * 5])
    notes = el("ul", *(el("li", _with_page_columns(line)) for line in remarks(compared, answer)), class_="remarks")
    is_bought = any(each.nodes for each in compared)
    chart = el("div", *bars, class_="bars") if is_bought else el("p", "No purchase has a node.", class_="quiet")
    return joined((chart, mark if bound and is_bought else None, data_table(_COLUMNS, rows), notes))


def _with_page_columns(line: str) -> str:
    """Return a remark with the column names of this page."""
    return line.replace("HOLDS", "Holds").replace("AGREES", "Agrees")


def _measure(each: ComparedPurchase, by_nodes: bool) -> int:
    return each.nodes if by_nodes else each.cost or 0


def _bar_row(each: ComparedPurchase, ours: ComparedPurchase, *, most: int, bound: int | None, by_nodes: bool) -> Markup:
    name = el("span", NAMES[each.who], class_="who")
    if each.problem:
        return el("div", name, el("span", each.problem, class_="problem"), class_="bar-row")
    short = ours.real - each.real
    value = counted(each.nodes, "node") if by_nodes else monthly_text(each.cost)
    change = None if each.who == OURS or by_nodes else el("small", change_text(each.change))
    missing = el("small", f"{counted(short, 'pod')} fewer placed", class_="short") if short > 0 else None
    kind = "ours" if each.who == OURS else "short" if short > 0 else "peer"
    bar = _bar(_measure(each, by_nodes) / most, kind, None if bound is None else bound / most)
    return el("div", name, bar, el("span", el("b", value), " ", change, " ", missing, class_="what"), class_="bar-row")


def _bar(share: float, kind: str, mark: float | None = None) -> Markup:
    """Return a bar that fills `share` of the width, with a line at the share `mark`."""
    line = None if mark is None else el("rect", x=100 * mark - 0.2, y=0, width=0.4, height=10, class_="mark")
    fill = el("rect", x=0, y=1, width=100 * share, height=8, class_=kind)
    return el("svg", fill, line, viewBox="0 0 100 10", preserveAspectRatio="none", class_="bar", aria_hidden="true")


def _row(each: ComparedPurchase, ours: ComparedPurchase) -> list[str | Markup]:
    name = NAMES[each.who]
    if each.problem:
        return [name, *(_NONE,) * 7, each.problem]
    return [
        el("b", name) if each.who == OURS else name,
        f"{each.nodes:,}",
        monthly_text(each.cost),
        _NONE if each is ours else change_text(each.change),
        f"{each.placed:,}",
        f"{each.left:,}",
        holds_text(each),
        _NONE if each is ours else agreement_text(each.who),
        buys_text(each),
    ]


# Cost -----------------------------------------------------------------------------------------------------------------


def cost_section(answer: Recommendation) -> Markup:
    """Return a bar for each pool, and the table of scale-ups."""
    totals: dict[str, int] = {}
    for each in answer.scale_up:
        totals[each.pool] = totals.get(each.pool, 0) + (each.price or 0) * each.increment
    most = max(totals.values(), default=0)
    bars = [
        el("div", el("span", pool, class_="who"), _bar(cost / most, "ours"),
           el("span", el("b", monthly_text(cost)), class_="what"), class_="bar-row")
        for pool, cost in sorted(totals.items(), key=lambda item: (-item[1], item[0]))
        if most and len(totals) > 1
    ]  # fmt: skip
    rows = [
        [
            each.pool, each.zone or "–", each.instance_type or "–", each.capacity_type, f"+{each.increment:,}",
            monthly_text(each.price), monthly_text(None if each.price is None else each.price * each.increment),
        ]
        for each in answer.scale_up
    ]  # fmt: skip
    columns = ("Pool", "Zone", "Type", "Capacity", "#Nodes", "#Price a month", "#Cost a month")
    return joined((el("div", *bars, class_="bars"), data_table(columns, rows)))
