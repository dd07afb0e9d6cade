"""The cluster in memory, its engine and its queue: reports go in, plans come out.

Contract: only the worker thread calls these methods, one at a time. `apply` brings entries of the inbox into the
cluster; `run_session` does that and runs a session. Nothing here waits, and nothing here reads a clock.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from msgspec.structs import replace

from tutti.client.reflector import Unreadable
from tutti.cluster.cluster import Cluster
from tutti.cluster.edits import Edit, Put, Remove, Unbind, Unevict
from tutti.engine.placement.engine import Engine
from tutti.engine.placement.profile import Profile
from tutti.engine.session.plan import Plan
from tutti.engine.session.policy import Patience, Policy
from tutti.engine.session.queue import Queue
from tutti.engine.session.session import session
from tutti.engine.session.waiting.spared_victims import SparedVictim
from tutti.kube.objects import PodDisruptionBudget
from tutti.live.inbox import Entry, RefusedBinding, RefusedEviction, TakenBackBinding
from tutti.live.session_recorder import SessionRecorder
from tutti.wire.recording.recorder import RefusedBindingRecord, RefusedEvictionRecord


class SessionResult(NamedTuple):
    """What a session decided, and when the next one is needed at the latest."""

    plan: Plan
    wake: int | None
    """In microseconds; None if only a change needs another session."""
    has_more: bool
    """Whether the session ran out of budget."""


class WatchedCluster:
    """See the module's docstring."""

    def __init__(self, profile: Profile, policy: Policy, *, recorder: SessionRecorder | None = None) -> None:
        self.cluster = Cluster()
        self.engine = Engine(self.cluster, profile)
        self.queue = Queue(self.cluster)
        self.policy = policy
        self._recorder = recorder
        self._patience = policy.patience or Patience()
        self._budgets: dict[str, PodDisruptionBudget] = {}
        """Disruption budgets as last reported: sessions count their evictions in those of the cluster."""

    def apply(self, entries: Iterable[Entry], now: int) -> None:
        """Bring what has happened into the cluster."""
        for entry in entries:
            match entry:
                case Put() | Remove():
                    self._note_budget(entry)
                    self._record(entry)
                    self.cluster.observe(entry)
                case Unreadable():
                    self._set_aside(entry)
                case RefusedBinding():
                    self._take_back_binding(entry, now)
                case TakenBackBinding():
                    self._apply(Unbind(entry.pod, entry.uid))
                case RefusedEviction():
                    self._take_back_eviction(entry, now)

    def run_session(self, entries: Sequence[Entry], now: int) -> SessionResult:
        """Bring what has happened into the cluster, and run a session."""
        self.apply(entries, now)
        recorder = self._recorder
        if recorder is not None:
            recorder.begin_session(self.cluster, self.queue)
        plan = session(self.engine, self.queue, now, self.policy)
        if recorder is not None:
            recorder.session(now, self.policy, plan)
        self.cluster.collect()
        return SessionResult(plan, self.queue.wake, self.queue.resume is not None)

    def close(self) -> None:
        """End the recording."""
        if self._recorder is not None:
            self._recorder.close()

    def _apply(self, edit: Unbind | Unevict) -> None:
        self._record(edit)
        self.cluster.apply(edit)

    def _record(self, edit: Edit) -> None:
        if self._recorder is not None:
            self._recorder.edit(edit)

    def _set_aside(self, entry: Unreadable) -> None:
        """Keep the last readable version of an object, but not another object of that name."""
        self.cluster.set_aside[entry.kind, entry.key] = entry.problem

    def _note_budget(self, edit: Put | Remove) -> None:
        if isinstance(edit, Put) and isinstance(edit.obj, PodDisruptionBudget):
            self._budgets[edit.obj.key] = edit.obj
        elif isinstance(edit, Remove) and edit.kind == PodDisruptionBudget.KIND:
            self._budgets.pop(edit.key, None)

    def _take_back_eviction(self, entry: RefusedEviction, now: int) -> None:
        """Let a victim live; the budgets of its namespace are again as reported, since nothing will report them."""
        self._apply(Unevict(entry.pod, entry.uid))
        known = self.cluster.objects[PodDisruptionBudget.KIND]
        for key, budget in self._budgets.items():
            if key.startswith(f"{entry.pod.partition('/')[0]}/") and known.get(key) != budget:
                self._record(Put(budget))
                self.cluster.observe(Put(budget))
        until = now + self._patience.avoided_for
        victim = SparedVictim(entry.pod, entry.uid, until) if entry.spares_victim else None
        self.queue.eviction_refused(entry.by, victim)
        if self._recorder is not None:
            self._recorder.refused_eviction(RefusedEvictionRecord(entry.by, victim))

    def _take_back_binding(self, entry: RefusedBinding, now: int) -> None:
        if entry.pod not in self.cluster.pods.row_of:
            return
        self._apply(Unbind(entry.pod, entry.uid))
        patience = self._patience if entry.avoids_node else replace(self._patience, avoided_for=0)
        if self._recorder is not None:
            self._recorder.refused_binding(
                RefusedBindingRecord(entry.pod, entry.node, entry.message, entry.uid, now, patience.avoided_for)
            )
        self.queue.bind_failed(entry.pod, entry.node, entry.message, uid=entry.uid, now=now, patience=patience)
