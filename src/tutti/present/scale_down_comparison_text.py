"""Our scale-down beside Cluster Autoscaler's, as text and as data.

Contract: pure. A line for each of the two, then a line for every node that either of them lets go: after how long, what
it saves, and where only one of the two lets it go, why the other one does not. Remarks say how to read it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from tutti.autoscalers.cluster_autoscaler.unneeded import PARALLEL
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
_NOTHING, _STAYS = "-", "stays"


class NodeComparison(NamedTuple):
    """A node that one of the two lets go, or both."""

    node: str
    pool: str
    price: int | None
    ours: int | None
    """After how many seconds; None: not at all."""
    theirs: int | None
    because: str
    """Why only one of the two lets it go; empty where both do."""


def scale_down_comparison_text(plan: DownPlan, theirs: PeerScaleDown) -> str:
    """The tables, and the remarks under them."""
    rows = [
        (each.node, each.pool, _after(each.ours), _after(each.theirs), hourly_text(each.price), each.because)
        for each in node_rows(plan, theirs)
    ]
    parts = [table(TOTALS, totals(plan, theirs)), table(NODES, rows) if rows else "", "\n".join(remarks(plan, theirs))]
    return "\n\n".join(filter(None, parts))


def totals(plan: DownPlan, theirs: PeerScaleDown) -> list[Sequence[str]]:
    """A line for each of the two: how many nodes go, and what that saves."""
    number = f"{len(plan.removals):,}" + (f" for {len(plan.nodes):,} new" if plan.nodes else "")
    known = agreement_of(CLUSTER_AUTOSCALER, "deleted")
    agrees = _NOTHING if known is None else str(known)
    change = None
    if plan.saving is not None and theirs.saving is not None:
        change = theirs.saving / plan.saving - 1 if plan.saving else None if theirs.saving else 0.0
    return [
        (OURS, number, hourly_text(plan.saving), monthly_text(plan.saving), _NOTHING, _NOTHING),
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
    """Every node that either of the two lets go, by name."""
    ours, gone = {each.node: each for each in plan.removals}, {each.node: each for each in theirs.gone}
    stays = {each.node: each.message for each in plan.staying_nodes}
    found = []
    for name in sorted({*ours, *gone}):
        mine, other = ours.get(name), gone.get(name)
        because = ""
        if other is None:
            because = _because(THEIRS, theirs.kept.get(name, ""))
        elif mine is None:
            because = _because(OURS, stays.get(name, ""))
        known = mine or other
        assert known is not None
        waits = (None if mine is None else mine.wait, None if other is None else other.wait)
        found.append(NodeComparison(name, known.pool, known.price, *waits, because))
    return found


def remarks(plan: DownPlan, theirs: PeerScaleDown) -> Iterator[str]:
    """What a reader should know beside the numbers."""
    if plan.saving is not None and theirs.saving is not None and theirs.saving > plan.saving:
        yield f"{THEIRS} saves more here: {hourly_text(theirs.saving - plan.saving)} an hour"
    if plan.nodes:
        yield f"{THEIRS} takes nodes away and never replaces them by cheaper ones"
    if plan.purchase:
        yield f"{THEIRS} takes nothing away for ten minutes after it has bought nodes for waiting pods"
    if theirs.late:
        yield f"time was up before {THEIRS} had looked at {counted(theirs.late, 'node')}: try a longer --time-limit"
    if theirs.gone:
        yield f"{THEIRS} deletes up to {PARALLEL} empty nodes at once and drains the others one by one"
        yield "what it cannot do in one round (a budget, a turn) comes after the unneeded time has passed again"
    yield "AGREES: on how many recorded clusters a round of our model deleted what the real program deleted"


def hourly_text(nano: int | None) -> str:
    """An hourly price, as text."""
    return "<unknown>" if nano is None else f"${nano / NANO:,.4f}"


def _after(seconds: int | None) -> str:
    if seconds is None:
        return _STAYS
    return f"after {duration_text(seconds)}" if seconds else duration_text(seconds)


def _because(who: str, why: str) -> str:
    return f"{who}: {why}" if why else ""


def scale_down_comparison_data(theirs: PeerScaleDown, currency: str) -> dict[str, Any]:
    """Cluster Autoscaler's part for programs; null for what is not known."""
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
