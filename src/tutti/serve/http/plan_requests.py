"""A plan request from its body to its answer: receive the body, wait for a worker, plan, cancel if necessary.

Contract: a plan is cancelled when its client disconnects (there is no answer), when the request's time is over (504;
503 if it never had a worker) and when the server's grace period is over (503). Each time the worker is killed: no work
for a cancelled request goes on. A body that is being received takes no place in the queue for plans (`upload_limits`);
if the queue is full the request is refused before its body is read, or afterwards if other requests were faster.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Mapping
from typing import Any, NamedTuple, TypeVar

from tutti.serve.http.refusals import REQUEST_TIMEOUT, TIMED_OUT, RefusedError, unavailable
from tutti.serve.http.request_body import Receive, client_closed, is_gzip, read_body, wait_for_disconnect
from tutti.serve.http.upload_limits import UploadLimits
from tutti.serve.metrics import Metrics
from tutti.serve.settings import ServerSettings
from tutti.serve.workers.messages import PlanJob, QueryOptions, Reply, Route
from tutti.serve.workers.worker_pool import WorkerPool

_Result = TypeVar("_Result")
_RETRY_AFTER = 5
"""Seconds after which a client may try again."""


class IncomingRequest(NamedTuple):
    """The parts of an HTTP request that planning needs."""

    id: str
    path: str
    headers: Mapping[str, str]
    receive: Receive


class PlanRequests:
    """The plan requests that the server handles now, with the pool, limits and metrics that they share."""

    def __init__(self, settings: ServerSettings, pool: WorkerPool, metrics: Metrics) -> None:
        self.settings, self.pool, self.metrics = settings, pool, metrics
        self.uploads = UploadLimits(settings.uploads, settings.upload_memory)
        self.is_stopping = False
        """Whether the server shuts down; running requests go on for the grace period."""
        self._cancelled = asyncio.Event()

    @property
    def is_ready(self) -> bool:
        """Whether the server accepts plan requests."""
        return self.pool.ready > 0 and not self.is_stopping

    def cancel_all(self) -> None:
        """Cancel all running requests: the grace period is over."""
        self._cancelled.set()

    async def answer(self, incoming: IncomingRequest, route: Route, options: QueryOptions) -> tuple[Reply, bytes]:
        """Return the reply of a worker, or raise a `RefusedError`."""
        compressed = is_gzip(incoming.headers)
        deadline = asyncio.get_running_loop().time() + self.settings.timeout
        self.pool.check_room()
        body = await self._receive(incoming, deadline)
        self.metrics.body(incoming.path, sum(map(len, body)))
        job = PlanJob(id=incoming.id, route=route, options=options, is_gzip=compressed)
        with self.pool.admit():
            return await self._plan(job, body, deadline=deadline, receive=incoming.receive)

    async def _receive(self, incoming: IncomingRequest, deadline: float) -> list[bytes]:
        settings = self.settings
        with self.uploads.admit() as reserve:
            reading = read_body(
                incoming.receive,
                declared=incoming.headers.get("content-length"),
                limit=settings.max_body,
                pause=settings.read_timeout,
                reserve=reserve,
            )
            late = RefusedError(REQUEST_TIMEOUT, f"the body did not arrive within {settings.timeout:g} seconds")
            return await self._result_before(deadline, reading, late=late)

    async def _plan(self, job: PlanJob, body: list[bytes], *, deadline: float, receive: Receive) -> tuple[Reply, bytes]:
        started = asyncio.Event()
        planning = asyncio.create_task(self.pool.run(job, body, started=started.set))
        disconnect = asyncio.create_task(wait_for_disconnect(receive))
        cancelled = asyncio.create_task(self._cancelled.wait())
        why = "stopped"
        try:
            left = max(deadline - asyncio.get_running_loop().time(), 0.0)
            done, _ = await asyncio.wait(
                {planning, disconnect, cancelled}, timeout=left, return_when=asyncio.FIRST_COMPLETED
            )
            if planning in done:
                return planning.result()
            if disconnect in done:
                why = "disconnect"
                raise client_closed()
            if cancelled in done:
                raise _shutting_down()
            why = "timeout"
            seconds = self.settings.timeout
            if started.is_set():
                raise RefusedError(TIMED_OUT, f"there was no plan within {seconds:g} seconds (--timeout)")
            raise unavailable(f"no worker was free within {seconds:g} seconds", _RETRY_AFTER)
        finally:
            planning.cancel(why)
            disconnect.cancel()
            cancelled.cancel()
            await asyncio.gather(planning, disconnect, cancelled, return_exceptions=True)

    async def _result_before(
        self, deadline: float, work: Coroutine[Any, Any, _Result], *, late: RefusedError
    ) -> _Result:
        """Return the result of `work`; raise if the deadline or the end of the grace period comes first."""
        working = asyncio.create_task(work)
        cancelled = asyncio.create_task(self._cancelled.wait())
        try:
            left = max(deadline - asyncio.get_running_loop().time(), 0.0)
            done, _ = await asyncio.wait({working, cancelled}, timeout=left, return_when=asyncio.FIRST_COMPLETED)
            if working in done:
                return working.result()
            raise _shutting_down() if cancelled in done else late
        finally:
            working.cancel()
            cancelled.cancel()
            await asyncio.gather(working, cancelled, return_exceptions=True)


def _shutting_down() -> RefusedError:
    return unavailable("the server is shutting down", _RETRY_AFTER)
