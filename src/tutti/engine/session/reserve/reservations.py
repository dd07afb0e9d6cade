"""Reservations: which starving turn has room held, who may use that room, and when the reservation passes on.

Contract: there is at most one reservation. It belongs to the first starving turn in the queue that could start in an
empty cluster; after `Patience.reserved_for` it passes on to the next. Changes are edits of the cluster and of the
queue, so that a rollback undoes them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

from msgspec.structs import replace

from tutti.cluster.edits import Hold, Release
from tutti.cluster.trial import Trial
from tutti.cluster.work.work_budget import WorkBudget
from tutti.engine.gangs.gang_state import Need
from tutti.engine.session.context import SessionContext
from tutti.engine.session.plan import Turn
from tutti.engine.session.policy import Patience
from tutti.engine.session.queue import Queue
from tutti.engine.session.queue_state import Reservation
from tutti.engine.session.reserve.expected_ends import ExpectedEnds, duration_of, expected_ends
from tutti.engine.session.reserve.reservation_plan import plan_reservation

_MAX_PLANS = 32
"""How many starving turns a session looks at, if the first of them can never start."""


class Reservations:
    """See the module's docstring."""

    def __init__(self, context: SessionContext, queue: Queue, now: int, patience: Patience) -> None:
        self._context, self._queue, self._now, self._patience = context, queue, now, patience
        self._cluster, self._gangs = context.cluster, context.gangs
        self._last: Reservation | None = None
        """The reservation that its owner gave up for an attempt, until its room is reserved again or announced."""

    @property
    def is_limited(self) -> bool:
        """Whether there is a reservation whose room is needed at a known time only."""
        reservation = self._queue.reservation
        return reservation is not None and reservation.until is not None

    def drop_outdated(self) -> None:
        """Release the reservation if its turn has left, a node is gone, or it was held for too long."""
        reservation, nodes = self._queue.reservation, self._cluster.nodes
        if reservation is None:
            return
        entry = self._queue.waiting.get(reservation.name)
        if entry is None or not all(hold.node in nodes.row_of for hold in reservation.holds):
            self._release(announce=True)
        elif self._now - reservation.since >= self._patience.reserved_for:
            self._release(announce=True)
            later = self._now + self._patience.reserved_for
            self._queue.put(reservation.name, replace(entry, no_reservation_before=later))

    def suspend_own(self, turn: Turn) -> Reservation | None:
        """Release a turn's own reservation, so that the turn may use the room; return the reservation."""
        reservation = self._queue.reservation
        if reservation is None or reservation.name != turn.name:
            return None
        self._last = reservation
        self._release(announce=False)
        return reservation

    def hold(self, reservation: Reservation) -> None:
        """Hold the room of a reservation, for its pods that are still pending."""
        pods = self._cluster.pods
        for hold in reservation.holds:
            row = pods.row_of.get(hold.owner)
            if row is not None and pods.node_names[row] is None:
                self._cluster.apply(hold)
        self._queue.reservation = reservation

    def renew(self, own: Reservation) -> None:
        """Reserve room again after the owner's attempt has failed; without budget, keep the room that it had.

        An owner that failed in its reserved room for another reason than room gets no reservation for a while.
        Otherwise it would be refused there, give the room to the next turn, lack room again, and so on for ever.
        """
        entry, context = self._queue.waiting.get(own.name), self._context
        if entry is not None and not entry.needs_room and not self._has_nomination(own):
            self._queue.put(own.name, replace(entry, no_reservation_before=self._now + self._patience.reserved_for))
        if context.may_defer_turn and context.budget.is_exhausted() and entry is not None and entry.needs_room:
            self.hold(own)
        else:
            self.reserve()

    def _has_nomination(self, own: Reservation) -> bool:
        """Return whether a turn waits for victims, so that its room is held by nominations."""
        turn = self._queue.turn(own.name)
        return turn is not None and any(pod in self._cluster.holds for pod in turn.pods)

    def _release(self, *, announce: bool) -> None:
        """Release the reservation; without `announce` no turn is retried, because the room is not free for others."""
        reservation = self._queue.reservation
        assert reservation is not None
        for hold in reservation.holds:
            if self._cluster.holds.get(hold.owner) == hold:
                self._cluster.apply(Release(hold.owner, announce=announce))
        self._queue.reservation = None

    def may_use_room(self, turn: Turn) -> bool:
        """Return whether a turn is known to end before the reserved room is needed."""
        reservation = self._queue.reservation
        if reservation is None or reservation.until is None:
            return False
        duration = duration_of(self._cluster, self._gangs, self._cluster.pod_row(turn.pods[0]))
        return duration is not None and self._now + duration <= reservation.until

    @contextmanager
    def room_for(self, turn: Turn) -> Iterator[None]:
        """Free the reserved room for the length of a block if a turn is known to end before that room is needed."""
        reservation = self._queue.reservation
        if reservation is None or not self.may_use_room(turn):
            yield
            return
        for hold in reservation.holds:
            self._cluster.apply(Release(hold.owner, announce=False))
        try:
            yield
        finally:
            for hold in reservation.holds:
                if hold.owner in self._cluster.pods.row_of:
                    self._cluster.apply(hold)

    # Making a reservation ---------------------------------------------------------------------------------------------

    def reserve(self) -> None:
        """Hold room for the first starving turn, unless an earlier turn in the queue has the reservation."""
        ends: ExpectedEnds | None = None
        context, old = self._context, self._queue.reservation or self._last
        for _ in range(_MAX_PLANS):
            budget = context.turn_budget
            name = self._queue.first_starving()
            turn = self._queue.turn(name) if name is not None else None
            if turn is None or name is None or budget.is_exhausted():
                break
            ends = ends or expected_ends(self._cluster, self._gangs, now=self._now)
            planned = self._plan(turn, ends, budget)
            if planned is not None:
                self._make(turn, *planned)
                break
            if budget.is_exhausted():
                break  # nobody knows whether the turn could start
            self._postpone(name)
            context.may_defer_turn = True
        if old is not None and old is not self._queue.reservation:
            self._announce_free_room(old)
            self._last = None

    def _plan(self, turn: Turn, ends: ExpectedEnds, budget: WorkBudget) -> tuple[list[Hold], int | None] | None:
        """Return the holds for a turn and when their room is free; the room of the current reservation counts as free.

        The current reservation belongs to a later turn, and gives way if this turn gets one.
        """
        current = self._queue.reservation
        with Trial(self._cluster):
            for hold in current.holds if current is not None else ():
                if self._cluster.holds.get(hold.owner) == hold:
                    self._cluster.apply(Release(hold.owner, announce=False))
            return plan_reservation(self._context.placer, self._need(turn), ends, now=self._now, budget=budget)

    def _make(self, turn: Turn, holds: list[Hold], until: int | None) -> None:
        if self._queue.reservation is not None:
            self._release(announce=False)
        since = self._last.since if self._last is not None and self._last.name == turn.name else self._now
        with_priority = tuple(Hold(hold.owner, hold.node, None, turn.priority) for hold in holds)
        self.hold(Reservation(turn.name, since, with_priority, until))

    def _postpone(self, name: str) -> None:
        """Let a turn that cannot start, and all turns that fail like it, wait for a reservation."""
        self._queue.postpone_reservation(name, self._now + self._patience.reserved_for)

    def _announce_free_room(self, old: Reservation) -> None:
        """Announce the event that room of an old reservation is free for others."""
        for node in self._freed_nodes(old):
            owner = f"reservation of {old.name}"
            self._cluster.apply(Hold(owner, node, amounts=(("cpu", 0),)))
            self._cluster.apply(Release(owner))

    def _freed_nodes(self, old: Reservation) -> list[str]:
        """Return the nodes where room of an old reservation is neither held again nor taken by its own pods."""
        pods, holds, new = self._cluster.pods, self._cluster.holds, self._queue.reservation
        count: Counter[tuple[int, str | None]] = Counter()
        for hold in old.holds:
            if hold.owner in pods.row_of:
                count[int(pods.spec[pods.row_of[hold.owner]]), hold.node] += 1
        for owner in {hold.owner for each in (old, new) if each is not None for hold in each.holds}:
            row = pods.row_of.get(owner)
            if row is not None:
                node = holds[owner].node if owner in holds else pods.node_names[row]
                count[int(pods.spec[row]), node] -= 1
        return sorted({node for (_, node), freed in count.items() if node is not None and freed > 0})

    def _need(self, turn: Turn) -> Need:
        rows = tuple(map(self._cluster.pod_row, turn.pods))
        return self._gangs.state(turn.gang, rows).need() if turn.gang is not None else Need(turn.key, 1, rows, ())
