"""The server's side of a worker: a process, and the two pipes to it.

Contract: never blocks the event loop. `kill` may be called at any time and more than once; the first reason counts.
Workers never see the server's token, use one thread each, and do not get the terminal's Ctrl-C.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys

from tutti.serve.workers.messages import Chunks, Idle, PlanJob, Ready, Reply, WorkerSetup, receive, send

TOKEN = "TUTTI_TOKEN"
_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
_READ = 2**20


class WorkerDiedError(Exception):
    """The worker ended before it answered."""


class WorkerProcess:
    """One worker process."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self._process, self._to, self._from = process, process.stdin, process.stdout
        self._why: str | None = None
        self.pid = process.pid
        self.memory = 0
        """Resident memory in bytes, as of its last message."""

    @classmethod
    async def start(cls, setup: WorkerSetup) -> WorkerProcess:
        """Start a worker and send its setup."""
        environment = {name: value for name, value in os.environ.items() if name != TOKEN}
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-P",  # do not import modules from the working directory
            "-m",
            "tutti.serve.workers.worker_main",
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            env=environment | dict.fromkeys(_THREADS, "1"),
            limit=_READ,
            start_new_session=True,
        )
        worker = cls(process)
        with contextlib.suppress(OSError):  # the worker has died already: `is_ready` returns False
            await send(worker._to, setup)
        return worker

    @property
    def is_alive(self) -> bool:
        """Whether the worker can take a job."""
        return self._why is None and self._process.returncode is None

    async def is_ready(self) -> bool:
        """Wait until the worker is ready (True) or has failed to start (False)."""
        try:
            message, _ = await receive(self._from)
        except (EOFError, OSError):
            return False
        assert isinstance(message, Ready)
        self.memory = message.memory
        return True

    async def ask(self, job: PlanJob, body: Chunks) -> tuple[Reply, bytes]:
        """Send a job; return the worker's reply and the body of the answer."""
        try:
            await send(self._to, job, body)
            message, text = await receive(self._from)
        except (EOFError, OSError):
            raise WorkerDiedError from None
        assert isinstance(message, Reply)
        return message, text

    async def idle(self) -> int:
        """Wait until the worker can take another job; return its resident memory."""
        try:
            message, _ = await receive(self._from)
        except (EOFError, OSError):
            raise WorkerDiedError from None
        assert isinstance(message, Idle)
        self.memory = message.memory
        return message.memory

    def kill(self, why: str) -> None:
        """Kill the worker."""
        if self._why is None:
            self._why = why
            if self._process.returncode is None:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(self.pid, signal.SIGKILL)  # Popen.kill would take the exit status that asyncio waits for
            self._to.close()

    async def ended(self) -> str:
        """Wait until the worker has ended; return the reason."""
        await self._process.wait()
        return self._why or "died"
