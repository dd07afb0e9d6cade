"""The worker processes: one plan at a time in each, replaced when they die, are killed or have grown too large.

Contract: all on the server's loop. `place` admits a request, or refuses it when as many are inside as there are workers
and room to wait. `run` gives the worker's answer; whoever cancels it has the worker killed, because nothing else stops
a plan, and the message of the cancellation is the reason that is counted. A slot whose worker ended gets another one at
once, unless new ones cannot even start: then it waits longer each time.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable, Iterator

from tutti.serve.http.refusals import INTERNAL, RefusedError, busy, counted
from tutti.serve.metrics import Metrics
from tutti.serve.workers.messages import Chunks, Job, Reply, Setup
from tutti.serve.workers.worker_process import Worker, WorkerGoneError

_LOG = logging.getLogger("tutti.serve")
_SHORTEST, _LONGEST = 0.2, 10.0
"""Seconds between two tries to start a worker."""
_TIDY = 30.0
"""Seconds that a worker has to become idle after its answer."""


class Pool:
    """See the module's contract."""

    def __init__(self, setup: Setup, *, size: int, queue: int, memory: int, metrics: Metrics) -> None:
        self._setup, self.size, self._queue, self._memory, self._metrics = setup, size, queue, memory, metrics
        self._idle: asyncio.Queue[Worker] = asyncio.Queue()
        self._keepers: list[asyncio.Task[None]] = []
        self._settling: set[asyncio.Task[None]] = set()
        self.workers: dict[int, Worker] = {}
        """By slot; those that have said that they are ready."""
        self.inside = self.running = 0

    @property
    def waiting(self) -> int:
        """How many requests are inside and have no worker."""
        return self.inside - self.running

    @property
    def ready(self) -> int:
        """How many workers can plan, or do."""
        return sum(worker.is_alive for worker in self.workers.values())

    async def start(self) -> None:
        """Start the workers; they get ready while the server already answers."""
        self._keepers = [asyncio.create_task(self._keep(slot)) for slot in range(self.size)]

    async def stop(self) -> None:
        """End all workers, whatever they are doing."""
        tasks = [*self._keepers, *self._settling]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def check_room(self) -> None:
        """Refuse a request that `place` would refuse now."""
        if self.inside >= self.size + self._queue:
            said = f"{counted(self.running, 'plan')} under way, {counted(self.waiting, 'request')} waiting"
            raise busy(f"all workers are busy: {said}", 1 + self._queue // 4)

    @contextlib.contextmanager
    def place(self) -> Iterator[None]:
        """A place for one request, from its last byte to its answer."""
        self.check_room()
        self.inside += 1
        try:
            yield
        finally:
            self.inside -= 1

    async def run(self, job: Job, body: Chunks, *, started: Callable[[], None]) -> tuple[Reply, bytes]:
        """The answer of a worker, 500 if it dies over it; `started` is called when there is one for it."""
        worker = await self._free()
        started()
        self.running += 1
        try:
            reply, text = await worker.ask(job, body)
        except WorkerGoneError:
            worker.kill("died")
            _LOG.error("worker %d died while planning %s", worker.pid, job.id)
            raise RefusedError(
                INTERNAL, "the process that made the plan died; the request may need too much memory"
            ) from None
        except BaseException as error:  # cancelled: by its client, its deadline or the server's end
            worker.kill(str(error.args[0]) if error.args else "stopped")
            raise
        finally:
            self.running -= 1
        settling = asyncio.create_task(self._settle(worker))
        self._settling.add(settling)
        settling.add_done_callback(self._settling.discard)
        return reply, text

    async def _free(self) -> Worker:
        while True:
            worker = await self._idle.get()
            if worker.is_alive:
                return worker

    async def _settle(self, worker: Worker) -> None:
        """Put a worker back when it has tidied up, or out of service."""
        try:
            async with asyncio.timeout(_TIDY):
                held = await worker.idle()
        except (WorkerGoneError, TimeoutError):
            worker.kill("died")
            return
        if held > self._memory:
            worker.kill("memory")
        else:
            self._idle.put_nowait(worker)

    async def _keep(self, slot: int) -> None:
        """Keep one worker running."""
        pause, why = _SHORTEST, "start"
        while True:
            self._metrics.workers_started(why)
            try:
                worker = await Worker.start(self._setup)
            except OSError as error:  # no memory or no process left
                _LOG.error("no worker could be started (%s); the next try is in %.1f s", error.strerror, pause)
                await asyncio.sleep(pause)
                pause, why = min(pause * 2, _LONGEST), "failed"
                continue
            try:
                if await worker.is_ready():
                    pause = _SHORTEST
                    self.workers[slot] = worker
                    self._idle.put_nowait(worker)
                    why = await worker.ended()
                else:
                    _LOG.error("worker %d could not start; the next try is in %.1f s", worker.pid, pause)
                    await asyncio.sleep(pause)
                    pause, why = min(pause * 2, _LONGEST), "failed"
            finally:
                self.workers.pop(slot, None)
                worker.kill("stopped")
                await asyncio.shield(worker.ended())
