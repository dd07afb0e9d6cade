"""Running the server: a socket, the loop, signals, and an orderly end.

Contract: `Running.run` returns when the server has ended and all its workers with it. The first SIGTERM or SIGINT stops
accepting and lets requests finish for the time of grace; a second one ends that time. `listening` is called once
requests are accepted, with the address. Workers get ready after that; requests wait for them.
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
from tutti.serve.http.application import application
from tutti.serve.http.header_timeout import patient
from tutti.serve.http.plan_requests import Desk
from tutti.serve.http.refusals import counted
from tutti.serve.http.tls import tls_fault
from tutti.serve.metrics import Metrics
from tutti.serve.settings import Settings
from tutti.serve.workers.messages import Setup
from tutti.serve.workers.worker_pool import Pool

_LOG = logging.getLogger("tutti.serve")
_AFTER_GRACE = 5
"""Seconds to send the last refusals."""
_BACKLOG = 256
_KEEP_ALIVE = 100
"""Seconds that an idle connection is kept: longer than clients do (Go's 90, httpx' 5), so that none of them sends a
request on a connection that is just being closed, which they cannot tell from a request that was lost."""


class Running:
    """A server with its address taken, and the handle to end it."""

    def __init__(self, settings: Settings, listening: Callable[[str], None]) -> None:
        self._settings, self._listening = settings, listening
        self._socket = _bound(settings)
        self._server: _Server | None = None
        self._is_wanted = True
        host, port = self._socket.getsockname()[:2]
        scheme = "https" if settings.tls_cert else "http"
        self.url = f"{scheme}://[{host}]:{port}" if ":" in host else f"{scheme}://{host}:{port}"

    def run(self) -> int | None:
        """Serve until the end; the signal that asked for it, if one did."""
        with contextlib.closing(self._socket), asyncio.Runner() as runner:
            return runner.run(self._serve())

    def stop(self) -> None:
        """End it, from any thread; `run` returns soon after."""
        self._is_wanted = False
        if self._server is not None:
            self._server.should_exit = True

    async def _serve(self) -> int | None:
        settings, metrics = self._settings, Metrics()
        setup = Setup(
            prices=settings.prices,
            pools=settings.pools,
            region=settings.region,
            max_body=settings.max_body,
            time_limit=settings.time_limit,
            max_time_limit=settings.max_time_limit,
        )
        size, memory = settings.processes, settings.worker_memory
        desk = Desk(settings, Pool(setup, size=size, queue=settings.queue, memory=memory, metrics=metrics), metrics)
        self._server = _Server(_config(settings, desk), desk, lambda: self._listening(self.url))
        self._server.should_exit = not self._is_wanted
        await self._server.serve([self._socket])
        return self._server.signal


class _Server(uvicorn.Server):
    """uvicorn's, which says when it listens, and leaves the process to its owner when a signal has ended it."""

    def __init__(self, config: uvicorn.Config, desk: Desk, listening: Callable[[], None]) -> None:
        super().__init__(config)
        self._desk, self._listening = desk, listening
        self.signal: int | None = None

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start, and say so."""
        await super().startup(sockets)
        self._listening()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """End in order, and say what is waited for."""
        desk, grace = self._desk, self._desk.settings.grace
        desk.is_stopping = True
        if desk.pool.inside:
            plans = counted(desk.pool.inside, "plan")
            _LOG.info("waiting for %s, up to %gs; Ctrl-C again ends at once", plans, grace)
        timer = asyncio.get_running_loop().call_later(grace, desk.give_up)
        await super().shutdown(sockets)
        timer.cancel()
        _LOG.info("ended")

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Take signals as a wish; outside the main thread they are somebody else's."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        loop = asyncio.get_running_loop()
        numbers = (signal.SIGINT, signal.SIGTERM)
        for number in numbers:
            loop.add_signal_handler(number, self._asked_to_end, number)
        try:
            yield
        finally:
            for number in numbers:
                loop.remove_signal_handler(number)

    def _asked_to_end(self, number: int) -> None:
        if self.should_exit:
            self._desk.give_up()
        self.signal, self.should_exit = number, True


def _config(settings: Settings, desk: Desk) -> uvicorn.Config:
    config = uvicorn.Config(
        application(desk),
        http=patient(settings.read_timeout),
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
        raise tls_fault(settings.tls_cert, settings.tls_key, error) from None
    return config


def _bound(settings: Settings) -> socket.socket:
    """The socket, taken before anything else so that a free port is known."""
    try:
        family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
        socket.getaddrinfo(settings.host or None, settings.port, family)  # a name that is none has an error of its own
        return socket.create_server((settings.host, settings.port), family=family, backlog=_BACKLOG)
    except (OSError, UnicodeError) as error:
        host = f"[{settings.host}]" if ":" in settings.host else settings.host
        raise InputError(f"cannot listen on {host}:{settings.port}: {_why_not(error)}") from None


def _why_not(error: OSError | UnicodeError) -> str:
    """Why an address cannot be taken, and what to do; Python's own text has the address as a tuple."""
    if isinstance(error, socket.gaierror | UnicodeError) or error.errno == errno.EADDRNOTAVAIL:
        return "it is not an address of this machine; choose another --host"
    return f"{os.strerror(error.errno).lower() if error.errno else error}; choose another --port"
