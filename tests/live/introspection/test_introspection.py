"""Introspection of a scheduler: the state with what the event loop knows, probes, and the page for Prometheus."""

from __future__ import annotations

import asyncio
import random
import threading
import time
from collections.abc import Awaitable, Callable
from typing import Any

from tests.support.builders import node, pod
from tutti.client.access.cluster_access import ClusterAccess
from tutti.cluster.edits import Put
from tutti.engine.placement.profile import Profile
from tutti.live.introspection.state_query import StateQuery
from tutti.live.options import SchedulerOptions
from tutti.live.scheduler import LiveScheduler


def with_scheduler(ask: Callable[[LiveScheduler], Awaitable[Any]]) -> Any:
    """Ask a scheduler that has seen a node and two pods, and has had one session; it never reaches a server."""

    async def run() -> Any:
        scheduler = LiveScheduler(
            ClusterAccess(server="http://127.0.0.1:9"),
            SchedulerOptions(lease=None, dry_run=True),
            profile=Profile.default()._replace(scheduler_name="tutti"),
            monotonic=time.monotonic,
            wall=lambda: time.time_ns() // 1_000,
            draw=random.Random(1),
        )
        try:
            changes = [Put(each) for each in (node("n1"), ours("fits"), ours("big", cpu="64"))]
            scheduler._report(list(changes))
            result = scheduler.cluster.run_session(scheduler.inbox.take(), scheduler.now())
            scheduler._carry_out(result, 0.01)
            return await ask(scheduler)
        finally:
            scheduler._worker.shutdown()
            await scheduler.client.close()

    return asyncio.run(run())


def ours(name: str, **how: Any) -> Any:
    return pod(name, schedulerName="tutti", **how)


def test_the_state_joins_cluster_and_event_loop() -> None:
    async def ask(scheduler: LiveScheduler) -> None:
        state = await scheduler.introspection.state(StateQuery())
        (turn,) = state.queue
        assert (turn.name, turn.waits_for, turn.attempts) == ("big", "room", 1)
        assert [(each.pod, each.node) for each in state.assumed] == [("default/fits", "n1")]
        assert (state.plans[0].binds, state.plans[0].waiting) == (1, {"room": 1})
        assert (state.counts["nodes"], state.counts["unschedulablePods"]) == (1, 1)
        assert (state.leads, state.dry_run, state.ready) == (True, True, False)

    with_scheduler(ask)


def test_a_tenant_sees_no_watches_and_no_notes() -> None:
    async def ask(scheduler: LiveScheduler) -> None:
        state = await scheduler.introspection.state(StateQuery("default", hides_others=True))
        assert [turn.name for turn in state.queue] == ["big"]
        assert (state.watches, state.notes) == ((), ())
        other = await scheduler.introspection.state(StateQuery("other", hides_others=True))
        assert (other.queue, other.assumed, other.plans) == ((), (), ())

    with_scheduler(ask)


def test_a_dry_run_counts_what_it_would_bind() -> None:
    async def ask(scheduler: LiveScheduler) -> None:
        lines = (await scheduler.introspection.metrics_text()).splitlines()
        assert 'scheduler_schedule_attempts_total{profile="tutti",result="scheduled"} 1' in lines
        assert 'scheduler_pod_scheduling_sli_duration_seconds_count{attempts="1"} 1' in lines
        assert "tutti_is_leader 0" in lines

    with_scheduler(ask)


def test_a_scrape_does_not_wait_for_a_long_session() -> None:
    async def ask(scheduler: LiveScheduler) -> None:
        page = await scheduler.introspection.metrics_text()
        assert 'scheduler_cache_size{type="nodes"} 1' in page
        released = threading.Event()
        scheduler._worker.submit(released.wait)
        try:
            page = await scheduler.introspection.metrics_text()
            assert 'scheduler_cache_size{type="nodes"} 1' in page, "the numbers of the scrape before"
            assert scheduler.introspection.health_problems() == []
            scheduler.introspection._asked_at -= 1_000
            scheduler.introspection._next_reading = 0.0
            scheduler.introspection._read_numbers()
            scheduler.introspection._asked_at -= 1_000
            (problem,) = scheduler.introspection.health_problems()
            assert problem.startswith("the session thread has not answered for")
        finally:
            released.set()

    with_scheduler(ask)


def test_readiness_says_what_is_missing() -> None:
    async def ask(scheduler: LiveScheduler) -> None:
        assert scheduler.introspection.readiness_problems() == ["kinds are being discovered"]
        scheduler.watches._is_discovered = True
        assert scheduler.introspection.readiness_problems() == ["Node are not listed yet", "Pod are not listed yet"]

    with_scheduler(ask)
