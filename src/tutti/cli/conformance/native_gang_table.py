"""The comparison with kube-scheduler's own gang scheduling: a table with a line per family, and a line per arrival.

Contract: pure. PODS counts arriving pods; BOUND and VICTIMS are Tutti's sums, NATIVE-BOUND and NATIVE-VICTIMS those of
kube-scheduler. Every arrival is counted as SAME (same pods, nodes and victims), as EQUAL (as many pods and victims, but
other nodes or victims), as MORE-PODS or FEWER-VICTIMS or both, or as WORSE. Only WORSE is a failure.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tutti.present.tables import counted, table

if TYPE_CHECKING:
    from tutti.conformance.native_gang_cases import GangAnswer, NativeGangOutcome

_HEADERS = (
    "FAMILY", "ARRIVALS", "PODS", "BOUND", "NATIVE-BOUND", "VICTIMS", "NATIVE-VICTIMS", "SAME", "EQUAL", "MORE-PODS",
    "FEWER-VICTIMS", "WORSE",
)  # fmt: skip


def native_gang_table(outcomes: Sequence[NativeGangOutcome]) -> str:
    """Return the table over all families, in the order of `outcomes`, with a total."""
    families: dict[str, list[NativeGangOutcome]] = {}
    for each in outcomes:
        families.setdefault(each.family, []).append(each)
    return table(_HEADERS, [*(_row(*family) for family in families.items()), _row("total", outcomes)])


def _row(family: str, outcomes: Sequence[NativeGangOutcome]) -> Sequence[object]:
    return (
        family,
        len(outcomes),
        sum(each.pods for each in outcomes),
        sum(len(each.tutti.bound) for each in outcomes),
        sum(len(each.native.bound) for each in outcomes),
        sum(len(each.tutti.evicted) for each in outcomes),
        sum(len(each.native.evicted) for each in outcomes),
        sum(each.same and not each.worse for each in outcomes),
        sum(not (each.same or each.better or each.worse) for each in outcomes),
        sum(each.better and each.more_pods for each in outcomes),
        sum(each.better and each.fewer_victims for each in outcomes),
        sum(each.worse for each in outcomes),
    )


def arrival_line(outcome: NativeGangOutcome) -> str:
    """Return one line on an arrival: what Tutti does, what kube-scheduler does, and whether that is worse."""
    verdict = "worse" if outcome.worse else "better" if outcome.better else "equal"
    if outcome.failed:
        return f"{outcome.case}: {verdict}: failed: {outcome.failed}"
    partial = f", fewer than the minimum of gang {outcome.partial[0]}" if outcome.partial else ""
    return (
        f"{outcome.case}: {verdict}: binds {_numbers(outcome.tutti, outcome.pods)}{partial}; "
        f"kube-scheduler binds {_numbers(outcome.native, outcome.pods)}"
    )


def _numbers(answer: GangAnswer, pods: int) -> str:
    return f"{len(answer.bound):,} of {counted(pods, 'pod')} with {counted(len(answer.evicted), 'victim')}"
