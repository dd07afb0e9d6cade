"""Passes of a live scheduler: with a queue, backoff, reservations, and a place to go on from.

A turn that failed before is tried only when it is due (`queue`). A session that runs out of budget is continued by the
next one: new turns first, then those that it did not get to. The first turn that has starved for room gets a
reservation: room is held where the turn will be able to start, and later turns may use that room only if they are known
to end before.
"""

from __future__ import annotations

from collections.abc import Collection

from msgspec.structs import replace

from tutti.cluster.edits import Hold, Release
from tutti.cluster.work.meter import EXPECTED_END
from tutti.engine.gangs.gang_state import Need
from tutti.engine.placement.engine import Engine
from tutti.engine.session.context import FailedAttempt, OutOfBudgetError
from tutti.engine.session.passes import Passes
from tutti.engine.session.plan import Turn
from tutti.engine.session.policy import Patience, Policy
from tutti.engine.session.queue import Queue, Reservation, WaitingTurn
from tutti.engine.session.reservations import duration_of, expected_ends, reserve


class PatientPasses(Passes):
    """See the module's docstring."""

    def __init__(
        self,
        engine: Engine,
        queue: Queue,
        now: int,
        policy: Policy,
        *,
        patience: Patience,
        only: Collection[str] | None,
    ) -> None:
        super().__init__(engine, now, policy, only=only)
        self._queue, self._now, self._patience = queue, now, patience
        self._gangs = self.context.gangs
        self._by_name: dict[str, Turn] = {}
        self._limited = only is not None
        self._resume: Turn | None = None
        self._release_expired_holds()

    def _release_expired_holds(self) -> None:
        for hold in list(self.cluster.holds.values()):
            if hold.until is not None and hold.until <= self._now:
                self.cluster.apply(Release(hold.pod))

    # Which turns are due ----------------------------------------------------------------------------------------------

    def due(self, every: list[Turn]) -> list[Turn]:
        """Return new turns first, then those that the last session did not get to, then the others that are due."""
        queue = self._queue
        self._by_name = {turn.name: turn for turn in every}
        if not self._limited:
            for name in [name for name in queue.waiting if name not in self._by_name]:
                queue.drop(name)
            if queue.reservation is not None and queue.reservation.name not in self._by_name:
                self._release_reservation()
        due, resume = [], queue.resume
        for turn in every:
            entry = queue.waiting.get(turn.name)
            if entry is None:
                due.append((0 if resume is None or turn.order < resume else 1, turn))
            elif turn.name not in self.failed and self._is_due(turn, entry):
                due.append((2 if resume is not None and turn.order < resume else 1, turn))
        if resume is None:
            return [turn for _, turn in due]
        return [turn for _, turn in sorted(due)]

    def _is_due(self, turn: Turn, entry: WaitingTurn) -> bool:
        return entry.version != self._version(turn) or self._now >= self._due_at(turn, entry)

    def _due_at(self, turn: Turn, entry: WaitingTurn) -> int:
        held = self._queue.reservation
        may_reserve = not turn.surplus and (held is None or held.name == turn.name or self._is_before_reserved(turn))
        return entry.due_at(self.cluster.events, self._patience, may_reserve=may_reserve)

    def _is_before_reserved(self, turn: Turn) -> bool:
        """Return whether a turn comes before the one that has the reservation, and may take its room."""
        held = self._queue.reservation
        reserved = self._by_name.get(held.name) if held is not None else None
        return reserved is not None and turn.order < reserved.order

    def _version(self, turn: Turn) -> tuple[int, ...]:
        if turn.gang is not None:
            return self._gangs.version(turn.gang)
        row = self.cluster.pod_row(turn.pods[0])
        return int(self.cluster.pods.spec[row]), int(self.cluster.pods.labels[row])

    def is_any_cured(self) -> bool:
        """Return no: a turn that failed waits at least for its backoff."""
        return False

    def is_taken_alone(self, turn: Turn) -> bool:
        """Return whether a turn is a gang, may get the reservation, or has it."""
        entry, held = self._queue.waiting.get(turn.name), self._queue.reservation
        starving = entry is not None and entry.is_starving(self._now, self._patience)
        return turn.gang is not None or starving or (held is not None and held.name == turn.name)

    # Taking turns -----------------------------------------------------------------------------------------------------

    def take(self, batch: list[Turn]) -> None:
        """Take some turns, and keep in the queue which of them failed."""
        before = self._queue.reservation
        if before is not None and before.name == batch[0].name:
            self._release_reservation()  # the room is its own
        held = self._queue.reservation
        try:
            if batch[0].gang is not None or (held is not None and held.until is not None):
                failed: dict[str, FailedAttempt] = {}
                for turn in batch:
                    failed |= self._attempt_beside_reservation(turn)
            else:
                failed = self.attempt(batch)
        except OutOfBudgetError:
            if before is not held and before is not None:
                self._hold_reservation(before)
            raise
        self.failed |= failed
        for turn in batch:
            failure = failed.get(turn.name)
            if failure is None:
                self._queue.drop(turn.name)
            else:
                self._keep(turn, failure, before)

    def _attempt_beside_reservation(self, turn: Turn) -> dict[str, FailedAttempt]:
        """Take a turn; it may use reserved room only if it is known to end before that room is needed."""
        held = self._queue.reservation
        duration = duration_of(self.cluster, self._gangs, self.cluster.pod_row(turn.pods[0]))
        if held is None or held.until is None or duration is None or self._now + duration > held.until:
            return self.attempt([turn])
        for hold in held.holds:
            self.cluster.apply(Release(hold.pod, announce=False))
        try:
            return self.attempt([turn])
        finally:
            for hold in held.holds:
                self.cluster.apply(hold)

    def _keep(self, turn: Turn, failure: FailedAttempt, held: Reservation | None) -> None:
        """Keep a failed turn in the queue, with a reservation if it starves."""
        before = self._queue.waiting.get(turn.name)
        entry = WaitingTurn(
            since=before.since if before is not None else self._now,
            tried=self._now,
            attempts=before.attempts + 1 if before is not None else 1,
            message=failure.message,
            cures=tuple(sorted(failure.cures)),
            events=failure.events,
            version=self._version(turn),
            needs_room=failure.needs_room,
            no_reservation_before=before.no_reservation_before if before is not None else 0,
        )
        self._queue.put(turn.name, entry)
        may_reserve = self._queue.reservation is None or self._is_before_reserved(turn)
        if may_reserve and not turn.surplus and entry.is_starving(self._now, self._patience):
            self._reserve(turn, entry, held if held is not None and held.name == turn.name else None)

    # Reservations -----------------------------------------------------------------------------------------------------

    def _release_reservation(self) -> None:
        """Release what is held for a turn that starved. Nobody is told: the room is still spoken for."""
        held = self._queue.reservation
        assert held is not None
        for hold in held.holds:
            if self.cluster.holds.get(hold.pod) == hold:
                self.cluster.apply(Release(hold.pod, announce=False))
        self._queue.reservation = None

    def _reserve(self, turn: Turn, entry: WaitingTurn, before: Reservation | None) -> None:
        """Hold room for a turn that starves, unless it has had that for too long, or waiting will never help."""
        since = before.since if before is not None else self._now
        found = None
        if self._now - since < self._patience.reserved_for:
            ends = expected_ends(self.cluster, self._gangs, now=self._now)
            found = reserve(self.context.placer, self._need(turn), ends, now=self._now)
            self.context.budget.spend(EXPECTED_END * len(ends))
        if found is None:
            later = self._now + self._patience.reserved_for
            self._queue.put(turn.name, replace(entry, no_reservation_before=later))
            if before is not None:
                self._announce_free_room(before)
            return
        if self._queue.reservation is not None:
            self._release_reservation()
        holds, until = found
        kept = tuple(Hold(hold.pod, hold.node, None, turn.priority) for hold in holds)
        self._hold_reservation(Reservation(turn.name, since, kept, until))

    def _hold_reservation(self, reservation: Reservation) -> None:
        for hold in reservation.holds:
            self.cluster.apply(hold)
        self._queue.reservation = reservation

    def _announce_free_room(self, before: Reservation) -> None:
        """Let others know that the room of a reservation which is not renewed is free."""
        for hold in before.holds[:1]:
            self.cluster.apply(hold)
            self.cluster.apply(Release(hold.pod))

    def _need(self, turn: Turn) -> Need:
        rows = tuple(map(self.cluster.pod_row, turn.pods))
        return self._gangs.state(turn.gang, rows).need() if turn.gang is not None else Need(turn.key, 1, rows, ())

    # The end ----------------------------------------------------------------------------------------------------------

    def stop_at(self, turn: Turn) -> None:
        """Note where the next session goes on."""
        self._resume = turn

    def finish(self) -> None:
        """Note where the next session goes on, and when it is needed at the latest."""
        self._queue.resume = self._resume.order if self._resume is not None else None
        self._queue.wake = self._now if self._resume is not None else self._next_due()

    def _next_due(self) -> int | None:
        waiting = self._queue.waiting.items()
        times = [self._due_at(self._by_name[name], entry) for name, entry in waiting if name in self._by_name]
        times += [hold.until for hold in self.cluster.holds.values() if hold.until is not None]
        return min(times, default=None)
