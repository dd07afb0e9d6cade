"""Bodies that come in: how many at once, and how many bytes of them the server holds.

Contract: all on the server's loop. A body that comes in has a place here and none in the queue for plans, so that slow
clients never keep out quick ones until as many as `most` are slow at once. All bodies on their way in hold `room` bytes
together at most, whatever they declare; the one that would hold more is refused, so that the others can finish. Either
refusal is 503 with Retry-After.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator

from tutti.serve.http.refusals import busy, counted

Take = Callable[[int], None]
"""Called with the size of every piece that is kept; it refuses the piece that is too much."""
_PAUSE = 5
"""Seconds after which a client may try again."""


class Uploads:
    """See the module's contract."""

    def __init__(self, most: int, room: int) -> None:
        self._most, self._room = most, room
        self.count = self.held = 0
        """Bodies that come in now, and the bytes of them that are here."""

    @contextlib.contextmanager
    def place(self) -> Iterator[Take]:
        """A place for one body, until it is there."""
        if self.count >= self._most:
            raise busy(f"too many bodies come in at once: {counted(self.count, 'upload')} under way", _PAUSE)
        self.count += 1
        mine = 0

        def take(size: int) -> None:
            nonlocal mine
            if self.held + size > self._room:
                raise busy(f"the bodies that come in hold {self.held:,} bytes, and there is no room for more", _PAUSE)
            mine += size
            self.held += size

        try:
            yield take
        finally:
            self.count -= 1
            self.held -= mine
