"""The index of waiting turns: which of them may be cured by what has changed, and when the next one is due.

Turns of one kind fail alike: when one of them has just failed, the others would fail too. So a kind, not a turn, waits
for changes. A kind becomes *hot* when a change may have cured it, or when `Patience.retry_after` is over; its turns are
then due as soon as the backoff of each is over, in queue order, until one of them fails again.

Contract: derived state. `Queue` has the truth and can build the index again, with every turn hot. Nothing here costs
the number of waiting turns, except for the turns of hot kinds.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Hashable, Iterable, Iterator

from tutti.cluster.columns import Rows
from tutti.cluster.events import Event
from tutti.engine.placement.engine import Engine
from tutti.engine.session.plan import Order
from tutti.engine.session.waiting.failure_kind import FailureKind
from tutti.engine.session.waiting.retry_hints import RoomClass, RoomHints

_ROW_EVENTS = frozenset((Event.NODE_ADDED, Event.NODE_ALLOCATABLE, Event.NODE_TAINTS, Event.POD_REMOVED))
"""Events that cure pods which wait for room only if a changed row has room."""


class WaitingIndex:
    """See the module's docstring."""

    def __init__(self, retry_after: int) -> None:
        self._retry_after = retry_after
        self._kinds: dict[Hashable, FailureKind] = {}
        self._kind_of: dict[str, FailureKind] = {}
        self._by_event: dict[Event, dict[Hashable, FailureKind]] = {event: {} for event in Event}
        """The kinds that each event concerns; kinds that wait for room alone are in `_by_class` for row events."""
        self._by_class: dict[RoomClass, dict[Hashable, FailureKind]] = {}
        self._by_row: dict[int, dict[Hashable, FailureKind]] = {}
        self._hints = RoomHints()
        self._hot: dict[Hashable, FailureKind] = {}
        self._retries: list[tuple[int, int, FailureKind]] = []
        self._pushed = 0

    # Changes ----------------------------------------------------------------------------------------------------------

    def put(self, name: str, order: Order, failure: FailureKind, now: int) -> None:
        """Record that a turn failed; all turns of its kind are cold again."""
        self.drop(name)
        known = self._kinds.get(failure.key)
        if known is None:
            known = failure
            self._add(failure)
        elif (known.cures, known.classes, known.watched_rows) != (failure.cures, failure.classes, failure.watched_rows):
            self._remove(known)
            known.cures, known.classes, known.watched_rows = failure.cures, failure.classes, failure.watched_rows
            self._add(known)
        known.events, known.failed_at = failure.events, now
        known.orders[name] = order
        self._kind_of[name] = known
        self._hot.pop(known.key, None)
        self._pushed += 1
        heapq.heappush(self._retries, (now + self._retry_after, self._pushed, known))

    def put_hot(self, name: str, order: Order) -> None:
        """Record a waiting turn of which nothing is known: it is due when its backoff is over."""
        self.drop(name)
        failure = FailureKind(("turn", name))
        failure.orders[name] = order
        self._kinds[failure.key] = self._kind_of[name] = failure
        self._hot[failure.key] = failure

    def drop(self, name: str) -> None:
        """Forget a turn."""
        kind = self._kind_of.pop(name, None)
        if kind is not None:
            del kind.orders[name]
            if not kind.orders:
                self._remove(kind)
                self._hot.pop(kind.key, None)

    def _add(self, kind: FailureKind) -> None:
        self._kinds[kind.key] = kind
        for event in kind.cures:
            if not (kind.classes and event in _ROW_EVENTS):
                self._by_event[event][kind.key] = kind
        for room_class in kind.classes:
            self._by_class.setdefault(room_class, {})[kind.key] = kind
            self._hints.add(room_class)
        for row in kind.watched_rows:
            self._by_row.setdefault(row, {})[kind.key] = kind

    def _remove(self, kind: FailureKind) -> None:
        del self._kinds[kind.key]
        for event in kind.cures:
            self._by_event[event].pop(kind.key, None)
        for room_class in kind.classes:
            kinds = self._by_class[room_class]
            del kinds[kind.key]
            if not kinds:
                del self._by_class[room_class]
            self._hints.remove(room_class)
        for row in kind.watched_rows:
            del self._by_row[row][kind.key]
            if not self._by_row[row]:
                del self._by_row[row]

    # Which turns may be cured -----------------------------------------------------------------------------------------

    def note_changes(self, engine: Engine, changed_events: Iterable[Event], rows: Rows) -> None:
        """Make the kinds hot that changes may have cured; `rows` are the node rows that changed."""
        events = engine.cluster.events
        changed_events = list(changed_events)
        for event in changed_events:
            for kind in self._by_event[event].values():
                if kind.is_concerned(events):
                    self._hot[kind.key] = kind
        if len(self._hints) and not _ROW_EVENTS.isdisjoint(changed_events):
            for room_class in self._hints.with_room(engine, rows):
                for kind in self._by_class[room_class].values():
                    if kind.is_concerned(events):
                        self._hot[kind.key] = kind
        if self._by_row:
            for row in self._by_row.keys() & set(rows.tolist()):
                self._hot.update(self._by_row[row])

    def turns_like(self, name: str) -> list[str]:
        """Return the turns of the same kind, the turn itself included."""
        kind = self._kind_of.get(name)
        return [name] if kind is None else list(kind.orders)

    def note_time(self, now: int) -> None:
        """Make the kinds hot that were not tried for `Patience.retry_after`."""
        while self._retries and self._retries[0][0] <= now:
            due, _, kind = heapq.heappop(self._retries)
            if kind.orders and kind.failed_at + self._retry_after == due:
                self._hot[kind.key] = kind

    def is_hot(self, name: str) -> bool:
        """Return whether a turn may be cured."""
        kind = self._kind_of.get(name)
        return kind is not None and kind.key in self._hot

    def hot_turns(self) -> Iterator[str]:
        """Yield the turns that may be cured."""
        for kind in self._hot.values():
            yield from kind.orders

    def next_retry(self, retry_time: Callable[[str], int | None]) -> int | None:
        """Return the earliest time at which a turn is due, if nothing changes before.

        `retry_time` returns when a turn that may be cured can be tried; None if other turns must come first.
        """
        times = [time for time in map(retry_time, self.hot_turns()) if time is not None]
        while self._retries:
            due, _, kind = self._retries[0]
            if kind.orders and kind.failed_at + self._retry_after == due:
                times.append(due)
                break
            heapq.heappop(self._retries)
        return min(times, default=None)
