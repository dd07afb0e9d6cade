"""A turn that failed: since when it waits, how often it was tried, and when its backoff is over."""

from __future__ import annotations

import msgspec

from tutti.engine.session.plan import Order
from tutti.engine.session.policy import Patience


class WaitingTurn(msgspec.Struct, frozen=True):
    """A turn that failed; times are microseconds."""

    since: int
    """The time of the first attempt."""
    tried: int
    """The time of the last attempt."""
    attempts: int
    message: str
    order: Order
    """The place in the queue order."""
    version: tuple[int, ...]
    """The version of the turn's pods and group at the last attempt."""
    uid: str | None = None
    """The uid of a single pod: a new pod of the same name starts anew."""
    needs_room: bool = False
    """Whether more free resources would help."""
    waits_for_victims: bool = False
    evictions: int = 0
    """How often the turn has evicted pods since it waits, and in vain before that."""
    evicted_at: tuple[int, ...] = ()
    """The counters of node events at the last of these evictions."""
    stuck_at: int | None = None
    """When the first pod that the turn waits for should have left: its eviction was not in vain, but is overdue."""
    no_reservation_before: int = 0
    """The turn gets no reservation before this time, because its last reservation was held for too long."""

    def backoff_ends(self, patience: Patience) -> int:
        """Return the earliest time of the next attempt."""
        if self.waits_for_victims and self.evictions <= 1:
            return self.tried + patience.victims_backoff
        doubled = patience.first_backoff << min(self.attempts - 1, 30)
        return self.tried + min(doubled, patience.longest_backoff)
