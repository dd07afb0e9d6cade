"""When sessions run: after changes, when the queue is due, and only while this process leads."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from tests.support.live_runs import PATIENCE
from tutti.cluster.edits import Remove
from tutti.engine.session.plan import Plan
from tutti.live.inbox import Entry, Inbox
from tutti.live.session_loop import SessionLoop
from tutti.live.watched_cluster import SessionResult

CHANGE = Remove("Pod", "default/a", "a")


class CountedSessions:
    """Notes the entries of each session; `wakes` and `more` say when the next ones are due."""

    def __init__(self) -> None:
        self.sessions: list[list[Entry]] = []
        self.applied: list[Entry] = []
        self.wakes: list[int | None] = []
        self.more: list[bool] = []

    def apply(self, entries: Iterable[Entry], now: int) -> None:
        self.applied.extend(entries)

    def run_session(self, entries: Sequence[Entry], now: int) -> SessionResult:
        self.sessions.append([*entries])
        wake = self.wakes.pop(0) if self.wakes else None
        return SessionResult(Plan.of((), (), (), ()), wake, self.more.pop(0) if self.more else False)


class LoopRun:
    """A session loop with a clock in microseconds that a test moves."""

    def __init__(self) -> None:
        self.cluster, self.inbox, self.now = CountedSessions(), Inbox(), 1_000_000
        self.leads = True
        self.carried_out = 0
        self._worker = ThreadPoolExecutor(1)
        cluster: Any = self.cluster
        self.loop = SessionLoop(
            cluster,
            self.inbox,
            worker=self._worker,
            may_schedule=lambda: self.leads,
            carry_out=self._carry_out,
            now=lambda: self.now,
            monotonic=time.monotonic,
            gather=0.001,
        )

    def _carry_out(self, result: SessionResult, seconds: float) -> None:
        self.carried_out += 1

    async def until(self, condition: Callable[[], object]) -> None:
        async with asyncio.timeout(PATIENCE):
            while not condition():
                await asyncio.sleep(0.002)


def play(scene: Callable[[LoopRun], Awaitable[None]]) -> None:
    async def run() -> None:
        loop_run = LoopRun()
        task = asyncio.create_task(loop_run.loop.run())
        try:
            await scene(loop_run)
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            loop_run._worker.shutdown()

    asyncio.run(run())


def test_the_first_session_needs_no_change() -> None:
    async def scene(run: LoopRun) -> None:
        await run.until(lambda: run.carried_out == 1)
        assert run.cluster.sessions == [[]]

    play(scene)


def test_a_session_for_each_burst() -> None:
    async def scene(run: LoopRun) -> None:
        await run.until(lambda: run.carried_out == 1)
        run.inbox.put([CHANGE] * 3)
        await run.until(lambda: run.carried_out == 2)
        run.inbox.put([CHANGE])
        await run.until(lambda: run.carried_out == 3)
        assert sum(map(len, run.cluster.sessions)) == 4
        assert run.loop.sessions == 3

    play(scene)


def test_the_queue_says_when_the_next_session_is_needed() -> None:
    async def scene(run: LoopRun) -> None:
        run.cluster.wakes = [run.now + 50_000, None]
        await run.until(lambda: run.carried_out == 1)
        run.now += 50_000
        await run.until(lambda: run.carried_out == 2)

    play(scene)


def test_a_session_that_ran_out_of_budget_is_followed_by_another() -> None:
    async def scene(run: LoopRun) -> None:
        run.cluster.more = [True, True, False]
        await run.until(lambda: run.carried_out == 3)

    play(scene)


def test_changes_are_only_applied_while_another_process_leads() -> None:
    async def scene(run: LoopRun) -> None:
        run.leads = False
        run.inbox.put([CHANGE])
        await run.until(lambda: run.cluster.applied == [CHANGE])
        assert not run.cluster.sessions
        run.leads = True
        await run.until(lambda: run.carried_out == 1)

    play(scene)


def test_a_clock_that_goes_back_delays_no_session() -> None:
    async def scene(run: LoopRun) -> None:
        run.cluster.wakes = [run.now + 50_000, None]
        await run.until(lambda: run.carried_out == 1)
        run.now -= 3_600_000_000
        await run.until(lambda: run.carried_out == 2)

    play(scene)


def test_a_plan_waits_while_this_process_may_not_write() -> None:
    """The cluster in memory assumes what the plan does: a plan that is dropped would lose its pods."""

    async def scene(run: LoopRun) -> None:
        await run.until(lambda: run.carried_out == 1)
        plan = run.cluster.run_session

        def lose(entries: Sequence[Entry], now: int) -> SessionResult:
            run.leads = False
            return plan(entries, now)

        run.cluster.run_session = lose  # type: ignore[method-assign]
        run.inbox.put([CHANGE])
        await run.until(lambda: run.loop.sessions == 2)
        assert run.carried_out == 1
        run.leads = True
        await run.until(lambda: run.carried_out == 2)

    play(scene)


def test_no_session_begins_after_this_process_has_stopped_to_lead() -> None:
    """It led when it began to wait for a change; then the change is only applied."""

    async def scene(run: LoopRun) -> None:
        await run.until(lambda: run.carried_out == 1)
        run.leads = False
        run.inbox.put([CHANGE])
        await run.until(lambda: run.cluster.applied == [CHANGE])
        assert run.loop.sessions == 1

    play(scene)
