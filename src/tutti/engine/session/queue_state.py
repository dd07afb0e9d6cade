"""What a queue remembers between sessions: failed turns, the reservation, partial gangs, and nodes to avoid.

Contract: `QueueState` changes in place and follows marks: a rollback undoes the changes since the last mark. `freeze`
returns a record that can be stored. What can be derived from the cluster is not here (`queue`, `waiting`).
"""

from __future__ import annotations

import msgspec
from msgspec.structs import replace

from tutti.cluster.edits import Hold
from tutti.engine.session.partial_gangs import PartialGangs
from tutti.engine.session.plan import Order
from tutti.engine.session.waiting.avoided_nodes import AvoidedNodes
from tutti.engine.session.waiting.eviction_races import EvictionRaces
from tutti.engine.session.waiting.spared_victims import SparedVictim
from tutti.engine.session.waiting.waiting_turn import WaitingTurn


class Reservation(msgspec.Struct, frozen=True):
    """Room that is held for a starving turn."""

    name: str
    """The name of the turn."""
    since: int
    holds: tuple[Hold, ...]
    until: int | None = None
    """When the turn will be able to start; None if the ends of the pods in its way are unknown."""


class QueueRecord(msgspec.Struct, frozen=True):
    """The content of a queue as plain data, for a recording or a restart."""

    waiting: dict[str, WaitingTurn] = {}
    """By the name of the turn."""
    resume: Order | None = None
    reservation: Reservation | None = None
    wake: int | None = None
    partial: PartialGangs = PartialGangs()
    avoided: dict[str, AvoidedNodes] = {}
    """Pods whose bindings failed, and the nodes that they avoid, by pod key."""
    races: EvictionRaces = EvictionRaces()
    spared: dict[str, tuple[SparedVictim, ...]] = {}
    """Pods that turns do not evict for a while, by the name of the turn."""


class QueueState:
    """See the module's docstring."""

    def __init__(self, record: QueueRecord) -> None:
        """Start with the content of a record.

        The turns of a record are due when their backoff is over, and the reservation is dropped.
        """
        self.waiting = {name: replace(entry, version=()) for name, entry in record.waiting.items()}
        """The failed turns by name; only `put` and `drop` change them."""
        self._resume, self._partial, self._avoided = record.resume, record.partial, dict(record.avoided)
        self._races, self._spared = record.races, dict(record.spared)
        self._reservation: Reservation | None = None
        self._wake: int | None = None
        self._undo: list[tuple[str, object]] = []
        """What changed since the outermost mark, with the value before: a field, or the turn of a name."""
        self._marks: list[int] = []
        """For each open mark, the length of the undo log."""

    def freeze(self) -> QueueRecord:
        """Return all that is remembered as a record."""
        waiting, avoided = dict(self.waiting), dict(self._avoided)
        return QueueRecord(
            waiting,
            self._resume,
            self._reservation,
            self._wake,
            self._partial,
            avoided,
            self._races,
            dict(self._spared),
        )

    def put(self, name: str, entry: WaitingTurn) -> None:
        """Remember that a turn failed."""
        self._log(name, self.waiting.get(name))
        self.waiting[name] = entry

    def drop(self, name: str) -> bool:
        """Forget a turn that no longer waits; return whether it was known."""
        entry = self.waiting.pop(name, None)
        if entry is not None:
            self._log(name, entry)
        return entry is not None

    @property
    def resume(self) -> Order | None:
        """The place in the queue order at which the last session ran out of budget."""
        return self._resume

    @resume.setter
    def resume(self, order: Order | None) -> None:
        if order != self._resume:
            self._set("_resume", order)

    @property
    def reservation(self) -> Reservation | None:
        """The room that is held for a starving turn."""
        return self._reservation

    @reservation.setter
    def reservation(self, reservation: Reservation | None) -> None:
        self._set("_reservation", reservation)

    @property
    def wake(self) -> int | None:
        """The latest time at which the next session is needed, even if no event happens before."""
        return self._wake

    @wake.setter
    def wake(self, time: int | None) -> None:
        if time != self._wake:
            self._set("_wake", time)

    @property
    def partial(self) -> PartialGangs:
        """What is remembered about gangs that run in part."""
        return self._partial

    @partial.setter
    def partial(self, seen: PartialGangs) -> None:
        if seen is not self._partial:
            self._set("_partial", seen)

    @property
    def avoided(self) -> dict[str, AvoidedNodes]:
        """Pods whose bindings failed, and the nodes that they avoid, by key; replaced as a whole."""
        return self._avoided

    @avoided.setter
    def avoided(self, avoided: dict[str, AvoidedNodes]) -> None:
        self._set("_avoided", avoided)

    @property
    def races(self) -> EvictionRaces:
        """Which preemptors are bound and have not started yet, and which have evicted pods in vain."""
        return self._races

    @races.setter
    def races(self, races: EvictionRaces) -> None:
        if races is not self._races:
            self._set("_races", races)

    @property
    def spared(self) -> dict[str, tuple[SparedVictim, ...]]:
        """Pods that turns do not evict for a while, by turn; replaced as a whole, never changed in place."""
        return self._spared

    @spared.setter
    def spared(self, spared: dict[str, tuple[SparedVictim, ...]]) -> None:
        self._set("_spared", spared)

    # Marks ------------------------------------------------------------------------------------------------------------

    def _set(self, field: str, value: object) -> None:
        self._log(field, getattr(self, field))
        setattr(self, field, value)

    def _log(self, name: str, old: object) -> None:
        if self._marks:
            self._undo.append((name, old))

    def mark(self) -> None:
        """Start a nested transaction."""
        self._marks.append(len(self._undo))

    def has_changed(self) -> bool:
        """Return whether anything has changed since the last mark."""
        return len(self._undo) > self._marks[-1]

    def rollback(self) -> None:
        """Undo all changes since the last mark."""
        start = self._marks.pop()
        while len(self._undo) > start:
            name, old = self._undo.pop()
            if name.startswith("_"):  # no name of a turn does
                setattr(self, name, old)
            elif isinstance(old, WaitingTurn):
                self.waiting[name] = old
            else:
                self.waiting.pop(name, None)

    def commit(self) -> None:
        """Keep all changes since the last mark."""
        self._marks.pop()
        if not self._marks:
            self._undo.clear()
