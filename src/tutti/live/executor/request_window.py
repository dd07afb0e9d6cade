"""How many requests may be under way at once, adapted to what the server takes.

After each full window of answers the number is looked at again. It grows by one if all answers were quick: answers
that take longer say that requests wait inside the server, where more of them would only wait longer. It falls with the
share of requests that the server was too busy for or did not answer: by half if that were all of them, by one if it was
one of many.

Contract: belongs to the event loop. `pace` waits so that no more than `max_qps` requests start in a second.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

_QUICK = 0.008
"""Seconds within which a server answers that has time for more requests."""


class RequestWindow:
    """See the module's docstring; `monotonic` returns seconds."""

    def __init__(self, *, first: int, most: int, monotonic: Callable[[], float], max_qps: float | None = None) -> None:
        self.width = min(first, most)
        """How many requests may be under way."""
        self._most, self._monotonic = most, monotonic
        self._first, self._average = self.width, 0.0
        self._answers = self._busy = 0
        self._interval = 1.0 / max_qps if max_qps else 0.0
        self._next_start = 0.0

    async def pace(self) -> None:
        """Wait until the next request may start."""
        if not self._interval:
            return
        now = self._monotonic()
        start = max(now, self._next_start)
        self._next_start = start + self._interval
        if start > now:
            await asyncio.sleep(start - now)

    def answered(self, seconds: float) -> None:
        """Note a request that the server has answered after some time."""
        self._average += (seconds - self._average) / 16
        self._note_answer()

    def overloaded(self) -> None:
        """Note a request that the server was too busy for."""
        self._busy += 1
        self._note_answer()

    def _note_answer(self) -> None:
        self._answers += 1
        if self._answers < self.width:
            return
        if self._busy:
            self.width = max(1, int(self.width * (1 - self._busy / self._answers / 2)))
        elif self.width < self._first or self._average < _QUICK:
            self.width = min(self.width + 1, self._most)
        self._answers = self._busy = 0
