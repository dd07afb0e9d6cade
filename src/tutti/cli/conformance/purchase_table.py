"""The comparison of purchases with recorded ones: a table with a line per family, and a line for each failure.

Contract: pods and costs are sums over the instances of a family. SAVING covers the instances where both programs place
the same number of pods, because only their costs can be compared. MORE-PODS counts the instances where Tutti places
more pods; that is not a failure, even at a higher cost. If kube-scheduler binds, HOLDS counts the purchases with which
every pod that the plan places gets a node.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from tutti.present.tables import counted, table

if TYPE_CHECKING:
    from tutti.conformance.purchase_run import PurchaseOutcome

_HEADERS = (
    "PEER", "FAMILY", "INSTANCES", "PODS", "PLACED", "PEER-PLACED", "COST/H", "PEER-COST/H", "SAVING", "MORE-PODS",
    "WORSE",
)  # fmt: skip
_REPLAYED = ("HOLDS", "PEER-HOLDS")
_UNKNOWN = "-"


def is_failure(outcome: PurchaseOutcome) -> bool:
    """Return whether an outcome fails: the peer's purchase is better, or kube-scheduler cannot bind Tutti's plan."""
    return outcome.supported and (outcome.worse or outcome.holds is False)


def purchase_table(outcomes: Sequence[PurchaseOutcome]) -> str:
    """Return the table over all families, in the order of `outcomes`, with a total for each peer."""
    replayed = any(each.bound is not None for each in outcomes)
    rows: list[Sequence[object]] = []
    for peer in dict.fromkeys(each.peer for each in outcomes):
        compared = [each for each in outcomes if each.peer == peer]
        families: dict[str, list[PurchaseOutcome]] = {}
        for each in compared:
            families.setdefault(each.family, []).append(each)
        rows += (_row(peer, family, members, replayed=replayed) for family, members in families.items())
        rows.append(_row(peer, "total", [each for each in compared if each.supported], replayed=replayed))
    return table((*_HEADERS, *(_REPLAYED if replayed else ())), rows)


def _row(peer: str, family: str, outcomes: Sequence[PurchaseOutcome], *, replayed: bool) -> Sequence[object]:
    if not all(each.supported for each in outcomes):
        return (peer, family, len(outcomes), *(_UNKNOWN,) * 7, "unsupported", *((_UNKNOWN,) * 2 if replayed else ()))
    cells: list[object] = [
        peer,
        family,
        len(outcomes),
        sum(each.pods for each in outcomes),
        sum(each.placed for each in outcomes),
        sum(each.peer_placed for each in outcomes),
        _money(sum(each.cost or 0 for each in outcomes)),
        _money(sum(each.peer_cost for each in outcomes)),
        _saving(outcomes),
        sum(each.more for each in outcomes),
        sum(each.worse for each in outcomes),
    ]
    if replayed:
        cells += (_share(each.holds for each in outcomes), _share(each.peer_holds for each in outcomes))
    return cells


def _saving(outcomes: Iterable[PurchaseOutcome]) -> str:
    alike = [each for each in outcomes if each.placed == each.peer_placed and each.cost is not None]
    peer_cost = sum(each.peer_cost for each in alike)
    if not peer_cost:
        return _UNKNOWN
    return f"{100 * (1 - sum(each.cost or 0 for each in alike) / peer_cost):.2f}%"


def _share(answers: Iterable[bool | None]) -> str:
    known = [each for each in answers if each is not None]
    return f"{sum(known)}/{len(known)}" if known else _UNKNOWN


def failure_line(outcome: PurchaseOutcome) -> str:
    """Return one line on an outcome that fails."""
    problems = []
    if outcome.failed:
        problems.append(f"failed: {outcome.failed}")
    elif outcome.worse:
        problems.append(
            f"places {outcome.placed:,} of {counted(outcome.pods, 'pod')} on {_nodes(outcome.nodes)} "
            f"for {_money(outcome.cost)}/h, {outcome.peer} {outcome.peer_placed:,} on {_nodes(outcome.peer_nodes)} "
            f"for {_money(outcome.peer_cost)}/h{_gap(outcome)}"
        )
    if outcome.holds is False:
        problems.append(
            f"kube-scheduler gives a node to {outcome.bound:,} of the {outcome.placed:,} pods that the plan places"
        )
    return f"{outcome.case}: {'; '.join(problems)}"


def _gap(outcome: PurchaseOutcome) -> str:
    if outcome.placed != outcome.peer_placed or outcome.cost is None or not outcome.peer_cost:
        return ""
    return f" (+{100 * (outcome.cost / outcome.peer_cost - 1):.2f}%)"


def _nodes(number: int) -> str:
    return counted(number, "new node")


def _money(nano: int | None) -> str:
    return "unknown" if nano is None else f"${nano / 10**9:,.4f}"
