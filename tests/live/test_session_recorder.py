"""Recordings of a live scheduler: who may read them, what happens when they cannot be written, and their profile."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from tests.support.builders import node, pod
from tests.support.live_runs import quick_policy
from tutti.app.replay import ReplayResult, replay
from tutti.cluster.edits import Put
from tutti.engine.placement.profile import Profile
from tutti.exceptions import TuttiError
from tutti.live import session_recorder
from tutti.live.session_recorder import SessionRecorder
from tutti.live.watched_cluster import WatchedCluster
from tutti.wire.recording.reader import RecordingReader

NOW = 1_800_000_000_000_000


def recorder(folder: Path, profile: str | None = None) -> SessionRecorder:
    return SessionRecorder(folder, scheduler_name="tutti", now=lambda: NOW, profile=profile)


def record_session(recorder: SessionRecorder) -> None:
    """Record a session that binds a pod."""
    cluster = WatchedCluster(Profile.default()._replace(scheduler_name="tutti"), quick_policy(), recorder=recorder)
    cluster.apply([Put(node("n1")), Put(pod("a", schedulerName="tutti"))], NOW)
    assert cluster.run_session([], NOW).plan.binds
    cluster.close()


def replayed(path: Path) -> ReplayResult:
    return replay(RecordingReader([path.read_bytes()], file=path.name))


def test_a_recording_can_be_read_by_its_owner_only(tmp_path: Path) -> None:
    folder = tmp_path / "new"
    record_session(recorder(folder))
    (path,) = folder.iterdir()
    assert path.name == "2027-01-15T080000Z.jsonl.gz"
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert replayed(path).is_same


def test_a_folder_that_cannot_be_used_is_an_error_at_once(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(TuttiError, match=r"--record .*/file: no files can be written there: file exists"):
        recorder(tmp_path / "file")
    with pytest.raises(TuttiError, match="--record /proc/none: no files can be written there"):
        recorder(Path("/proc/none"))
    assert list(tmp_path.iterdir()) == [tmp_path / "file"]


def test_a_full_disk_ends_the_recording_and_closes_its_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    opened: list[int] = []

    def open_full(_path: str, _flags: int) -> int:
        opened.append(os.open("/dev/full", os.O_WRONLY))
        return opened[-1]

    monkeypatch.setattr(session_recorder, "_open_private", open_full)
    record_session(recorder(tmp_path))
    assert [record.message for record in caplog.records] == [f"the recording ends: {tmp_path}: No space left on device"]
    (descriptor,) = opened
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(descriptor)


@pytest.mark.parametrize(
    ("profile", "notes"), [(None, []), ("tutti", ["recorded with profile tutti; pass it with --profile"])]
)
def test_a_recording_names_its_profile(tmp_path: Path, profile: str | None, notes: list[str]) -> None:
    record_session(recorder(tmp_path, profile))
    (path,) = tmp_path.iterdir()
    assert list(replayed(path).notes) == notes
