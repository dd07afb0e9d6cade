"""Tasks that work in the background, and what broke one of them.

Nobody waits for such a task, so nobody would notice that it has ended by an exception: a kind would not be followed any
more, or pods not be bound, while the process leads and looks well. `LiveScheduler` asks all parts for what broke and
ends the process, because a new process reads everything anew.

Contract: tasks are forgotten when they end; a task that was cancelled has not broken. Belongs to the event loop.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any


class BackgroundTasks:
    """See the module's docstring."""

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[None]] = set()
        self._failure: BaseException | None = None

    def __len__(self) -> int:
        return len(self._tasks)

    def start(self, work: Coroutine[Any, Any, None], name: str | None = None) -> asyncio.Task[None]:
        """Begin a task, and return it."""
        task = asyncio.create_task(work, name=name)
        self._tasks.add(task)
        task.add_done_callback(self._note_end)
        return task

    @property
    def has_failed(self) -> bool:
        """Whether a task has broken."""
        return self._failure is not None

    def raise_failure(self) -> None:
        """Raise what broke the first task that has broken, if one has."""
        if self._failure is not None:
            raise self._failure

    async def finish(self) -> None:
        """Wait until all tasks have ended."""
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def cancel(self) -> None:
        """End all tasks."""
        for task in self._tasks:
            task.cancel()
        await self.finish()

    def _note_end(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and self._failure is None:
            self._failure = task.exception()
