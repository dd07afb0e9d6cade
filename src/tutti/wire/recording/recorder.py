"""A recorder: writes what a scheduler sees and decides, one JSON line each.

Contract: pure; the bytes go to a function. A recording starts with a header, then has the edits in the order in which
they changed the cluster, and a line for each session with its time, its policy and its plan. Edits that a session
applies itself are not recorded: a replay of the session repeats them. The same calls give the same bytes.

    {"recording":"tutti","version":1}
    {"type":"Put","kind":"Node","object":{...}}
    {"type":"Change","kind":"Node","key":"n1","fields":{"metadata":{"resourceVersion":"7"}}}
    {"refusedBinding":{"pod":"default/web-0","node":"n1",...}}
    {"session":{"now":1767225600000000,"policy":{...},"plan":{...}}}

`Change` stands for a `Put` of an object that is in the recording already: it has what changed since the newest recorded
version (`object_changes`). Updates that are older than that version stay `Put`. Most updates of a large cluster are
heartbeats of nodes, which change nothing that a session reads: only the newest one before another edit of the node is
recorded, so that a replay recognises an update that comes late as older, too. The recorder refers to the newest version
of every object that was not removed, as the cluster does. Times are microseconds.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from typing import Any

import msgspec

from tutti.cluster.cluster import Cluster
from tutti.cluster.edits import Edit, Put, Remove
from tutti.engine.session.plan import Plan
from tutti.engine.session.policy import Policy
from tutti.engine.session.queue_state import QueueRecord
from tutti.engine.session.waiting.spared_victims import SparedVictim
from tutti.kube.objects import Object
from tutti.kube.private_fields import without_private_fields
from tutti.wire.recording.object_changes import changed_fields, is_heartbeat, is_next_version
from tutti.wire.recording.struct_codec import encode, plain

VERSION = 1
"""The version of the format; a reader refuses every other version."""
CHANGE = "Change"
Write = Callable[[bytes], object]
_GZIP = 16 + zlib.MAX_WBITS


class RefusedBindingRecord(msgspec.Struct, frozen=True, rename="camel"):
    """A binding that failed, as the queue is told of it (`Queue.bind_failed`)."""

    pod: str
    node: str
    message: str
    uid: str | None
    now: int
    avoided_for: int
    """`Patience.avoided_for` of the scheduler."""


class RefusedEvictionRecord(msgspec.Struct, frozen=True):
    """An eviction that failed, as the queue is told of it (`Queue.eviction_refused`)."""

    preemptor: str
    victim: SparedVictim | None = None


class Recorder:
    """See the module's docstring."""

    def __init__(self, write: Write, *, scheduler_name: str | None = None) -> None:
        """Write the header; None stands for the name of the default scheduler."""
        self._write = write
        self._last: dict[tuple[str, str], Object] = {}
        """The newest recorded version of each object, by kind and key."""
        self._heartbeats: dict[tuple[str, str], Object] = {}
        """The last heartbeat of each node since then."""
        name = {"schedulerName": scheduler_name} if scheduler_name is not None else {}
        self._line({"recording": "tutti", "version": VERSION} | name)

    def state(self, cluster: Cluster, queue: QueueRecord | None = None) -> None:
        """Record the whole cluster, and the record from which its queue is made, if there is one."""
        for edit in cluster.edits():
            self.edit(edit)
        if queue is not None:
            self._line({"queue": plain(queue)})

    def edit(self, edit: Edit) -> None:
        """Record a change of the cluster that no session makes: a watch update, or a binding that failed."""
        if isinstance(edit, Put):
            self._put(Put(without_private_fields(edit.obj)))
            return
        if isinstance(edit, Remove):
            name = (edit.kind, edit.key)
            self._flush_heartbeat(name)  # the removal may be that of an earlier node of this name
            self._last.pop(name, None)
        self._write(encode(edit) + b"\n")

    def _put(self, edit: Put) -> None:
        name, new = (edit.obj.KIND, edit.obj.key), edit.obj
        old = self._last.get(name)
        if old is None:
            self._last[name] = new
            self._write(encode(edit) + b"\n")
            return
        if is_heartbeat(old, changed_fields(old, new)):
            if is_next_version(self._heartbeats.get(name, old), new):
                self._heartbeats[name] = new
            return
        self._flush_heartbeat(name)
        if is_next_version(self._last[name], new):
            self._change(name, new)
        else:
            self._write(encode(edit) + b"\n")

    def _flush_heartbeat(self, name: tuple[str, str]) -> None:
        heartbeat = self._heartbeats.pop(name, None)
        if heartbeat is not None:
            self._change(name, heartbeat)

    def _change(self, name: tuple[str, str], new: Object) -> None:
        fields = changed_fields(self._last[name], new)
        self._last[name] = new
        self._line({"type": CHANGE, "kind": name[0], "key": name[1], "fields": fields})

    def refused_binding(self, refused: RefusedBindingRecord) -> None:
        """Record that the queue was told of a binding that failed; its `Unbind` is an edit before it."""
        self._line({"refusedBinding": plain(refused)})

    def refused_eviction(self, refused: RefusedEvictionRecord) -> None:
        """Record that the queue was told of an eviction that failed; its `Unevict` is an edit before it."""
        self._line({"refusedEviction": plain(refused)})

    def session(self, now: int | None, policy: Policy, plan: Plan, *, profile: str | None = None) -> None:
        """Record a session; `profile` names its profile for readers, None is the default profile."""
        fields: dict[str, Any] = {"now": now, "policy": msgspec.to_builtins(policy)}
        if profile is not None:
            fields["profile"] = profile
        self._line({"session": fields | {"plan": plain(plan)}})

    def _line(self, fields: dict[str, Any]) -> None:
        self._write(msgspec.json.encode(fields) + b"\n")


class GzipWriter:
    """Compresses what is written, as one gzip file without a time stamp, so that equal input gives equal bytes."""

    def __init__(self, write: Write) -> None:
        self._write, self._compressor = write, zlib.compressobj(wbits=_GZIP)

    def __call__(self, data: bytes) -> None:
        """Compress some bytes; they may stay in memory until `flush` or `close`."""
        self._write(self._compressor.compress(data))

    def flush(self) -> None:
        """Write everything so far, so that a crash does not lose it."""
        self._write(self._compressor.flush(zlib.Z_SYNC_FLUSH))

    def close(self) -> None:
        """Write the rest and the end of the file."""
        self._write(self._compressor.flush())
