"""A scaling simulation as people and programs read it.

Contract: pure. The text has the cluster at the start, a part for each round, and a summary; the data has the same with
every pod by name.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from tutti.market.money import HOURS_A_MONTH, NANO, a_month, dollars
from tutti.present.plan_rows import split_key
from tutti.present.tables import NONE, counted, table
from tutti.recommend.records.simulation import Simulation, SimulationRound, SimulationStart

_SHOWN = 20
Data = dict[str, Any]


def simulation_text(simulation: Simulation) -> str:
    """The start, every round, and the summary."""
    rounds = map(_round_text, simulation.rounds)
    return "\n\n".join((_start_text(simulation.start), *rounds, _end_text(simulation)))


def _start_text(start: SimulationStart) -> str:
    """What the virtual cluster holds, and which pods get a node at once."""
    classes = f"{start.priority_classes:,} priority class{'' if start.priority_classes == 1 else 'es'}"
    lines = [
        f"virtual cluster: {counted(start.namespaces, 'namespace')}, {classes}, "
        f"{counted(start.nodes, 'node')}, {counted(start.pods, 'pod')} ({start.bound:,} on nodes)"
    ]
    if start.placed:
        lines.append(f"{_get(len(start.placed))} a node that is there:\n{_placements(start.placed)}")
    lines.append(f"{counted(start.waiting, 'pod')} {'waits' if start.waiting == 1 else 'wait'} for new nodes")
    return "\n".join(lines)


def _round_text(played: SimulationRound) -> str:
    """One round."""
    took = f" ({played.run_time})" if played.run_time else ""
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


def _end_text(simulation: Simulation) -> str:
    """The sums, and the pods that stay pending."""
    lines = list(_sums(simulation))
    pending = simulation.unschedulable
    if pending:
        stay = "stays" if len(pending) == 1 else "stay"
        rows = [(*split_key(each.pod), each.message) for each in pending[:_SHOWN]]
        listed = table(("NAMESPACE", "NAME", "REASON"), rows)
        lines.append(f"{counted(len(pending), 'pod')} {stay} pending:\n{listed}")
        if len(pending) > _SHOWN:
            lines.append(f"... and {len(pending) - _SHOWN:,} more (-o json names all)")
    return "\n".join(lines)


def _sums(simulation: Simulation) -> Iterator[str]:
    joined = simulation.joined
    got = sum(len(each.placed) for each in simulation.rounds)
    yield f"{counted(got, 'pod')} on {counted(len(joined), 'new node')} in {counted(len(simulation.rounds), 'round')}"
    if joined:
        cost = simulation.cost
        told = (
            "unknown" if cost is None else f"${cost * HOURS_A_MONTH / NANO:,.2f} a month (${cost / NANO:,.4f} an hour)"
        )
        yield f"cost {told}"
    if simulation.is_cut:
        yield f"stopped after {counted(len(simulation.rounds), 'round')} (--rounds)"
    gone = {name for each in simulation.rounds for name in each.scale_down}
    if gone:
        yield f"{counted(len(gone), 'node')} could go, the recommender says: {', '.join(sorted(gone)[:5])}" + (
            " ..." if len(gone) > 5 else ""
        )
    if simulation.not_considered:
        causes = Counter(each.cause for each in simulation.not_considered)
        told = ", ".join(f"{number:,} {cause}" for cause, number in causes.most_common())
        yield f"{len(simulation.not_considered):,} not considered: {told}"


def _get(number: int) -> str:
    return f"{counted(number, 'pod')} {'gets' if number == 1 else 'get'}"


def _placements(placed: Mapping[str, str]) -> str:
    rows = [(*split_key(pod), node) for pod, node in list(placed.items())[:_SHOWN]]
    more = f"\n... and {len(placed) - _SHOWN:,} more (-o json names all)" if len(placed) > _SHOWN else ""
    return table(("NAMESPACE", "NAME", "NODE"), rows) + more


# Data -----------------------------------------------------------------------------------------------------------------


def simulation_data(simulation: Simulation, currency: str) -> Data:
    """The whole simulation as data."""
    start, cost = simulation.start, simulation.cost
    money = None if cost is None else {"perHour": dollars(cost), "perMonth": a_month(cost), "currency": currency}
    return {
        "cluster": {
            "namespaces": start.namespaces,
            "priorityClasses": start.priority_classes,
            "nodes": start.nodes,
            "pods": start.pods,
            "bound": start.bound,
        },
        "placed": _pairs(start.placed),
        "waiting": start.waiting,
        "rounds": [_round(each) for each in simulation.rounds],
        "cost": money,
        "pending": [{"pod": each.pod, "reason": each.message} for each in simulation.unschedulable],
        "notConsidered": [{"pod": each.pod, "cause": each.cause} for each in simulation.not_considered],
        "stopped": simulation.is_cut,
    }


def _pairs(placed: Mapping[str, str]) -> list[Data]:
    return [{"pod": pod, "node": node} for pod, node in placed.items()]


def _round(played: SimulationRound) -> Data:
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
        "runTime": played.run_time,
        "nodes": nodes,
        "scaleDown": list(played.scale_down),
        "placed": _pairs(played.placed),
        "waiting": played.waiting,
    }
