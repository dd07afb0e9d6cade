"""One request from its body to its answer: read, wait for a worker, plan, and end early when nobody needs it any more.

Contract: a plan ends early when its client goes away (nobody is answered), when the request's time is up (504; 503 if
it never had a worker) and when the server's grace is over (503). In each case the worker is killed: nothing of an
abandoned request goes on. A body that comes in takes no place among the plans (`uploads`); where there is none for its
plan it is refused before it is read, or after that if others were quicker.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Mapping
from typing import Any, NamedTuple, TypeVar

from tutti.serve.http.refusals import REQUEST_TIMEOUT, TIMED_OUT, RefusedError, busy
from tutti.serve.http.request_body import Receive, gone, is_gzip, read_body, until_gone
from tutti.serve.http.upload_limits import Uploads
from tutti.serve.metrics import Metrics
from tutti.serve.settings import Settings
from tutti.serve.workers.messages import Asked, Job, Reply, Route
from tutti.serve.workers.worker_pool import Pool

Made = TypeVar("Made")


class Incoming(NamedTuple):
    """What of a request is needed here."""

    id: str
    path: str
    headers: Mapping[str, str]
    receive: Receive


class Desk:
    """See the module's contract."""

    def __init__(self, settings: Settings, pool: Pool, metrics: Metrics) -> None:
        self.settings, self.pool, self.metrics = settings, pool, metrics
        self.uploads = Uploads(settings.uploads, settings.upload_memory)
        self.is_stopping = False
        """Whether the server is about to end; what is running goes on for the time of grace."""
        self._over = asyncio.Event()

    @property
    def is_ready(self) -> bool:
        """Whether a request would be planned at once or in a while."""
        return self.pool.ready > 0 and not self.is_stopping

    def give_up(self) -> None:
        """End what is still running: the time of grace is over."""
        self._over.set()

    async def answer(self, incoming: Incoming, route: Route, asked: Asked) -> tuple[Reply, bytes]:
        """A worker's answer, or a `RefusedError`."""
        packed = is_gzip(incoming.headers)
        end = asyncio.get_running_loop().time() + self.settings.timeout
        self.pool.check_room()
        body = await self._read(incoming, end)
        self.metrics.body(incoming.path, sum(map(len, body)))
        job = Job(id=incoming.id, route=route, asked=asked, is_gzip=packed)
        with self.pool.place():
            return await self._plan(job, body, end=end, receive=incoming.receive)

    async def _read(self, incoming: Incoming, end: float) -> list[bytes]:
        settings = self.settings
        with self.uploads.place() as take:
            reading = read_body(
                incoming.receive,
                declared=incoming.headers.get("content-length"),
                limit=settings.max_body,
                pause=settings.read_timeout,
                take=take,
            )
            late = RefusedError(REQUEST_TIMEOUT, f"the body was not there within {settings.timeout:g} seconds")
            return await self._within(end, reading, late=late)

    async def _plan(self, job: Job, body: list[bytes], *, end: float, receive: Receive) -> tuple[Reply, bytes]:
        started = asyncio.Event()
        planning = asyncio.create_task(self.pool.run(job, body, started=started.set))
        leaving = asyncio.create_task(until_gone(receive))
        over = asyncio.create_task(self._over.wait())
        why = "stopped"
        try:
            left = max(end - asyncio.get_running_loop().time(), 0.0)
            done, _ = await asyncio.wait({planning, leaving, over}, timeout=left, return_when=asyncio.FIRST_COMPLETED)
            if planning in done:
                return planning.result()
            if leaving in done:
                why = "disconnect"
                raise gone()
            if over in done:
                raise _ending()
            why = "timeout"
            seconds = self.settings.timeout
            if started.is_set():
                raise RefusedError(TIMED_OUT, f"there was no plan within {seconds:g} seconds (--timeout)")
            raise busy(f"no worker was free within {seconds:g} seconds", 5)
        finally:
            planning.cancel(why)
            leaving.cancel()
            over.cancel()
            await asyncio.gather(planning, leaving, over, return_exceptions=True)

    async def _within(self, end: float, work: Coroutine[Any, Any, Made], *, late: RefusedError) -> Made:
        """What some work gives, unless time or grace is over before."""
        working = asyncio.create_task(work)
        over = asyncio.create_task(self._over.wait())
        try:
            left = max(end - asyncio.get_running_loop().time(), 0.0)
            done, _ = await asyncio.wait({working, over}, timeout=left, return_when=asyncio.FIRST_COMPLETED)
            if working in done:
                return working.result()
            raise _ending() if over in done else late
        finally:
            working.cancel()
            over.cancel()
            await asyncio.gather(working, over, return_exceptions=True)


def _ending() -> RefusedError:
    return busy("the server is about to end", 5)
