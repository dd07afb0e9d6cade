"""The row of a recorded day: play a day, record it, and replay the recording."""

from __future__ import annotations

import importlib
from collections.abc import Iterator

import msgspec

from session_bars.day import play_day
from session_bars.measure import Line, Stopwatch, settle_memory
from session_bars.objects import World
from tutti.cluster.edits import Edit
from tutti.engine.session.plan import Plan

LIMIT = 3
"""The limit of playing the day, in limits of a row."""


def day_rows(watch: Stopwatch) -> Iterator[Line]:
    """Play a day with the engine, replay its edits in memory, then record and replay it as a file."""
    node_count, pods = watch.size(1_000, 100), watch.size(20_000, 1_000)
    world = World([])
    steps: list[Edit | tuple[int, Plan]] = []

    def follow(edit: Edit) -> None:
        steps.append(edit)
        world.cluster.apply(edit)

    def decide(now: int) -> Plan:
        plan = world.decide(now)
        steps.append((now, plan))
        return plan

    settle_memory()
    limit = LIMIT * watch.limit
    played = watch.run(
        lambda: watch.time(lambda: play_day(follow, decide, node_count=node_count, pods=pods)), limit=limit
    )
    sessions = [step for step in steps if isinstance(step, tuple)]
    bound = sum(len(plan.binds) for _, plan in sessions)
    evicted = sum(len(plan.evictions) for _, plan in sessions)
    outcome = f"{len(steps) - len(sessions):,} edits, {len(sessions):,} sessions, {bound:,} binds, {evicted} evictions"
    what = f"a day: {node_count:,} nodes, {pods:,} pods, played"
    if played is None:
        hours = (sessions[-1][0] - sessions[0][0]) / 3.6e9
        yield Line(what, "", f"> {limit:.0f} s", None, f"stopped at {hours:.1f} h; {outcome}")
    else:
        took, (_, most) = played
        yield Line(what, "", f"{took:.1f} s", None, f"{outcome}; at most {most:,} pods wait at a full hour")
    yield from _replay_in_memory(watch, steps, limit)
    yield _replay_recording(watch, steps, world, complete=played is not None)


def _replay_in_memory(watch: Stopwatch, steps: list[Edit | tuple[int, Plan]], limit: float) -> Iterator[Line]:
    world = World([])
    settle_memory()
    same = [0]

    def replay() -> int:
        count = 0
        for step in steps:
            if isinstance(step, tuple):
                same[0] += msgspec.json.encode(world.decide(step[0])) == msgspec.json.encode(step[1])
                count += 1
            else:
                world.cluster.apply(step)
        return count

    timed = watch.run(lambda: watch.time(replay), limit=limit)
    what = "  the same edits and sessions again, in memory"
    if timed is None:
        yield Line(what, "", f"> {limit:.0f} s")
    else:
        yield Line(what, "", f"{timed[0]:.1f} s", None, f"{same[0]:,} of {timed[1]:,} plans are the same bytes")


def _replay_recording(watch: Stopwatch, steps: list[Edit | tuple[int, Plan]], world: World, *, complete: bool) -> Line:
    """Record the steps as JSON lines with gzip, and replay them as `tutti replay` does."""
    what, bar = "  its recording, replayed", "<= 8 s"
    try:
        replay = importlib.import_module("tutti.app.replay")
        recorder = importlib.import_module("tutti.wire.recording.recorder")
        reader = importlib.import_module("tutti.wire.recording.reader")
    except ImportError as error:
        return Line(what, bar, "not available", None, str(error))
    chunks: list[bytes] = []
    write = recorder.GzipWriter(chunks.append)
    recording = recorder.Recorder(write)
    for step in steps:
        if isinstance(step, tuple):
            recording.session(step[0], world.policy, step[1])
        else:
            recording.edit(step)
    write.close()
    settle_memory()
    timed = watch.run(
        lambda: watch.time(lambda: replay.replay(reader.RecordingReader(chunks, file="day.jsonl.gz"))),
        limit=LIMIT * watch.limit,
    )
    size = f"{sum(map(len, chunks)) / 1e6:.1f} MB"
    if timed is None:
        return Line(what, bar, f"> {LIMIT * watch.limit:.0f} s", False, size)
    took, result = timed
    part = "" if complete else "; part of a day"
    sessions = sum(isinstance(step, tuple) for step in steps)
    outcome = f"{size}; {len(result.differences)} of {sessions:,} plans differ{part}"
    return Line(what, bar, f"{took:.1f} s", took <= 8 and result.is_same and complete, outcome)
