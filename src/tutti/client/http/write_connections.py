"""Connections for writes: HTTP/1.1 requests of some hundred bytes, one at a time on each kept connection.

A scheduler sends thousands of Bindings and Events in a burst, and a general HTTP client spends more CPU time on each
than the scheduler does on all else (docs/decisions/0032). Everything that a write to the API server does not need is
left out here: redirects, cookies, compression, streaming. Lists and watches go through aiohttp.

Contract: a request is sent once and never repeated. After an `OSError` the server may have carried it out. A request
that is cancelled closes its connection. At most `limit` connections are busy; more requests wait. A connection that was
idle for `_IDLE_FOR` is not used again, and closed while others are used.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections import deque
from collections.abc import Callable
from typing import NamedTuple

from aiohappyeyeballs import start_connection

from tutti.client.http.answer_parser import AnswerParser, HttpAnswer
from tutti.client.http.sockets import keep_alive_socket

_IDLE_FOR = 60.0
"""Seconds after which an idle connection is not used again: the server may be about to close it."""


_NEXT_ADDRESS_AFTER = 0.25
"""Seconds after which another address of the server is tried at the same time."""


class Address(NamedTuple):
    """Where a server is."""

    host: str
    port: int
    tls: ssl.SSLContext | None
    server_hostname: str | None
    """The name in the server's certificate; None: the host."""


class _Connection(asyncio.Protocol):
    """One connection: a request, its answer, the next request."""

    def __init__(self) -> None:
        self._transport: asyncio.Transport | None = None
        self._parser = AnswerParser()
        self._answer: asyncio.Future[HttpAnswer] | None = None
        self.idle_since = 0.0

    @property
    def is_open(self) -> bool:
        """Whether a request may be sent."""
        return self._transport is not None and not self._transport.is_closing()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        waiting = self._answer
        if waiting is None or waiting.done():
            self.close()  # an answer that nobody has asked for
            return
        try:
            answer = self._parser.feed(data)
        except ConnectionError as error:
            self._fail(error)
            return
        if answer is not None:
            waiting.set_result(answer)
            if not answer.keeps_alive:
                self.close()

    def connection_lost(self, error: Exception | None) -> None:
        answer = self._parser.end()
        if answer is not None and self._answer is not None and not self._answer.done():
            self._answer.set_result(answer)
        self._fail(error or ConnectionError("the server closed the connection"))

    def _fail(self, error: Exception) -> None:
        if self._answer is not None and not self._answer.done():
            self._answer.set_exception(error)
        self.close()

    def close(self) -> None:
        """End the connection at once."""
        if self._transport is not None:
            self._transport.abort()

    async def send(self, request: bytes, loop: asyncio.AbstractEventLoop) -> HttpAnswer:
        """Send a request; return its answer."""
        assert self._transport is not None
        waiting: asyncio.Future[HttpAnswer] = loop.create_future()
        self._answer = waiting
        self._transport.write(request)
        try:
            return await waiting
        except asyncio.CancelledError:
            self.close()
            raise
        finally:
            self._answer = None


class WriteConnections:
    """See the module's docstring; `monotonic` returns seconds."""

    def __init__(self, address: Address, *, limit: int, monotonic: Callable[[], float]) -> None:
        self._address, self._limit, self._monotonic = address, limit, monotonic
        self._idle: list[_Connection] = []
        """The connection that was used last is used next, so that the others may end."""
        self._busy: set[_Connection] = set()
        self._opening = 0
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._is_retired = False

    def close(self) -> None:
        """End all connections; requests that are under way fail."""
        self.retire()
        for connection in self._busy:
            connection.close()

    def retire(self) -> None:
        """End all idle connections now, and the others when their answers have come."""
        self._is_retired = True
        for connection in self._idle:
            connection.close()
        self._idle.clear()

    async def send(self, request: bytes) -> HttpAnswer:
        """Send a whole request; return its answer."""
        connection = self._take_idle() or await self._open()
        self._busy.add(connection)
        try:
            return await connection.send(request, asyncio.get_running_loop())
        finally:
            self._busy.discard(connection)
            self._give_back(connection)

    def _take_idle(self) -> _Connection | None:
        oldest = self._monotonic() - _IDLE_FOR
        while self._idle:
            connection = self._idle.pop()
            if connection.is_open and connection.idle_since > oldest:
                return connection
            connection.close()
        return None

    async def _open(self) -> _Connection:
        """Open a connection, or wait for one that gets free."""
        while len(self._busy) + self._opening >= self._limit:
            turn = asyncio.get_running_loop().create_future()
            self._waiting.append(turn)
            try:
                await turn
            except asyncio.CancelledError:
                if turn.done() and not turn.cancelled():
                    self._wake_next()
                raise
            idle = self._take_idle()
            if idle is not None:
                return idle
        self._opening += 1
        try:
            return await self._connect()
        except OSError as error:
            raise ConnectionError(_problem(error, self._address)) from None
        finally:
            self._opening -= 1
            self._wake_next()

    async def _connect(self) -> _Connection:
        address, loop = self._address, asyncio.get_running_loop()
        hostname = (address.server_hostname or address.host) if address.tls is not None else None
        found = await loop.getaddrinfo(address.host, address.port, type=socket.SOCK_STREAM)
        made = await start_connection(
            found, happy_eyeballs_delay=_NEXT_ADDRESS_AFTER, interleave=1, socket_factory=keep_alive_socket
        )
        _, connection = await loop.create_connection(_Connection, sock=made, ssl=address.tls, server_hostname=hostname)
        return connection

    def _give_back(self, connection: _Connection) -> None:
        if connection.is_open and not self._is_retired:
            connection.idle_since = now = self._monotonic()
            self._idle.append(connection)
            if self._idle[0].idle_since < now - _IDLE_FOR:  # the oldest: a burst needed more connections than this
                self._idle.pop(0).close()
        else:
            connection.close()
        self._wake_next()

    def _wake_next(self) -> None:
        while self._waiting:
            turn = self._waiting.popleft()
            if not turn.done():
                turn.set_result(None)
                return


def header_line(name: str, value: str) -> bytes:
    """Return a header as it is sent; refuse what could begin another header."""
    line = f"{name}: {value}".encode()
    if any(byte < 32 or byte == 127 for byte in line):
        raise ConnectionError(f"the header {name!r} has a control character")
    return line + b"\r\n"


def request_target(path: str) -> bytes:
    """Return the target of a request; refuse what could end its line."""
    if not path.isascii() or not path.isprintable() or " " in path:
        raise ConnectionError(f"the path {path!r} is not quoted")
    return path.encode("ascii")


def _problem(error: OSError, address: Address) -> str:
    text = error.strerror or str(error) or type(error).__name__
    return f"Cannot connect to host {address.host}:{address.port}: {text.splitlines()[0]}"
