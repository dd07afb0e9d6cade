"""Limits on request bodies that are being received: their number, and the bytes that the server holds of them.

Contract: runs on the server's event loop only. A body that is being received takes no place in the queue for plans, so
slow clients do not block fast clients until `max_count` clients are slow at once. All bodies together hold at most
`max_bytes`, whatever they declare; the body that would exceed this limit is refused, so that other bodies can finish.
Both refusals are 503 with Retry-After.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator

from tutti.present.tables import counted
from tutti.serve.http.refusals import unavailable

ReserveBytes = Callable[[int], None]
"""Reserves the size of a received chunk, or refuses the body."""
_RETRY_AFTER = 5
"""Seconds after which a client may try again."""


class UploadLimits:
    """The bodies that are being received now."""

    def __init__(self, max_count: int, max_bytes: int) -> None:
        self._max_count, self._max_bytes = max_count, max_bytes
        self.count = self.held = 0
        """Number of bodies, and bytes received of them."""

    @contextlib.contextmanager
    def admit(self) -> Iterator[ReserveBytes]:
        """Count one body until it is complete."""
        if self.count >= self._max_count:
            uploads = counted(self.count, "upload")
            raise unavailable(f"too many uploads at once: {uploads} under way", _RETRY_AFTER)
        self.count += 1
        reserved = 0

        def reserve(size: int) -> None:
            nonlocal reserved
            if self.held + size > self._max_bytes:
                problem = f"uploads hold {self.held:,} bytes, and there is no room for more"
                raise unavailable(problem, _RETRY_AFTER)
            reserved += size
            self.held += size

        try:
            yield reserve
        finally:
            self.count -= 1
            self.held -= reserved
