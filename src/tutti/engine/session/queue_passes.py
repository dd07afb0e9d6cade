"""Passes of a live scheduler: a queue with backoff, reservations, and resuming after the work budget is exhausted.

A turn that failed before is tried only when it is due (`queue`). When a session runs out of budget, the next session
takes new turns first, then the turns that were not reached. The first turn that starves for room gets a reservation:
room is held where the turn will be able to start, and later turns may use that room only if they are known to end
before the room is needed.
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
from tutti.engine.session.reservations import duration_of, expected_ends, plan_reservation


class QueuePasses(Passes):
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
        self._turns_by_name: dict[str, Turn] = {}
        self._is_limited = only is not None
        self._stopped_at: Turn | None = None
        self._release_expired_holds()

    def _release_expired_holds(self) -> None:
        for hold in list(self.cluster.holds.values()):
            if hold.until is not None and hold.until <= self._now:
                self.cluster.apply(Release(hold.owner))

    # Which turns are due ----------------------------------------------------------------------------------------------

    def turns_due(self, all_turns: list[Turn]) -> list[Turn]:
        """Return new turns first, then due turns that the last session did not reach, then all other due turns."""
        queue = self._queue
        self._turns_by_name = {turn.name: turn for turn in all_turns}
        if not self._is_limited:
            for name in [name for name in queue.waiting if name not in self._turns_by_name]:
                queue.drop(name)
            if queue.reservation is not None and queue.reservation.name not in self._turns_by_name:
                self._release_reservation()
        due, resume = [], queue.resume
        for turn in all_turns:
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
        reservation = self._queue.reservation
        is_available = reservation is None or reservation.name == turn.name or self._precedes_reservation(turn)
        may_reserve = not turn.surplus and is_available
        return entry.due_at(self.cluster.events, self._patience, may_reserve=may_reserve)

    def _precedes_reservation(self, turn: Turn) -> bool:
        """Return whether a turn comes before the turn that has the reservation, and may therefore replace it."""
        reservation = self._queue.reservation
        owner = self._turns_by_name.get(reservation.name) if reservation is not None else None
        return owner is not None and turn.order < owner.order

    def _version(self, turn: Turn) -> tuple[int, ...]:
        """Return numbers that change when the turn's pods or group change."""
        if turn.gang is not None:
            return self._gangs.version(turn.gang)
        row = self.cluster.pod_row(turn.pods[0])
        return int(self.cluster.pods.spec[row]), int(self.cluster.pods.labels[row])

    def may_retry_failure(self) -> bool:
        """Return False: a failed turn waits at least until its backoff is over."""
        return False

    def is_taken_alone(self, turn: Turn) -> bool:
        """Return whether a turn is a gang, starves, or has the reservation."""
        entry, reservation = self._queue.waiting.get(turn.name), self._queue.reservation
        starving = entry is not None and entry.is_starving(self._now, self._patience)
        return turn.gang is not None or starving or (reservation is not None and reservation.name == turn.name)

    # Taking turns -----------------------------------------------------------------------------------------------------

    def take_turns(self, batch: list[Turn]) -> None:
        """Attempt a batch, and update the queue: drop turns that succeeded, record turns that failed."""
        previous = self._queue.reservation
        if previous is not None and previous.name == batch[0].name:
            self._release_reservation()  # the turn may use its own reserved room
        reservation = self._queue.reservation
        try:
            if batch[0].gang is not None or (reservation is not None and reservation.until is not None):
                failed: dict[str, FailedAttempt] = {}
                for turn in batch:
                    failed |= self._attempt_with_reservation(turn)
            else:
                failed = self.attempt(batch)
        except OutOfBudgetError:
            if previous is not reservation and previous is not None:
                self._hold_reservation(previous)
            raise
        self.failed |= failed
        for turn in batch:
            failure = failed.get(turn.name)
            if failure is None:
                self._queue.drop(turn.name)
            else:
                self._record_failure(turn, failure, previous)

    def _attempt_with_reservation(self, turn: Turn) -> dict[str, FailedAttempt]:
        """Attempt a turn, with the reserved room only if the turn is known to end before that room is needed."""
        reservation = self._queue.reservation
        duration = duration_of(self.cluster, self._gangs, self.cluster.pod_row(turn.pods[0]))
        until = reservation.until if reservation is not None else None
        if reservation is None or until is None or duration is None or self._now + duration > until:
            return self.attempt([turn])
        for hold in reservation.holds:
            self.cluster.apply(Release(hold.owner, announce=False))
        try:
            return self.attempt([turn])
        finally:
            for hold in reservation.holds:
                self.cluster.apply(hold)

    def _record_failure(self, turn: Turn, failure: FailedAttempt, reservation: Reservation | None) -> None:
        """Put a failed turn into the queue, and reserve room if the turn starves.

        `reservation` is the reservation from before the attempt, which may belong to this turn.
        """
        previous = self._queue.waiting.get(turn.name)
        entry = WaitingTurn(
            since=previous.since if previous is not None else self._now,
            tried=self._now,
            attempts=previous.attempts + 1 if previous is not None else 1,
            message=failure.message,
            cures=tuple(sorted(failure.cures)),
            events=failure.events,
            version=self._version(turn),
            needs_room=failure.needs_room,
            no_reservation_before=previous.no_reservation_before if previous is not None else 0,
        )
        self._queue.put(turn.name, entry)
        may_reserve = self._queue.reservation is None or self._precedes_reservation(turn)
        if may_reserve and not turn.surplus and entry.is_starving(self._now, self._patience):
            is_own = reservation is not None and reservation.name == turn.name
            self._reserve(turn, entry, reservation if is_own else None)

    # Reservations -----------------------------------------------------------------------------------------------------

    def _release_reservation(self) -> None:
        """Release the reservation without announcing an event, because the room is not free for other turns."""
        reservation = self._queue.reservation
        assert reservation is not None
        for hold in reservation.holds:
            if self.cluster.holds.get(hold.owner) == hold:
                self.cluster.apply(Release(hold.owner, announce=False))
        self._queue.reservation = None

    def _reserve(self, turn: Turn, entry: WaitingTurn, previous: Reservation | None) -> None:
        """Hold room for a starving turn, unless its reservation is too old or the turn can never fit.

        `previous` is the turn's own reservation from before the attempt.
        """
        since = previous.since if previous is not None else self._now
        planned = None
        if self._now - since < self._patience.reserved_for:
            ends = expected_ends(self.cluster, self._gangs, now=self._now)
            planned = plan_reservation(self.context.placer, self._need(turn), ends, now=self._now)
            self.context.budget.spend(EXPECTED_END * len(ends))
        if planned is None:
            earliest = self._now + self._patience.reserved_for
            self._queue.put(turn.name, replace(entry, no_reservation_before=earliest))
            if previous is not None:
                self._announce_free_room(previous)
            return
        if self._queue.reservation is not None:
            self._release_reservation()
        holds, until = planned
        with_priority = tuple(Hold(hold.owner, hold.node, None, turn.priority) for hold in holds)
        self._hold_reservation(Reservation(turn.name, since, with_priority, until))

    def _hold_reservation(self, reservation: Reservation) -> None:
        for hold in reservation.holds:
            self.cluster.apply(hold)
        self._queue.reservation = reservation

    def _announce_free_room(self, previous: Reservation) -> None:
        """Announce the event that the room of a reservation that is not renewed is free."""
        for hold in previous.holds[:1]:
            self.cluster.apply(hold)
            self.cluster.apply(Release(hold.owner))

    def _need(self, turn: Turn) -> Need:
        rows = tuple(map(self.cluster.pod_row, turn.pods))
        return self._gangs.state(turn.gang, rows).need() if turn.gang is not None else Need(turn.key, 1, rows, ())

    # The end ----------------------------------------------------------------------------------------------------------

    def record_stop(self, turn: Turn) -> None:
        """Record the turn at which the next session resumes."""
        self._stopped_at = turn

    def update_queue(self) -> None:
        """Store where the next session resumes, and the latest time at which the next session is needed."""
        self._queue.resume = self._stopped_at.order if self._stopped_at is not None else None
        self._queue.wake = self._now if self._stopped_at is not None else self._next_due()

    def _next_due(self) -> int | None:
        """Return the earliest time at which a waiting turn is due or a hold expires."""
        turns, waiting = self._turns_by_name, self._queue.waiting.items()
        times = [self._due_at(turns[name], entry) for name, entry in waiting if name in turns]
        times += [hold.until for hold in self.cluster.holds.values() if hold.until is not None]
        return min(times, default=None)
