"""A session: one pass over what waits, as a pure function.

Contract: ``(cluster, queue, now) -> plan, queue``; the cluster stands as the plan leaves it. Victims begin to
terminate and room is held for whom they make way; when they have left, a later session binds. What failed before is
tried only when it is due (`queue.py`). A session has a budget of work; what it did not come to is first in the next
one, after what is new. The first turn that has starved for room gets a reservation: room is held where it will be able
to start, and later work may use that room only if it is known to end before.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby

import msgspec
from msgspec.structs import replace

from tutti.cluster.cluster import Cluster
from tutti.cluster.edits import Edit, Hold, Release
from tutti.cluster.events import Event
from tutti.cluster.meter import EXPECTED_END, POD_TRIED
from tutti.engine.gangs.gang_state import Gangs, Need
from tutti.engine.placement.engine import Engine
from tutti.engine.session.attempts import Attempts
from tutti.engine.session.context import Options, Refused
from tutti.engine.session.plan import Plan
from tutti.engine.session.queue import Patience, Queue, Reservation, Waiting
from tutti.engine.session.reservations import expected_ends, reserve
from tutti.engine.session.schedule import pending
from tutti.engine.session.turns import Turn, turns
from tutti.exceptions import InputError
from tutti.kube.durations import duration
from tutti.kube.gangs.tutti_annotations import DURATION

_CHUNK = 256
"""Pods on their own that are tried before the budget is looked at again."""


class Policy(msgspec.Struct, frozen=True, kw_only=True):
    """How sessions go."""

    preemption: bool = True
    consolidation: bool = False
    work: int = 1_000_000
    """Steps after which a session ends: about one for each pod that is tried, more for searching."""
    patience: Patience = Patience()


def session(
    cluster: Cluster, queue: Queue, now: int, *, engine: Engine | None = None, policy: Policy | None = None
) -> tuple[Plan, Queue]:
    """Take the turns that are due; an engine of this cluster that is passed in keeps what it has learnt."""
    return _Session(engine or Engine(cluster), queue, now, policy or Policy()).run()


class _Session:
    def __init__(self, engine: Engine, queue: Queue, now: int, policy: Policy) -> None:
        self._engine, self._cluster, self._profile = engine, engine.cluster, engine.profile
        self._queue, self._now, self._policy, self._patience = queue, now, policy, policy.patience
        options = Options(policy.preemption, policy.consolidation, now, policy.patience.reserved_for)
        self._attempts = Attempts(engine, options)
        self._gangs: Gangs = self._attempts.gangs
        self._waiting: dict[str, Waiting] = {}
        self._reservation = queue.reservation
        self._resume: Turn | None = None
        self._turns: dict[str, Turn] = {}

    def run(self) -> tuple[Plan, Queue]:
        """Take the turns."""
        self._let_holds_end()
        every, left_out = turns(self._cluster, self._gangs, pending(self._cluster), profile=self._profile)
        self._turns = {turn.name: turn for turn in every}
        self._waiting = {name: entry for name, entry in self._queue.waiting.items() if name in self._turns}
        if self._reservation is not None and self._reservation.name not in self._turns:
            self._release()
        for batch in self._batches(self._due(every)):
            if self._attempts.desk.budget.meter.count >= POD_TRIED * self._policy.work:
                self._resume = batch[0]
                break
            self._take(batch)
        plan = self._attempts.notes.plan(left_out)
        return plan, Queue(self._waiting, self._resume.order if self._resume else None, self._reservation, self._wake())

    def _let_holds_end(self) -> None:
        """Give up room that has been held for too long."""
        for hold in list(self._cluster.holds.values()):
            if hold.until is not None and hold.until <= self._now:
                self._cluster.apply(Release(hold.pod))

    # Which turns ------------------------------------------------------------------------------------------------------

    def _due(self, every: list[Turn]) -> list[Turn]:
        """Give the turns to take: new ones, then those that the last session did not come to, then the others."""
        due, resume = [], self._queue.resume
        for turn in every:
            entry = self._waiting.get(turn.name)
            if entry is None:
                due.append((0 if resume is None or turn.order < resume else 1, turn))
            elif self._is_due(turn, entry):
                due.append((2 if resume is not None and turn.order < resume else 1, turn))
        if resume is None:
            return [turn for _, turn in due]
        return [turn for _, turn in sorted(due)]

    def _is_due(self, turn: Turn, entry: Waiting) -> bool:
        return entry.version != self._version(turn) or self._now >= self._due_at(turn, entry)

    def _due_at(self, turn: Turn, entry: Waiting) -> int:
        held = self._reservation
        may_reserve = not turn.surplus and (held is None or held.name == turn.name or self._is_before_held(turn))
        return entry.due_at(self._cluster.events, self._patience, may_reserve=may_reserve)

    def _is_before_held(self, turn: Turn) -> bool:
        """Say whether a turn comes before the one for which room is held, and may have that room."""
        held = self._turns.get(self._reservation.name) if self._reservation is not None else None
        return held is not None and turn.order < held.order

    def _batches(self, due: list[Turn]) -> Iterator[list[Turn]]:
        """Give pods on their own many at once, but gangs, and whom room is or may be held for, one by one."""
        for alone, some in groupby(due, self._is_alone):
            listed = list(some)
            size = 1 if alone else _CHUNK
            for first in range(0, len(listed), size):
                yield listed[first : first + size]

    def _is_alone(self, turn: Turn) -> bool:
        entry = self._waiting.get(turn.name)
        starving = entry is not None and entry.is_starving(self._now, self._patience)
        held = self._reservation is not None and self._reservation.name == turn.name
        return turn.gang is not None or starving or held

    def _version(self, turn: Turn) -> tuple[int, ...]:
        if turn.gang is not None:
            return self._gangs.version(turn.gang)
        row = self._cluster.pod_row(turn.pods[0])
        return int(self._cluster.pods.spec[row]), int(self._cluster.pods.labels[row])

    # Taking them ------------------------------------------------------------------------------------------------------

    def _take(self, batch: list[Turn]) -> None:
        """Take some turns, pods on their own or one gang, and note which of them failed."""
        before = self._reservation
        if before is not None and before.name == batch[0].name:
            self._release()  # it is its own
        if batch[0].gang is not None or (self._reservation is not None and self._reservation.until is not None):
            refused = {turn.name: why for turn in batch if (why := self._around_reservation(turn)) is not None}
        else:
            refused = self._attempts.solos([turn.key for turn in batch])
        for turn in batch:
            found = refused.get(turn.name)
            if found is None:
                self._waiting.pop(turn.name, None)
            else:
                self._note(turn, found, before)

    def _once(self, turn: Turn) -> Refused | None:
        if turn.gang is None:
            return self._attempts.solos(turn.pods).get(turn.key)
        return self._attempts.surplus(turn) if turn.surplus else self._attempts.gang(turn)

    def _around_reservation(self, turn: Turn) -> Refused | None:
        """Take a turn; into room that is held for another only if it is known to end before that is needed."""
        held = self._reservation
        lasts = self._duration(self._cluster.pod_row(turn.pods[0]), self._gangs)
        if held is None or held.until is None or lasts is None or self._now + lasts > held.until:
            return self._once(turn)
        # The others hear nothing of room that is held again at once.
        for hold in held.holds:
            self._quietly(Release(hold.pod))
        try:
            return self._once(turn)
        finally:
            for hold in held.holds:
                self._quietly(hold)

    def _quietly(self, edit: Edit) -> None:
        """Change a hold without telling those who wait for room."""
        gone = self._cluster.events[Event.POD_GONE]
        self._cluster.apply(edit)
        self._cluster.events[Event.POD_GONE] = gone

    def _note(self, turn: Turn, why: Refused, held: Reservation | None) -> None:
        before = self._waiting.get(turn.name)
        self._waiting[turn.name] = entry = Waiting(
            since=before.since if before is not None else self._now,
            tried=self._now,
            attempts=before.attempts + 1 if before is not None else 1,
            message=why.message,
            cures=tuple(sorted(why.cures)),
            events=why.events,
            version=self._version(turn),
            room=why.room,
            passed_over_until=before.passed_over_until if before is not None else 0,
        )
        free = self._reservation is None or self._is_before_held(turn)
        if free and not turn.surplus and entry.is_starving(self._now, self._patience):
            mine = held if held is not None and held.name == turn.name else None
            self._reserve(turn, entry, mine)

    # Reservations -----------------------------------------------------------------------------------------------------

    def _release(self) -> None:
        """Give up what is held for a turn that starved."""
        assert self._reservation is not None
        for hold in self._reservation.holds:
            if self._cluster.holds.get(hold.pod) == hold:
                self._quietly(Release(hold.pod))
        self._reservation = None

    def _reserve(self, turn: Turn, entry: Waiting, before: Reservation | None) -> None:
        """Hold room for a turn that starves, unless it has had that for too long, or it will never help."""
        since = before.since if before is not None else self._now
        found = None
        if self._now - since < self._patience.reserved_for:
            ends = expected_ends(self._cluster, self._gangs, self._duration, now=self._now)
            found = reserve(self._attempts.placer, self._need(turn), ends, now=self._now)
            self._attempts.desk.budget.spend(EXPECTED_END * len(ends))
        if found is None:
            later = self._now + self._patience.reserved_for
            self._waiting[turn.name] = replace(entry, passed_over_until=later)
            if before is not None:
                self._cluster.events[Event.POD_GONE] += 1  # what was held is free for others
            return
        if self._reservation is not None:
            self._release()
        holds, until = found
        kept = tuple(Hold(hold.pod, hold.node, None, turn.priority) for hold in holds)
        for hold in kept:
            self._quietly(hold)
        self._reservation = Reservation(turn.name, since, kept, until)

    def _need(self, turn: Turn) -> Need:
        rows = tuple(map(self._cluster.pod_row, turn.pods))
        return self._gangs.standing(turn.gang, rows).need() if turn.gang is not None else Need(turn.key, 1, rows, ())

    def _duration(self, row: int, gangs: Gangs) -> int | None:
        """Give how long a pod runs, in microseconds, if anybody said so."""
        key = gangs.key_of(row)
        if key is not None:
            return gangs.gang(key).duration
        pod = self._cluster.pods.objects[row]
        said = (pod.metadata.annotations or {}).get(DURATION) if pod is not None else None
        try:
            return duration(said) if said else None
        except InputError:
            return None

    def _wake(self) -> int | None:
        """Give when something becomes due by itself."""
        if self._resume is not None:
            return self._now
        times = [self._due_at(self._turns[name], entry) for name, entry in self._waiting.items()]
        times += [hold.until for hold in self._cluster.holds.values() if hold.until is not None]
        return min(times, default=None)
