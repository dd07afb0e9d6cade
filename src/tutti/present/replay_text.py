"""A replay as text and as data: the output of `tutti replay`.

Contract: pure. The table has a line for each pod whose outcome differs from the recorded one, in the order of the
sessions. A session that differs only in other fields of its plan has a line with these fields. Reasons of pending pods
are shown only if both plans leave the pod pending; the data has them all.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any

import msgspec

from tutti.kube.times import timestamp
from tutti.present.tables import NONE, counted, table
from tutti.wire.recording.comparison import PlanDifference, PodDifference, PodOutcome, ReplayTotals

_HEADERS = ("SESSION", "TIME", "POD", "RECORDED", "REPLAYED")
_WORDS = {"binds": "placed", "evictions": "evicted", "moves": "moved"}
_PLACES = {"Placed": "on", "Waiting": "for", "Moved": "to", "Evicted": "from"}
_UNITS = ((3_600_000_000, "h"), (60_000_000, "m"), (1_000_000, "s"))


def replay_text(totals: ReplayTotals, differences: Sequence[PlanDifference], *, show: int | None) -> str:
    """Return the table with at most `show` lines (None: all), and the summary."""
    count = sum(len(each.pods) or 1 for each in differences)
    rows = list(islice(_rows(differences), show))
    parts = [table(_HEADERS, rows)] if rows else []
    if rows and count > len(rows):
        parts.append(f"{counted(count - len(rows), 'more line')} (--show {count} shows all)")
    parts.append(_summary(totals, differences))
    return "\n\n".join(parts)


def replay_data(totals: ReplayTotals, differences: Sequence[PlanDifference]) -> dict[str, Any]:
    """Return the result as data for programs."""
    return {
        "sessions": totals.sessions,
        "edits": totals.edits,
        "same": totals.sessions - len(differences),
        "different": len(differences),
        "recorded": totals.recorded,
        "replayed": totals.replayed,
        "differences": [
            {
                "session": each.session,
                "line": each.line,
                "time": None if each.now is None else timestamp(each.now),
                "pods": msgspec.to_builtins(each.pods),
                "fields": list(each.fields),
            }
            for each in differences
        ],
    }


def _rows(differences: Sequence[PlanDifference]) -> Iterator[tuple[object, ...]]:
    for each in differences:
        time = NONE if each.now is None else timestamp(each.now)
        for difference in each.pods:
            yield each.session, time, difference.pod, *_cells(difference)
        if not each.pods:
            yield each.session, time, NONE, "", f"differs in {', '.join(each.fields)}"


def _cells(difference: PodDifference) -> tuple[str, str]:
    recorded, replayed = difference.recorded, difference.replayed
    has_reasons = recorded is not None and replayed is not None and recorded.status == replayed.status
    return _cell(recorded, has_reasons=has_reasons), _cell(replayed, has_reasons=has_reasons)


def _cell(outcome: PodOutcome | None, *, has_reasons: bool) -> str:
    """Return an outcome in a few words: ``Placed on node-1``."""
    if outcome is None:
        return NONE
    if outcome.node is None:
        return f"{outcome.status}: {outcome.message}" if has_reasons else outcome.status
    text = f"{outcome.status} {_PLACES[outcome.status]} {outcome.node}"
    return f"{text} by {outcome.message}" if outcome.message else text


def _summary(totals: ReplayTotals, differences: Sequence[PlanDifference]) -> str:
    span = f" in {_span(totals.last - totals.first)}" if totals.first is not None and totals.last is not None else ""
    title = f"{counted(totals.sessions, 'session')}, {counted(totals.edits, 'edit')}{span}: "
    if not totals.sessions:
        return f"{title}there is no plan to compare"
    if not differences:
        return f"{title}all plans are the same ({_decisions(totals.recorded)})"
    same, first = totals.sessions - len(differences), differences[0]
    place = f"the first is session {first.session} (line {first.line})"
    verb = "is" if same == 1 else "are"
    lines = [f"{title}{counted(same, 'plan')} {verb} the same, {len(differences):,} differ; {place}"]
    lines.append(f"recorded: {_decisions(totals.recorded)}")
    lines.append(f"replayed: {_decisions(totals.replayed)}")
    return "\n".join(lines)


def _decisions(counts: dict[str, int]) -> str:
    """Return the numbers of placed, evicted and moved pods; placed pods even if there are none."""
    placed, *others = _WORDS
    parts = [f"{counted(counts.get(placed, 0), 'pod')} {_WORDS[placed]}"]
    parts += [f"{counts[name]:,} {_WORDS[name]}" for name in others if counts.get(name)]
    return ", ".join(parts)


def _span(microseconds: int) -> str:
    """Return a duration: ``1h5m``."""
    text = ""
    for size, unit in _UNITS:
        number, microseconds = divmod(microseconds, size)
        text += f"{number}{unit}" if number else ""
    return text or "0s"
