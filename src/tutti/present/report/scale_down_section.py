"""The scale-down section: removed nodes, the saving, the steps, and the reasons why other nodes stay.

Contract: pure.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tutti.market.money import NANO
from tutti.present.recommendation_text import monthly_text
from tutti.present.report.markup import Child, Markup, el, joined
from tutti.present.report.report_tables import data_table, names_text, unbroken
from tutti.present.scale_down_comparison_text import OURS, THEIRS, hourly_text, node_rows, remarks, totals
from tutti.present.scale_down_text import duration_text
from tutti.present.tables import counted
from tutti.recommend.down.compare_cluster_autoscaler import PeerScaleDown
from tutti.recommend.records.down_plan import DownPlan, Removal, ScaleDownStep, StayingNode
from tutti.recommend.records.new_nodes import ScaleUp

_MAX_STEPS, _MAX_ROWS = 60, 200


def scale_down_section(plan: DownPlan, theirs: PeerScaleDown | None = None) -> Markup:
    """Return the whole section; `theirs` is Cluster Autoscaler's scale-down, if it was computed."""
    parts: list[Child] = [el("p", _sentence(plan), class_="lead")]
    if plan.removals:
        columns = ("Node", "Pool", "Zone", "Type", "Because", "#Used", "#Pods move", "#After", "#Saves a month")
        going = data_table(columns, [_removal(each) for each in plan.removals[:_MAX_ROWS]])
        parts += (el("h3", "Nodes that can go"), going, _more(len(plan.removals) - _MAX_ROWS, "node"))
    if plan.scale_up:
        heads = ("Pool", "Zone", "Type", "Capacity", "#Nodes", "#Price a month")
        bought = data_table(heads, [_bought(each) for each in plan.scale_up])
        parts += (el("h3", "Bought in their place"), bought)
    if plan.steps:
        steps = [el("li", *_step(each)) for each in plan.steps[:_MAX_STEPS]]
        parts += (el("h3", "Steps"), el("ol", *steps, class_="steps"), _more(len(plan.steps) - _MAX_STEPS, "step"))
    if plan.staying_nodes:
        kinds = _stays(plan.staying_nodes)
        stays = data_table(("#Nodes", "Reason", "Why", "Which"), kinds[:_MAX_ROWS])
        parts += (el("h3", "Nodes that stay"), stays, _more(len(kinds) - _MAX_ROWS, "reason"))
    if theirs is not None:
        parts += _comparison(plan, theirs)
    return joined((*parts, *(el("p", note, class_="quiet") for note in plan.notes)))


def _comparison(plan: DownPlan, theirs: PeerScaleDown) -> Iterator[Child]:
    yield el("h3", "Comparison with Cluster Autoscaler")
    heads = ("Scale-down by", "#Nodes", "#Saves an hour", "#Saves a month", "#Vs ours", "Agrees")
    yield data_table(heads, totals(plan, theirs))
    if differing := [each for each in node_rows(plan, theirs) if each.because]:
        columns = ("Node", "Pool", "Goes with", "#Saves an hour", "Because")
        rows = [
            (each.node, each.pool, OURS if each.theirs is None else THEIRS, hourly_text(each.price), each.because)
            for each in differing
        ]
        yield from (el("p", "Nodes that only one of the two removes:"), data_table(columns, rows))
    lines = [el("li", line.replace("AGREES", "Agrees")) for line in remarks(plan, theirs)]
    yield el("ul", *lines, class_="remarks")


def _more(number: int, noun: str) -> Child:
    return el("p", f"and {counted(number, noun)} more", class_="more") if number > 0 else None


def _sentence(plan: DownPlan) -> str:
    if not plan.removals:
        return "No node can go."
    moves = f"{counted(plan.moves, 'pod')} {'moves' if plan.moves == 1 else 'move'}"
    sentence = f"{counted(len(plan.removals), 'node')} can go, {moves}"
    if plan.saving is None:
        return f"{sentence}."
    sentence += f": {monthly_text(plan.saving)} a month less"
    if plan.before is not None and plan.after is not None:
        sentence += f", {monthly_text(plan.after)} instead of {monthly_text(plan.before)}"
        sentence += " with the purchase" if plan.purchase else ""
    if plan.payback is not None and plan.churn:
        after = duration_text(round(plan.payback * 3600))
        sentence += f"; the moves cost ${plan.churn / NANO:,.2f} once, paid back after {after}"
    return f"{sentence}."


def _removal(each: Removal) -> Sequence[Child]:
    return (
        each.node, each.pool, each.zone or "–", each.instance_type or "–", str(each.why),
        f"{100 * each.utilization:.0f} %", f"{each.moves:,}", duration_text(each.wait), monthly_text(each.price),
    )  # fmt: skip


def _bought(each: ScaleUp) -> Sequence[Child]:
    price = monthly_text(each.price)
    return each.pool, each.zone or "–", each.instance_type, each.capacity_type, f"+{each.increment:,}", price


def _step(step: ScaleDownStep) -> Iterator[Child]:
    """Yield the actions of a step: added nodes, moved pods with their targets, removed nodes."""
    if step.adds:
        yield from ("add ", names_text(step.adds))
    if step.moves:
        yield f"{'; ' if step.adds else ''}move {counted(len(step.moves), 'pod')}: "
        yield names_text([f"{each.pod} → {each.target}" for each in step.moves])
    if step.removes:
        yield from ("; remove " if step.adds or step.moves else "remove ", names_text(step.removes))


def _stays(stays: Sequence[StayingNode]) -> list[Sequence[Child]]:
    """Return the nodes that stay, with a row for each reason."""
    groups: dict[tuple[str, str], list[str]] = {}
    for each in stays:
        groups.setdefault((each.reason, each.message), []).append(each.node)
    return [(f"{len(nodes):,}", unbroken(reason), why, names_text(nodes)) for (reason, why), nodes in groups.items()]
