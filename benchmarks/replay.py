"""Recordings: their sizes, and the times to replay them.

The recordings are those of tests/support/recorded_days.py: 1,000 nodes that report every five minutes, and pods that
come, are bound, run and go. In `hour` and `day` almost all cores are free, no pod waits and none is evicted: they
measure the recording, and sessions that have little to decide. In `full-hour` pods wait, starve and preempt: nearly all
its time is that of the sessions. Prints sizes and times beside the bars, with the time for reading alone, and exits
with 1 if a plan differs. Compare CPU times if the machine has other work. usage: replay.py [--only NAME ...]
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

DAYS = {
    "hour": (Day(seconds=3_600, pods=2_000), "seconds"),
    "day": (Day(seconds=86_400, pods=20_000), "8 s"),
    "full-hour": (Day(seconds=3_600, pods=6_000, cores=4), "none"),
}
"""By name: what is recorded, and the longest time of its replay."""


def measure(name: str) -> bool:
    """Record, read and replay, and print what was measured; return whether all plans are the same."""
    day, bar = DAYS[name]
    parts: list[bytes] = []
    plain_size = 0
    writer = GzipWriter(parts.append)

    def write(data: bytes) -> None:
        nonlocal plain_size
        plain_size += len(data)
        writer(data)

    recorded = record_day(day, write)
    writer.close()
    size = sum(map(len, parts))
    before_reading = time.process_time()
    for _ in RecordingReader(parts, file=name).entries():
        pass
    reading = time.process_time() - before_reading
    start, before_replay = time.perf_counter(), time.process_time()
    result = replay(RecordingReader(parts, file=name))
    took, worked = time.perf_counter() - start, time.process_time() - before_replay
    print(f"{name}: {recorded.edits:,} watch updates; {plain_size / 1e6:.1f} MB, {size / 1e6:.2f} MB with gzip")
    print(f"  replayed in {took:.1f} s (bar: {bar}), {worked:.1f} s of CPU time, of which reading {reading:.1f} s")
    print(f"  {result}")
    return result.is_same


def main() -> None:
    """Measure each recording."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--only", nargs="+", choices=DAYS, default=list(DAYS))
    results = [measure(name) for name in parser.parse_args().only]
    sys.exit(not all(results))


if __name__ == "__main__":
    main()
