"""Receiving a request body, with limits on its size and on the client's pauses.

Contract: `read_body` returns the chunks of the body; it neither joins nor decodes them, so a large body never blocks
the event loop. It stops at the first byte past the limit, at the first pause that is too long, when the client
disconnects, and when `reserve`, which is called for every chunk, refuses a chunk.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from tutti.serve.http.refusals import CLIENT_CLOSED, REQUEST_TIMEOUT, UNSUPPORTED, RefusedError, too_large
from tutti.serve.http.upload_limits import ReserveBytes

Receive = Callable[[], Awaitable[Any]]


async def read_body(
    receive: Receive, *, declared: str | None, limit: int, pause: float, reserve: ReserveBytes
) -> list[bytes]:
    """Return all chunks of a body; `declared` is its Content-Length."""
    if declared is not None and declared.isdigit() and int(declared) > limit:
        raise too_large(limit)
    chunks: list[bytes] = []
    size = 0
    while True:
        try:
            async with asyncio.timeout(pause):
                message = await receive()
        except TimeoutError:
            raise RefusedError(REQUEST_TIMEOUT, f"no data received for {pause:g} seconds") from None
        if message["type"] == "http.disconnect":
            raise client_closed()
        if chunk := message.get("body", b""):
            size += len(chunk)
            if size > limit:
                raise too_large(limit)
            reserve(len(chunk))
            chunks.append(chunk)
        if not message.get("more_body", False):
            return chunks


async def wait_for_disconnect(receive: Receive) -> None:
    """Wait until a client disconnects; its body is complete."""
    while (await receive())["type"] != "http.disconnect":
        pass


def client_closed() -> RefusedError:
    """Return the refusal for a client that has disconnected; it is only logged and counted."""
    return RefusedError(CLIENT_CLOSED, "the client disconnected")


def is_gzip(headers: Mapping[str, str]) -> bool:
    """Return whether a body is compressed; refuse a coding other than gzip."""
    coding = headers.get("content-encoding", "").strip().lower()
    if coding in ("", "identity"):
        return False
    if coding not in ("gzip", "x-gzip"):
        problem = "this encoding is not supported: send the body uncompressed or with gzip"
        raise RefusedError(
            UNSUPPORTED, problem, field="Content-Encoding", headers={"Accept-Encoding": "gzip, identity"}
        )
    return True
