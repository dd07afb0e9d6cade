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
from tutti.cluster.edits import Release
from tutti.cluster.events import Event
from tutti.engine.attempts import Attempts, Options, Refused
from tutti.engine.engine import Engine
from tutti.engine.plan import Plan
from tutti.engine.queue import Patience, Queue, Reservation, Waiting
from tutti.engine.reserve import expected_ends, reserve
from tutti.engine.schedule import pending
from tutti.engine.standing import Gangs, Need
from tutti.engine.turns import Turn, turns
from tutti.exceptions import InputError
from tutti.kube.durations import duration
from tutti.kube.gangs.additions import DURATION
from tutti.kube.times import timestamp

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
        self._queue, self._now, self._policy = queue, now, policy
        options = Options(policy.preemption, policy.consolidation, graceful=timestamp(now))
        self._attempts = Attempts(engine, options)
        self._gangs: Gangs = self._attempts.gangs
        self._waiting: dict[str, Waiting] = {}
        self._reservation: Reservation | None = None
        self._resume: Turn | None = None

    def run(self) -> tuple[Plan, Queue]:
        """Take the turns."""
        self._give_up_reservation()
        every, left_out = turns(self._cluster, self._gangs, pending(self._cluster), profile=self._profile)
        known = {turn.name: turn for turn in every}
        self._waiting = {name: entry for name, entry in self._queue.waiting.items() if name in known}
        for batch in self._batches(self._due(every)):
            if self._attempts.work >= self._policy.work:
                self._resume = batch[0]
                break
            self._take(batch)
        if self._queue.reservation is not None and self._reservation != self._queue.reservation:
            self._cluster.events[Event.POD_GONE] += 1  # now it is
        plan = self._attempts.notes.plan(left_out)
        return plan, Queue(self._waiting, self._resume.order if self._resume else None, self._reservation, self._wake())

    # Which turns ------------------------------------------------------------------------------------------------------

    def _due(self, every: list[Turn]) -> list[Turn]:
        """Give the turns to take: new ones, then those that the last session did not come to, then the others."""
        due, resume = [], self._queue.resume
        reserved = self._queue.reservation.name if self._queue.reservation is not None else None
        for turn in every:
            entry = self._waiting.get(turn.name)
            if entry is None:
                due.append((0 if resume is None or turn.order < resume else 1, turn))
            elif turn.name == reserved or self._is_due(turn, entry):
                due.append((2 if resume is not None and turn.order < resume else 1, turn))
        if resume is None:
            return [turn for _, turn in due]
        return [turn for _, turn in sorted(due)]

    def _is_due(self, turn: Turn, entry: Waiting) -> bool:
        patience = self._policy.patience
        if entry.is_due(self._now, self._version(turn), self._cluster.events, patience):
            return True
        # Whoever has come to starve needs no event to get a reservation.
        starving = entry.room and not turn.surplus and self._queue.reservation is None
        return starving and self._now - entry.since >= patience.starving_after and self._now >= entry.passed_over_until

    @staticmethod
    def _batches(due: list[Turn]) -> Iterator[list[Turn]]:
        """Give gangs one by one, and pods on their own many at once."""
        for alone, some in groupby(due, lambda turn: turn.gang is None):
            listed = list(some)
            size = _CHUNK if alone else 1
            for first in range(0, len(listed), size):
                yield listed[first : first + size]

    def _version(self, turn: Turn) -> tuple[int, ...]:
        if turn.gang is not None:
            return self._gangs.version(turn.gang)
        row = self._cluster.pod_row(turn.pods[0])
        return int(self._cluster.pods.spec[row]), int(self._cluster.pods.labels[row])

    # Taking them ------------------------------------------------------------------------------------------------------

    def _take(self, batch: list[Turn]) -> None:
        """Take some turns, pods on their own or one gang, and note which of them failed."""
        if batch[0].gang is not None:
            why = self._around_reservation(batch[0])
            refused = {batch[0].name: why} if why is not None else {}
        elif self._reservation is None or self._reservation.until is None:
            refused = self._attempts.solos([turn.key for turn in batch])
        else:
            refused = {turn.name: why for turn in batch if (why := self._around_reservation(turn)) is not None}
        for turn in batch:
            found = refused.get(turn.name)
            if found is None:
                self._waiting.pop(turn.name, None)
            else:
                self._note(turn, found)

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
        for hold in held.holds:
            self._cluster.apply(Release(hold.pod))
        try:
            return self._once(turn)
        finally:
            for hold in held.holds:
                self._cluster.apply(hold)

    def _note(self, turn: Turn, why: Refused) -> None:
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
        if self._reservation is None and why.room and not turn.surplus:
            self._reserve(turn, entry)

    # Reservations -----------------------------------------------------------------------------------------------------

    def _give_up_reservation(self) -> None:
        """Start without what was held: whom it was for comes to its turn again, and may find it free."""
        if self._queue.reservation is not None:
            # That is no news to the others: if nothing has changed, the same room is held again.
            events = self._cluster.events.copy()
            for hold in self._queue.reservation.holds:
                if self._cluster.holds.get(hold.pod) == hold:
                    self._cluster.apply(Release(hold.pod))
            self._cluster.events[:] = events

    def _reserve(self, turn: Turn, entry: Waiting) -> None:
        """Hold room for a turn that starves."""
        patience, before = self._policy.patience, self._queue.reservation
        if self._now - entry.since < patience.starving_after or self._now < entry.passed_over_until:
            return
        since = before.since if before is not None and before.name == turn.name else self._now
        if self._now - since >= patience.reserved_for:
            over = replace(entry, passed_over_until=self._now + patience.reserved_for)
            self._waiting[turn.name] = over
            return
        ends = expected_ends(self._cluster, self._gangs, self._duration)
        found = reserve(self._attempts.placer, self._need(turn), ends, now=self._now)
        if found is None:
            return
        holds, until = found
        for hold in holds:
            self._cluster.apply(hold)
        self._reservation = Reservation(turn.name, since, tuple(holds), until)

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
        patience, events = self._policy.patience, self._cluster.events
        if self._resume is not None:
            return self._now
        times = []
        for entry in self._waiting.values():
            times.append(entry.tried + patience.forgotten_after)
            if entry.happened(events):
                times.append(entry.backoff_ends(patience))
            elif entry.room and self._reservation is None:
                times.append(max(entry.since + patience.starving_after, entry.backoff_ends(patience)))
        return min(times, default=None)
