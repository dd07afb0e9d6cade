"""The API server's time: what its Date headers say, advanced by a monotonic clock.

A Date header has whole seconds, so one answer bounds the difference between the clocks only to a second and the time of
the request. The bounds of many answers together are much narrower. When bounds contradict each other, because a clock
drifts or has jumped, the newest answer counts.

Contract: `now` never goes back, except by a jump of more than `_JUMP`; times are microseconds since 1970.
"""

from __future__ import annotations

from collections.abc import Callable
from email.utils import parsedate_to_datetime

_SECOND = 1_000_000
_JUMP = 2 * _SECOND


class ServerClock:
    """See the module's docstring; `monotonic` returns seconds, `wall` is used until the first answer comes."""

    def __init__(self, *, monotonic: Callable[[], float], wall: Callable[[], int]) -> None:
        self._monotonic = monotonic
        self._offset = wall() - self._micros()
        self._bounds: tuple[int, int] | None = None
        self._last = 0
        self._last_date, self._last_second = "", 0
        self.jumps = 0
        """How often the server's time was more than two seconds from where it should have been."""

    def _micros(self) -> int:
        return int(self._monotonic() * _SECOND)

    def now(self) -> int:
        """Return the server's time."""
        time = self._micros() + self._offset
        if time < self._last and self._last - time < _JUMP:
            return self._last
        self._last = time
        return time

    def observe(self, date: str, sent: float, received: float) -> None:
        """Note the Date header of an answer; `sent` and `received` are times of the monotonic clock."""
        if date != self._last_date:  # hundreds of answers have the same date
            try:
                self._last_second = int(parsedate_to_datetime(date).timestamp()) * _SECOND
            except (TypeError, ValueError):
                return
            self._last_date = date
        second = self._last_second
        lowest, highest = second - int(received * _SECOND), second + _SECOND - int(sent * _SECOND)
        if self._bounds is None:
            self._bounds = lowest, highest
        else:
            low, high = max(lowest, self._bounds[0]), min(highest, self._bounds[1])
            if low > high:
                self.jumps += max(lowest - self._offset, self._offset - highest) > _JUMP
                low, high = lowest, highest
            self._bounds = low, high
        self._offset = sum(self._bounds) // 2
