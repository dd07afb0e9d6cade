"""The connections of the scheduler's HTTP server: accepted, limited in number and age, and served by aiohttp.

A connection is idle until the headers of its request are complete. When there are too many connections, the oldest
idle one makes room, so that clients that send nothing cannot keep a probe out.

Contract: a connection counts from its acceptance, before any TLS handshake, and ends after some seconds, whatever its
client does. What clients send is neither logged nor sent back, because it may be a token. Belongs to the event loop.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
import ssl
from collections.abc import Awaitable, Callable

from aiohttp import web
from aiohttp.web_protocol import RequestHandler

_LOG = logging.getLogger("tutti.live")
_SILENT = logging.Logger("tutti.live.http")
_SILENT.disabled = True
_MOST_CONNECTIONS = 64
_HEADERS_WITHIN = 3.0
"""Seconds from the acceptance of a connection to the end of its request's headers, TLS handshake included."""
_LIFETIME = 20.0
"""Seconds after which a connection is closed."""
_TLS_CLOSE_WITHIN = 2.0
_ACCEPT_PAUSE = 0.2
"""Seconds to wait when no connection can be accepted, for example because the process has too many open files."""

Handler = Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]


class HttpConnections:
    """See the module's docstring; without a TLS context connections are plain."""

    def __init__(self, handler: Handler, context: ssl.SSLContext | None) -> None:
        self._handler, self._context = handler, context
        self._server = web.Server(self._answer)
        self._accepting: list[asyncio.Task[None]] = []
        self._open: dict[_Connection, asyncio.Task[None]] = {}
        self._idle: dict[_Connection, None] = {}
        """The connections without complete headers, the oldest first."""

    def accept_from(self, listening: socket.socket) -> None:
        """Accept the connections of a listening socket, which then belongs to this object."""
        self._accepting.append(asyncio.create_task(self._accept(listening)))

    async def close(self) -> None:
        """Close the listening sockets and all connections."""
        tasks = [*self._accepting, *self._open.values()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _accept(self, listening: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        with listening:
            while True:
                try:
                    accepted, _ = await loop.sock_accept(listening)
                except OSError:
                    await asyncio.sleep(_ACCEPT_PAUSE)
                    continue
                if len(self._open) >= _MOST_CONNECTIONS and not self._drop_oldest_idle():
                    accepted.close()
                    continue
                connection = _Connection(self._server)
                self._idle[connection] = None
                self._open[connection] = asyncio.create_task(self._serve(connection, accepted))
                await asyncio.sleep(0)  # accepting does not yield while connections wait

    def _drop_oldest_idle(self) -> bool:
        connection = next(iter(self._idle), None)
        if connection is None:
            return False
        task = self._open[connection]
        self._forget(connection)
        task.cancel()
        return True

    def _forget(self, connection: _Connection) -> None:
        self._idle.pop(connection, None)
        self._open.pop(connection, None)

    async def _serve(self, connection: _Connection, accepted: socket.socket) -> None:
        try:
            with contextlib.suppress(TimeoutError, OSError):  # OSError: the TLS handshake failed
                async with asyncio.timeout(_LIFETIME):
                    async with asyncio.timeout(_HEADERS_WITHIN):
                        await self._connect(connection, accepted)
                        await connection.is_asked.wait()
                    await connection.is_lost.wait()
        finally:
            self._forget(connection)
            if isinstance(connection.transport, asyncio.Transport):
                connection.transport.abort()

    async def _connect(self, connection: _Connection, accepted: socket.socket) -> None:
        timeout = None if self._context is None else _TLS_CLOSE_WITHIN
        await asyncio.get_running_loop().connect_accepted_socket(
            lambda: connection, accepted, ssl=self._context, ssl_shutdown_timeout=timeout
        )

    async def _answer(self, request: web.BaseRequest) -> web.StreamResponse:
        connection = request.protocol
        assert isinstance(connection, _Connection)
        self._idle.pop(connection, None)
        connection.is_asked.set()
        return await self._handler(request)


class _Connection(RequestHandler):
    """aiohttp's connection for one request, without its logging of errors."""

    __slots__ = ("is_asked", "is_lost")

    def __init__(self, server: web.Server) -> None:
        super().__init__(
            server,
            loop=asyncio.get_running_loop(),
            logger=_SILENT,
            access_log=None,  # type: ignore[arg-type]
            lingering_time=0.0,
            keepalive_timeout=0.0,
        )
        self.is_asked, self.is_lost = asyncio.Event(), asyncio.Event()

    def connection_lost(self, exc: BaseException | None) -> None:
        super().connection_lost(exc)
        self.is_asked.set()
        self.is_lost.set()

    def handle_error(
        self,
        request: web.BaseRequest,
        status: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,
    ) -> web.StreamResponse:
        """Answer a request that is not HTTP (aiohttp's message has the client's bytes), or whose handler has failed."""
        if status >= 500:
            _LOG.error("a request cannot be answered: %s", type(exc).__name__)
        answer = web.Response(status=status, text="bad request\n" if status < 500 else "internal error\n")
        answer.force_close()
        return answer
