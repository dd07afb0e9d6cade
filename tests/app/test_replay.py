"""Replays: the recorded plans again, byte by byte, and the differences to a plan that was changed."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.builders import node, pod
from tests.support.recorded_days import MORNING, Day, record_day
from tests.support.watch_streams import WatchStream
from tutti.app.replay import ReplayResult, replay
from tutti.cluster.cluster import Cluster
from tutti.cluster.edits import Bind, Put, Remove
from tutti.engine.placement.engine import Engine
from tutti.engine.session.policy import OFFLINE, Policy
from tutti.engine.session.queue import Queue
from tutti.engine.session.session import session
from tutti.wire.recording.comparison import PodDifference, PodOutcome
from tutti.wire.recording.reader import RecordingReader
from tutti.wire.recording.recorder import Recorder

SECOND = 1_000_000
NOW = 1_800_000_000 * SECOND


def replayed(lines: list[bytes], policy: Policy | None = None) -> ReplayResult:
    return replay(RecordingReader(lines, file="r.jsonl"), policy=policy)


def recorded_stream(seed: int, policy: Policy) -> list[bytes]:
    """Record sessions between the edits of a watch; the watch does not know what the sessions do."""
    lines: list[bytes] = []
    cluster, recorder = Cluster(), Recorder(lines.append)
    engine, queue = Engine(cluster), Queue(cluster)
    for number, edit in enumerate(WatchStream(seed, 80).noisy(seed)):
        if not isinstance(edit, Put | Remove):
            continue
        recorder.edit(edit)
        cluster.observe(edit)
        if number % 5 == 0:
            now = NOW + number * 7 * SECOND
            recorder.session(now, policy, session(engine, queue, now, policy))
    return lines


@settings(max_examples=25)
@given(st.integers(0, 2**32), st.sampled_from([Policy(), Policy(consolidation=True), OFFLINE]))
def test_a_recording_gives_the_recorded_plans(seed: int, policy: Policy) -> None:
    result = replayed(recorded_stream(seed, policy))
    assert result.is_same, str(result)
    assert result.totals.sessions > 0
    assert not result.notes


@settings(max_examples=8)
@given(st.integers(0, 2**32))
def test_a_played_morning_gives_the_recorded_plans(seed: int) -> None:
    lines: list[bytes] = []
    record_day(Day(seed=seed, nodes=4, pods=30, seconds=900, cores=8, images=1, heartbeat=40), lines.append)
    result = replayed(lines)
    assert result.is_same, str(result)


def test_the_same_replay_has_the_same_result() -> None:
    lines: list[bytes] = []
    record_day(MORNING, lines.append)
    first, second = (replayed(lines, Policy(preemption=False)) for _ in range(2))
    assert str(first) == str(second)
    assert first.data() == second.data()
    assert not first.is_same


def small_recording(change: str = "", by: str = "") -> list[bytes]:
    """Record one session that places two pods and refuses a third, with a text of its plan changed."""
    lines: list[bytes] = []
    cluster, recorder = Cluster([node("a"), node("b"), pod("p"), pod("q"), pod("huge", "64")]), Recorder(lines.append)
    recorder.state(cluster)
    recorder.session(NOW, Policy(), session(Engine(cluster), Queue(cluster), NOW, Policy()))
    assert change.encode() in lines[-1]
    return [*lines[:-1], lines[-1].replace(change.encode(), by.encode())]


@pytest.mark.parametrize(
    ("change", "by", "pod_name", "recorded", "now"),
    [
        ('"node":"b"', '"node":"c"', "q", PodOutcome("Placed", "c"), PodOutcome("Placed", "b")),
        ('"pod":"default/q"', '"pod":"default/r"', "r", PodOutcome("Placed", "b"), None),
    ],
)
def test_a_difference_names_the_pod(
    change: str, by: str, pod_name: str, recorded: PodOutcome, now: PodOutcome | None
) -> None:
    (difference,) = replayed(small_recording(change, by)).differences
    assert (difference.session, difference.line, difference.now) == (1, 7, NOW)
    assert PodDifference(f"default/{pod_name}", recorded, now) in difference.pods


def test_reasons_of_pending_pods_are_shown_if_both_plans_leave_them_pending() -> None:
    result = replayed(small_recording("Insufficient cpu", "Sufficient cpu"))
    assert "Pending: 0/2 nodes are available: 2 Sufficient cpu" in str(result)
    assert "Pending: 0/2 nodes are available: 2 Insufficient cpu" in str(result)


def test_other_parts_of_a_plan_can_differ() -> None:
    result = replayed(small_recording('"turns":[[[0,', '"turns":[[[5,'))
    assert result.differences[0].fields == ("turns",)
    assert "differs in turns" in str(result)


def test_spaces_in_a_recorded_plan_are_no_difference() -> None:
    assert replayed(small_recording('"counts":{', '"counts": {')).is_same


def test_a_recorded_queue_is_the_queue_of_the_first_session() -> None:
    lines: list[bytes] = []
    objects = [node("a"), pod("running", "4", on="a"), pod("waiting", "4")]
    before = Queue(Cluster(objects))
    session(Engine(before.cluster), before, NOW, Policy())
    restarted, later = Cluster(objects), NOW + 90 * SECOND
    recorder = Recorder(lines.append)
    recorder.state(restarted, before.freeze())
    plan = session(Engine(restarted), Queue(restarted, before.freeze()), later, Policy())
    assert plan.holds, "the pod has waited since before the restart, and gets a reservation"
    recorder.session(later, Policy(), plan)
    assert replayed(lines).is_same
    assert not replayed([line for line in lines if b'"queue"' not in line]).is_same


def test_progress_counts_sessions_and_a_header_starts_again() -> None:
    lines = small_recording()
    told: list[int] = []
    result = replay(RecordingReader(lines * 2, file="r.jsonl"), progress=told.append)
    assert told == [1, 2]
    assert result.is_same


def test_an_edit_that_contradicts_the_cluster_is_skipped() -> None:
    lines: list[bytes] = []
    recorder = Recorder(lines.append)
    recorder.state(Cluster([node("a"), pod("p", on="a")]))
    recorder.edit(Bind("default/p", "b"))
    recorder.edit(Put(pod("late")))
    result = replayed(lines)
    assert result.totals.edits == 4
    assert result.notes == (
        "1 edit contradicts the cluster and had no effect; the first: line 4: pod default/p is already on node a",
    )
