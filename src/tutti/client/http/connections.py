"""Connections to an API server: a session of aiohttp and connections for writes, for each client certificate.

A new certificate needs new connections. Requests that are under way keep the old ones, which are closed when the
longest watch must have ended. A certificate that cannot be used, because its files are being replaced, leaves the
connections as they are.

Contract: `session` and `writes` never wait. A request is sent once: aiohttp's own repetition of GET, PUT and DELETE is
off, because only the caller knows what a lost answer means.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import NamedTuple
from urllib.parse import urlsplit

import aiohttp

from tutti.client.access.cluster_access import ClusterAccess
from tutti.client.access.credentials import Identity
from tutti.client.access.tls import tls_context
from tutti.client.http.sockets import keep_alive_socket
from tutti.client.http.write_connections import Address, WriteConnections
from tutti.exceptions import InputError

_LOG = logging.getLogger("tutti.client")
_OLD_FOR = 330.0
"""Seconds after which no watch has old connections any more."""
_TRY_AGAIN_AFTER = 5.0
"""Seconds after which a certificate that could not be used is tried again."""


class _Opened(NamedTuple):
    """What one certificate has."""

    session: aiohttp.ClientSession
    writes: WriteConnections


class Connections:
    """See the module's docstring; `limit` is the number of connections at once, `monotonic` returns seconds."""

    def __init__(self, access: ClusterAccess, *, limit: int, monotonic: Callable[[], float]) -> None:
        self._access, self._limit, self._monotonic = access, limit, monotonic
        self._opened: _Opened | None = None
        self._pair = (b"", b"")
        self._try_again_at = float("-inf")
        self._old: dict[aiohttp.ClientSession, asyncio.Task[None]] = {}
        """Sessions that requests under way may still use, and what will close them."""

    async def close(self) -> None:
        """Close all connections."""
        sessions = list(self._old)
        for task in self._old.values():
            task.cancel()
        self._old.clear()
        if self._opened is not None:
            self._opened.writes.close()
            sessions.append(self._opened.session)
        self._opened = None
        for session in sessions:
            await session.close()

    def session(self, identity: Identity) -> aiohttp.ClientSession:
        """Return the session for the certificate of an identity."""
        return self._for(identity).session

    def writes(self, identity: Identity) -> WriteConnections:
        """Return the connections for writes with the certificate of an identity."""
        return self._for(identity).writes

    def _for(self, identity: Identity) -> _Opened:
        pair = identity.certificate, identity.key
        opened = self._opened
        if opened is None or pair != self._pair:
            opened = self._opened = self._renewed(pair, opened)
        return opened

    def _renewed(self, pair: tuple[bytes, bytes], old: _Opened | None) -> _Opened:
        """Return connections with another certificate; the old ones if the certificate cannot be used."""
        now = self._monotonic()
        if old is not None and now < self._try_again_at:
            return old
        try:
            opened = self._open(pair)
        except InputError as error:
            if old is None:
                raise
            _LOG.warning("the connections keep their old certificate: %s", error)
            self._try_again_at = now + _TRY_AGAIN_AFTER
            return old
        self._pair = pair
        if old is not None:
            old.writes.retire()
            self._old[old.session] = asyncio.create_task(self._close_later(old.session))
        return opened

    async def _close_later(self, session: aiohttp.ClientSession) -> None:
        await asyncio.sleep(_OLD_FOR)
        await session.close()
        self._old.pop(session, None)

    def _open(self, pair: tuple[bytes, bytes]) -> _Opened:
        url = urlsplit(self._access.server)
        context = tls_context(self._access, *pair) if url.scheme == "https" else None
        connector = aiohttp.TCPConnector(
            limit=self._limit, ssl=context or False, keepalive_timeout=60, socket_factory=keep_alive_socket
        )
        session = aiohttp.ClientSession(
            connector=connector,
            cookie_jar=aiohttp.DummyCookieJar(),
            auto_decompress=True,
            read_bufsize=1 << 18,
            middlewares=(_send_once,),
        )
        port = url.port or (443 if context is not None else 80)
        address = Address(url.hostname or "", port, context, self._access.tls_server_name or None)
        return _Opened(session, WriteConnections(address, limit=self._limit, monotonic=self._monotonic))


async def _send_once(request: aiohttp.ClientRequest, send: aiohttp.ClientHandlerType) -> aiohttp.ClientResponse:
    """Send a request; turn the errors after which aiohttp would send it again into others."""
    try:
        return await send(request)
    except aiohttp.ClientConnectorError:
        raise
    except (aiohttp.ClientOSError, aiohttp.ServerDisconnectedError) as error:
        raise aiohttp.ClientConnectionError(str(error) or type(error).__name__) from error
