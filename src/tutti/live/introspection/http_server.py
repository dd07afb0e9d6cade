"""The HTTP server inside the scheduler's event loop: listens, with TLS or without, and serves one request a connection.

Contract: connections are limited in number and age (`http_connections`), request bodies are never read, and headers
have a maximum size. So no client can hold memory or connections for long. An error in a handler is an answer with
status 500, never an error of the scheduler. An address that cannot be used raises a `TuttiError` from `start`.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import ipaddress
import logging
import socket
import ssl
from pathlib import Path

from aiohttp import web

from tutti.exceptions import TuttiError
from tutti.live.introspection.http_connections import Handler, HttpConnections
from tutti.live.options import HttpOptions
from tutti.tls_files import tls_error

_LOG = logging.getLogger("tutti.live")
_BACKLOG = 100
_RELOAD_EVERY = 60.0
"""Seconds between two looks at the files of the certificate."""


class HttpServer:
    """See the module's docstring."""

    def __init__(self, options: HttpOptions, handler: Handler) -> None:
        self._options, self._handler = options, handler
        self._connections: HttpConnections | None = None
        self._reloading: asyncio.Task[None] | None = None
        self.url = ""
        """The address once the server listens."""

    async def start(self) -> None:
        """Listen; raise `TuttiError` if that is not possible."""
        options, context = self._options, self._tls_context()
        try:
            listening = await _listening_sockets(options)
        except OSError as error:
            raise TuttiError(_problem(error, options)) from None
        self._connections = HttpConnections(self._handler, context)
        for each in listening:
            self._connections.accept_from(each)
        port = listening[0].getsockname()[1]
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
        if self._connections is not None:
            await self._connections.close()

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


async def _listening_sockets(options: HttpOptions) -> list[socket.socket]:
    """Return sockets that listen on all addresses of the host."""
    # asyncio's server resolves and binds the addresses; it cannot limit connections at their acceptance.
    server = await asyncio.get_running_loop().create_server(
        asyncio.Protocol, options.host, options.port, start_serving=False
    )
    try:
        sockets = [each.dup() for each in server.sockets]
    finally:
        server.close()
    for each in sockets:
        each.setblocking(False)
        each.listen(_BACKLOG)
    return sockets


def _problem(error: OSError, options: HttpOptions) -> str:
    where = f"{options.host}:{options.port}"
    if error.errno == errno.EADDRINUSE:
        return f"{where} is in use: choose another port with --port, or 0 for any free one"
    if error.errno == errno.EACCES:
        return f"this user may not listen on {where}: choose a port above 1023 with --port"
    return f"cannot listen on {where}: {(error.strerror or str(error)).lower()}"
