"""Jittered backoff: growing, random waits between attempts, so that clients do not come back all at once."""

from __future__ import annotations

import random


class Backoff:
    """The waits of one series of failures; `reset` after a success."""

    def __init__(self, draw: random.Random, *, first: float = 0.5, longest: float = 30.0) -> None:
        self._draw, self._first, self._longest = draw, first, longest
        self._failures = 0

    def next(self, at_least: float | None = None) -> float:
        """Return the seconds to wait after one more failure, at least what the server asks for."""
        most = min(self._first * float(2**self._failures), self._longest)
        self._failures = min(self._failures + 1, 30)
        return max(at_least or 0.0, 0.0) + most * self._draw.uniform(0.5, 1.0)

    def reset(self) -> None:
        """Start again with the shortest wait."""
        self._failures = 0
