"""uvicorn's HTTP/1.1 protocol with a timeout for request headers.

Contract: a connection is closed after the read timeout if it has sent nothing or a part of its headers, and if it still
sends a body long after its answer. Bodies that the server reads have a timeout of their own (`request_body`), idle
connections have uvicorn's.
"""

from __future__ import annotations

import asyncio
import socket

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

_CLOSE_TIMEOUT = 1.0
"""Seconds that a peer has to close its end."""


class HeaderTimeoutProtocol(H11Protocol):
    """uvicorn's protocol with a timer for headers."""

    read_timeout = 10.0
    """In seconds."""
    _timer: asyncio.TimerHandle | None = None
    _is_answered = False
    """Whether the answer went out before the body was complete."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Start the timer for headers; disable Nagle's algorithm, because headers and body are two writes."""
        super().connection_made(transport)
        if (connected := transport.get_extra_info("socket")) is not None:
            connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._start_timer()

    def data_received(self, data: bytes) -> None:
        """Keep the timer while headers are incomplete; otherwise cancel it."""
        super().data_received(data)
        if self.conn.their_state is h11.IDLE:
            self._is_answered = False
            self._start_timer()
        elif not self._is_answered:
            self._cancel_timer()

    def on_response_complete(self) -> None:
        """Start the timer for the rest of a body that the server does not read: the client still reads the answer."""
        super().on_response_complete()
        if self.conn.their_state is h11.SEND_BODY:
            self._is_answered = True
            self._start_timer()

    def shutdown(self) -> None:
        """Close an idle connection at the server's shutdown; other connections close after their answer."""
        super().shutdown()
        if self.transport.is_closing():
            self._abort_later()

    def connection_lost(self, exc: Exception | None) -> None:
        """Cancel the timer."""
        self._cancel_timer()
        super().connection_lost(exc)

    def _start_timer(self) -> None:
        if self._timer is None:
            self._timer = self.loop.call_later(self.read_timeout, self._close)

    def _cancel_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _close(self) -> None:
        self.transport.close()
        self._abort_later()

    def _abort_later(self) -> None:
        """Abort the connection soon: under TLS a close waits for the peer's close for up to half a minute."""
        self.loop.call_later(_CLOSE_TIMEOUT, self.transport.abort)


def header_timeout_protocol(seconds: float) -> type[HeaderTimeoutProtocol]:
    """Return the protocol class with this read timeout."""
    return type("HeaderTimeoutProtocol", (HeaderTimeoutProtocol,), {"read_timeout": seconds})
