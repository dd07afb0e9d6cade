"""Lines of a stream of bytes.

Contract: only the byte 0x0A ends a line. Text methods would also split at characters such as U+0085, which may be part
of an annotation. A line that has not ended when the stream ends is dropped: the stream was cut in the middle of it.
"""

from __future__ import annotations

from collections.abc import AsyncIterator

from tutti.exceptions import ApiError

_MAX_LINE = 64 << 20
"""Bytes of a line; etcd's objects have at most a few megabytes."""


async def split_lines(pieces: AsyncIterator[bytes]) -> AsyncIterator[list[bytes]]:
    """Yield the lines that each piece completes, without line ends and empty lines."""
    begun: list[bytes] = []
    size = 0
    async for piece in pieces:
        first, *rest = piece.split(b"\n")
        begun.append(first)
        size += len(first)
        if size > _MAX_LINE:
            raise ApiError("a line of the stream is too long")
        if not rest:
            continue
        complete = [b"".join(begun), *rest[:-1]]
        begun, size = [rest[-1]], len(rest[-1])
        lines = [line for line in complete if line.strip()]
        if lines:
            yield lines
