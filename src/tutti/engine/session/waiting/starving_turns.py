"""Starving turns: which waiting turn has waited for room for so long that room is reserved for it.

Contract: derived state, like `waiting_index`. Nothing here costs the number of waiting turns: `first` returns the first
starving turn in queue order, and forgets turns that no longer wait when it meets them.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable

from tutti.engine.session.plan import Order
from tutti.engine.session.waiting.waiting_turn import WaitingTurn


class StarvingTurns:
    """See the module's docstring."""

    def __init__(self, starving_after: int) -> None:
        self._starving_after = starving_after
        self._time_of: dict[str, int] = {}
        """When each turn that waits for room begins to starve; entries of the heaps with another time are void."""
        self._order_of: dict[str, Order] = {}
        self._postponed: dict[str, int] = {}
        """Turns that get no reservation before a time."""
        self._later: list[tuple[int, Order, str]] = []
        """Turns that do not starve yet; a heap."""
        self._now: list[tuple[Order, str, int]] = []
        """Turns that starve, the first in the queue last."""

    def put(self, name: str, entry: WaitingTurn) -> None:
        """Note that a turn waits."""
        is_surplus = entry.order[1]
        if not entry.needs_room or is_surplus:
            self.drop(name)
            return
        time = max(entry.since + self._starving_after, entry.no_reservation_before, self._postponed.get(name, 0))
        if self._time_of.get(name) != time:
            self._time_of[name], self._order_of[name] = time, entry.order
            heapq.heappush(self._later, (time, entry.order, name))

    def drop(self, name: str) -> None:
        """Note that a turn no longer waits for room."""
        for by_name in (self._time_of, self._order_of, self._postponed):
            by_name.pop(name, None)

    def postpone(self, names: Iterable[str], until: int) -> None:
        """Let turns that could not start in an empty cluster starve from a later time on."""
        for name in names:
            if name in self._time_of:
                self._time_of[name] = self._postponed[name] = until
                heapq.heappush(self._later, (until, self._order_of[name], name))

    def note_time(self, now: int) -> None:
        """Note the turns that starve by now."""
        if not self._later or self._later[0][0] > now:
            return
        # Turns that failed together starve together: sorting lists is faster than moving them one by one.
        starving = [entry for entry in self._later if entry[0] <= now]
        self._later = [entry for entry in self._later if entry[0] > now]
        heapq.heapify(self._later)
        self._now += [(order, name, time) for time, order, name in starving if self._time_of.get(name) == time]
        self._now.sort(reverse=True)

    def first(self) -> str | None:
        """Return the first starving turn in queue order."""
        while self._now:
            _, name, time = self._now[-1]
            if self._time_of.get(name) == time:
                return name
            self._now.pop()
        return None

    def next_time(self) -> int | None:
        """Return when the next turn begins to starve."""
        while self._later:
            time, _, name = self._later[0]
            if self._time_of.get(name) == time:
                return time
            heapq.heappop(self._later)
        return None
