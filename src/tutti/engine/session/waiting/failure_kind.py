"""Failure kinds: turns that fail alike while the cluster does not change, and what may cure them."""

from __future__ import annotations

from collections.abc import Hashable

from tutti.cluster.events import Event
from tutti.engine.session.plan import Order
from tutti.engine.session.waiting.retry_hints import RoomClass


class FailureKind:
    """A kind of failed turns; one object stands for all turns of the kind."""

    __slots__ = ("classes", "cures", "events", "failed_at", "key", "orders", "watched_rows")

    def __init__(
        self,
        key: Hashable,
        cures: frozenset[Event] = frozenset(),
        events: tuple[int, ...] = (),
        *,
        classes: frozenset[RoomClass] = frozenset(),
        watched_rows: frozenset[int] = frozenset(),
    ) -> None:
        self.key, self.cures, self.events = key, cures, events
        self.classes = classes
        """The pods that wait for room alone: only a changed node with room for one of them can cure the turns."""
        self.watched_rows = watched_rows
        """Node rows whose change may cure the turns in any case: victims are leaving there."""
        self.orders: dict[str, Order] = {}
        """The turns by name, with their places in the queue."""
        self.failed_at = 0

    def is_concerned(self, events: list[int]) -> bool:
        """Return whether an event that may cure the turns has happened since the last failure."""
        return any(events[cure] != self.events[cure] for cure in self.cures)
