"""Failure kinds: turns that fail alike while the cluster does not change, and what may cure them."""

from __future__ import annotations

from collections.abc import Hashable

from tutti.cluster.events import Event
from tutti.engine.session.waiting.kind_turns import KindTurns
from tutti.engine.session.waiting.retry_hints import RoomClass


class FailureKind:
    """A kind of failed turns; one object stands for all turns of the kind."""

    __slots__ = (
        "checked_at",
        "classes",
        "cures",
        "events",
        "key",
        "needed",
        "needs_room",
        "retry_at",
        "room_found_at",
        "rows_with_room",
        "turns",
        "watched_rows",
    )

    def __init__(
        self,
        key: Hashable,
        cures: frozenset[Event] = frozenset(),
        events: tuple[int, ...] = (),
        *,
        classes: frozenset[RoomClass] = frozenset(),
        watched_rows: frozenset[int] = frozenset(),
        needed: int = 1,
        retry_at: int | None = None,
    ) -> None:
        self.key, self.cures, self.events = key, cures, events
        self.classes = classes
        """The pods that wait for room alone: only a changed node with room for one of them can cure the turns."""
        self.watched_rows = watched_rows
        """Node rows whose change may cure the turns in any case: victims are leaving there."""
        self.needed = needed
        """How many pods of each turn must fit at once."""
        self.retry_at = retry_at
        """When the turns are tried again even if nothing changes, in microseconds; None: after the usual time."""
        self.needs_room = False
        """Whether more free resources would have helped the turn that failed last."""
        self.room_found_at = (-1, -1, -1)
        """The cluster's `room_version` at which a changed node was found to have room for a pod of the turns."""
        self.rows_with_room: set[int] | None = None
        """The changed node rows that were found then to have room; None if they are not known, or too many."""
        self.turns = KindTurns()
        self.checked_at: int | None = None
        """The time of the last failure, or of the last retry by time if that is later."""

    def is_concerned(self, events: list[int]) -> bool:
        """Return whether an event that may cure the turns has happened since the last failure."""
        return any(events[cure] != self.events[cure] for cure in self.cures)
