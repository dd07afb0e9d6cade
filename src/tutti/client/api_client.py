"""Requests to the API server: one call, one answer, errors as `ApiError`.

Contract: bodies are bytes of JSON, in and out. `request` sends a request once, or once more with new credentials after
a 401; `read` repeats a GET that the server was too busy for, or that got no answer. Writes are never repeated here:
only the caller knows what a lost answer means. The time limit of `request` covers everything: new credentials, the wait
for a connection, both times that it is sent, and the answer; nothing leaves after it. Only the first credentials are
not counted: the user may have to log in. The client belongs to one event loop.
"""

from __future__ import annotations

import asyncio
import os
import random
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, suppress

import aiohttp
import msgspec
from multidict import CIMultiDict

from tutti.client.access.cluster_access import ClusterAccess
from tutti.client.access.credentials import Credentials, Identity
from tutti.client.access.proxy import environment_proxy
from tutti.client.backoff import Backoff
from tutti.client.connections import Connections
from tutti.client.server_clock import ServerClock
from tutti.exceptions import ApiError

JSON = "application/json"
MERGE_PATCH = "application/merge-patch+json"
STRATEGIC_MERGE_PATCH = "application/strategic-merge-patch+json"

_READ_ATTEMPTS = 5
_BUSY = frozenset((429, 500, 502, 503, 504))
_MAX_ERROR_SIZE = 64 << 10
_UNLIMITED = aiohttp.ClientTimeout()
"""aiohttp's own limit is only whole seconds, and begins anew when a request is sent again."""


class _Cause(msgspec.Struct, frozen=True):
    reason: str = ""


class _Details(msgspec.Struct, rename="camel", frozen=True):
    causes: list[_Cause] | None = None
    retry_after_seconds: float | None = None


class Status(msgspec.Struct, frozen=True):
    """The error object of the API."""

    message: str = ""
    reason: str = ""
    code: int = 0
    details: _Details | None = None


_STATUS = msgspec.json.Decoder(Status)


class ApiClient:
    """See the module's docstring."""

    def __init__(
        self,
        access: ClusterAccess,
        *,
        user_agent: str,
        monotonic: Callable[[], float],
        wall: Callable[[], int],
        draw: random.Random,
        connections: int = 100,
    ) -> None:
        self.access = access
        self.clock = ServerClock(monotonic=monotonic, wall=wall)
        self._credentials = Credentials(access, monotonic=monotonic, wall=wall)
        self._has_identity = False
        self._monotonic, self._draw = monotonic, draw
        self._headers = {"User-Agent": user_agent, "Accept": JSON}
        self._proxy = access.proxy or environment_proxy(access.server, os.environ)
        self._connections = Connections(access, limit=connections)

    async def close(self) -> None:
        """Close all connections."""
        await self._credentials.close()
        await self._connections.close()

    async def request(
        self,
        method: str,
        path: str,
        body: bytes | None = None,
        *,
        query: Mapping[str, str] | None = None,
        content_type: str = JSON,
        accept: str = JSON,
        timeout: float = 30.0,
    ) -> bytes:
        """Send a request and return the body of the answer."""
        if timeout <= 0:
            raise ApiError(f"{method} {path}: there is no time left for it")
        if not self._has_identity:
            await self._credentials.identity()
            self._has_identity = True
        headers = {"Accept": accept} if body is None else {"Accept": accept, "Content-Type": content_type}
        try:
            async with (
                asyncio.timeout(timeout),
                self._answer(method, path, query=query, body=body, headers=headers, limits=_UNLIMITED) as answer,
            ):
                return await answer.read()
        except TimeoutError:
            raise ApiError(f"{method} {path}: no answer in time") from None

    async def read(self, path: str, *, query: Mapping[str, str] | None = None, timeout: float = 60.0) -> bytes:
        """Send a GET, and repeat it if the server is too busy or does not answer."""
        backoff = Backoff(self._draw, longest=10.0)
        for attempt in range(_READ_ATTEMPTS):
            try:
                return await self.request("GET", path, query=query, timeout=timeout)
            except ApiError as error:
                if attempt == _READ_ATTEMPTS - 1 or (error.status and error.status not in _BUSY):
                    raise
                await asyncio.sleep(backoff.next(error.retry_after))
        raise AssertionError("the last attempt returns or raises")

    @asynccontextmanager
    async def stream(
        self, path: str, *, query: Mapping[str, str], timeout: float, silence: float
    ) -> AsyncIterator[AsyncIterator[bytes]]:
        """Send a GET and give the body in pieces as they come; end if no byte comes for `silence` seconds."""
        limits = aiohttp.ClientTimeout(total=timeout, sock_connect=10, sock_read=silence)
        # A server that compresses watches does so for each event anew: much work, and little gain on small events.
        headers = {"Accept-Encoding": "identity"}
        async with self._answer("GET", path, query=query, body=None, headers=headers, limits=limits) as answer:
            yield _pieces(answer, path)

    @asynccontextmanager
    async def websocket(
        self, path: str, *, query: Mapping[str, str], protocol: str
    ) -> AsyncIterator[aiohttp.ClientWebSocketResponse]:
        """Open a WebSocket; raise `ApiError` if the server refuses it or does not know the protocol."""
        identity = await self._credentials.identity()
        session = self._connections.session(identity)
        try:
            async with session.ws_connect(
                self.access.server + path,
                params=query,
                protocols=(protocol,),
                headers=self._with_identity({"Accept": "*/*"}, identity),
                proxy=self._proxy or None,
                server_hostname=self.access.tls_server_name or None,
                heartbeat=30.0,
            ) as socket:
                if socket.protocol != protocol:
                    raise ApiError(f"WebSocket {path}: the server does not speak {protocol}")
                yield socket
        except aiohttp.WSServerHandshakeError as error:
            problem = f"WebSocket {path}: refused with status {error.status}"
            raise ApiError(problem, status=error.status) from None
        except TimeoutError:
            raise ApiError(f"WebSocket {path}: no answer in time") from None
        except aiohttp.ClientError as error:
            raise ApiError(f"WebSocket {path}: {connection_problem(error)}") from None

    async def bearer_token(self) -> str:
        """Return the token that requests carry; empty if they carry none."""
        scheme, _, token = (await self._credentials.identity()).authorization.partition(" ")
        return token if scheme == "Bearer" else ""

    @asynccontextmanager
    async def _answer(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None,
        body: bytes | None,
        headers: Mapping[str, str],
        limits: aiohttp.ClientTimeout,
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        """Give a successful answer; raise `ApiError` for any other."""
        for attempt in range(2):
            identity = await self._credentials.identity()
            session = self._connections.session(identity)
            sent = self._monotonic()
            try:
                async with session.request(
                    method,
                    self.access.server + path,
                    params=query,
                    data=body,
                    headers=self._with_identity(headers, identity),
                    timeout=limits,
                    proxy=self._proxy or None,
                    server_hostname=self.access.tls_server_name or None,
                    allow_redirects=False,
                ) as answer:
                    if "Date" in answer.headers:
                        self.clock.observe(answer.headers["Date"], sent, self._monotonic())
                    if answer.status == 401 and attempt == 0 and self._credentials.reject(identity):
                        continue
                    if answer.status >= 300:
                        raise await _error(answer, method, path)
                    yield answer
                    return
            except TimeoutError:
                raise ApiError(f"{method} {path}: no answer in time") from None
            except aiohttp.ClientError as error:
                raise ApiError(f"{method} {path}: {connection_problem(error)}") from None

    def _with_identity(self, headers: Mapping[str, str], identity: Identity) -> CIMultiDict[str]:
        all_headers = CIMultiDict({**self._headers, **headers})
        if identity.authorization:
            all_headers["Authorization"] = identity.authorization
        for name, value in self.access.user.headers.items():
            for each in (value,) if isinstance(value, str) else value:
                all_headers.add(name, each)
        return all_headers


async def _pieces(answer: aiohttp.ClientResponse, path: str) -> AsyncIterator[bytes]:
    try:
        async for piece in answer.content.iter_any():
            yield piece
    except TimeoutError:
        raise ApiError(f"GET {path}: the stream is silent") from None
    except aiohttp.ClientError as error:
        raise ApiError(f"GET {path}: {connection_problem(error)}") from None


async def _error(answer: aiohttp.ClientResponse, method: str, path: str) -> ApiError:
    body = b""
    with suppress(aiohttp.ClientError):  # the status is known even if the rest is cut off
        while len(body) < _MAX_ERROR_SIZE and (piece := await answer.content.read(_MAX_ERROR_SIZE - len(body))):
            body += piece
    try:
        status = _STATUS.decode(body)
    except msgspec.DecodeError:
        status = Status()
    return api_error(status, answer.status, f"{method} {path}", retry_after=answer.headers.get("Retry-After"))


def api_error(status: Status, code: int, where: str, *, retry_after: str | None = None) -> ApiError:
    """Return the error that a Status object of the API describes."""
    details = status.details or _Details()
    seconds = details.retry_after_seconds
    if retry_after is not None and retry_after.isdigit():
        seconds = float(retry_after)
    text = status.message or f"status {code}"
    return ApiError(
        f"{where}: {text}",
        status=code,
        reason=status.reason,
        retry_after=seconds,
        causes=tuple(cause.reason for cause in details.causes or ()),
    )


def connection_problem(error: Exception) -> str:
    """Return what went wrong with a connection, in one line."""
    if type(error) is aiohttp.ClientConnectorError and (error.os_error.errno or 0) > 0:
        return f"Cannot connect to host {error.host}:{error.port}: {os.strerror(error.os_error.errno or 0)}"
    text = str(error).strip() or type(error).__name__
    return text.splitlines()[0]
