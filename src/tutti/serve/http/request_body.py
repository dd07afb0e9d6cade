"""A request's body as it comes in, with a limit on its size and on the client's pauses.

Contract: `read_body` gives the pieces of the body without joining or decoding them: a large one never holds up the
server's loop. It stops at the first byte past the limit, at the first pause that is too long, when the client goes, and
when `take`, which is told of every piece, has no room for it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from tutti.serve.http.refusals import GONE, REQUEST_TIMEOUT, UNSUPPORTED, RefusedError, too_large
from tutti.serve.http.upload_limits import Take

Receive = Callable[[], Awaitable[Any]]


async def read_body(receive: Receive, *, declared: str | None, limit: int, pause: float, take: Take) -> list[bytes]:
    """All pieces of a body."""
    if declared is not None and declared.isdigit() and int(declared) > limit:
        raise too_large(limit)
    pieces: list[bytes] = []
    size = 0
    while True:
        try:
            async with asyncio.timeout(pause):
                message = await receive()
        except TimeoutError:
            raise RefusedError(REQUEST_TIMEOUT, f"nothing came for {pause:g} seconds") from None
        if message["type"] == "http.disconnect":
            raise gone()
        if piece := message.get("body", b""):
            size += len(piece)
            if size > limit:
                raise too_large(limit)
            take(len(piece))
            pieces.append(piece)
        if not message.get("more_body", False):
            return pieces


async def until_gone(receive: Receive) -> None:
    """Wait for the client to go away; its body has been read."""
    while (await receive())["type"] != "http.disconnect":
        pass


def gone() -> RefusedError:
    """The client went away."""
    return RefusedError(GONE, "the client went away")


def is_gzip(headers: Mapping[str, str]) -> bool:
    """Whether a body is packed, and in the one way that is understood."""
    coding = headers.get("content-encoding", "").strip().lower()
    if coding in ("", "identity"):
        return False
    if coding not in ("gzip", "x-gzip"):
        problem = "this encoding of the body is not understood: send it as it is, or with gzip"
        raise RefusedError(
            UNSUPPORTED, problem, field="Content-Encoding", headers={"Accept-Encoding": "gzip, identity"}
        )
    return True
