"""uvicorn's HTTP/1.1, with an end to its patience.

Contract: a connection that has sent nothing or a part of its headers is closed after the read timeout; so is one that
still sends a body when its answer has long gone out. Bodies that are wanted have a timeout of their own (`body`), idle
connections uvicorn's.
"""

from __future__ import annotations

import asyncio
import socket

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

_FAREWELL = 1.0
"""Seconds that a peer has to close its end."""


class PatientProtocol(H11Protocol):
    """See the module's contract."""

    patience = 10.0
    """In seconds."""
    _timer: asyncio.TimerHandle | None = None
    _is_answered = False
    """Whether the answer went out before the body had come in."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Wait for headers; answer at once, headers and body being two writes."""
        super().connection_made(transport)
        if (connected := transport.get_extra_info("socket")) is not None:
            connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._arm()

    def data_received(self, data: bytes) -> None:
        """Wait on for headers, or be content."""
        super().data_received(data)
        if self.conn.their_state is h11.IDLE:
            self._is_answered = False
            self._arm()
        elif not self._is_answered:
            self._disarm()

    def on_response_complete(self) -> None:
        """Wait for the rest of a body that nobody wants, so that the client gets to read the answer."""
        super().on_response_complete()
        if self.conn.their_state is h11.SEND_BODY:
            self._is_answered = True
            self._arm()

    def shutdown(self) -> None:
        """Close at the server's end what is idle; what is not closes after its answer."""
        super().shutdown()
        if self.transport.is_closing():
            self._insist()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop waiting."""
        self._disarm()
        super().connection_lost(exc)

    def _arm(self) -> None:
        if self._timer is None:
            self._timer = self.loop.call_later(self.patience, self._close)

    def _close(self) -> None:
        self.transport.close()
        self._insist()

    def _insist(self) -> None:
        """Under TLS a close waits for the peer's own, half a minute if it must."""
        self.loop.call_later(_FAREWELL, self.transport.abort)

    def _disarm(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


def patient(seconds: float) -> type[PatientProtocol]:
    """The protocol with so much patience."""
    return type("PatientProtocol", (PatientProtocol,), {"patience": seconds})
