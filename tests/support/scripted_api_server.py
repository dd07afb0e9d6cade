"""An API server that answers as a script says: one step for each request, in order.

A step is an async function of the request. The server notes what was asked; a request without a step waits until the
test ends. Sockets and HTTP are real, so that cut streams and resets are what they would be in a cluster.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any

from aiohttp import web

Step = Callable[[web.Request], Awaitable[web.StreamResponse]]


class ScriptedApiServer:
    """See the module's docstring; `async with` starts and stops it."""

    def __init__(self, *steps: Step) -> None:
        self._steps = list(steps)
        self.requests: list[dict[str, str]] = []
        """The query of each request, with its path and method."""
        self.done = asyncio.Event()
        """Set when the last step has been taken and one more request has come."""
        self.url = ""

    async def __aenter__(self) -> ScriptedApiServer:
        app = web.Application()
        app.router.add_route("*", "/{path:.*}", self._answer)
        self._runner = web.AppRunner(app, shutdown_timeout=0.1)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        assert site._server is not None
        port = site._server.sockets[0].getsockname()[1]  # type: ignore[attr-defined]
        self.url = f"http://127.0.0.1:{port}"
        return self

    async def __aexit__(self, *_error: object) -> None:
        await self._runner.cleanup()

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        self.requests.append({**request.query, "path": request.path, "method": request.method})
        if not self._steps:
            self.done.set()
            await asyncio.sleep(60)
        step = self._steps.pop(0)
        return await step(request)


def page(*objects: dict[str, Any], version: str, token: str = "") -> Step:
    """Answer with a page of a list."""
    metadata = {"resourceVersion": version, **({"continue": token} if token else {})}

    async def step(_request: web.Request) -> web.StreamResponse:
        return web.json_response({"kind": "List", "metadata": metadata, "items": objects})

    return step


def watch(*lines: bytes, cut: bytes = b"", then: Callable[[web.Request], None] | None = None) -> Step:
    """Answer with lines of a watch, then perhaps with the beginning of one more, and close the stream."""

    async def step(request: web.Request) -> web.StreamResponse:
        answer = web.StreamResponse()
        await answer.prepare(request)
        for line in lines:
            await answer.write(line + b"\n")
        if cut:
            await answer.write(cut)
        if then is not None:
            await asyncio.sleep(0.05)
            then(request)
        return answer

    return step


def pieces(*parts: bytes) -> Step:
    """Answer with a stream in exactly these pieces."""

    async def step(request: web.Request) -> web.StreamResponse:
        answer = web.StreamResponse()
        await answer.prepare(request)
        for part in parts:
            await answer.write(part)
            await asyncio.sleep(0.01)
        return answer

    return step


def reset(request: web.Request) -> None:
    """Reset the connection of a request."""
    assert request.transport is not None
    request.transport.abort()


def refuse(status: int, reason: str = "", *, headers: dict[str, str] | None = None, message: str = "no") -> Step:
    """Answer with an error."""

    async def step(_request: web.Request) -> web.StreamResponse:
        body = {"kind": "Status", "status": "Failure", "message": message, "reason": reason, "code": status}
        return web.json_response(body, status=status, headers=headers)

    return step


def event(kind: str, obj: dict[str, Any]) -> bytes:
    """Return a line of a watch."""
    return json.dumps({"type": kind, "object": obj}, ensure_ascii=False).encode()


def bookmark(version: str, *, ends_list: bool = False) -> bytes:
    """Return a bookmark."""
    metadata: dict[str, Any] = {"resourceVersion": version}
    if ends_list:
        metadata["annotations"] = {"k8s.io/initial-events-end": "true"}
    return event("BOOKMARK", {"kind": "Pod", "metadata": metadata})


def expired() -> bytes:
    """Return the error event of a version that is too old."""
    return event("ERROR", {"kind": "Status", "code": 410, "reason": "Expired", "message": "too old resource version"})
