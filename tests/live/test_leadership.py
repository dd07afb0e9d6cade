"""Leadership: until when may this process write?"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable

import pytest

from tests.support.api_faults import Fault, refused
from tests.support.live_runs import PATIENCE
from tests.support.memory_api_server import MemoryApiServer
from tests.support.moved_clock import MovedClock
from tutti.client.api_client import ApiClient
from tutti.live.leadership import AlwaysLeads, Leadership
from tutti.live.options import LeaseOptions

OPTIONS = LeaseOptions(duration=15, renew_deadline=10.0, retry_period=0.15)
KEY = "kube-system/tutti-scheduler"


class LeaseRun:
    """A server, a clock that a test moves, and one process that asks for the lease."""

    def __init__(self, server: MemoryApiServer) -> None:
        self.server, self.clock, self.heart = server, MovedClock(), MovedClock()
        self.leadership = Leadership(
            self._client,
            OPTIONS,
            identity="one",
            heartbeat=self.heart.monotonic,
            monotonic=self.clock.monotonic,
            wall=self.clock.wall,
        )

    def _client(self) -> ApiClient:
        return ApiClient(
            self.server.access,
            user_agent="test (one)",
            monotonic=self.clock.monotonic,
            wall=self.clock.wall,
            draw=random.Random(1),
        )

    def move(self, seconds: float) -> None:
        """Let time pass for a process whose event loop makes progress."""
        self.heart.seconds += seconds
        self.clock.seconds += seconds

    def holder(self) -> str:
        lease = self.server.objects.find("Lease", KEY)
        return str(lease["spec"]["holderIdentity"]) if lease is not None else ""

    async def until(self, condition: Callable[[], object]) -> None:
        async with asyncio.timeout(PATIENCE):
            while not condition():
                await asyncio.sleep(0.005)

    async def renewed(self) -> None:
        """Wait until the lease is renewed at the time of the clock."""
        count = len(self.server.sent("Lease", method="PUT"))
        await self.until(lambda: len(self.server.sent("Lease", method="PUT")) >= count + 2)


def play(scene: Callable[[LeaseRun], Awaitable[None]], *, holder: str = "", asks: bool = True) -> None:
    """Run a scene; `holder` is the process that has the lease before."""

    async def run() -> None:
        async with MemoryApiServer() as server:
            lease_run = LeaseRun(server)
            if holder:
                metadata = {"name": "tutti-scheduler", "namespace": "kube-system"}
                spec = {"holderIdentity": holder, "leaseDurationSeconds": 15, "renewTime": "x"}
                server.objects.create({"metadata": metadata, "spec": spec}, "Lease")
            lease_run.leadership.start()
            if asks:
                lease_run.leadership.ask()
            try:
                await scene(lease_run)
            finally:
                await asyncio.to_thread(lease_run.leadership.stop)

    asyncio.run(run())


def test_it_leads_renews_and_gives_the_lease_back() -> None:
    async def scene(run: LeaseRun) -> None:
        assert not run.leadership.may_write
        await run.until(lambda: run.leadership.may_write)
        assert run.leadership.holder == "one"
        for _ in range(3):
            run.move(8)
            await run.renewed()
            assert run.leadership.may_write
        await asyncio.to_thread(run.leadership.stop)
        assert not run.leadership.may_write
        assert not run.leadership.is_lost
        assert run.holder() == ""

    play(scene)


def test_no_write_leaves_after_the_renew_deadline() -> None:
    """A write may then take as long as is left of the lease."""

    async def scene(run: LeaseRun) -> None:
        await run.until(lambda: run.leadership.may_write)
        await run.renewed()
        run.server.find_fault = lambda each: Fault(drop="before")
        await run.until(lambda: run.leadership.problem is not None)
        run.move(9.5)
        assert run.leadership.may_write
        run.move(1)
        assert not run.leadership.may_write
        await run.until(lambda: run.leadership.is_lost)
        run.server.find_fault = lambda each: None
        assert run.leadership.write_timeout == OPTIONS.duration - OPTIONS.renew_deadline

    play(scene)


def test_a_lost_lease_is_not_taken_again() -> None:
    async def scene(run: LeaseRun) -> None:
        await run.until(lambda: run.leadership.may_write)
        run.server.objects.patch("Lease", KEY, {"spec": {"holderIdentity": "two"}})
        await run.until(lambda: run.leadership.is_lost)
        assert not run.leadership.may_write
        assert run.leadership.holder == "two"
        run.server.objects.patch("Lease", KEY, {"spec": {"holderIdentity": ""}})
        await asyncio.to_thread(run.leadership.stop)
        assert run.holder() == ""

    play(scene)


@pytest.mark.parametrize("holder", ["", "two"])
def test_it_only_looks_at_the_lease_until_it_asks(holder: str) -> None:
    """What was free since the first look had no other leader since then."""

    async def scene(run: LeaseRun) -> None:
        if holder:
            run.server.objects.patch("Lease", KEY, {"spec": {"holderIdentity": ""}})
        first = run.clock.seconds
        await run.until(lambda: len(run.server.sent("Lease")) > 1)
        run.move(5)
        await run.until(lambda: len(run.server.sent("Lease")) > 3)
        assert not [each for each in run.server.sent("Lease") if each.is_write]
        run.leadership.ask()
        await run.until(lambda: run.leadership.may_write)
        assert run.leadership.leads_since == first

    play(scene, holder=holder, asks=False)


def test_a_lease_that_others_had_meanwhile_was_not_free() -> None:
    async def scene(run: LeaseRun) -> None:
        await run.until(lambda: len(run.server.sent("Lease")) > 1)
        metadata = {"name": "tutti-scheduler", "namespace": "kube-system"}
        run.server.objects.create({"metadata": metadata, "spec": {"holderIdentity": ""}}, "Lease")
        run.move(5)
        run.leadership.ask()
        await run.until(lambda: run.leadership.may_write)
        assert run.leadership.leads_since == run.clock.monotonic()

    play(scene, asks=False)


def test_it_waits_while_another_process_leads() -> None:
    async def scene(run: LeaseRun) -> None:
        await run.until(lambda: run.leadership.holder == "two")
        for number in range(4):
            run.move(10)
            run.server.objects.patch("Lease", KEY, {"spec": {"renewTime": str(number)}})
            reads = len(run.server.sent("Lease", method="GET"))
            await run.until(lambda reads=reads: len(run.server.sent("Lease", method="GET")) > reads + 1)
            assert not run.leadership.may_write
        run.move(16)
        await run.until(lambda: run.leadership.may_write)
        assert run.leadership.leads_since == run.clock.monotonic()
        assert not run.leadership.is_lost

    play(scene, holder="two")


def test_a_process_that_hangs_does_not_renew() -> None:
    """The event loop makes no progress for more than ten seconds."""

    async def scene(run: LeaseRun) -> None:
        await run.until(lambda: run.leadership.may_write)
        await run.renewed()
        run.clock.seconds += 9
        await run.renewed()
        run.clock.seconds += 2
        run.clock.seconds += 9
        await run.until(lambda: run.leadership.is_lost)
        assert run.holder() == "one"

    play(scene)


def test_errors_of_the_server_are_no_loss() -> None:
    async def scene(run: LeaseRun) -> None:
        await run.until(lambda: run.leadership.may_write)
        run.server.find_fault = lambda each: refused(503)
        await run.until(lambda: run.leadership.problem is not None)
        assert run.leadership.may_write
        run.server.find_fault = lambda each: None
        await run.until(lambda: run.leadership.problem is None)
        run.move(8)
        await run.renewed()
        assert run.leadership.may_write

    play(scene)


def test_a_process_without_a_lease_always_leads() -> None:
    assert AlwaysLeads().may_write
    assert not AlwaysLeads().is_lost
