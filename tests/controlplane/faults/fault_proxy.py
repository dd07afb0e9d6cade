"""A faulty network between the replicas of a scheduler and the API server: plain HTTP in, TLS out.

Each replica has a port of its own, so that one can be cut off alone. The proxy adds the token of its kubeconfig to
requests without one, because client-go sends no token over plain HTTP, and the number of the replica to the User-Agent,
so that the audit log tells replicas apart. A watch is streamed as it comes.

Contract: every fault is appended to the log when its effect ends, every watch when it closes (`checks.history`). A
write that has been forwarded is carried out even if its client dies; one that waits is not.
"""

from __future__ import annotations

import asyncio
import socket
import struct
import time
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, BinaryIO

import aiohttp
from aiohttp import web
from multidict import CIMultiDict
from yarl import URL

from tests.controlplane.faults import fault_plan as plan
from tests.controlplane.faults.checks.history import Fault, OpenWatch, Record, encode_record
from tests.controlplane.faults.direct_client import DirectAccess

_HOP_HEADERS = ("Host", "Connection", "Keep-Alive", "Transfer-Encoding", "Content-Length", "Upgrade")
_REASONS = {429: "TooManyRequests", 409: "Conflict", 500: "InternalError", 503: "ServiceUnavailable"}
_RESET_ON_CLOSE = struct.pack("ii", 1, 0)
"""SO_LINGER with a time of zero: closing the socket sends a reset."""


class FaultProxy:
    """The link of one replica; see the module's docstring."""

    def __init__(self, replica: int, access: DirectAccess, faults: plan.FaultPlan, log: BinaryIO) -> None:
        self._replica, self._access, self.faults, self._log = replica, access, faults, log
        self._connected = asyncio.Event()
        self._connected.set()
        self._forwards: set[asyncio.Task[tuple[web.Response, bytes]]] = set()

    async def start(self) -> int:
        """Listen on a free port of loopback; return the port."""
        connector = aiohttp.TCPConnector(limit=0, ssl=self._access.tls)
        self._session = aiohttp.ClientSession(
            connector=connector, auto_decompress=False, timeout=aiohttp.ClientTimeout(total=None), read_bufsize=1 << 20
        )
        self._runner = web.ServerRunner(web.Server(self._answer, handler_cancellation=True), shutdown_timeout=0.1)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        return int(self._runner.addresses[0][1])

    async def stop(self) -> None:
        """Close all connections."""
        await self._runner.cleanup()
        await self._session.close()

    async def partition(self, seconds: float) -> None:
        """Let no byte pass for some seconds."""
        start = time.time()
        self._connected.clear()
        await asyncio.sleep(seconds)
        self._connected.set()
        self._note(start, plan.PARTITION, "all")

    # One request ------------------------------------------------------------------------------------------------------

    async def _answer(self, request: web.BaseRequest) -> web.StreamResponse:
        body = await request.read()
        await self._connected.wait()
        kind = plan.request_class(request.method, request.path, request.query)
        fault = self.faults.for_request(kind, request.method)
        start = time.time()
        try:
            if fault is not None and fault.kind == plan.DELAY:
                await asyncio.sleep(fault.seconds)
            if fault is not None and fault.kind == plan.DROP:
                return _hang_up(request)
            if fault is not None and fault.status:
                return self._refusal(fault.status)
            if kind == plan.WATCH:
                if fault is not None:  # the delay is over, the watch goes on
                    self._note(start, fault.kind, kind, request)
                    fault = None
                return await self._watch(request)
            forward = asyncio.create_task(self._forward(request, body))
            self._forwards.add(forward)
            forward.add_done_callback(self._forwards.discard)
            answer, content = await asyncio.shield(forward)
            await self._connected.wait()
            if fault is not None and fault.kind == plan.SLOW_REPLY:
                await asyncio.sleep(fault.seconds)
            if fault is not None and fault.kind == plan.LOST_REPLY:
                return _hang_up(request)
            if fault is not None and fault.kind == plan.RESET:
                return await _half_reply(request, answer, content)
            return answer
        finally:
            if fault is not None:
                wait = float(self.faults.rates.retry_after) if fault.status == 429 else 0.0
                self._note(start, fault.kind, kind, request, retry_after=wait)

    async def _forward(self, request: web.BaseRequest, body: bytes) -> tuple[web.Response, bytes]:
        try:
            async with self._send(request, body) as answer:
                content = await answer.read()
                headers = _passed_on(answer.headers)
                return web.Response(status=answer.status, headers=headers, body=content), content
        except aiohttp.ClientError as error:
            return web.Response(status=502, text=f"the API server does not answer: {error}"), b""

    def _send(self, request: web.BaseRequest, body: bytes) -> aiohttp.client._RequestContextManager:
        headers = _passed_on(request.headers)
        headers["User-Agent"] = f"{request.headers.get('User-Agent', 'unknown')} replica/{self._replica}"
        if "Authorization" not in headers:
            headers["Authorization"] = f"Bearer {self._access.token}"
        url = URL(self._access.server + request.raw_path, encoded=True)
        return self._session.request(
            request.method,
            url,
            headers=headers,
            data=body or None,
            allow_redirects=False,
            skip_auto_headers=("Accept", "Accept-Encoding", "Content-Type"),
        )

    def _refusal(self, status: int) -> web.Response:
        body: dict[str, Any] = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure"}
        body |= {"message": f"injected fault {status}", "reason": _REASONS[status], "code": status}
        headers = {"Retry-After": str(self.faults.rates.retry_after)} if status == 429 else None
        return web.json_response(body, status=status, headers=headers)

    # Watches ----------------------------------------------------------------------------------------------------------

    async def _watch(self, request: web.BaseRequest) -> web.StreamResponse:
        async with self._send(request, b"") as answer:
            reply = web.StreamResponse(status=answer.status, headers=_passed_on(answer.headers))
            await self._connected.wait()
            opened = time.time()
            try:
                await reply.prepare(request)
                await self._stream(request, answer, reply)
            except (ConnectionResetError, aiohttp.ClientError):
                _hang_up(request)
            finally:
                resource = plan.resource_of(request.path)
                if answer.status == 200:
                    self._write(OpenWatch(opened, time.time(), self._replica, resource))
            return reply

    async def _stream(
        self, request: web.BaseRequest, answer: aiohttp.ClientResponse, reply: web.StreamResponse
    ) -> None:
        """Pass on a stream; when a fault is due, it meets the next piece."""
        due = time.monotonic() + self.faults.until_watch_fault()
        async for piece in answer.content.iter_any():
            if time.monotonic() >= due:
                due = time.monotonic() + self.faults.until_watch_fault()
                fault, start = self.faults.for_open_watch(), time.time()
                if fault is not None and fault.kind == plan.CUT_WATCH:
                    await reply.write(piece[: len(piece) // 2])
                    _reset(request)
                    self._note(start, fault.kind, plan.WATCH, request)
                    return
                if fault is not None:
                    try:
                        await asyncio.sleep(fault.seconds)
                    finally:
                        self._note(start, fault.kind, plan.WATCH, request)
            await self._connected.wait()
            await reply.write(piece)

    # The log ----------------------------------------------------------------------------------------------------------

    def _note(
        self, start: float, kind: str, group: str, request: web.BaseRequest | None = None, *, retry_after: float = 0.0
    ) -> None:
        method, path = (request.method, request.path) if request is not None else ("", "")
        now = time.time()
        began = time.monotonic() - (now - start)
        self._write(Fault(start, now, began, self._replica, kind, group, method, path, retry_after))

    def _write(self, record: Record) -> None:
        self._log.write(encode_record(record))


def _passed_on(headers: Mapping[str, str]) -> CIMultiDict[str]:
    kept = CIMultiDict(headers)
    for name in _HOP_HEADERS:
        kept.popall(name, None)
    return kept


def _hang_up(request: web.BaseRequest) -> web.Response:
    """Close the connection without a reply."""
    if request.transport is not None:
        request.transport.close()
    return web.Response()


def _reset(request: web.BaseRequest) -> None:
    if request.transport is not None:
        connection = request.transport.get_extra_info("socket")
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET_ON_CLOSE)
        request.transport.abort()


async def _half_reply(request: web.BaseRequest, answer: web.Response, content: bytes) -> web.StreamResponse:
    reply = web.StreamResponse(status=answer.status, headers=answer.headers)
    reply.content_length = len(content)
    with suppress(ConnectionResetError):  # the client may have gone
        await reply.prepare(request)
        await reply.write(content[: len(content) // 2])
    _reset(request)
    return reply
