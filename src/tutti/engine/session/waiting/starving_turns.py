"""Starving turns: which waiting turn has waited for room for so long that room is reserved for it.

Contract: derived state, like `waiting_index`. Nothing here costs the number of waiting turns: `first` returns the first
starving turn in queue order, and forgets turns that no longer wait when it meets them.
"""

from __future__ import annotations

import heapq

from tutti.engine.session.plan import Order
from tutti.engine.session.waiting.waiting_turn import WaitingTurn


class StarvingTurns:
    """See the module's docstring."""

    def __init__(self, starving_after: int) -> None:
        self._starving_after = starving_after
        self._time_of: dict[str, int] = {}
        """When each turn that waits for room begins to starve; entries of the heaps with another time are void."""
        self._later: list[tuple[int, Order, str]] = []
        """Turns that do not starve yet; a heap."""
        self._now: list[tuple[Order, str, int]] = []
        """Turns that starve, in queue order; a heap."""

    def put(self, name: str, entry: WaitingTurn) -> None:
        """Note that a turn waits."""
        is_surplus = entry.order[1]
        if not entry.needs_room or is_surplus:
            self.drop(name)
            return
        time = max(entry.since + self._starving_after, entry.no_reservation_before)
        if self._time_of.get(name) != time:
            self._time_of[name] = time
            heapq.heappush(self._later, (time, entry.order, name))

    def drop(self, name: str) -> None:
        """Note that a turn no longer waits for room."""
        self._time_of.pop(name, None)

    def note_time(self, now: int) -> None:
        """Note the turns that starve by now."""
        while self._later and self._later[0][0] <= now:
            time, order, name = heapq.heappop(self._later)
            if self._time_of.get(name) == time:
                heapq.heappush(self._now, (order, name, time))

    def first(self) -> str | None:
        """Return the first starving turn in queue order."""
        while self._now:
            _, name, time = self._now[0]
            if self._time_of.get(name) == time:
                return name
            heapq.heappop(self._now)
        return None

    def next_time(self) -> int | None:
        """Return when the next turn begins to starve."""
        while self._later:
            time, _, name = self._later[0]
            if self._time_of.get(name) == time:
                return time
            heapq.heappop(self._later)
        return None
