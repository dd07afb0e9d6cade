"""The turns of one failure kind, in queue order, with the end of the backoff of each.

Contract: `first` costs the turns that it passes over because of their backoff; `next_backoff` costs the entries that
have become void since the last call. Neither costs the number of turns.
"""

from __future__ import annotations

import heapq
from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterator

from tutti.engine.session.plan import Order


class KindTurns:
    """See the module's docstring."""

    __slots__ = ("_backoff_of", "_backoffs", "_in_order", "_order_of")

    def __init__(self) -> None:
        self._order_of: dict[str, Order] = {}
        self._backoff_of: dict[str, int] = {}
        self._in_order: list[tuple[Order, str]] = []
        self._backoffs: list[tuple[int, str]] = []
        """A heap of ends of backoffs; an entry is void if the turn has left or has another end."""

    def __len__(self) -> int:
        return len(self._order_of)

    def __iter__(self) -> Iterator[str]:
        return iter(self._order_of)

    def put(self, name: str, order: Order, backoff_ends: int) -> None:
        """Add a turn."""
        self._order_of[name], self._backoff_of[name] = order, backoff_ends
        insort(self._in_order, (order, name))
        heapq.heappush(self._backoffs, (backoff_ends, name))

    def drop(self, name: str) -> None:
        """Remove a turn."""
        order = self._order_of.pop(name)
        del self._backoff_of[name]
        del self._in_order[bisect_left(self._in_order, (order, name))]

    def due(self, now: int) -> Iterator[str]:
        """Yield the turns whose backoff is over, in queue order."""
        return (name for _, name in self._in_order if self._backoff_of[name] <= now)

    def first(self, now: int, after: Order | None = None) -> str | None:
        """Return the first turn in the queue whose backoff is over, among those after a place in the queue."""
        if not self._order_of or self.next_backoff() > now:
            return None
        start = 0 if after is None else bisect_right(self._in_order, (after, _LAST_NAME))
        for index in range(start, len(self._in_order)):
            name = self._in_order[index][1]
            if self._backoff_of[name] <= now:
                return name
        return None

    def next_backoff(self) -> int:
        """Return the earliest end of a backoff; there must be a turn."""
        while True:
            ends, name = self._backoffs[0]
            if self._backoff_of.get(name) == ends:
                return ends
            heapq.heappop(self._backoffs)


_LAST_NAME = "\U0010ffff"
"""A name after all names of turns."""
