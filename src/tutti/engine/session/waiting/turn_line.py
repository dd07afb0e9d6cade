"""The line of turns that a pass takes: those that were due when it began, and turns that become due meanwhile.

Contract: the first turns keep the order in which they were given. A turn that is added later comes before the first of
them that follows it in queue order; a turn that is in the line already is not added. Taking a turn costs the same
however many there are, because almost all turns are given at the beginning.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Iterable

from tutti.engine.session.plan import Turn


class TurnLine:
    """See the module's docstring."""

    def __init__(self, turns: Iterable[Turn]) -> None:
        self._given = deque(turns)
        self._added: list[Turn] = []
        """A heap."""

    def __len__(self) -> int:
        return len(self._given) + len(self._added)

    @property
    def first(self) -> Turn:
        """The next turn; there must be one."""
        return self._added[0] if self._is_added_next() else self._given[0]

    def pop(self) -> Turn:
        """Remove and return the next turn."""
        if not self._added:
            return self._given.popleft()
        turn = heapq.heappop(self._added) if self._is_added_next() else self._given.popleft()
        while self._added and self._added[0] == turn:
            heapq.heappop(self._added)
        if self._given and self._given[0] == turn:
            self._given.popleft()
        return turn

    def add(self, turn: Turn) -> None:
        """Add a turn that has become due."""
        heapq.heappush(self._added, turn)

    def _is_added_next(self) -> bool:
        return bool(self._added) and (not self._given or self._added[0] < self._given[0])
