"""Requests to the API server: one call, one answer, errors as `ApiError`.

Contract: bodies are bytes of JSON, in and out. `request` sends a request once, or once more with new credentials after
a 401; `read` repeats a GET that the server was too busy for, or that got no answer. Writes are never repeated here:
only the caller knows what a lost answer means. The time limit of `request` covers everything: new credentials, the wait
for a connection, both times that it is sent, and the answer; nothing leaves after it. Only the first credentials are
not counted: the user may have to log in. Writes use connections of their own (`http`), unless the way to the server
leads through a proxy. The client belongs to one event loop.
"""

from __future__ import annotations

import asyncio
import os
import random
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from urllib.parse import urlencode, urlsplit

import aiohttp
from multidict import CIMultiDict

from tutti.client.access.cluster_access import ClusterAccess
from tutti.client.access.credentials import Credentials, Identity
from tutti.client.access.proxy import environment_proxy
from tutti.client.api_errors import connection_problem, error_of_answer
from tutti.client.backoff import Backoff
from tutti.client.http.answer_parser import HttpAnswer
from tutti.client.http.connections import Connections
from tutti.client.http.write_connections import header_line, request_target
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
        url = urlsplit(access.server)
        self._host, self._base_path = url.netloc.rpartition("@")[2], url.path.rstrip("/")
        self._connections = Connections(access, limit=connections, monotonic=monotonic)
        self._heads: dict[str, tuple[str, bytes]] = {}
        """The headers of writes by content type, with the Authorization that they have."""

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
        if method != "GET" and not self._proxy:
            return await self._write(method, path, body, query=query, content_type=content_type, timeout=timeout)
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

    async def _write(
        self,
        method: str,
        path: str,
        body: bytes | None,
        *,
        query: Mapping[str, str] | None,
        content_type: str,
        timeout: float,
    ) -> bytes:
        """Send a write; `timeout` covers credentials, connecting and the answer."""
        target = f"{self._base_path}{path}?{urlencode(query)}" if query else self._base_path + path
        try:
            async with asyncio.timeout(timeout):
                answer = await self._send(method, target, body or b"", content_type)
        except TimeoutError:
            raise ApiError(f"{method} {path}: no answer in time") from None
        except OSError as error:
            raise ApiError(f"{method} {path}: {connection_problem(error)}") from None
        if answer.status >= 300:
            retry_after = answer.headers.get(b"retry-after", b"").decode("latin-1")
            raise error_of_answer(answer.body, answer.status, f"{method} {path}", retry_after=retry_after)
        return answer.body

    async def _send(self, method: str, target: str, body: bytes, content_type: str) -> HttpAnswer:
        """Send a write, once more if the server does not accept the credentials and there may be others."""
        for attempt in range(2):
            identity = await self._credentials.identity()
            head = self._write_head(identity, content_type)
            request = b"%b %b HTTP/1.1\r\n%bContent-Length: %d\r\n\r\n%b" % (
                method.encode(),
                request_target(target),
                head,
                len(body),
                body,
            )
            sent = self._monotonic()
            answer = await self._connections.writes(identity).send(request)
            if date := answer.headers.get(b"date"):
                self.clock.observe(date.decode("latin-1"), sent, self._monotonic())
            if answer.status != 401 or attempt or not self._credentials.reject(identity):
                return answer
        raise AssertionError("the last attempt returns")

    def _write_head(self, identity: Identity, content_type: str) -> bytes:
        """Return the headers of a write but for its length."""
        known = self._heads.get(content_type)
        if known is not None and known[0] == identity.authorization:
            return known[1]
        headers = self._with_identity({"Host": self._host, "Accept": JSON, "Content-Type": content_type}, identity)
        head = b"".join(header_line(name, value) for name, value in headers.items())
        self._heads[content_type] = identity.authorization, head
        return head

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
    retry_after = answer.headers.get("Retry-After", "")
    return error_of_answer(body, answer.status, f"{method} {path}", retry_after=retry_after)
