"""Connections to an API server: one session of aiohttp for each client certificate.

A new certificate needs new connections. Requests that are under way keep the old ones, which are closed when the
longest watch must have ended. A certificate that cannot be used, because its files are being replaced, leaves the
connections as they are.

A watch may be silent for minutes. Without keep-alive packets a peer that vanished without closing the connection would
look the same as a cluster in which nothing happens.

Contract: `session` never waits. A request is sent once: aiohttp's own repetition of GET, PUT and DELETE is off, because
only the caller knows what a lost answer means.
"""

from __future__ import annotations

import asyncio
import logging
import socket

import aiohttp

from tutti.client.access.cluster_access import ClusterAccess
from tutti.client.access.credentials import Identity
from tutti.client.access.tls import tls_context
from tutti.exceptions import InputError

_LOG = logging.getLogger("tutti.client")
_IDLE, _INTERVAL, _PROBES = 15, 5, 3
"""Seconds before the first probe and between probes; failed probes until the connection is dead."""
_OLD_FOR = 330.0
"""Seconds after which no watch has old connections any more."""
_TRY_AGAIN_AFTER = 5.0
"""Seconds after which a certificate that could not be used is tried again."""


class Connections:
    """See the module's docstring; `limit` is the number of connections at once."""

    def __init__(self, access: ClusterAccess, *, limit: int) -> None:
        self._access, self._limit = access, limit
        self._session: aiohttp.ClientSession | None = None
        self._pair = (b"", b"")
        self._try_again_at = float("-inf")
        self._old: dict[aiohttp.ClientSession, asyncio.Task[None]] = {}
        """Sessions that requests under way may still use, and what will close them."""

    async def close(self) -> None:
        """Close all connections."""
        sessions = [*self._old, *([self._session] if self._session is not None else [])]
        for task in self._old.values():
            task.cancel()
        self._old.clear()
        self._session = None
        for session in sessions:
            await session.close()

    def session(self, identity: Identity) -> aiohttp.ClientSession:
        """Return the session for the certificate of an identity."""
        pair = identity.certificate, identity.key
        session = self._session
        if session is None or pair != self._pair:
            session = self._session = self._renewed(pair, session)
        return session

    def _renewed(self, pair: tuple[bytes, bytes], old: aiohttp.ClientSession | None) -> aiohttp.ClientSession:
        """Return a session with another certificate; the old one if the certificate cannot be used."""
        now = asyncio.get_running_loop().time()
        if old is not None and now < self._try_again_at:
            return old
        try:
            session = self._new_session(pair)
        except InputError as error:
            if old is None:
                raise
            _LOG.warning("the connections keep their old certificate: %s", error)
            self._try_again_at = now + _TRY_AGAIN_AFTER
            return old
        self._pair = pair
        if old is not None:
            self._old[old] = asyncio.create_task(self._close_later(old))
        return session

    async def _close_later(self, session: aiohttp.ClientSession) -> None:
        await asyncio.sleep(_OLD_FOR)
        await session.close()
        self._old.pop(session, None)

    def _new_session(self, pair: tuple[bytes, bytes]) -> aiohttp.ClientSession:
        context = tls_context(self._access, *pair) if self._access.server.startswith("https://") else False
        connector = aiohttp.TCPConnector(
            limit=self._limit, ssl=context, keepalive_timeout=60, socket_factory=keep_alive_socket
        )
        return aiohttp.ClientSession(
            connector=connector,
            cookie_jar=aiohttp.DummyCookieJar(),
            auto_decompress=True,
            read_bufsize=1 << 18,
            middlewares=(_send_once,),
        )


async def _send_once(request: aiohttp.ClientRequest, send: aiohttp.ClientHandlerType) -> aiohttp.ClientResponse:
    """Send a request; turn the errors after which aiohttp would send it again into others."""
    try:
        return await send(request)
    except aiohttp.ClientConnectorError:
        raise
    except (aiohttp.ClientOSError, aiohttp.ServerDisconnectedError) as error:
        raise aiohttp.ClientConnectionError(str(error) or type(error).__name__) from error


def keep_alive_socket(address: aiohttp.AddrInfoType) -> socket.socket:
    """Return a socket with keep-alive for an address."""
    family, kind, protocol, _, _ = address
    made = socket.socket(family=family, type=kind, proto=protocol)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    for name, value in (("TCP_KEEPIDLE", _IDLE), ("TCP_KEEPINTVL", _INTERVAL), ("TCP_KEEPCNT", _PROBES)):
        if hasattr(socket, name):
            made.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)
    return made
