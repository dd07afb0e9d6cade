"""The queue: which turns failed, since when, and what would make them worth another attempt.

A failed turn is tried again when an event has happened that may cure it (each plugin says which), but not before its
backoff is over, which doubles with every attempt; or when its own pods or its group have changed; or after a long time
in any case.

Contract: a `Queue` belongs to one cluster and changes in place. It follows the cluster's marks: a rollback of the
cluster undoes what sessions did to the queue since. `freeze` gives a record that can be written down; a queue made from
such a record for another cluster tries everything again when its backoff is over. Losing a queue costs one round of
attempts, nothing else.
"""

from __future__ import annotations

import msgspec
from msgspec.structs import replace

from tutti.cluster.cluster import Cluster
from tutti.cluster.edits import Hold
from tutti.engine.session.plan import Order
from tutti.engine.session.policy import Patience


class WaitingTurn(msgspec.Struct, frozen=True):
    """A turn that failed."""

    since: int
    """When it was first tried."""
    tried: int
    """When it was last tried."""
    attempts: int
    message: str
    cures: tuple[int, ...]
    """The events that may cure it."""
    events: tuple[int, ...]
    """How often each event had happened when it was last tried."""
    version: tuple[int, ...]
    """The version of its pods and its group at that time."""
    needs_room: bool = False
    """Whether more room would help."""
    no_reservation_before: int = 0
    """Until when it gets no reservation, because it has had one for too long."""

    def due_at(self, events: list[int], patience: Patience, *, may_reserve: bool) -> int:
        """Return when to try again if nothing else happens; `may_reserve`: it could get a reservation."""
        due = self.tried + patience.retry_after
        if self.may_be_cured(events):
            due = min(due, self.backoff_ends(patience))
        if may_reserve and self.needs_room:
            starving = max(self.since + patience.starving_after, self.no_reservation_before)
            due = min(due, max(starving, self.backoff_ends(patience)))
        return due

    def is_starving(self, now: int, patience: Patience) -> bool:
        """Return whether it has waited for room for so long that room is to be reserved."""
        return self.needs_room and now - self.since >= patience.starving_after and now >= self.no_reservation_before

    def may_be_cured(self, events: list[int]) -> bool:
        """Return whether an event that may cure it has happened since it was last tried."""
        return any(events[cure] != self.events[cure] for cure in self.cures)

    def backoff_ends(self, patience: Patience) -> int:
        """Return the earliest time of the next attempt."""
        doubled = patience.first_backoff << min(self.attempts - 1, 30)
        return self.tried + min(doubled, patience.longest_backoff)


class Reservation(msgspec.Struct, frozen=True):
    """Room that is held for a turn that starves."""

    name: str
    since: int
    holds: tuple[Hold, ...]
    until: int | None = None
    """When the turn will be able to start, as far as the durations of running pods are known."""


class QueueRecord(msgspec.Struct, frozen=True):
    """A queue at one moment, for a recording or a restart."""

    waiting: dict[str, WaitingTurn] = {}
    """By the name of the turn."""
    resume: Order | None = None
    reservation: Reservation | None = None
    wake: int | None = None


class Queue:
    """See the module's docstring."""

    def __init__(self, cluster: Cluster, record: QueueRecord | None = None) -> None:
        """Make an empty queue, or one that goes on from a record of another cluster.

        Such a record counts the events of its own cluster, so its turns are due when their backoff is over, and its
        reservation is gone.
        """
        self.cluster = cluster
        self._waiting: dict[str, WaitingTurn] = {}
        self._resume: Order | None = None
        self._reservation: Reservation | None = None
        self._wake: int | None = None
        self._undo: list[tuple[str, object]] = []
        self._marks: list[int] = []
        if record is not None:
            for name, entry in record.waiting.items():
                self._waiting[name] = replace(entry, events=(-1,) * len(entry.events), version=())
            self._resume = record.resume
        cluster.attach(self)

    @property
    def waiting(self) -> dict[str, WaitingTurn]:
        """The failed turns by name; changed by `put` and `drop` only."""
        return self._waiting

    @property
    def resume(self) -> Order | None:
        """The place in the queue order at which the last session ran out of budget."""
        return self._resume

    @resume.setter
    def resume(self, order: Order | None) -> None:
        self._log("resume", self._resume)
        self._resume = order

    @property
    def reservation(self) -> Reservation | None:
        """Room that is held for the turn that starves."""
        return self._reservation

    @reservation.setter
    def reservation(self, reservation: Reservation | None) -> None:
        self._log("reservation", self._reservation)
        self._reservation = reservation

    @property
    def wake(self) -> int | None:
        """When something becomes due even if nothing happens before."""
        return self._wake

    @wake.setter
    def wake(self, time: int | None) -> None:
        self._log("wake", self._wake)
        self._wake = time

    def put(self, name: str, entry: WaitingTurn) -> None:
        """Note that a turn failed."""
        self._log(name, self._waiting.get(name))
        self._waiting[name] = entry

    def drop(self, name: str) -> None:
        """Forget a turn that waits no longer."""
        entry = self._waiting.pop(name, None)
        if entry is not None:
            self._log(name, entry)

    def freeze(self) -> QueueRecord:
        """Return the queue as a record."""
        return QueueRecord(dict(self._waiting), self._resume, self._reservation, self._wake)

    # Following the cluster's marks ------------------------------------------------------------------------------------

    def _log(self, name: str, old: object) -> None:
        if self._marks:
            self._undo.append((name, old))

    def mark(self) -> None:
        """Remember this moment."""
        self._marks.append(len(self._undo))

    def rollback(self) -> None:
        """Undo what was done since the last mark."""
        start = self._marks.pop()
        while len(self._undo) > start:
            name, old = self._undo.pop()
            if isinstance(old, WaitingTurn):
                self._waiting[name] = old
            elif name in _FIELDS:
                setattr(self, f"_{name}", old)
            else:
                self._waiting.pop(name, None)

    def commit(self) -> None:
        """Keep what was done since the last mark."""
        self._marks.pop()
        if not self._marks:
            self._undo.clear()


_FIELDS = frozenset(("resume", "reservation", "wake"))
"""Names in the undo log that are no turns: a turn's name has a slash."""
