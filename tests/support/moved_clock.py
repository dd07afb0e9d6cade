"""A clock that a test moves."""

from __future__ import annotations


class MovedClock:
    """`seconds` is the time of the monotonic clock; the wall clock is 1,800,000,000 seconds ahead."""

    def __init__(self) -> None:
        self.seconds = 1_000.0

    def monotonic(self) -> float:
        """Return seconds."""
        return self.seconds

    def wall(self) -> int:
        """Return microseconds since 1970."""
        return int((1_800_000_000 + self.seconds) * 1_000_000)
