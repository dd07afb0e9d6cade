"""A reader: the lines of a recording as edits, queues, refusals and sessions.

Contract: pure. `RecordingReader.entries` decodes one line at a time. The plan of a session stays undecoded bytes: a
replay compares bytes, and decodes the plan only if they differ. A line that is not one of a recording raises
`InputError` with the file, the line and the field. A header in the middle starts another recording, as when a scheduler
was started again.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple, TypeVar

import msgspec
from msgspec import Raw

from tutti.cluster.edits import Edit, Put, Remove
from tutti.engine.session.plan import Plan
from tutti.engine.session.policy import Policy
from tutti.engine.session.queue_state import QueueRecord
from tutti.exceptions import InputError
from tutti.kube.objects import KINDS, Object
from tutti.kube.reading.convert import decode_error
from tutti.kube.reading.sources import Source
from tutti.wire.recording.object_changes import is_next_version, with_changes
from tutti.wire.recording.recorder import CHANGE, VERSION, RefusedBindingRecord, RefusedEvictionRecord
from tutti.wire.recording.recording_lines import RecordingLines
from tutti.wire.recording.struct_codec import decode


class RecordingStart(NamedTuple):
    """The header: an empty cluster and an empty queue; the scheduler may have a name of its own."""

    line: int
    scheduler_name: str | None


class RecordedEdit(NamedTuple):
    """A change of the cluster."""

    line: int
    edit: Edit


class RecordedQueue(NamedTuple):
    """The record from which the queue is made."""

    line: int
    record: QueueRecord


class RecordedRefusal(NamedTuple):
    """A binding that failed."""

    line: int
    refused: RefusedBindingRecord


class RecordedRefusedEviction(NamedTuple):
    """An eviction that failed."""

    line: int
    refused: RefusedEvictionRecord


class RecordedSession(NamedTuple):
    """A session; `plan` is its plan as bytes."""

    line: int
    now: int | None
    policy: Policy
    profile: str | None
    plan: Raw


T = TypeVar("T")
Entry = RecordingStart | RecordedEdit | RecordedQueue | RecordedRefusal | RecordedRefusedEviction | RecordedSession


_ABSENT = Raw()


class _Line(msgspec.Struct, gc=False):
    """The fields that tell the lines of a recording apart."""

    type: str = ""
    kind: str = ""
    key: str = ""
    fields: Raw = _ABSENT
    session: Raw = _ABSENT
    queue: Raw = _ABSENT
    refused_binding: Raw = msgspec.field(default=_ABSENT, name="refusedBinding")
    refused_eviction: Raw = msgspec.field(default=_ABSENT, name="refusedEviction")
    recording: str = ""
    version: int = 0
    scheduler_name: str | None = msgspec.field(default=None, name="schedulerName")


class _SessionFields(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    plan: Raw
    policy: Raw
    now: int | None = None
    profile: str | None = None


_LINE = msgspec.json.Decoder(_Line)
_SESSION = msgspec.json.Decoder(_SessionFields)
_CHANGES = msgspec.json.Decoder(dict[str, Any])


class RecordingReader:
    """See the module's docstring."""

    def __init__(self, chunks: Iterable[bytes], *, file: str) -> None:
        self._lines, self.file = RecordingLines(chunks, file=file), file
        self._last: dict[tuple[str, str], Object] = {}
        self._policies: dict[bytes, Policy] = {}

    @property
    def is_truncated(self) -> bool:
        """Whether the recording ends in the middle of a line; known after the last entry."""
        return self._lines.is_truncated

    def entries(self) -> Iterator[Entry]:
        """Decode the recording line by line."""
        is_started = False
        for number, text in self._lines.lines():
            if not is_started and b'"recording"' not in text:
                raise InputError("not a recording: the header is missing", file=self.file, obj=f"line {number}")
            is_started = True
            try:
                entry = self._entry(number, text)
            except InputError as error:
                place = f"line {number}" + (f": {error.obj}" if error.obj else "")
                raise InputError(error.problem, file=self.file, obj=place, field=error.field) from None
            yield entry
        if not is_started:
            raise InputError("not a recording: there is no complete line in it", file=self.file)

    def plan_of(self, session: RecordedSession) -> Plan:
        """Decode the plan of a session."""
        try:
            return _decode_field(session.plan, Plan, "session.plan")
        except InputError as error:
            raise InputError(error.problem, file=self.file, obj=f"line {session.line}", field=error.field) from None

    def _entry(self, number: int, text: bytes) -> Entry:
        try:
            line = _LINE.decode(text)
        except msgspec.ValidationError as error:
            raise decode_error(error, Source("", b"")) from None
        except (msgspec.DecodeError, RecursionError) as error:
            raise InputError(f"JSON is malformed: {error}") from None
        if line.session is not _ABSENT:
            return self._session(number, line.session)
        if line.queue is not _ABSENT:
            return RecordedQueue(number, _decode_field(line.queue, QueueRecord, "queue"))
        if line.refused_binding is not _ABSENT:
            refused = _decode_field(line.refused_binding, RefusedBindingRecord, "refusedBinding")
            return RecordedRefusal(number, refused)
        if line.refused_eviction is not _ABSENT:
            evicted = _decode_field(line.refused_eviction, RefusedEvictionRecord, "refusedEviction")
            return RecordedRefusedEviction(number, evicted)
        if line.recording:
            return self._start(number, line)
        return RecordedEdit(number, self._edit(line, text))

    def _start(self, number: int, line: _Line) -> RecordingStart:
        if line.recording != "tutti" or line.version != VERSION:
            problem = f"version {line.version} of the format is not supported (want {VERSION})"
            raise InputError(problem, field="version")
        self._last.clear()
        return RecordingStart(number, line.scheduler_name)

    def _session(self, number: int, raw: Raw) -> RecordedSession:
        try:
            fields = _SESSION.decode(raw)
        except msgspec.ValidationError as error:
            found = decode_error(error, Source("", b""))
            raise InputError(found.problem, field=f"session.{found.field}".removesuffix(".")) from None
        text = bytes(fields.policy)
        if text not in self._policies:
            self._policies[text] = _decode_field(text, Policy, "session.policy")
        return RecordedSession(number, fields.now, self._policies[text], fields.profile, fields.plan.copy())

    def _edit(self, line: _Line, text: bytes) -> Edit:
        if line.type == CHANGE:
            return self._change(line)
        edit = decode(text, Edit)
        if isinstance(edit, Put):
            name = (edit.obj.KIND, edit.obj.key)
            if name not in self._last or is_next_version(self._last[name], edit.obj):
                self._last[name] = edit.obj
        elif isinstance(edit, Remove):
            if edit.kind not in KINDS:
                raise InputError(f'"{edit.kind}" is not a kind that Tutti reads', field="kind")
            self._last.pop((edit.kind, edit.key), None)
        return edit

    def _change(self, line: _Line) -> Edit:
        name = (line.kind, line.key)
        old = self._last.get(name)
        if old is None or line.fields is _ABSENT:
            raise InputError(f"{line.kind} {line.key} is not in the recording, so there is nothing to change")
        try:
            changes = _CHANGES.decode(line.fields)
            self._last[name] = new = with_changes(old, changes)
        except msgspec.ValidationError as error:
            raise decode_error(error, Source("", b"")) from None
        except InputError as error:
            raise InputError(error.problem, obj=f"{line.kind} {line.key}", field=error.field) from None
        return Put(new)


def _decode_field(data: bytes | Raw, kind: type[T], field: str) -> T:
    """Decode a part of a line; an error names the field with the path in the line."""
    try:
        return decode(data, kind)
    except InputError as error:
        path = f"{field}.{error.field}" if error.field else field
        raise InputError(error.problem, obj=error.obj, field=path) from None
