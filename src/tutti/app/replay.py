"""The use case `replay`: run a recording again, and say where the plans differ from the recorded ones.

Contract: pure. The edits of the recording build and change one cluster; every session runs with the recorded time on
one engine and one queue, and with the recorded policy unless another one is given. The stream of edits stays as
recorded: under another policy, pods that the recorded scheduler bound elsewhere follow the recording as soon as the API
server confirms them. An object that cannot be read is set aside, and an edit that contradicts the cluster is skipped;
both are notes. The same recording, policy and profile give the same result.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from itertools import islice
from typing import Any

from tutti.app.result import Result
from tutti.cluster.cluster import Cluster
from tutti.cluster.edits import Edit, Put, Remove
from tutti.engine.placement.engine import Engine
from tutti.engine.placement.profile import Profile
from tutti.engine.session.policy import Patience, Policy
from tutti.engine.session.queue import Queue
from tutti.engine.session.session import session
from tutti.exceptions import ConflictError, InputError, NotFoundError
from tutti.present.replay_text import replay_data, replay_text
from tutti.wire.recording.comparison import PlanDifference, ReplayTotals, decision_counts, plan_difference
from tutti.wire.recording.reader import (
    RecordedEdit,
    RecordedQueue,
    RecordedRefusal,
    RecordedRefusedEviction,
    RecordedSession,
    RecordingReader,
)
from tutti.wire.recording.struct_codec import encode

Progress = Callable[[int], None]
"""Called after every session with the number of sessions so far."""


class ReplayResult(Result, frozen=True, kw_only=True):
    """Which plans differ; its text is the table of `tutti replay`."""

    totals: ReplayTotals
    differences: tuple[PlanDifference, ...] = ()
    """The sessions whose plans differ, in order."""

    @property
    def is_same(self) -> bool:
        """Whether all plans are as recorded."""
        return not self.differences

    def text(self, *, wide: bool = False, show: int | None = 20) -> str:
        """Return a line for each pod that differs, at most `show` of them unless `wide`, and a summary."""
        return replay_text(self.totals, self.differences, show=None if wide else show)

    def data(self) -> dict[str, Any]:
        """Return totals and differences as plain data."""
        return replay_data(self.totals, self.differences)


def replay(
    reader: RecordingReader,
    *,
    policy: Policy | None = None,
    profile: Profile | None = None,
    progress: Progress = lambda _: None,
) -> ReplayResult:
    """Run a recording; `policy` and `profile` replace those of the recording."""
    run = _Replay(reader, policy, profile)
    for entry in reader.entries():
        match entry:
            case RecordedEdit():
                run.apply(entry)
            case RecordedSession():
                run.run_session(entry)
                progress(run.sessions)
            case RecordedRefusal():
                run.refuse_binding(entry)
            case RecordedRefusedEviction():
                run.queue.eviction_refused(entry.refused.preemptor, entry.refused.victim)
            case RecordedQueue():
                run.queue = Queue(run.cluster, entry.record)
            case _:
                run.start(entry.scheduler_name)
    return run.result()


class _Replay:
    """The state of a replay."""

    def __init__(self, reader: RecordingReader, policy: Policy | None, profile: Profile | None) -> None:
        self._reader, self._policy, self._profile = reader, policy, profile
        self.sessions = self._edits = self._skipped = 0
        self._first_skipped = ""
        self._set_aside: dict[tuple[str, str], str] = {}
        self._profiles: dict[str, None] = {}
        self._recorded: Counter[str] = Counter()
        self._replayed: Counter[str] = Counter()
        self._first: int | None = None
        self._last: int | None = None
        self._differences: list[PlanDifference] = []
        self.start(None)

    def start(self, scheduler_name: str | None) -> None:
        """Start with an empty cluster and an empty queue."""
        profile = self._profile
        if profile is None and scheduler_name is not None:
            profile = Profile.default()._replace(scheduler_name=scheduler_name)
        self.cluster = Cluster()
        self._engine = Engine(self.cluster, profile)
        self.queue = Queue(self.cluster)

    def apply(self, entry: RecordedEdit) -> None:
        """Change the cluster as recorded."""
        self._edits += 1
        try:
            self._apply(entry.edit)
        except (ConflictError, NotFoundError) as error:
            self._skipped += 1
            self._first_skipped = self._first_skipped or f"line {entry.line}: {error}"

    def refuse_binding(self, entry: RecordedRefusal) -> None:
        """Tell the queue of a binding that failed."""
        refused = entry.refused
        self.queue.bind_failed(
            refused.pod,
            refused.node,
            refused.message,
            uid=refused.uid,
            now=refused.now,
            patience=Patience(avoided_for=refused.avoided_for),
        )

    def _apply(self, edit: Edit) -> None:
        if not isinstance(edit, Put | Remove):
            self.cluster.apply(edit)
            return
        self.cluster.observe(edit)
        if not self.cluster.set_aside:
            return
        name = (edit.obj.KIND, edit.obj.key) if isinstance(edit, Put) else (edit.kind, edit.key)
        if name in self.cluster.set_aside:
            self._set_aside[name] = self.cluster.set_aside[name]

    def run_session(self, entry: RecordedSession) -> None:
        """Run a session and compare its plan with the recorded plan."""
        self.sessions += 1
        self._first, self._last = entry.now if self._first is None else self._first, entry.now
        if entry.profile is not None:
            self._profiles[entry.profile] = None
        policy = self._policy or entry.policy
        if entry.now is None and (policy.patience is not None or policy.victims == "terminate"):
            problem = "the session has no time, and its policy needs one"
            raise InputError(problem, file=self._reader.file, obj=f"line {entry.line}")
        plan = session(self._engine, self.queue, entry.now, policy)
        recorded, replayed = bytes(entry.plan), encode(plan)
        recorded_plan = plan
        if recorded != replayed:
            recorded_plan = self._reader.plan_of(entry)
            if encode(recorded_plan) != replayed:
                self._differences.append(
                    plan_difference(recorded_plan, plan, session=self.sessions, line=entry.line, now=entry.now)
                )
        self._recorded.update(decision_counts(recorded_plan))
        self._replayed.update(decision_counts(plan))

    def result(self) -> ReplayResult:
        """Return the result, with notes about edits without effect, profiles and the end of the file."""
        totals = ReplayTotals(
            sessions=self.sessions,
            edits=self._edits,
            first=self._first,
            last=self._last,
            recorded=dict(self._recorded),
            replayed=dict(self._replayed),
        )
        return ReplayResult(totals=totals, differences=tuple(self._differences), notes=tuple(self._notes()))

    def _notes(self) -> list[str]:
        notes = []
        if self._reader.is_truncated:
            notes.append("the last line is not complete and was left out; the recorder may have crashed")
        if self._profiles and self._profile is None:
            notes.append(f"recorded with profile {', '.join(self._profiles)}; pass it with --profile")
        if self._skipped:
            number = f"{self._skipped:,} edits contradict" if self._skipped > 1 else "1 edit contradicts"
            notes.append(f"{number} the cluster and had no effect; the first: {self._first_skipped}")
        notes += (f"{kind} {key} was set aside: {why}" for (kind, key), why in islice(self._set_aside.items(), 5))
        if len(self._set_aside) > 5:
            notes.append(f"{len(self._set_aside) - 5:,} more objects were set aside")
        return notes
