"""The worker processes: one plan at a time in each; a worker that dies, is killed or grows too large is replaced.

Contract: runs on the server's event loop only. `admit` admits a request, or refuses it if all workers are busy and the
queue is full. `run` returns the worker's answer; cancelling it kills the worker, because nothing else stops a plan, and
the message of the cancellation is the reason that is counted. A slot whose worker ended gets a new worker at once; if
workers fail to start, the slot waits longer each time.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable, Iterator

from tutti.present.tables import counted
from tutti.serve.http.refusals import INTERNAL, RefusedError, unavailable
from tutti.serve.metrics import Metrics
from tutti.serve.workers.messages import Chunks, PlanJob, Reply, WorkerSetup
from tutti.serve.workers.worker_process import WorkerDiedError, WorkerProcess

_LOG = logging.getLogger("tutti.serve")
_SHORTEST_PAUSE, _LONGEST_PAUSE = 0.2, 10.0
"""Seconds between two attempts to start a worker."""
_IDLE_TIMEOUT = 30.0
"""Seconds after its answer in which a worker must become idle."""


class WorkerPool:
    """All worker processes of one server."""

    def __init__(self, setup: WorkerSetup, *, size: int, queue: int, max_memory: int, metrics: Metrics) -> None:
        self._setup, self.size, self._queue = setup, size, queue
        self._max_memory, self._metrics = max_memory, metrics
        self._idle: asyncio.Queue[WorkerProcess] = asyncio.Queue()
        self._slots: list[asyncio.Task[None]] = []
        self._becoming_idle: set[asyncio.Task[None]] = set()
        self.workers: dict[int, WorkerProcess] = {}
        """By slot; workers that are ready."""
        self.admitted = self.running = 0
        """Requests that wait or run, and those of them that have a worker."""

    @property
    def waiting(self) -> int:
        """Number of requests that wait for a worker."""
        return self.admitted - self.running

    @property
    def ready(self) -> int:
        """Number of workers that are alive."""
        return sum(worker.is_alive for worker in self.workers.values())

    async def start(self) -> None:
        """Start the workers, without waiting until they are ready."""
        self._slots = [asyncio.create_task(self._keep_slot(slot)) for slot in range(self.size)]

    async def stop(self) -> None:
        """Kill all workers."""
        tasks = [*self._slots, *self._becoming_idle]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def check_room(self) -> None:
        """Refuse a request that `admit` would refuse now."""
        if self.admitted >= self.size + self._queue:
            load = f"{counted(self.running, 'plan')} under way, {counted(self.waiting, 'request')} waiting"
            raise unavailable(f"all workers are busy: {load}", 1 + self._queue // 4)

    @contextlib.contextmanager
    def admit(self) -> Iterator[None]:
        """Count one request, from its last byte to its answer."""
        self.check_room()
        self.admitted += 1
        try:
            yield
        finally:
            self.admitted -= 1

    async def run(self, job: PlanJob, body: Chunks, *, started: Callable[[], None]) -> tuple[Reply, bytes]:
        """Return the answer of a worker; refuse with 500 if it dies; call `started` when a worker takes the job."""
        worker = await self._idle_worker()
        started()
        self.running += 1
        try:
            reply, text = await worker.ask(job, body)
        except WorkerDiedError:
            worker.kill("died")
            _LOG.error("worker %d died while planning %s", worker.pid, job.id)
            raise RefusedError(
                INTERNAL, "the process that made the plan died; the request may need too much memory"
            ) from None
        except BaseException as error:  # cancelled: client, deadline or shutdown
            worker.kill(str(error.args[0]) if error.args else "stopped")
            raise
        finally:
            self.running -= 1
        becoming_idle = asyncio.create_task(self._wait_until_idle(worker))
        self._becoming_idle.add(becoming_idle)
        becoming_idle.add_done_callback(self._becoming_idle.discard)
        return reply, text

    async def _idle_worker(self) -> WorkerProcess:
        while True:
            worker = await self._idle.get()
            if worker.is_alive:
                return worker

    async def _wait_until_idle(self, worker: WorkerProcess) -> None:
        """Return a worker to the pool when it is idle, or kill it."""
        try:
            async with asyncio.timeout(_IDLE_TIMEOUT):
                held = await worker.idle()
        except (WorkerDiedError, TimeoutError):
            worker.kill("died")
            return
        if held > self._max_memory:
            worker.kill("memory")
        else:
            self._idle.put_nowait(worker)

    async def _keep_slot(self, slot: int) -> None:
        """Keep one worker running in a slot."""
        pause, why = _SHORTEST_PAUSE, "start"
        while True:
            self._metrics.workers_started(why)
            try:
                worker = await WorkerProcess.start(self._setup)
            except OSError as error:  # no memory or no process left
                _LOG.error("cannot start a worker (%s); next attempt in %.1f s", error.strerror, pause)
                await asyncio.sleep(pause)
                pause, why = min(pause * 2, _LONGEST_PAUSE), "failed"
                continue
            try:
                if await worker.is_ready():
                    pause = _SHORTEST_PAUSE
                    self.workers[slot] = worker
                    self._idle.put_nowait(worker)
                    why = await worker.ended()
                else:
                    _LOG.error("worker %d did not start; next attempt in %.1f s", worker.pid, pause)
                    await asyncio.sleep(pause)
                    pause, why = min(pause * 2, _LONGEST_PAUSE), "failed"
            finally:
                self.workers.pop(slot, None)
                worker.kill("stopped")
                await asyncio.shield(worker.ended())
