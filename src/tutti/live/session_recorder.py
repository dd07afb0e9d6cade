"""The recording of a live scheduler: files that `tutti replay` runs.

Every file is a recording of its own: it begins with the whole cluster and the queue, so that older files can be
deleted. A file that has grown beyond a size is closed, and the next one begins between two sessions. Files are gzip;
everything up to the last session survives a crash.

Contract: a folder that cannot be used is a `TuttiError` from the constructor. Only the owner may read the files, and a
folder that is created here. Only the worker thread calls the other methods. An error while writing ends the recording
with a warning, never the scheduler.
"""

from __future__ import annotations

import contextlib
import logging
import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import IO

from tutti.cluster.cluster import Cluster
from tutti.cluster.edits import Edit
from tutti.engine.session.plan import Plan
from tutti.engine.session.policy import Policy
from tutti.engine.session.queue import Queue
from tutti.exceptions import TuttiError
from tutti.kube.times import timestamp
from tutti.wire.recording.recorder import GzipWriter, Recorder, RefusedBindingRecord, RefusedEvictionRecord

_LOG = logging.getLogger("tutti.live")
_MAX_SIZE = 64 << 20
"""Bytes of a file after which the next one begins."""


class SessionRecorder:
    """See the module's docstring; `profile` names the profile unless it is the default one."""

    def __init__(
        self,
        folder: Path,
        *,
        scheduler_name: str,
        now: Callable[[], int],
        profile: str | None = None,
        max_size: int = _MAX_SIZE,
    ) -> None:
        """Create the folder if it does not exist; `now` returns microseconds since 1970."""
        self._folder, self._scheduler_name, self._now, self._max_size = folder, scheduler_name, now, max_size
        self._profile = profile
        self._file: IO[bytes] | None = None
        self._gzip: GzipWriter | None = None
        self._recorder: Recorder | None = None
        self._has_failed = False
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            with tempfile.TemporaryFile(dir=folder):
                pass
        except OSError as error:
            problem = (error.strerror or str(error)).lower()
            raise TuttiError(f"--record {folder}: no files can be written there: {problem}") from None

    def edit(self, edit: Edit) -> None:
        """Record a change of the cluster that no session makes."""
        if self._recorder is not None:
            self._try(lambda recorder: recorder.edit(edit))

    def refused_binding(self, refused: RefusedBindingRecord) -> None:
        """Record a binding that failed."""
        if self._recorder is not None:
            self._try(lambda recorder: recorder.refused_binding(refused))

    def refused_eviction(self, refused: RefusedEvictionRecord) -> None:
        """Record an eviction that failed."""
        if self._recorder is not None:
            self._try(lambda recorder: recorder.refused_eviction(refused))

    def begin_session(self, cluster: Cluster, queue: Queue) -> None:
        """Begin a file before the first session, and when the last file is full."""
        if self._has_failed or (self._file is not None and self._file.tell() < self._max_size):
            return
        self.close()
        try:
            name = timestamp(self._now()).replace(":", "").replace(".", "-")
            self._file = open(self._folder / f"{name}.jsonl.gz", "xb", opener=_open_private)  # noqa: SIM115
            self._gzip = GzipWriter(self._file.write)
            self._recorder = Recorder(self._gzip, scheduler_name=self._scheduler_name)
        except OSError as error:
            self._fail(error)
            return
        self._try(lambda recorder: recorder.state(cluster, queue.freeze()))

    def session(self, now: int, policy: Policy, plan: Plan) -> None:
        """Record a session, and write everything so far to the file."""
        self._try(lambda recorder: recorder.session(now, policy, plan, profile=self._profile))
        if self._gzip is not None and self._file is not None:
            try:
                self._gzip.flush()
                self._file.flush()
            except OSError as error:
                self._fail(error)

    def close(self) -> None:
        """End the file."""
        if self._file is None or self._gzip is None:
            return
        try:
            self._gzip.close()
            self._file.close()
        except OSError as error:
            self._fail(error)
        self._file = self._gzip = self._recorder = None

    def _try(self, write: Callable[[Recorder], None]) -> None:
        if self._recorder is None:
            return
        try:
            write(self._recorder)
        except OSError as error:
            self._fail(error)

    def _fail(self, error: OSError) -> None:
        _LOG.warning("the recording ends: %s: %s", self._folder, error.strerror or error)
        self._has_failed = True
        if self._file is not None:
            with contextlib.suppress(OSError):  # the rest of its buffer cannot be written either
                self._file.close()
        self._file = self._gzip = self._recorder = None


def _open_private(path: str, flags: int) -> int:
    """Open a file that only its owner may read: it has the names and labels of everybody's pods."""
    return os.open(path, flags, 0o600)
