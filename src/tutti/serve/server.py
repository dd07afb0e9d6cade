"""The server process: socket, event loop, signals and shutdown.

Contract: `RecommenderServer.run` returns when the server and all its workers have ended. The first SIGTERM or SIGINT
stops accepting connections and lets running requests finish within the grace period; a second signal ends that period.
`listening` is called with the address when the server accepts requests. Workers start after that; requests wait for
them.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import logging
import os
import signal
import socket
import ssl
import threading
from collections.abc import Callable, Iterator

import uvicorn

from tutti.exceptions import InputError
from tutti.present.tables import counted
from tutti.serve.http.application import application
from tutti.serve.http.header_timeout import header_timeout_protocol
from tutti.serve.http.plan_requests import PlanRequests
from tutti.serve.metrics import Metrics
from tutti.serve.settings import ServerSettings
from tutti.serve.workers.messages import WorkerSetup
from tutti.serve.workers.worker_pool import WorkerPool
from tutti.tls_files import tls_error

_LOG = logging.getLogger("tutti.serve")
_AFTER_GRACE = 5
"""Seconds to send the last refusals after the grace period."""
_BACKLOG = 256
_KEEP_ALIVE = 100
"""Seconds until an idle connection closes: longer than clients keep it (Go 90, httpx 5), so that no client sends a
request on a connection that is closing, which looks to the client like a lost request."""


class RecommenderServer:
    """A server with a bound socket; `listening` is called with its URL when it accepts requests."""

    def __init__(self, settings: ServerSettings, listening: Callable[[str], None]) -> None:
        self._settings, self._listening = settings, listening
        self._socket = _bind(settings)
        self._server: _Server | None = None
        self._is_wanted = True
        host, port = self._socket.getsockname()[:2]
        scheme = "https" if settings.tls_cert else "http"
        self.url = f"{scheme}://[{host}]:{port}" if ":" in host else f"{scheme}://{host}:{port}"

    def run(self) -> int | None:
        """Serve until the shutdown; return the signal that requested it, if any."""
        with contextlib.closing(self._socket), asyncio.Runner() as runner:
            return runner.run(self._serve())

    def stop(self) -> None:
        """Shut down, from any thread; `run` returns soon after."""
        self._is_wanted = False
        if self._server is not None:
            self._server.should_exit = True

    async def _serve(self) -> int | None:
        settings, metrics = self._settings, Metrics()
        setup = WorkerSetup(
            prices=settings.prices,
            pools=settings.pools,
            region=settings.region,
            max_body=settings.max_body,
            time_limit=settings.time_limit,
            max_time_limit=settings.max_time_limit,
        )
        pool = WorkerPool(
            setup,
            size=settings.processes,
            queue=settings.queue,
            max_memory=settings.worker_memory,
            metrics=metrics,
        )
        plan_requests = PlanRequests(settings, pool, metrics)
        self._server = _Server(_config(settings, plan_requests), plan_requests, lambda: self._listening(self.url))
        self._server.should_exit = not self._is_wanted
        await self._server.serve([self._socket])
        return self._server.signal


class _Server(uvicorn.Server):
    """uvicorn's server; it reports when it listens, and does not end the process after a signal."""

    def __init__(self, config: uvicorn.Config, plan_requests: PlanRequests, listening: Callable[[], None]) -> None:
        super().__init__(config)
        self._plan_requests, self._listening = plan_requests, listening
        self.signal: int | None = None

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start, and call `listening`."""
        await super().startup(sockets)
        self._listening()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Let running requests finish within the grace period."""
        plan_requests, grace = self._plan_requests, self._plan_requests.settings.grace
        plan_requests.is_stopping = True
        if plan_requests.pool.admitted:
            plans = counted(plan_requests.pool.admitted, "plan")
            _LOG.info("waiting for %s, up to %gs; Ctrl-C again ends at once", plans, grace)
        timer = asyncio.get_running_loop().call_later(grace, plan_requests.cancel_all)
        await super().shutdown(sockets)
        timer.cancel()
        _LOG.info("ended")

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Treat signals as shutdown requests (main thread only)."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        loop = asyncio.get_running_loop()
        numbers = (signal.SIGINT, signal.SIGTERM)
        for number in numbers:
            loop.add_signal_handler(number, self._shut_down_on, number)
        try:
            yield
        finally:
            for number in numbers:
                loop.remove_signal_handler(number)

    def _shut_down_on(self, number: int) -> None:
        if self.should_exit:
            self._plan_requests.cancel_all()
        self.signal, self.should_exit = number, True


def _config(settings: ServerSettings, plan_requests: PlanRequests) -> uvicorn.Config:
    config = uvicorn.Config(
        application(plan_requests),
        http=header_timeout_protocol(settings.read_timeout),
        ws="none",
        loop="asyncio",
        lifespan="on",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        backlog=_BACKLOG,
        timeout_keep_alive=_KEEP_ALIVE,
        ssl_certfile=settings.tls_cert or None,
        ssl_keyfile=settings.tls_key or None,
        timeout_graceful_shutdown=round(settings.grace) + _AFTER_GRACE,
    )
    try:
        config.load()
    except (OSError, ssl.SSLError) as error:
        raise tls_error(settings.tls_cert, settings.tls_key, error) from None
    return config


def _bind(settings: ServerSettings) -> socket.socket:
    """Return the bound socket; binding comes first, so that the number of a free port is known."""
    try:
        family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
        socket.getaddrinfo(settings.host or None, settings.port, family)  # gaierror for a name that does not resolve
        return socket.create_server((settings.host, settings.port), family=family, backlog=_BACKLOG)
    except (OSError, UnicodeError) as error:
        host = f"[{settings.host}]" if ":" in settings.host else settings.host
        raise InputError(f"cannot listen on {host}:{settings.port}: {_bind_problem(error)}") from None


def _bind_problem(error: OSError | UnicodeError) -> str:
    """Return why an address cannot be bound, and what to do; Python's own text has the address as a tuple."""
    if isinstance(error, socket.gaierror | UnicodeError) or error.errno == errno.EADDRNOTAVAIL:
        return "it is not an address of this machine; choose another --host"
    return f"{os.strerror(error.errno).lower() if error.errno else error}; choose another --port"
