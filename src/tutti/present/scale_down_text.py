"""A scale-down as text: removed nodes, their replacements, the saving, and the reasons why other nodes stay.

Contract: pure text, parts separated by an empty line. `wide` lists every step and every node that stays; otherwise
nodes that stay for the same kind of reason share a line.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from tutti.market.price_book import ON_DEMAND
from tutti.present.recommendation_text import monthly_text, scale_ups_table
from tutti.present.tables import NONE, counted, table, without_columns

if TYPE_CHECKING:
    from tutti.recommend.records.down_plan import DownPlan, ScaleDownStep, StayingNode

_HEADERS = ("NODE", "POOL", "ZONE", "TYPE", "CAPACITY", "USED", "WHY", "MOVES", "AFTER", "SAVES/MONTH")

_DEFAULT_GRACE = 30
"""Seconds; the summary mentions grace periods only if one is longer than this, the Kubernetes default."""


def scale_down_text(plan: DownPlan, *, wide: bool) -> str:
    """Return the whole plan."""
    parts = [_removals(plan), scale_ups_table(plan.scale_up, "INSTEAD FROM POOL"), "\n".join(_summary(plan))]
    parts += [_stays(plan.staying_nodes, wide=wide), _steps(plan.steps) if wide else ""]
    return "\n\n".join(filter(None, parts))


def _removals(plan: DownPlan) -> str:
    rows = [
        (
            each.node,
            each.pool,
            each.zone or NONE,
            each.instance_type or NONE,
            each.capacity_type,
            f"{each.utilization:.0%}",
            each.why,
            each.moves,
            duration_text(each.wait),
            monthly_text(each.price),
        )
        for each in plan.removals
    ]
    plain = all(each.capacity_type == ON_DEMAND for each in plan.removals)
    return without_columns(_HEADERS, rows, ("CAPACITY",) if plain else ()) if rows else ""


def _summary(plan: DownPlan) -> Iterator[str]:
    whole = len(plan.removals) + len(plan.staying_nodes)
    if not plan.removals:
        yield f"none of {counted(whole, 'node')} can go"
        return
    instead = f" for {counted(len(plan.nodes), 'new one')}" if plan.nodes else ""
    moves = f"{counted(plan.moves, 'pod')} {'moves' if plan.moves == 1 else 'move'}" if plan.moves else "no pod moves"
    yield f"{len(plan.removals):,} of {counted(whole, 'node')} can go{instead}: {moves}, in {_step_count(plan.steps)}"
    if any(step.grace > _DEFAULT_GRACE for step in plan.steps):
        yield f"steps wait for pods to terminate, up to {duration_text(plan.grace)}"
    if plan.saving is None or plan.before is None or plan.after is None:
        yield "the saving is not known: some of these nodes have no known price"
        return
    share = f" ({plan.saving / plan.before:.0%})" if plan.before else ""
    then = "with the purchase, " if plan.purchase else ""
    bill = f"{then}the bill goes from {monthly_text(plan.before)} to {monthly_text(plan.after)}"
    yield f"saves {monthly_text(plan.saving)} a month{share}: {bill}"
    if plan.payback is not None and plan.moves:
        yield f"moving has paid for itself after {duration_text(round(plan.payback * 3600))}"


def _step_count(steps: Sequence[ScaleDownStep]) -> str:
    return counted(len(steps), "step")


def _stays(stays: Sequence[StayingNode], *, wide: bool) -> str:
    if not stays:
        return ""
    if wide:
        rows = [
            (each.node, each.pool or NONE, "" if each.utilization is None else f"{each.utilization:.0%}", each.message)
            for each in stays
        ]
        return table(("STAYS", "POOL", "USED", "BECAUSE"), rows)
    kinds: dict[str, list[StayingNode]] = {}
    for each in stays:
        kinds.setdefault(each.reason, []).append(each)
    lines = [
        (len(alike), reason, alike[0].node, alike[0].message)
        for reason, alike in sorted(kinds.items(), key=lambda pair: (-len(pair[1]), pair[0]))
    ]
    return table(("STAY", "REASON", "EXAMPLE", "BECAUSE"), lines)


def _steps(steps: Sequence[ScaleDownStep]) -> str:
    rows = []
    for number, step in enumerate(steps, start=1):
        rows += [(number, "add", name, "") for name in step.adds]
        rows += [(number, "move", f"pod/{move.pod}", f"{move.source} -> {move.target}") for move in step.moves]
        rows += [(number, "remove", f"node/{name}", "") for name in step.removes]
    return table(("STEP", "DOES", "WHAT", "WHERE"), rows) if rows else ""


def duration_text(seconds: int) -> str:
    """Return a duration in its two largest units (10m, 1h30m, 2d4h), or ``now`` for 0."""
    if seconds <= 0:
        return "now"
    parts = []
    for name, size in (("d", 86_400), ("h", 3_600), ("m", 60), ("s", 1)):
        number, seconds = divmod(seconds, size)
        if number:
            parts.append(f"{number}{name}")
    return "".join(parts[:2])
