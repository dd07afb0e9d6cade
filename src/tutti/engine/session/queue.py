"""The queue: what waits, since when, and what it waits for. Frozen data that a session takes and gives.

What failed is tried again when something has happened that may cure it (each plugin says what that is), but not before
its backoff is over, which doubles with every attempt; or when its own pods or group changed; or after a long time in
any case. A queue can be written down and read again: losing it costs nothing but a round of attempts.
"""

from __future__ import annotations

import msgspec
from msgspec.structs import replace

from tutti.cluster.edits import Hold
from tutti.engine.session.turns import Order

SECOND = 1_000_000


class Patience(msgspec.Struct, frozen=True, kw_only=True):
    """How long things take, in microseconds."""

    first_backoff: int = SECOND
    longest_backoff: int = 10 * SECOND
    forgotten_after: int = 300 * SECOND
    """After this time a failed turn is tried again even if nothing has happened."""
    starving_after: int = 60 * SECOND
    """A turn that has waited for room so long gets a reservation."""
    reserved_for: int = 3_600 * SECOND
    """After this time a reservation passes to the next in the queue."""


class Waiting(msgspec.Struct, frozen=True):
    """A turn that failed."""

    since: int
    """When it was first tried."""
    tried: int
    """When it was last tried."""
    attempts: int
    message: str
    cures: tuple[int, ...]
    events: tuple[int, ...]
    """How often each event had happened when it was last tried."""
    version: tuple[int, ...]
    """How its pods and its group stood."""
    room: bool = False
    """Whether room would help."""
    passed_over_until: int = 0
    """Until when it gets no reservation, having had one for too long."""

    def due_at(self, events: list[int], patience: Patience, *, may_reserve: bool) -> int:
        """Say when it is to be tried again if nothing else happens; `may_reserve`: room could be held for it."""
        due = self.tried + patience.forgotten_after
        if self.happened(events):
            due = min(due, self.backoff_ends(patience))
        if may_reserve and self.room:
            starving = max(self.since + patience.starving_after, self.passed_over_until)
            due = min(due, max(starving, self.backoff_ends(patience)))
        return due

    def is_starving(self, now: int, patience: Patience) -> bool:
        """Say whether it has waited for room so long that room is to be held for it."""
        return self.room and now - self.since >= patience.starving_after and now >= self.passed_over_until

    def happened(self, events: list[int]) -> bool:
        """Say whether something has happened that may cure it."""
        return any(events[cure] != self.events[cure] for cure in self.cures)

    def backoff_ends(self, patience: Patience) -> int:
        """Say when it may be tried again."""
        doubled = patience.first_backoff << min(self.attempts - 1, 30)
        return self.tried + min(doubled, patience.longest_backoff)


class Reservation(msgspec.Struct, frozen=True):
    """Room that is held for a turn that starves."""

    name: str
    since: int
    holds: tuple[Hold, ...]
    until: int | None = None
    """When it will be able to start, as far as the durations of what runs are known."""


class Queue(msgspec.Struct, frozen=True):
    """What waits. Its counts are those of one cluster: for another one, see `for_new_cluster`."""

    waiting: dict[str, Waiting] = {}
    """By the name of the turn."""
    resume: Order | None = None
    """The turn at which the last session ran out of work."""
    reservation: Reservation | None = None
    wake: int | None = None
    """When something becomes due even if nothing happens before."""

    def for_new_cluster(self) -> Queue:
        """Give the queue as a process that has just read it needs it: its cluster has counted other events.

        Everything is due when its backoff is over; what was held is not held any more.
        """
        waiting = {
            name: replace(entry, events=(-1,) * len(entry.events), version=()) for name, entry in self.waiting.items()
        }
        return Queue(waiting, self.resume)
