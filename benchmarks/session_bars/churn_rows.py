"""The rows of churn: each kind of object in a process of its own."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator

import msgspec

from session_bars.churn import Churned
from session_bars.measure import Line, Stopwatch

GROWTH = 150
"""Megabytes that all kinds together may grow after the first objects."""
FLAT = 1.05
"""The work per edit in the end may be this many times that at the beginning."""
LIMIT = 20
"""The limit of one kind, in limits of a row: the engine needs some minutes for a million pods."""
WHAT = {
    "jobs": (1_000_000, "pods of Jobs churned, a third with rules on their Job"),
    "node-names": (100_000, "node names"),
    "taints": (100_000, "taint values"),
    "gangs": (100_000, "gangs"),
}


def churn_rows(watch: Stopwatch) -> Iterator[Line]:
    """Let objects come and go."""
    together, all_done = 0.0, True
    for kind, (count, what) in WHAT.items():
        count = count // 10 if watch.quick else count
        command = [sys.executable, sys.argv[0], "--churn", kind, str(count), str(LIMIT * watch.limit)]
        result = msgspec.json.decode(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout, type=Churned)
        together, all_done = together + result.growth, all_done and result.done >= count
        yield _line(count, what, result)
    met = all_done and together <= GROWTH
    yield Line("  all together", f"<= {GROWTH} MB", f"+{together:,.0f} MB", met, "" if all_done else "not all done")


def _line(count: int, what: str, result: Churned) -> Line:
    ratio = result.work[1] / result.work[0]
    done = result.done >= count
    outcome = (
        f"{'' if done else f'stopped after {result.done:,}; '}first part +{result.first_growth:.0f} MB; work per edit "
        f"{result.work[0]:,.0f} -> {result.work[1]:,.0f}, {result.micros[0]:.0f} -> {result.micros[1]:.0f} us; "
        f"{result.seconds:.0f} s{'' if result.collects else ', no collect()'}"
    )
    met = done and result.growth <= GROWTH and ratio <= FLAT
    return Line(f"{count:,} {what}", f"<= {GROWTH} MB, flat", f"+{result.growth:,.0f} MB, x{ratio:.2f}", met, outcome)
