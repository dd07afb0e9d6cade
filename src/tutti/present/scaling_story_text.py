"""A scaling simulation as people and programs read it.

Contract: pure. The text has the picture first, then a part for each round, then what it came to; the data has the same
with every pod by name.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from tutti.app.scaling_story import Outcome, Round
from tutti.market.money import HOURS_A_MONTH, NANO, a_month, dollars
from tutti.present.plan_table import split
from tutti.present.tables import NONE, counted, table

_SHOWN = 20
Data = dict[str, Any]


def picture_text(outcome: Outcome) -> str:
    """What the virtual cluster holds, and who got a node at once."""
    numbers = outcome.numbers
    classes = f"{numbers.priority_classes:,} priority class{'' if numbers.priority_classes == 1 else 'es'}"
    lines = [
        f"virtual cluster: {counted(numbers.namespaces, 'namespace')}, {classes}, "
        f"{counted(numbers.nodes, 'node')}, {counted(numbers.pods, 'pod')} ({numbers.bound:,} on nodes)"
    ]
    if outcome.placed:
        lines.append(f"{_get(len(outcome.placed))} a node that is there:\n{_placements(outcome.placed)}")
    lines.append(f"{counted(outcome.waiting, 'pod')} {'waits' if outcome.waiting == 1 else 'wait'} for new nodes")
    return "\n".join(lines)


def round_text(played: Round) -> str:
    """One round."""
    took = f" ({played.answer.run_time})" if played.answer.run_time else ""
    title = f"round {played.number}{took}: "
    if not played.joined:
        return f"{title}the recommender buys nothing"
    counts = Counter((each.offering.pool, each.offering.zone, each.offering.instance_type) for each in played.joined)
    rows = [(pool, zone or NONE, kind or NONE, f"+{number:,}") for (pool, zone, kind), number in counts.items()]
    wait = f"{counted(played.waiting, 'pod')} {'waits' if played.waiting == 1 else 'wait'}"
    lines = [f"{title}{counted(len(played.joined), 'node')} {'joins' if len(played.joined) == 1 else 'join'}"]
    lines.append(table(("POOL", "ZONE", "TYPE", "NODES"), rows))
    if played.placed:
        lines.append(f"{_get(len(played.placed))} a node, {wait}:\n{_placements(played.placed)}")
    else:
        lines.append(f"no pod gets a node, {wait}")
    return "\n".join(lines)


def end_text(outcome: Outcome) -> str:
    """What it came to."""
    lines = list(_sums(outcome))
    if outcome.left:
        stay = "stays" if len(outcome.left) == 1 else "stay"
        rows = [(*split(each.pod), each.message) for each in outcome.left[:_SHOWN]]
        lines.append(
            f"{counted(len(outcome.left), 'pod')} {stay} pending:\n{table(('NAMESPACE', 'NAME', 'REASON'), rows)}"
        )
        if len(outcome.left) > _SHOWN:
            lines.append(f"... and {len(outcome.left) - _SHOWN:,} more (-o json names all)")
    return "\n".join(lines)


def _sums(outcome: Outcome) -> Iterator[str]:
    joined = outcome.joined
    got = sum(len(each.placed) for each in outcome.rounds)
    yield f"{counted(got, 'pod')} on {counted(len(joined), 'new node')} in {counted(len(outcome.rounds), 'round')}"
    if joined:
        cost = outcome.cost
        told = (
            "unknown" if cost is None else f"${cost * HOURS_A_MONTH / NANO:,.2f} a month (${cost / NANO:,.4f} an hour)"
        )
        yield f"cost {told}"
    if outcome.stopped:
        yield f"stopped after {counted(len(outcome.rounds), 'round')} (--rounds)"
    gone = {name for each in outcome.rounds for name in each.answer.recommendation.scale_down}
    if gone:
        yield f"{counted(len(gone), 'node')} could go, the recommender says: {', '.join(sorted(gone)[:5])}" + (
            " ..." if len(gone) > 5 else ""
        )
    if outcome.not_considered:
        causes = Counter(each.cause for each in outcome.not_considered)
        told = ", ".join(f"{number:,} {cause}" for cause, number in causes.most_common())
        yield f"{len(outcome.not_considered):,} not considered: {told}"


def _get(number: int) -> str:
    return f"{counted(number, 'pod')} {'gets' if number == 1 else 'get'}"


def _placements(placed: Mapping[str, str]) -> str:
    rows = [(*split(pod), node) for pod, node in list(placed.items())[:_SHOWN]]
    more = f"\n... and {len(placed) - _SHOWN:,} more (-o json names all)" if len(placed) > _SHOWN else ""
    return table(("NAMESPACE", "NAME", "NODE"), rows) + more


# Data -----------------------------------------------------------------------------------------------------------------


def outcome_data(outcome: Outcome, currency: str) -> Data:
    """The whole story as data."""
    numbers, cost = outcome.numbers, outcome.cost
    money = None if cost is None else {"perHour": dollars(cost), "perMonth": a_month(cost), "currency": currency}
    return {
        "cluster": {
            "namespaces": numbers.namespaces,
            "priorityClasses": numbers.priority_classes,
            "nodes": numbers.nodes,
            "pods": numbers.pods,
            "bound": numbers.bound,
        },
        "placed": _pairs(outcome.placed),
        "waiting": outcome.waiting,
        "rounds": [_round(each) for each in outcome.rounds],
        "cost": money,
        "pending": [{"pod": each.pod, "reason": each.message} for each in outcome.left],
        "notConsidered": [{"pod": each.pod, "cause": each.cause} for each in outcome.not_considered],
        "stopped": outcome.stopped,
    }


def _pairs(placed: Mapping[str, str]) -> list[Data]:
    return [{"pod": pod, "node": node} for pod, node in placed.items()]


def _round(played: Round) -> Data:
    nodes = [
        {
            "name": each.name,
            "nodePool": each.offering.pool,
            "zone": each.offering.zone,
            "instanceType": each.offering.instance_type,
            "pricePerHour": None if each.offering.price is None else dollars(each.offering.price),
        }
        for each in played.joined
    ]
    return {
        "round": played.number,
        "runTime": played.answer.run_time,
        "nodes": nodes,
        "scaleDown": list(played.answer.recommendation.scale_down),
        "placed": _pairs(played.placed),
        "waiting": played.waiting,
    }
