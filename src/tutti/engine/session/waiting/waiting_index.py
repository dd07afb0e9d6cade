"""The index of waiting turns: which of them may be cured by what has changed, and when the next one is due.

Turns of one kind fail alike: when one of them has just failed, the others would fail too. So a kind, not a turn, waits
for changes. A kind becomes *hot* when a change may have cured it, or when `Patience.retry_after` is over. Its turns are
then due as soon as the backoff of each is over, one after the other in queue order, until one fails again. A kind that
waits for room alone is *unsure* if only room or time made it hot: when its turn comes, `room_check` looks whether there
is room.

Contract: derived state. `Queue` has the truth and can build the index again, with every turn hot. Nothing here costs
the number of waiting turns, except for the turns of hot kinds.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Hashable, Iterable, Iterator

from tutti.cluster.cluster import Cluster
from tutti.cluster.columns import Rows
from tutti.cluster.events import Event
from tutti.cluster.indexes.groups import NO_GROUP
from tutti.engine.placement.engine import Engine
from tutti.engine.session.plan import Order
from tutti.engine.session.policy import Patience
from tutti.engine.session.waiting.failure_kind import FailureKind
from tutti.engine.session.waiting.retry_hints import RoomClass, RoomHints
from tutti.engine.session.waiting.waiting_turn import WaitingTurn

_ROW_EVENTS = frozenset((Event.NODE_ADDED, Event.NODE_ALLOCATABLE, Event.NODE_TAINTS, Event.POD_REMOVED))
"""Events that cure pods which wait for room only if a changed row has room."""

_MAX_KNOWN_ROWS = 8
"""Largest number of rows with room that a kind remembers."""
_NO_GANG = 2**62
"""A priority above all others."""


class WaitingIndex:
    """See the module's docstring."""

    def __init__(self, cluster: Cluster, patience: Patience) -> None:
        self.patience = patience
        self._kinds: dict[Hashable, FailureKind] = {}
        self._kind_of: dict[str, FailureKind] = {}
        self._by_event: dict[Event, dict[Hashable, FailureKind]] = {event: {} for event in Event}
        """The kinds that each event concerns; kinds that wait for room alone are in `_by_class` for row events."""
        self._by_class: dict[RoomClass, dict[Hashable, FailureKind]] = {}
        self._by_row: dict[int, dict[Hashable, FailureKind]] = {}
        self._hints = RoomHints()
        self._hot: dict[Hashable, FailureKind] = {}
        self._unsure: set[Hashable] = set()
        self.version = 0
        """Changes when a kind becomes hot or is no longer hot."""
        self._newly_hot: list[FailureKind] = []
        self._lowest_gang = _lowest_gang_priority(cluster)
        """The lowest priority of a running pod of a gang."""
        self._retries: list[tuple[int, int, FailureKind]] = []
        self._pushed = 0

    # Changes ----------------------------------------------------------------------------------------------------------

    def put(self, name: str, entry: WaitingTurn, failure: FailureKind) -> None:
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
        known.events, known.needs_room = failure.events, entry.needs_room
        if known.checked_at != entry.tried:
            self._retry_later(known, entry.tried)
        known.retry_at = failure.retry_at
        if known.retry_at is not None:
            self._push_retry(known.retry_at, known)
        known.turns.put(name, entry.order, entry.backoff_ends(self.patience))
        self._kind_of[name] = known
        self.cool(known)

    def put_hot(self, name: str, entry: WaitingTurn) -> None:
        """Record a waiting turn of which nothing is known: it is due when its backoff is over."""
        self.drop(name)
        failure = FailureKind(("turn", name))
        failure.turns.put(name, entry.order, entry.backoff_ends(self.patience))
        self._kinds[failure.key] = self._kind_of[name] = failure
        self._hot[failure.key] = failure

    def drop(self, name: str) -> None:
        """Forget a turn."""
        kind = self._kind_of.pop(name, None)
        if kind is not None:
            kind.turns.drop(name)
            if not kind.turns:
                self._remove(kind)
                self.cool(kind)

    def _retry_later(self, kind: FailureKind, now: int) -> None:
        """Make a kind due again by time."""
        kind.checked_at = now
        self._push_retry(now + self.patience.retry_after, kind)

    def _push_retry(self, time: int, kind: FailureKind) -> None:
        self._pushed += 1
        heapq.heappush(self._retries, (time, self._pushed, kind))

    def _is_retried_at(self, kind: FailureKind, time: int) -> bool:
        """Return whether a kind is still to be tried again at a time for which it was pushed."""
        is_due = kind.retry_at == time or kind.checked_at == time - self.patience.retry_after
        return bool(kind.turns) and is_due

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

    def cool(self, kind: FailureKind) -> None:
        """Record that a kind is not cured: its turns wait for the next change."""
        if self._hot.pop(kind.key, None) is not None:
            self.version += 1
            self._unsure.discard(kind.key)

    def _heat(self, kind: FailureKind, *, unsure: bool = False) -> None:
        if kind.key not in self._hot:
            self._hot[kind.key] = kind
            self.version += 1
            self._newly_hot.append(kind)
            if unsure:
                self._unsure.add(kind.key)
        elif not unsure:
            self._unsure.discard(kind.key)

    def _heat_for_check(self, kind: FailureKind) -> None:
        """Make a kind hot; if it waits for room alone, only until a check of all nodes finds none.

        Turns for which victims are leaving are tried in any case: after some time victims count as stuck. So are turns
        that more room would not have helped: since then, a node may have come on which it would.
        """
        kind.rows_with_room = None
        self._heat(kind, unsure=bool(kind.classes) and kind.needs_room and not kind.watched_rows)

    # Which turns may be cured -----------------------------------------------------------------------------------------

    def note_changes(self, engine: Engine, changed_events: Iterable[Event], rows: Rows) -> None:
        """Make the kinds hot that changes may have cured; `rows` are the node rows that changed."""
        events = engine.cluster.events
        changed_events = list(changed_events)
        for event in changed_events:
            for kind in self._by_event[event].values():
                if kind.is_concerned(events):
                    self._heat(kind)
        if len(self._hints) and not _ROW_EVENTS.isdisjoint(changed_events):
            for room_class, with_room in self._hints.with_room(engine, rows).items():
                found = set(with_room.tolist()) if len(with_room) <= _MAX_KNOWN_ROWS else None
                for kind in self._by_class[room_class].values():
                    if kind.is_concerned(events):
                        # Of a kind that is hot already, or has several classes, the rows are not known any more.
                        is_first = kind.key not in self._hot and len(kind.classes) == 1
                        kind.rows_with_room = found if is_first else None
                        kind.room_found_at = engine.cluster.room_version
                        self._heat(kind, unsure=True)
        if self._by_row:
            for row in self._by_row.keys() & set(rows.tolist()):
                for kind in self._by_row[row].values():
                    self._heat(kind)

    def take_newly_hot(self) -> list[FailureKind]:
        """Return the kinds that have become hot since the last call."""
        kinds, self._newly_hot = self._newly_hot, []
        return kinds

    def note_gangs(self, engine: Engine, rows: Rows) -> None:
        """Make the kinds hot that may evict pods of changed gangs; `rows` are the node rows where those pods run.

        A pod whose priority is above that of a running gang also waits for pods that are terminating
        (`single_pod_attempts`), so that kinds for which this is new are made hot, too.
        """
        lowest, self._lowest_gang = self._lowest_gang, _lowest_gang_priority(engine.cluster)
        if not len(self._hints):
            return
        with_room = self._hints.with_room(engine, rows)
        for room_class, kinds in self._by_class.items():
            is_new = self._lowest_gang < room_class.priority <= lowest
            if room_class.preempts and (is_new or room_class in with_room):
                for kind in kinds.values():
                    self._heat_for_check(kind)

    def turns_like(self, name: str) -> list[str]:
        """Return the turns of the same kind, the turn itself included."""
        kind = self._kind_of.get(name)
        return [name] if kind is None else list(kind.turns)

    def note_time(self, now: int) -> None:
        """Make the kinds hot that were not tried for `Patience.retry_after`, or whose own time has come."""
        kinds = []
        while self._retries and self._retries[0][0] <= now:
            due, _, kind = heapq.heappop(self._retries)
            if self._is_retried_at(kind, due):
                kinds.append(kind)
        for kind in kinds:
            kind.retry_at = None
            self._heat_for_check(kind)
            self._retry_later(kind, now)

    def is_hot(self, name: str) -> bool:
        """Return whether a turn may be cured."""
        kind = self._kind_of.get(name)
        return kind is not None and kind.key in self._hot

    def kind_of(self, name: str) -> FailureKind | None:
        """Return the kind of a waiting turn."""
        return self._kind_of.get(name)

    def unsure_kind(self, name: str) -> FailureKind | None:
        """Return the kind of a turn if only the room of changed nodes makes it hot; None otherwise."""
        kind = self._kind_of.get(name)
        return kind if kind is not None and kind.key in self._unsure else None

    def due_turns(self, now: int) -> Iterator[str]:
        """Yield all turns that may be cured and whose backoff is over."""
        for kind in self._hot.values():
            yield from kind.turns.due(now)

    def first_due_turns(self, now: int) -> Iterator[str]:
        """Yield the first turn of each kind among `due_turns`: the others wait for its outcome (`next_due_turn`)."""
        for kind in self._hot.values():
            name = kind.turns.first(now)
            if name is not None:
                yield name

    def next_due_turn(self, kind: FailureKind, now: int, after: Order) -> str | None:
        """Return the next turn of a kind that may be cured, after a place in the queue."""
        return kind.turns.first(now, after) if kind.key in self._hot else None

    def next_retry(self, retry_time: Callable[[str], int | None], *, now: int, each_turn: bool) -> int | None:
        """Return the earliest time at which a turn is due, if nothing changes before.

        `retry_time` returns when a turn that may be cured can be tried; None if other turns must come first. It is
        asked for the turns of kinds that were not taken although a backoff is over, or with `each_turn` for all turns.
        """
        times: list[int] = []
        for kind in self._hot.values():
            backoff_ends = kind.turns.next_backoff()
            if backoff_ends > now and not each_turn:
                times.append(backoff_ends)
            else:
                times += [time for time in map(retry_time, kind.turns) if time is not None]
        while self._retries:
            due, _, kind = self._retries[0]
            if self._is_retried_at(kind, due):
                times.append(due)
                break
            heapq.heappop(self._retries)
        return min(times, default=None)


def _lowest_gang_priority(cluster: Cluster) -> int:
    pods, length = cluster.pods, cluster.pods.length
    priorities = pods.priority[:length][(pods.node[:length] >= 0) & (pods.group[:length] != NO_GROUP)]
    return int(priorities.min(initial=_NO_GANG))
