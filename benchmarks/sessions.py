"""Sessions of a live scheduler: what they cost beside waiting pods, holds and time, and what stays in memory.

Engine only, no API server: watch updates in, `session` on them, plans out. Clusters are made from fixed seeds outside
the measured time. Times are CPU seconds. Every row has a time limit, at which its work is interrupted and the row is
missed. Rows that check plans (full retry, one by one, all gangs start) also need the check. Prints what was measured
beside the bar.
usage: sessions.py [--only NAME ...] [--quick] [--limit SECONDS] [--profile NAME]
"""

from __future__ import annotations

import argparse
import cProfile
import pstats
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

import msgspec
from session_bars.churn import BATCHES, churn
from session_bars.churn_rows import churn_rows
from session_bars.day_rows import day_rows
from session_bars.hold_rows import arrivals, gang_preemptors, preemptors
from session_bars.measure import Line, Stopwatch
from session_bars.queue_rows import ends, quiet, starving, unrelated
from tests.support.watch_stream_checks import LENGTH, check_stream

TOP = 25
"""Entries of a profile that are printed."""
LIMIT = 15.0
STREAM_LIMIT = 16
"""The limit of all streams, in limits of a row."""


def streams(watch: Stopwatch) -> Iterator[Line]:
    """Follow noisy watch streams."""
    count = watch.size(2_000, 40)
    different: list[int] = []
    done = [0]

    def follow_all() -> None:
        for seed in range(count):
            try:
                check_stream(seed)
            except AssertionError:
                different.append(seed)
            done[0] += 1

    limit = STREAM_LIMIT * watch.limit
    watch.run(lambda: watch.time(follow_all), limit=limit)
    outcome = f"seeds that differ: {different[:5]}" if different else ""
    what = f"{count:,} noisy watch streams of >= {LENGTH - LENGTH % 100} edits"
    measured = f"{done[0] - len(different):,} of {done[0]:,} equal"
    yield Line(what, "no difference", measured, not different and done[0] == count, outcome)


def elsewhere(_watch: Stopwatch) -> Iterator[Line]:
    """Name the commands of the bars that other programs measure."""
    yield Line("native gangs: tutti conformance ../shared/conformance/native-gang.jsonl.gz")
    yield Line("all other vectors: tutti conformance tests/conformance/*.jsonl.gz")
    yield Line("ladder 5,000 x 10,000: python benchmarks/ladder.py --oracle PATH")


ROWS: dict[str, Callable[[Stopwatch], Iterator[Line]]] = {
    "ends": ends, "quiet": quiet, "preemptors": preemptors, "gang-preemptors": gang_preemptors, "arrivals": arrivals,
    "starving": starving, "unrelated": unrelated, "churn": churn_rows, "streams": streams, "day": day_rows,
    "native": elsewhere,
}  # fmt: skip


def main() -> None:
    """Print the table, or one row with its profile."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--only", nargs="+", choices=ROWS, default=list(ROWS), metavar="NAME", help=", ".join(ROWS))
    parser.add_argument("--quick", action="store_true", help="small sizes, for a smoke test; the bars say nothing then")
    parser.add_argument("--limit", type=float, default=LIMIT, help="CPU seconds after which work is interrupted")
    parser.add_argument("--profile", choices=ROWS, metavar="NAME", help="say what one row spends its time on")
    parser.add_argument("--churn", nargs=3, metavar=("KIND", "COUNT", "LIMIT"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.churn:
        kind, count, limit = options.churn
        assert kind in BATCHES
        print(msgspec.json.encode(churn(kind, int(count), float(limit))).decode())
        return
    profile = cProfile.Profile() if options.profile else None
    watch = Stopwatch(options.limit, quick=options.quick, profile=profile)
    print(f"Engine only, no API server; CPU seconds{'; times are those of a profiled run' if profile else ''}.")
    print(f"{'WHAT':62} {'BAR':>18}  {'MEASURED':>22}  {'VERDICT':7}  CAME OUT")
    for name in [options.profile] if options.profile else options.only:
        for line in ROWS[name](watch):
            verdict = "" if line.met is None else "met" if line.met else "MISSED"
            told = f"{line.what:62} {line.bar:>18}  {line.measured:>22}  {verdict:7}  {line.outcome}"
            print(told.rstrip(), flush=True)
    if profile is not None:
        stats = pstats.Stats(profile)
        for order in ("cumulative", "tottime"):
            stats.sort_stats(order).print_stats(TOP)


if __name__ == "__main__":
    main()
