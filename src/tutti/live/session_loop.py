"""The session loop: runs a session when something has changed, or when the queue is due.

A session begins some milliseconds after the last one at the earliest, so that one session serves many changes of a
burst and the pods of a gang are seen together. An idle scheduler takes the first change at once.

Contract: sessions run one after the other on the worker thread; the event loop goes on meanwhile. While this process
may not schedule, changes are only applied. Every plan is carried out, because the cluster in memory assumes what it
does: if this process may not schedule for a moment, its plan waits; if it never may again, the process ends.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from tutti.live.inbox import Inbox
from tutti.live.watched_cluster import SessionResult, WatchedCluster

_STANDBY = 0.2
"""Seconds between two looks at the inbox while this process may not schedule."""
_LOOK_EVERY = 0.02
"""Seconds between two looks whether a plan may be carried out."""


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
        self._wakes_at: float | None = None
        """The monotonic time of the next session if nothing changes: the clock of `now` may go back."""
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
            if not self._may_schedule():
                continue
            entries, started, now = self._inbox.take(), self._monotonic(), self._now()
            result = await loop.run_in_executor(self._worker, self._cluster.run_session, entries, now)
            ended_at = self._monotonic()
            self._is_due = result.has_more
            self._wakes_at = started + (result.wake - now) / 1_000_000 if result.wake is not None else None
            self.sessions += 1
            while not self._may_schedule():
                await asyncio.sleep(_LOOK_EVERY)
            self._carry_out(result, ended_at - started)

    async def _wait_for_work(self) -> None:
        """Wait until something has changed, or the queue is due."""
        if not self._is_due:
            await self._inbox.wait(None if self._wakes_at is None else self._wakes_at - self._monotonic())
