"""The top of the page: the purchase, its cost, its lower bound, and the number of placed pods.

Contract: pure. A headline and a few numbers, with the same words as the summary of `recommendation_text`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tutti.market.money import NANO
from tutti.present.recommendation_text import bound_statement, monthly_text
from tutti.present.report.markup import Markup, el
from tutti.present.tables import counted
from tutti.recommend.compare import ComparedPurchase
from tutti.recommend.records.down_plan import DownPlan
from tutti.recommend.records.recommendation import Recommendation
from tutti.recommend.records.request import Objective

_TOLERANCE = 1e-6
"""A smaller gap is a rounding error of the solver."""


def headline(answer: Recommendation, compared: Sequence[ComparedPurchase], sources: Sequence[str]) -> Markup:
    """Return the header of the page."""
    source = el("p", "from ", *_source_names(sources), class_="source") if sources else None
    return el(
        "header",
        el("p", "Tutti · what to buy and what to give back", class_="eyebrow"),
        el("h1", title_of(answer)),
        el("p", *_sentences(answer), class_="lead"),
        el("dl", *_cards(answer, compared), class_="cards"),
        source,
    )


def title_of(answer: Recommendation) -> str:
    """Return the plan in one line."""
    down = answer.down
    if not answer.nodes and down is not None and down.removals:
        less = f": {monthly_text(down.saving)} a month less" if down.saving else ""
        instead = f" for {counted(len(down.nodes), 'new one')}" if down.nodes else ""
        return f"Give back {counted(len(down.removals), 'node')}{instead}{less}"
    if not answer.pods:
        return "No pod waits for a node"
    if not answer.nodes:
        return "Nothing has to be bought" if answer.placed else "Nothing that can be bought helps"
    cost = "" if answer.cost is None else f" for {monthly_text(answer.cost)} a month"
    return f"Buy {counted(len(answer.nodes), 'node')}{cost}"


def bound_sentence(answer: Recommendation) -> str:
    """Return a sentence on how much better a plan could be; empty if nothing is bought."""
    if not answer.nodes:
        return ""
    by_nodes = answer.objective == Objective.NODES
    if answer.bound is None or (not answer.bound and (by_nodes or answer.cost)):
        return "How much better a plan could be is not known."
    if answer.gap is None or answer.gap < _TOLERANCE:
        return f"Proved: {bound_statement(answer, 'has fewer nodes' if by_nodes else 'costs less')}."
    least = (
        f"has fewer than {counted(answer.bound, 'node')}"
        if by_nodes
        else f"costs less than {monthly_text(answer.bound)}"
    )
    statement = bound_statement(answer, least)
    return f"{statement[0].upper()}{statement[1:]}."


def _sentences(answer: Recommendation) -> Iterator[str]:
    if answer.pods:
        verb = "gets" if answer.placed == 1 else "get"
        yield f"{answer.placed:,} of {counted(answer.pods, 'pending pod')} {verb} a node. "
    if sentence := bound_sentence(answer):
        yield f"{sentence} "
    if answer.minimal and answer.nodes:
        yield "Every new node is needed."


def _cards(answer: Recommendation, compared: Sequence[ComparedPurchase]) -> Iterator[Markup]:
    if answer.pods:
        yield from _purchase_cards(answer)
    if compared and (card := _best_peer(answer, compared[1:])) is not None:
        yield card
    down = answer.down
    if down is not None and down.before is not None and down.after is not None:
        if down.purchase:
            yield _card(
                "Bill with the purchase", monthly_text(down.before), f"{monthly_text(down.purchase)} of it is bought"
            )
        else:
            yield _card("Bill now", monthly_text(down.before), "of the existing nodes")
        yield _card("Bill afterwards", monthly_text(down.after), _changes(down))


def _purchase_cards(answer: Recommendation) -> Iterator[Markup]:
    on_new = sum(len(node.pods) for node in answer.nodes)
    if answer.cost is None:
        yield _card("Cost", "unknown", "some price is not known")
    else:
        yield _card("Cost a month", monthly_text(answer.cost), f"${answer.cost / NANO:,.4f} an hour")
    if answer.bound is not None and answer.nodes:
        by_nodes = answer.objective == Objective.NODES
        least = counted(answer.bound, "node") if by_nodes else monthly_text(answer.bound)
        gap = "no gap: proved" if (answer.gap or 0) < _TOLERANCE else f"gap {100 * (answer.gap or 0):.2f} %"
        yield _card("Lower bound", least, gap)
    yield _card("Pods with a node", f"{answer.placed:,} of {answer.pods:,}", f"{on_new:,} on new nodes")
    yield _card("New nodes", f"{len(answer.nodes):,}", _pools(answer))


def _changes(down: DownPlan) -> str:
    """Return how many nodes are removed and added."""
    if not down.removals:
        return "no node can go"
    come = f", {len(down.nodes):,} {'comes' if len(down.nodes) == 1 else 'come'}" if down.nodes else ""
    return f"{counted(len(down.removals), 'node')} {'goes' if len(down.removals) == 1 else 'go'}{come}"


def _pools(answer: Recommendation) -> str:
    pools = len({each.pool for each in answer.scale_up})
    return f"from {counted(pools, 'pool')}" if pools else "none needed"


def _best_peer(answer: Recommendation, peers: Sequence[ComparedPurchase]) -> Markup | None:
    """Return a card with the cheapest peer whose purchase places as many pods, or None."""
    alike = [each for each in peers if not each.problem and each.cost is not None and each.real >= answer.placed]
    best = min((each.cost for each in alike if each.cost is not None), default=None)
    if best is None or answer.cost is None or not answer.nodes:
        return None
    if best == answer.cost:
        return _card("Best peer", monthly_text(best), "the same cost")
    more = 100 * (best / answer.cost - 1) if answer.cost else 0.0
    return _card("Best peer", monthly_text(best), f"{more:+.1f} % for as many pods")


def _card(name: str, value: str, note: str) -> Markup:
    return el("div", el("dt", name), el("dd", value, class_="value"), el("dd", note, class_="note"))


def _source_names(sources: Sequence[str]) -> Iterator[Markup | str]:
    for place, source in enumerate(sources):
        if place:
            yield ", "
        yield el("code", source)
