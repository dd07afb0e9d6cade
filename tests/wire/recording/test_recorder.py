"""A recording is read as it was written: every edit, queue and plan, with gzip or without, complete or not."""

from __future__ import annotations

import gzip

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from tests.support.builders import node, pod
from tests.support.cluster_state import cluster_state
from tests.support.recorded_days import MORNING, make_morning, record_day
from tests.support.watch_streams import WatchStream
from tutti.cluster.cluster import Cluster
from tutti.cluster.edits import Bind, Edit, Put, Remove
from tutti.engine.session.plan import Plan
from tutti.engine.session.policy import OFFLINE, Policy
from tutti.engine.session.queue_state import QueueRecord
from tutti.engine.session.waiting.waiting_turn import WaitingTurn
from tutti.exceptions import InputError
from tutti.kube import objects as k
from tutti.wire.recording.reader import RecordedEdit, RecordedQueue, RecordedSession, RecordingReader, RecordingStart
from tutti.wire.recording.recorder import GzipWriter, Recorder

HEADER = b'{"recording":"tutti","version":1}\n'


def read(*chunks: bytes) -> list[object]:
    return list(RecordingReader(chunks, file="r.jsonl").entries())


def edits_of(text: bytes) -> list[Edit]:
    return [entry.edit for entry in read(text) if isinstance(entry, RecordedEdit)]


def recorded(*edits: Edit) -> bytes:
    parts: list[bytes] = []
    recorder = Recorder(parts.append)
    for edit in edits:
        recorder.edit(edit)
    return b"".join(parts)


def followed(edits: list[Edit]) -> Cluster:
    cluster = Cluster()
    for edit in edits:
        cluster.apply(edit)
    return cluster


@given(st.integers(0, 2**32))
def test_a_recorded_watch_gives_the_same_cluster(seed: int) -> None:
    noisy = WatchStream(seed, 120).noisy(seed)
    again = edits_of(recorded(*noisy))
    assert [edit for edit in again if not is_of_node(edit)] == [edit for edit in noisy if not is_of_node(edit)]
    expected, found = followed(noisy), followed(again)
    assert found.events == expected.events
    assert without_versions_of_nodes(found) == without_versions_of_nodes(expected)


@given(st.integers(0, 2**32))
def test_a_recorded_state_has_the_assumed_volumes(seed: int) -> None:
    cluster, lines = followed(WatchStream(seed, 120).edits), list[bytes]()
    Recorder(lines.append).state(cluster)
    assert cluster_state(followed(edits_of(b"".join(lines)))) == cluster_state(cluster)


def without_versions_of_nodes(cluster: Cluster) -> dict[str, object]:
    """Return the state of a cluster without the versions of heartbeats that were left out."""
    for obj in cluster.nodes.objects:
        if obj is not None:
            cluster.apply(Put(replace(obj, metadata=replace(obj.metadata, resource_version=None))))
    return cluster_state(cluster)


def is_of_node(edit: Edit) -> bool:
    return isinstance(edit, Put) and edit.obj.KIND == "Node"


def beat(version: int, *, ready: str = "True", labels: dict[str, str] | None = None) -> Put:
    condition = k.Condition(type="Ready", status=ready, last_heartbeat_time=f"2026-01-01T00:00:{version:02}Z")
    base = node("n", labels=labels, conditions=[condition])
    return Put(replace(base, metadata=replace(base.metadata, resource_version=str(version))))


def test_only_the_last_heartbeat_before_another_update_is_recorded() -> None:
    changed, late = beat(9, labels={"new": "yes"}), beat(4, labels={"old": "yes"})
    assert edits_of(recorded(beat(1), beat(2), beat(3), changed)) == [beat(1), beat(3), changed]
    assert edits_of(recorded(beat(1), beat(2), beat(3))) == [beat(1)]
    assert edits_of(recorded(beat(1), beat(6), beat(2), late)) == [beat(1), beat(6), late], "the largest version counts"
    assert edits_of(recorded(beat(1), beat(2, ready="False"))) == [beat(1), beat(2, ready="False")]
    removal = Remove("Node", "n", "other")
    assert edits_of(recorded(beat(1), beat(6), removal, late)) == [beat(1), beat(6), removal, late]


def test_a_stale_update_is_no_base_of_later_changes() -> None:
    old, new, again = beat(1), beat(5, ready="False"), beat(7)
    text = recorded(old, new, old, again)
    assert edits_of(text) == [old, new, old, again], "the last update is no heartbeat of the stale one"
    assert text.count(b'"Put"') == 2


def test_an_update_has_only_what_changed() -> None:
    old = pod("p")
    bound = replace(old, spec=replace(old.spec, node_name="n"))
    *_, line = recorded(Put(old), Put(bound)).splitlines()
    assert line == b'{"type":"Change","kind":"Pod","key":"default/p","fields":{"spec":{"nodeName":"n"}}}'


def test_sessions_and_queues_are_read_as_written() -> None:
    parts: list[bytes] = []
    recorder = Recorder(parts.append)
    record = QueueRecord({"default/p": WaitingTurn(1, 2, 3, "no room", (0, False, 5, "default/p"), (7,))}, wake=9)
    cluster = Cluster([node("n"), pod("p")])
    cluster.apply(Bind("default/p", "n", 5))
    recorder.state(cluster, record)
    plan = Plan({"binds": 1})
    recorder.session(7, Policy(budget=3), plan, profile="packing.yaml")
    recorder.session(None, OFFLINE, plan)
    reader = RecordingReader(parts, file="r.jsonl")
    start, put_node, put_pod, bind, queue, first, second = reader.entries()
    assert start == RecordingStart(1, None)
    assert [put_node.edit, put_pod.edit, bind.edit] == list(cluster.edits())  # type: ignore[union-attr]
    assert queue == RecordedQueue(5, record)
    assert isinstance(first, RecordedSession)
    assert (first.line, first.now, first.policy, first.profile) == (6, 7, Policy(budget=3), "packing.yaml")
    assert reader.plan_of(first) == plan
    assert isinstance(second, RecordedSession)
    assert (second.now, second.policy, second.profile) == (None, OFFLINE, None)


@pytest.mark.parametrize("size", [1, 7, 10_000])
def test_gzip_and_chunks_of_any_size_change_nothing(size: int) -> None:
    text = recorded(Put(node("n")), Put(pod("p")), Bind("default/p", "n"))
    parts: list[bytes] = []
    writer = GzipWriter(parts.append)
    writer(text[:50])
    writer.flush()
    writer(text[50:])
    writer.close()
    packed = b"".join(parts)
    assert gzip.decompress(packed) == text
    for data in (text, packed):
        chunks = [data[at : at + size] for at in range(0, len(data), size)]
        assert read(*chunks) == read(text)
        assert read(*(each for chunk in chunks for each in (b"", chunk))) == read(text)


def test_the_same_day_has_the_same_bytes() -> None:
    assert make_morning() == make_morning()
    parts: list[bytes] = []
    record_day(MORNING, parts.append)
    assert gzip.decompress(make_morning()) == b"".join(parts)


# After a crash, and after a restart -----------------------------------------------------------------------------------


def test_a_last_line_without_an_end_is_left_out() -> None:
    text = recorded(Put(node("n")), Put(pod("p")))
    for data in (text[:-9], text[:-1], gzip.compress(text[:-9])):
        reader = RecordingReader([data], file="r.jsonl")
        assert [type(entry) for entry in reader.entries()] == [RecordingStart, RecordedEdit]
        assert reader.is_truncated
    whole = RecordingReader([text], file="r.jsonl")
    assert len(list(whole.entries())) == 3
    assert not whole.is_truncated


def test_a_gzip_file_without_an_end_has_its_complete_lines() -> None:
    parts: list[bytes] = []
    writer = GzipWriter(parts.append)
    writer(recorded(Put(node("n"))))
    writer.flush()
    reader = RecordingReader(parts, file="r.jsonl.gz")
    assert len(list(reader.entries())) == 2
    assert reader.is_truncated


def test_recordings_in_a_row_start_again() -> None:
    one = recorded(Put(node("n")))
    for data in (one + one, gzip.compress(one) + gzip.compress(one)):
        assert [type(entry) for entry in read(data)] == [RecordingStart, RecordedEdit] * 2
    with pytest.raises(InputError, match="line 4: Node n is not in the recording"):
        read(one + HEADER + b'{"type":"Change","kind":"Node","key":"n","fields":{}}\n')


SESSION = '{"session":{"now":1,"policy":%s,"plan":{}}}'


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("", "not a recording: there is no complete line in it"),
        ('{"kind":"List"}\n', "line 1: not a recording: the header is missing"),
        ('{"recording":"tutti","version":2}\n', "line 1: version: version 2 of the format is not supported (want 1)"),
        ('{"recording":"tutti","version":"1"}\n', "line 1: version: expected int, got str"),
    ],
)
def test_files_that_are_no_recordings(text: str, line: str) -> None:
    with pytest.raises(InputError) as caught:
        read(text.encode())
    assert str(caught.value) == f"r.jsonl: {line}"


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ('{"type":"Put"', "JSON is malformed: Input data was truncated"),
        ("[]", "expected a mapping, got a list"),
        ("{}", 'type: "" is not an edit'),
        ('{"type":"Remove","kind":"Sheep","key":"a"}', 'kind: "Sheep" is not a kind that Tutti reads'),
        ('{"type":"Put","kind":"Pod","object":{"spec":4}}', "pod default/without a name: spec: expected a mapping"),
        ('{"type":"Change","kind":"Pod","key":"a"}', "Pod a is not in the recording, so there is nothing to change"),
        ('{"session":{"now":1}}', "session: object missing required field plan"),
        ('{"session":4}', "session: expected a mapping, got int"),
        (SESSION % '{"victims":"flee"}', "session.policy.victims: invalid enum value 'flee'"),
        (SESSION % '{"patience":{"hurry":1}}', "session.policy.patience.hurry: Patience has no such field"),
        ('{"queue":{"waiting":4}}', "queue.waiting: expected a mapping, got int"),
    ],
)
def test_a_bad_line_is_named(text: str, line: str) -> None:
    with pytest.raises(InputError) as caught:
        read(HEADER + text.encode() + b"\n")
    assert str(caught.value).startswith(f"r.jsonl: line 2: {line}")


def test_bytes_that_are_no_gzip_file_are_an_error() -> None:
    data = bytearray(gzip.compress(recorded(Put(node("n")))))
    data[14] ^= 0xFF
    with pytest.raises(InputError, match=r"r\.jsonl: not a whole gzip file"):
        read(bytes(data))
