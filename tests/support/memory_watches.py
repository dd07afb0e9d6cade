"""The watches of an API server in memory: streams of changes that a test can hold back or cut.

Contract: belongs to one event loop. A watch sends the changes of its kind in the order of the history, each once. A
version from before the last compaction is answered with an error event of code 410.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from aiohttp import web

from tests.support.api_faults import ApiRequest, Fault, status_object
from tests.support.memory_objects import Document, MemoryObjects, RefusedError, watch_line

_Send = Callable[[list[bytes]], Awaitable[None]]


@dataclass(eq=False)
class _Watch:
    request: ApiRequest
    transport: asyncio.Transport
    wake: asyncio.Event = field(default_factory=asyncio.Event)
    is_bookmark_due: bool = False


class MemoryWatches:
    """See the module's docstring; clients are named by a part of their user agent."""

    def __init__(self, objects: MemoryObjects) -> None:
        self._objects = objects
        self._watches: set[_Watch] = set()
        self._held: set[tuple[str, str]] = set()
        objects.on_change = self._wake

    def hold(self, kind: str, agent: str = "") -> None:
        """Keep back the changes of a kind, from one client or from all; lists are complete."""
        self._held.add((kind, agent))

    def release(self) -> None:
        """Send the changes that were kept back."""
        self._held.clear()
        self._wake()

    def cut(self, kind: str = "", agent: str = "") -> None:
        """Reset the connections of watches."""
        for each in list(self._watches):
            if kind in ("", each.request.kind) and agent in each.request.user_agent:
                each.transport.abort()
                each.wake.set()

    def send_bookmarks(self) -> None:
        """Send a bookmark to every watch that is not held back."""
        for each in self._watches:
            each.is_bookmark_due = True
        self._wake()

    def _wake(self) -> None:
        for each in self._watches:
            each.wake.set()

    async def serve(self, request: web.Request, asked: ApiRequest, fault: Fault, *, date: str) -> web.StreamResponse:
        """Answer a request for a watch until it ends."""
        begins_with_list = asked.query.get("sendInitialEvents") == "true"
        if begins_with_list and asked.query.get("resourceVersionMatch") != "NotOlderThan":
            raise RefusedError(422, "Invalid", "sendInitialEvents needs resourceVersionMatch NotOlderThan")
        answer = web.StreamResponse(headers={"Date": date, "Content-Type": "application/json"})
        assert request.transport is not None
        watch = _Watch(asked, request.transport)
        self._watches.add(watch)
        asked.status = 200
        try:
            await answer.prepare(request)
            async with asyncio.timeout(float(asked.query.get("timeoutSeconds", 1_800))):
                await self._send_changes(watch, _sender(answer, watch, fault.cut_after))
        except (TimeoutError, ConnectionError):
            pass
        finally:
            self._watches.discard(watch)
        return answer

    async def _send_changes(self, watch: _Watch, send: _Send) -> None:
        objects, asked = self._objects, watch.request
        history, name = objects.history, objects.resources[asked.kind].name
        position = await self._begin(watch, send)
        while not watch.transport.is_closing():
            watch.wake.clear()
            if not any(asked.kind == kind and agent in asked.user_agent for kind, agent in self._held):
                changes, position = history[position:], len(history)
                lines = [each.line for each in changes if each.resource == name]
                if watch.is_bookmark_due and asked.query.get("allowWatchBookmarks"):
                    lines.append(self._bookmark(asked.kind))
                    watch.is_bookmark_due = False
                await send(lines)
            await watch.wake.wait()

    async def _begin(self, watch: _Watch, send: _Send) -> int:
        """Send what comes before the changes; return the place in the history of the first change."""
        objects, asked = self._objects, watch.request
        since, place = int(asked.query.get("resourceVersion") or 0), len(objects.history)
        begins_with_list = asked.query.get("sendInitialEvents") == "true"
        if since and not begins_with_list:
            if since < objects.oldest:
                too_old = RefusedError(410, "Expired", f"too old resource version: {since} ({objects.oldest})")
                await send([watch_line("ERROR", status_object(too_old))])
                raise ConnectionError
            return next((n for n, each in enumerate(objects.history) if each.version > since), place)
        lines = [watch_line("ADDED", obj) for obj in objects.all(asked.kind, asked.key.removesuffix("/"))]
        if begins_with_list:
            lines.append(self._bookmark(asked.kind, ends_list=True))
        await send(lines)
        return place

    def _bookmark(self, kind: str, *, ends_list: bool = False) -> bytes:
        metadata: Document = {"resourceVersion": str(self._objects.version)}
        if ends_list:
            metadata["annotations"] = {"k8s.io/initial-events-end": "true"}
        return watch_line("BOOKMARK", {"kind": kind, "metadata": metadata})


def _sender(answer: web.StreamResponse, watch: _Watch, cut_after: int | None) -> _Send:
    """Return a function that sends lines, and closes the connection where a fault says so."""
    sent = 0

    async def send(lines: list[bytes]) -> None:
        nonlocal sent
        if cut_after is not None and sent + len(lines) > cut_after:
            half = lines[cut_after - sent]
            await answer.write(b"".join(lines[: cut_after - sent]) + half[: len(half) // 2])
            watch.transport.close()
            raise ConnectionError
        sent += len(lines)
        if lines:
            await answer.write(b"".join(lines))

    return send
