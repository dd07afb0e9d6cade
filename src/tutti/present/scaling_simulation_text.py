"""A scaling simulation as text and as data.

Contract: pure. The text has the cluster at the start, a part for each round, and a summary. The data has the same
content, with the name of every pod.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from tutti.market.money import HOURS_A_MONTH, NANO, a_month, dollars
from tutti.present.plan_rows import split_key
from tutti.present.tables import NONE, counted, table
from tutti.recommend.records.simulation import Simulation, SimulationRound, SimulationStart

_MAX_ROWS = 20
Data = dict[str, Any]


def simulation_text(simulation: Simulation) -> str:
    """Return the start, every round, and the summary."""
    rounds = map(_round_text, simulation.rounds)
    return "\n\n".join((_start_text(simulation.start), *rounds, _end_text(simulation)))


def _start_text(start: SimulationStart) -> str:
    """Return the content of the virtual cluster, and the pods that get an existing node."""
    classes = f"{start.priority_classes:,} priority class{'' if start.priority_classes == 1 else 'es'}"
    lines = [
        f"virtual cluster: {counted(start.namespaces, 'namespace')}, {classes}, "
        f"{counted(start.nodes, 'node')}, {counted(start.pods, 'pod')} ({start.bound:,} on nodes)"
    ]
    if start.placed:
        lines.append(f"{_pods_get(len(start.placed))} an existing node:\n{_placements(start.placed)}")
    lines.append(f"{counted(start.waiting, 'pod')} {'waits' if start.waiting == 1 else 'wait'} for new nodes")
    return "\n".join(lines)


def _round_text(simulated: SimulationRound) -> str:
    """Return one round: bought nodes and placed pods."""
    took = f" ({simulated.run_time})" if simulated.run_time else ""
    title = f"round {simulated.number}{took}: "
    if not simulated.joined:
        return f"{title}the recommender buys nothing"
    counts = Counter((each.offering.pool, each.offering.zone, each.offering.instance_type) for each in simulated.joined)
    rows = [(pool, zone or NONE, kind or NONE, f"+{number:,}") for (pool, zone, kind), number in counts.items()]
    wait = f"{counted(simulated.waiting, 'pod')} {'waits' if simulated.waiting == 1 else 'wait'}"
    lines = [f"{title}{counted(len(simulated.joined), 'node')} {'joins' if len(simulated.joined) == 1 else 'join'}"]
    lines.append(table(("POOL", "ZONE", "TYPE", "NODES"), rows))
    if simulated.placed:
        lines.append(f"{_pods_get(len(simulated.placed))} a node, {wait}:\n{_placements(simulated.placed)}")
    else:
        lines.append(f"no pod gets a node, {wait}")
    return "\n".join(lines)


def _end_text(simulation: Simulation) -> str:
    """Return the totals, and the pods that stay pending."""
    lines = list(_totals(simulation))
    pending = simulation.unschedulable
    if pending:
        stay = "stays" if len(pending) == 1 else "stay"
        rows = [(*split_key(each.pod), each.message) for each in pending[:_MAX_ROWS]]
        listed = table(("NAMESPACE", "NAME", "REASON"), rows)
        lines.append(f"{counted(len(pending), 'pod')} {stay} pending:\n{listed}")
        if len(pending) > _MAX_ROWS:
            lines.append(f"... and {len(pending) - _MAX_ROWS:,} more (-o json names all)")
    return "\n".join(lines)


def _totals(simulation: Simulation) -> Iterator[str]:
    joined = simulation.joined
    placed = sum(len(each.placed) for each in simulation.rounds)
    rounds = counted(len(simulation.rounds), "round")
    yield f"{counted(placed, 'pod')} on {counted(len(joined), 'new node')} in {rounds}"
    if joined:
        cost = simulation.cost
        text = (
            "unknown" if cost is None else f"${cost * HOURS_A_MONTH / NANO:,.2f} a month (${cost / NANO:,.4f} an hour)"
        )
        yield f"cost {text}"
    if simulation.is_cut:
        yield f"stopped after {rounds} (--rounds)"
    removable = {name for each in simulation.rounds for name in each.scale_down}
    if removable:
        names = ", ".join(sorted(removable)[:5]) + (" ..." if len(removable) > 5 else "")
        yield f"{counted(len(removable), 'node')} could be removed, according to the recommender: {names}"
    if simulation.not_considered:
        causes = Counter(each.cause for each in simulation.not_considered)
        text = ", ".join(f"{number:,} {cause}" for cause, number in causes.most_common())
        yield f"{len(simulation.not_considered):,} not considered: {text}"


def _pods_get(number: int) -> str:
    return f"{counted(number, 'pod')} {'gets' if number == 1 else 'get'}"


def _placements(placed: Mapping[str, str]) -> str:
    rows = [(*split_key(pod), node) for pod, node in list(placed.items())[:_MAX_ROWS]]
    more = f"\n... and {len(placed) - _MAX_ROWS:,} more (-o json names all)" if len(placed) > _MAX_ROWS else ""
    return table(("NAMESPACE", "NAME", "NODE"), rows) + more


# Data -----------------------------------------------------------------------------------------------------------------


def simulation_data(simulation: Simulation, currency: str) -> Data:
    """Return the whole simulation as data for programs."""
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
        "placed": _placement_data(start.placed),
        "waiting": start.waiting,
        "rounds": [_round_data(each) for each in simulation.rounds],
        "cost": money,
        "pending": [{"pod": each.pod, "reason": each.message} for each in simulation.unschedulable],
        "notConsidered": [{"pod": each.pod, "cause": each.cause} for each in simulation.not_considered],
        "stopped": simulation.is_cut,
    }


def _placement_data(placed: Mapping[str, str]) -> list[Data]:
    return [{"pod": pod, "node": node} for pod, node in placed.items()]


def _round_data(simulated: SimulationRound) -> Data:
    nodes = [
        {
            "name": each.name,
            "nodePool": each.offering.pool,
            "zone": each.offering.zone,
            "instanceType": each.offering.instance_type,
            "pricePerHour": None if each.offering.price is None else dollars(each.offering.price),
        }
        for each in simulated.joined
    ]
    return {
        "round": simulated.number,
        "runTime": simulated.run_time,
        "nodes": nodes,
        "scaleDown": list(simulated.scale_down),
        "placed": _placement_data(simulated.placed),
        "waiting": simulated.waiting,
    }
