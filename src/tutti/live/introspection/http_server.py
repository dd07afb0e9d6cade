"""The HTTP server inside the scheduler's event loop: listens, limits connections, and serves one request on each.

Contract: a connection lasts at most some seconds, whatever its client does, and only so many exist at once; request
bodies are never read, and headers have a maximum size. So no client can hold memory or connections for long. An error
in a handler is an answer with status 500, never an error of the scheduler. An address that cannot be used raises a
`TuttiError` from `start`.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import ipaddress
import logging
import ssl
from collections.abc import Awaitable, Callable
from pathlib import Path

from aiohttp import web
from aiohttp.web_protocol import RequestHandler

from tutti.exceptions import TuttiError
from tutti.live.options import HttpOptions
from tutti.tls_files import tls_error

_LOG = logging.getLogger("tutti.live")
_LIFETIME = 20.0
"""Seconds after which a connection is closed."""
_MOST_CONNECTIONS = 64
_RELOAD_EVERY = 60.0
"""Seconds between two looks at the files of the certificate."""

Handler = Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]


class HttpServer:
    """See the module's docstring."""

    def __init__(self, options: HttpOptions, handler: Handler) -> None:
        self._options, self._handler = options, handler
        self._connections: _LimitedServer | None = None
        self._listening: asyncio.Server | None = None
        self._reloading: asyncio.Task[None] | None = None
        self.url = ""
        """The address once the server listens."""

    async def start(self) -> None:
        """Listen; raise `TuttiError` if that is not possible."""
        options, context = self._options, self._tls_context()
        self._connections = _LimitedServer(self._handler, access_log=None, lingering_time=0.0, keepalive_timeout=0.0)
        timeout = 5.0 if context is not None else None
        try:
            self._listening = await asyncio.get_running_loop().create_server(
                self._connections, options.host, options.port, ssl=context, ssl_handshake_timeout=timeout
            )
        except OSError as error:
            raise TuttiError(_problem(error, options)) from None
        port = self._listening.sockets[0].getsockname()[1]
        host = f"[{options.host}]" if ":" in options.host else options.host
        self.url = f"{'https' if context is not None else 'http'}://{host}:{port}"
        if context is not None:
            self._reloading = asyncio.create_task(self._reload(context))

    async def stop(self) -> None:
        """Stop listening and close all connections."""
        if self._reloading is not None:
            self._reloading.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._reloading
        if self._listening is not None:
            self._listening.close()
        if self._connections is not None:
            self._connections.abort_all()

    def _tls_context(self) -> ssl.SSLContext | None:
        if not self._options.tls_cert:
            return None
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        self._load_certificate(context)
        return context

    def _load_certificate(self, context: ssl.SSLContext) -> None:
        certificate, key = self._options.tls_cert, self._options.tls_key
        try:
            context.load_cert_chain(certificate, key, password=lambda: "")
        except OSError as error:
            raise tls_error(certificate, key, error) from None

    async def _reload(self, context: ssl.SSLContext) -> None:
        """Use a new certificate when its files change, as cert-manager changes them."""
        seen = self._changed_at()
        while True:
            await asyncio.sleep(_RELOAD_EVERY)
            changed_at = self._changed_at()
            if changed_at == seen:
                continue
            try:
                self._load_certificate(context)
                seen = changed_at
            except TuttiError as error:
                _LOG.warning("the certificate is not reloaded: %s", error)

    def _changed_at(self) -> list[int]:
        times = []
        for path in (self._options.tls_cert, self._options.tls_key):
            with contextlib.suppress(OSError):
                times.append(Path(path).stat().st_mtime_ns)
        return times


class _LimitedServer(web.Server):
    """aiohttp's server with a maximum number and a maximum age of connections."""

    def connection_made(self, handler: RequestHandler, transport: asyncio.Transport) -> None:
        super().connection_made(handler, transport)
        if len(self.connections) > _MOST_CONNECTIONS:
            transport.abort()
            return
        asyncio.get_running_loop().call_later(_LIFETIME, transport.abort)

    def abort_all(self) -> None:
        for transport in list(self._connections.values()):
            transport.abort()


def is_private(request: web.BaseRequest) -> bool:
    """Return whether nobody else can read the answer: the connection has TLS, or does not leave this machine."""
    transport = request.transport
    if transport is None:
        return False
    if transport.get_extra_info("sslcontext") is not None:
        return True
    own = transport.get_extra_info("sockname")
    address = ipaddress.ip_address(own[0].partition("%")[0])
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return (mapped or address).is_loopback


def _problem(error: OSError, options: HttpOptions) -> str:
    where = f"{options.host}:{options.port}"
    if error.errno == errno.EADDRINUSE:
        return f"{where} is in use: choose another port with --port, or 0 for any free one"
    if error.errno == errno.EACCES:
        return f"this user may not listen on {where}: choose a port above 1023 with --port"
    return f"cannot listen on {where}: {(error.strerror or str(error)).lower()}"
