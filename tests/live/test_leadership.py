"""Leadership: until when may this process write?"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable

import pytest

from tests.support.api_faults import ApiRequest, Fault, faults, refused
from tests.support.live_runs import PATIENCE
from tests.support.memory_api_server import MemoryApiServer
from tests.support.moved_clock import MovedClock
from tutti.client.api_client import ApiClient
from tutti.client.lease_lock import LeaseLock
from tutti.live.leadership import AlwaysLeads, Leadership
from tutti.live.options import LeaseOptions

OPTIONS = LeaseOptions(duration=15, renew_deadline=10.0, retry_period=0.15)
KEY = "kube-system/tutti-scheduler"


class LeaseRun:
    """A server, a clock that a test moves, and one process that asks for the lease."""

    def __init__(self, server: MemoryApiServer, options: LeaseOptions) -> None:
        self.server, self.clock, self.heart = server, MovedClock(), MovedClock()
        self.leadership = Leadership(
            self._client,
            options,
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


def play(
    scene: Callable[[LeaseRun], Awaitable[None]],
    *,
    holder: str = "",
    options: LeaseOptions = OPTIONS,
    asks: bool = True,
) -> None:
    """Run a scene; `holder` is the process that has the lease before."""

    async def run() -> None:
        async with MemoryApiServer() as server:
            lease_run = LeaseRun(server, options)
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
    """Not even one that was begun before: all writes have ended then, and the rest of the lease is the server's."""

    async def scene(run: LeaseRun) -> None:
        await run.until(lambda: run.leadership.may_write)
        await run.renewed()
        run.server.find_fault = lambda each: Fault(drop="before")
        await run.until(lambda: run.leadership.problem is not None)
        most = OPTIONS.duration - OPTIONS.renew_deadline
        renewed_at = run.clock.seconds
        for moved, timeout in ((0, most), (5, most), (4, 1.0), (0.5, 0.5)):
            run.move(moved)
            assert run.leadership.may_write
            assert run.leadership.write_timeout == pytest.approx(timeout)
            assert run.clock.seconds + run.leadership.write_timeout <= renewed_at + OPTIONS.renew_deadline
        run.move(1)
        assert not run.leadership.may_write
        assert run.leadership.write_timeout <= 0
        await run.until(lambda: run.leadership.is_lost)
        assert run.leadership.write_timeout <= 0
        run.server.find_fault = lambda each: None

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


def test_a_lost_reply_is_no_loss() -> None:
    async def scene(run: LeaseRun) -> None:
        await run.until(lambda: run.leadership.may_write)
        given = Fault(drop="after"), refused(409, "Conflict"), Fault(drop="after")
        run.server.find_fault = faults(lambda each: each.method == "PUT", *given)
        count = len(run.server.sent("Lease", method="PUT"))
        await run.until(lambda: len(run.server.sent("Lease", method="PUT")) >= count + 5)
        assert run.leadership.may_write
        assert not run.leadership.is_lost

    play(scene)


def test_a_renewal_after_the_deadline_comes_too_late() -> None:
    """The process was frozen: others may have held the lease and given it back."""

    async def scene(run: LeaseRun) -> None:
        await run.until(lambda: run.leadership.may_write)
        may_answer = asyncio.Event()
        run.server.find_fault = faults(lambda each: each.method == "PUT", Fault(wait=may_answer))
        count = len(run.server.sent("Lease", method="PUT"))
        await run.until(lambda: len(run.server.sent("Lease", method="PUT")) > count)
        run.move(11)
        may_answer.set()
        await run.until(lambda: run.leadership.is_lost)
        assert not run.leadership.may_write

    play(scene, options=LeaseOptions(duration=15, renew_deadline=10.0, retry_period=0.6))


def test_any_error_is_a_problem_and_no_end(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    try_to_hold = LeaseLock.try_to_hold
    is_broken, attempts = True, 0

    async def fail_at_times(self: LeaseLock, timeout: float) -> bool:
        nonlocal attempts
        attempts += 1
        if is_broken:
            raise ValueError("the server answers in verse")
        return await try_to_hold(self, timeout)

    monkeypatch.setattr(LeaseLock, "try_to_hold", fail_at_times)

    async def scene(run: LeaseRun) -> None:
        nonlocal is_broken
        await run.until(lambda: run.leadership.note)
        note = f"the lease {KEY} cannot be held: the server answers in verse"
        assert run.leadership.note == note
        await run.until(lambda: attempts >= 3)
        assert [record.message for record in caplog.records].count(note) == 1
        is_broken = False
        await run.until(lambda: run.leadership.may_write)
        assert run.leadership.note == ""

    play(scene)


def test_a_missing_right_is_noted() -> None:
    async def scene(run: LeaseRun) -> None:
        run.server.forbidden.add("Lease")
        await run.until(lambda: run.leadership.note)
        assert "is forbidden" in run.leadership.note

    play(scene)


def test_a_thread_that_ends_has_lost_the_lease() -> None:
    async def scene(run: LeaseRun) -> None:
        await run.until(lambda: run.leadership.may_write)

        def fail() -> float:
            raise ValueError("a defect")

        run.leadership._heartbeat = fail
        await run.until(lambda: run.leadership.is_lost)
        assert not run.leadership.may_write

    play(scene)


@pytest.mark.parametrize("is_applied", [True, False])
def test_the_end_interrupts_an_attempt(is_applied: bool) -> None:
    """And the lease is given back, also if it was just taken and the answer was lost."""

    async def scene(run: LeaseRun) -> None:
        await run.until(lambda: run.server.sent("Lease", method="POST"))
        assert not run.leadership.may_write
        await asyncio.to_thread(run.leadership.stop)
        assert not run.leadership._thread.is_alive()
        assert run.holder() == ""
        assert len(run.server.sent("Lease", method="PUT")) == is_applied

    def hang(each: ApiRequest) -> Fault | None:
        if each.method != "POST":
            return None
        return Fault(wait_after=asyncio.Event()) if is_applied else Fault(wait=asyncio.Event())

    async def with_fault(run: LeaseRun) -> None:
        run.server.find_fault = hang
        await scene(run)

    play(with_fault, options=LeaseOptions(duration=3_600, renew_deadline=2_400.0, retry_period=600.0))


def test_a_process_without_a_lease_always_leads() -> None:
    assert AlwaysLeads().may_write
    assert not AlwaysLeads().is_lost
