"""Recordings: the size of an hour and of a day, and the time to replay them.

The days are those of tests/support/recorded_days.py: 1,000 nodes that report every five minutes, and pods that come,
are bound, run and go. Prints sizes and times beside the bars, and exits with 1 if a plan of a replay differs.
usage: replay.py [--hours 1 24]
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.support.recorded_days import Day, record_day

from tutti.app.replay import replay
from tutti.wire.recording.reader import RecordingReader
from tutti.wire.recording.recorder import GzipWriter

PODS = {1: 2_000, 24: 20_000}
BARS = {1: "seconds", 24: "8 s"}
"""By hours: the pods of the recording, and the longest time of its replay."""


def measure(hours: int) -> bool:
    """Record some hours, replay them, and print what was measured; return whether all plans are the same."""
    parts: list[bytes] = []
    plain_size = 0
    writer = GzipWriter(parts.append)

    def write(data: bytes) -> None:
        nonlocal plain_size
        plain_size += len(data)
        writer(data)

    recorded = record_day(Day(seconds=hours * 3_600, pods=PODS.get(hours, hours * 1_000)), write)
    writer.close()
    size = sum(map(len, parts))
    start, start_of_work = time.perf_counter(), time.process_time()
    result = replay(RecordingReader(parts, file="benchmark"))
    took, worked = time.perf_counter() - start, time.process_time() - start_of_work
    print(
        f"{hours} h: {recorded.edits:,} watch updates, {len(recorded.plans):,} sessions; "
        f"{plain_size / 1e6:.1f} MB, {size / 1e6:.2f} MB with gzip; "
        f"replayed in {took:.1f} s ({worked:.1f} s of CPU time; bar: {BARS.get(hours, 'none')})"
    )
    print(f"  {result}")
    return result.is_same


def main() -> None:
    """Measure each recording."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--hours", type=int, nargs="+", default=list(PODS))
    results = [measure(hours) for hours in parser.parse_args().hours]
    sys.exit(not all(results))


if __name__ == "__main__":
    main()
