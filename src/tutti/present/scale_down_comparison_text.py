"""The comparison of Tutti's scale-down with Cluster Autoscaler's, as text and as data.

Contract: pure. The first table has a line for each program. The second has a line for every node that a program
removes: after what time, the saving and, if only one program removes the node, why the other keeps it. Remarks explain
the numbers.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from tutti.autoscalers.cluster_autoscaler.unneeded import MAX_SCALE_DOWN_PARALLELISM
from tutti.autoscalers.shared.agreement import CLUSTER_AUTOSCALER, agreement_of
from tutti.market.money import NANO, dollars
from tutti.market.money import a_month as dollars_a_month
from tutti.present.comparison_text import change_text
from tutti.present.recommendation_text import monthly_text
from tutti.present.scale_down_text import duration_text
from tutti.present.tables import counted, table

if TYPE_CHECKING:
    from tutti.recommend.down.compare_cluster_autoscaler import PeerScaleDown
    from tutti.recommend.records.down_plan import DownPlan

OURS, THEIRS = "Tutti", "Cluster Autoscaler"
TOTALS = ("SCALE-DOWN BY", "NODES", "SAVES/HOUR", "SAVES/MONTH", "VS OURS", "AGREES")
NODES = ("NODE", "POOL", "TUTTI", "CLUSTER AUTOSCALER", "SAVES/HOUR", "BECAUSE")
_EMPTY, _STAYS = "-", "stays"


class NodeComparison(NamedTuple):
    """A node that at least one of the two programs removes."""

    node: str
    pool: str
    price: int | None
    ours: int | None
    """Seconds until Tutti removes the node; None: Tutti keeps it."""
    theirs: int | None
    """The same for Cluster Autoscaler."""
    because: str
    """Why the other program keeps the node; empty if both remove it."""


def scale_down_comparison_text(plan: DownPlan, theirs: PeerScaleDown) -> str:
    """Return the tables and the remarks below them."""
    rows = [
        (each.node, each.pool, _wait_text(each.ours), _wait_text(each.theirs), hourly_text(each.price), each.because)
        for each in node_rows(plan, theirs)
    ]
    parts = [table(TOTALS, totals(plan, theirs)), table(NODES, rows) if rows else "", "\n".join(remarks(plan, theirs))]
    return "\n\n".join(filter(None, parts))


def totals(plan: DownPlan, theirs: PeerScaleDown) -> list[Sequence[str]]:
    """Return a row for each program: the number of removed nodes, and the saving."""
    number = f"{len(plan.removals):,}" + (f" for {len(plan.nodes):,} new" if plan.nodes else "")
    known = agreement_of(CLUSTER_AUTOSCALER, "deleted")
    agrees = _EMPTY if known is None else str(known)
    change = None
    if plan.saving is not None and theirs.saving is not None:
        change = theirs.saving / plan.saving - 1 if plan.saving else None if theirs.saving else 0.0
    return [
        (OURS, number, hourly_text(plan.saving), monthly_text(plan.saving), _EMPTY, _EMPTY),
        (
            THEIRS,
            f"{len(theirs.gone):,}",
            hourly_text(theirs.saving),
            monthly_text(theirs.saving),
            change_text(change),
            agrees,
        ),
    ]


def node_rows(plan: DownPlan, theirs: PeerScaleDown) -> list[NodeComparison]:
    """Return every node that at least one program removes, by name."""
    ours, gone = {each.node: each for each in plan.removals}, {each.node: each for each in theirs.gone}
    stays = {each.node: each.message for each in plan.staying_nodes}
    rows = []
    for name in sorted({*ours, *gone}):
        mine, other = ours.get(name), gone.get(name)
        because = ""
        if other is None:
            because = _with_program(THEIRS, theirs.kept.get(name, ""))
        elif mine is None:
            because = _with_program(OURS, stays.get(name, ""))
        known = mine or other
        assert known is not None
        waits = (None if mine is None else mine.wait, None if other is None else other.wait)
        rows.append(NodeComparison(name, known.pool, known.price, *waits, because))
    return rows


def remarks(plan: DownPlan, theirs: PeerScaleDown) -> Iterator[str]:
    """Yield remarks on the comparison."""
    if plan.saving is not None and theirs.saving is not None and theirs.saving > plan.saving:
        yield f"{THEIRS} saves more here: {hourly_text(theirs.saving - plan.saving)} an hour"
    if plan.nodes:
        yield f"{THEIRS} removes nodes and never replaces them with cheaper ones"
    if plan.purchase:
        yield f"{THEIRS} removes no node for ten minutes after it has bought nodes for waiting pods"
    if theirs.late:
        unchecked = counted(theirs.late, "node")
        yield f"time ran out before the model of {THEIRS} had checked {unchecked}: try a longer --time-limit"
    if theirs.gone:
        limit = MAX_SCALE_DOWN_PARALLELISM
        yield f"{THEIRS} deletes up to {limit} empty nodes at once and drains the others one by one"
        yield "nodes that it cannot remove in one round (budget, turn) wait for the unneeded time again"
    yield "AGREES: on how many recorded clusters a round of our model deleted what the real program deleted"


def hourly_text(nano: int | None) -> str:
    """Return an hourly price as text."""
    return "<unknown>" if nano is None else f"${nano / NANO:,.4f}"


def _wait_text(seconds: int | None) -> str:
    if seconds is None:
        return _STAYS
    return f"after {duration_text(seconds)}" if seconds else duration_text(seconds)


def _with_program(program: str, reason: str) -> str:
    return f"{program}: {reason}" if reason else ""


def scale_down_comparison_data(theirs: PeerScaleDown, currency: str) -> dict[str, Any]:
    """Return Cluster Autoscaler's scale-down as data for programs; unknown values are null."""
    known, saving = agreement_of(CLUSTER_AUTOSCALER, "deleted"), None
    if theirs.saving is not None:
        money = {"perHour": dollars(theirs.saving), "perMonth": dollars_a_month(theirs.saving)}
        saving = {**money, "currency": currency}
    return {
        "name": CLUSTER_AUTOSCALER,
        "remove": [
            {
                "node": each.node,
                "nodePool": each.pool,
                "pricePerHour": None if each.price is None else dollars(each.price),
                "empty": each.empty,
                "unneededSecondsLeft": each.wait,
            }
            for each in theirs.gone
        ],
        "stay": [{"node": name, "message": why} for name, why in sorted(theirs.kept.items())],
        "saving": saving,
        "modelAgreement": None if known is None else {"cases": known.cases, "agree": known.agree},
    }
