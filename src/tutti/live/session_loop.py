"""The session loop: runs a session when something has changed, or when the queue is due.

A session begins some milliseconds after the last one at the earliest, so that one session serves many changes of a
burst and the pods of a gang are seen together. An idle scheduler takes the first change at once.

Contract: sessions run one after the other on the worker thread; the event loop goes on meanwhile. While this process
does not lead, changes are only applied. `heartbeat` is the monotonic time of the last progress.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from tutti.live.inbox import Inbox
from tutti.live.watched_cluster import SessionResult, WatchedCluster

_STANDBY = 0.2
"""Seconds between two looks at the inbox while this process does not lead."""


class SessionLoop:
    """See the module's docstring; `now` returns the server's time in microseconds, `monotonic` seconds."""

    def __init__(
        self,
        cluster: WatchedCluster,
        inbox: Inbox,
        *,
        worker: ThreadPoolExecutor,
        may_schedule: Callable[[], bool],
        carry_out: Callable[[SessionResult, float], None],
        now: Callable[[], int],
        monotonic: Callable[[], float],
        gather: float,
    ) -> None:
        self._cluster, self._inbox, self._worker = cluster, inbox, worker
        self._may_schedule, self._carry_out = may_schedule, carry_out
        self._now, self._monotonic, self._gather = now, monotonic, gather
        self._wake: int | None = None
        self._is_due = True
        """Whether a session is due although nothing has changed: the last one ran out of budget, or there was none."""
        self.sessions = 0

    async def run(self) -> None:
        """Run sessions until cancelled."""
        loop, ended_at = asyncio.get_running_loop(), float("-inf")
        while True:
            if not self._may_schedule():
                self._is_due = True
                if await self._inbox.wait(_STANDBY):
                    await loop.run_in_executor(self._worker, self._cluster.apply, self._inbox.take(), self._now())
                continue
            await self._wait_for_work()
            pause = ended_at + self._gather - self._monotonic()
            if pause > 0:
                await asyncio.sleep(pause)
            entries, started = self._inbox.take(), self._monotonic()
            result = await loop.run_in_executor(self._worker, self._cluster.run_session, entries, self._now())
            ended_at = self._monotonic()
            self._wake, self._is_due = result.wake, result.has_more
            self.sessions += 1
            if self._may_schedule():
                self._carry_out(result, ended_at - started)

    async def _wait_for_work(self) -> None:
        """Wait until something has changed, or the queue is due."""
        while not self._is_due:
            timeout = None if self._wake is None else max(self._wake - self._now(), 0) / 1_000_000
            if await self._inbox.wait(timeout) or (self._wake is not None and self._wake <= self._now()):
                return
