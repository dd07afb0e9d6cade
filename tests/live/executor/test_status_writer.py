"""The status writer alone: only changes are written, the newest counts, and no write follows a binding."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Awaitable, Callable

import msgspec
import pytest

from tests.support.api_faults import Fault, refused
from tests.support.builders import pod
from tests.support.live_runs import PATIENCE
from tests.support.memory_api_server import MemoryApiServer
from tutti.client.api_client import ApiClient
from tutti.cluster.edits import Put
from tutti.kube import objects as k
from tutti.kube.reading.decode import decode_object
from tutti.kube.reading.sources import Source
from tutti.live.executor import status_writer
from tutti.live.executor.status_writer import StatusWriter
from tutti.live.executor.waiting_reasons import Waiting
from tutti.live.newest_objects import NewestObjects

KEY = "default/p"


class StatusRun:
    """A status writer, and a server whose pods are reported when the test says so."""

    def __init__(self, server: MemoryApiServer, client: ApiClient) -> None:
        self.server, self.newest, self.may_write = server, NewestObjects(), True
        self.writer = StatusWriter(
            client, self.newest, now=lambda: 1_800_000_000_000_000, may_write=lambda: self.may_write
        )

    def add(self, made: k.Pod) -> None:
        self.server.objects.create(made)
        self.report(made.key)

    def report(self, key: str = KEY) -> None:
        """Report a pod as the server has it."""
        data = msgspec.json.encode(self.server.objects.get("Pod", key))
        self.newest.observe([Put(decode_object(data, "Pod", source=Source("pods", b"")))])

    def tell(self, reason: str, message: str = "no") -> bool:
        return self.writer.tell(Waiting(KEY, reason, message))

    def nominated(self) -> str | None:
        return self.server.objects.get("Pod", KEY)["status"].get("nominatedNodeName")

    async def until(self, condition: Callable[[], object]) -> None:
        async with asyncio.timeout(PATIENCE):
            while not condition():
                await asyncio.sleep(0.002)

    async def written(self) -> None:
        await self.until(lambda: not self.writer.waiting)


def play(scene: Callable[[StatusRun], Awaitable[None]]) -> None:
    async def run() -> None:
        async with MemoryApiServer() as server:
            client = ApiClient(
                server.access, user_agent="test", monotonic=time.monotonic, wall=lambda: 0, draw=random.Random(1)
            )
            status_run = StatusRun(server, client)
            try:
                await scene(status_run)
            finally:
                await status_run.writer.close()
                await client.close()

    asyncio.run(run())


def test_only_changes_are_written() -> None:
    async def scene(run: StatusRun) -> None:
        run.add(pod("p"))
        assert run.tell("Unschedulable")
        assert not run.tell("Unschedulable")
        await run.written()
        run.report()
        assert not run.tell("Unschedulable")
        assert run.tell("Unschedulable", "other")
        await run.written()
        first, second = (request.body["status"]["conditions"][0] for request in run.server.sent(part="status"))
        assert first["lastTransitionTime"] == "2027-01-15T08:00:00Z"
        assert "lastTransitionTime" not in second

    play(scene)


def test_a_message_about_victims_stays_while_the_pod_is_tried_again() -> None:
    async def scene(run: StatusRun) -> None:
        run.add(pod("p"))
        again = Waiting(KEY, "WaitingForPreemption", "not eligible due to a terminating pod", is_repeated=True)
        assert run.tell("WaitingForPreemption", "room is held on node n1 until default/v has left")
        assert not run.writer.tell(again)
        assert run.tell("WaitingForPreemption", "room is held on node n2 until default/w has left")
        assert run.tell("Unschedulable")
        assert run.writer.tell(again)

    play(scene)


def test_what_a_process_before_has_written_is_not_written_again() -> None:
    async def scene(run: StatusRun) -> None:
        run.add(pod("p"))
        condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "no"}
        run.server.objects.patch("Pod", KEY, {"status": {"conditions": [condition]}})
        run.report()
        assert not run.tell("Unschedulable")
        assert run.tell("WaitingForGang")

    play(scene)


def test_the_newest_of_several_changes_is_written() -> None:
    async def scene(run: StatusRun) -> None:
        run.add(pod("p"))
        hold = asyncio.Event()
        run.server.find_fault = lambda each: Fault(wait=hold)
        run.tell("A")
        await run.until(lambda: run.server.sent(part="status"))
        run.tell("B")
        run.writer.nominate(KEY, "n1")
        run.tell("C")
        hold.set()
        await run.written()
        status = [request.body["status"] for request in run.server.sent(part="status")]
        assert len(status) == 2
        assert (status[1]["conditions"][0]["reason"], status[1]["nominatedNodeName"]) == ("C", "n1")

    play(scene)


def test_pods_that_are_gated_bound_or_unknown_are_told_nothing() -> None:
    async def scene(run: StatusRun) -> None:
        assert not run.tell("Unschedulable")
        run.add(pod("p", schedulingGates=[{"name": "g"}]))
        assert not run.tell("Unschedulable")
        run.add(pod("q", on="n1"))
        assert not run.writer.tell(Waiting("default/q", "Unschedulable", "no"))
        run.writer.nominate("default/q", "n2")
        assert not run.writer.waiting

    play(scene)


def test_a_nomination_is_cleared_before_the_watch_has_reported_it() -> None:
    async def scene(run: StatusRun) -> None:
        run.add(pod("p"))
        run.writer.nominate(KEY, None)
        assert not run.writer.waiting
        run.writer.nominate(KEY, "n1")
        await run.written()
        assert run.nominated() == "n1"
        run.writer.nominate(KEY, "n1")
        run.writer.nominate(KEY, None)
        await run.written()
        assert run.nominated() is None
        assert len(run.server.sent(part="status")) == 2

    play(scene)


def test_settle_drops_what_waits_and_waits_for_what_is_under_way() -> None:
    async def scene(run: StatusRun) -> None:
        run.add(pod("p"))
        hold = asyncio.Event()
        run.server.find_fault = lambda each: Fault(wait=hold)
        assert run.writer.settle(KEY) is None
        run.tell("A")
        await run.until(lambda: run.server.sent(part="status"))
        run.tell("B")
        under_way = run.writer.settle(KEY)
        assert under_way is not None
        assert not under_way.done()
        hold.set()
        await asyncio.wait_for(under_way, PATIENCE)
        await run.written()
        assert len(run.server.sent(part="status")) == 1

    play(scene)


def test_what_settle_drops_is_not_taken_for_written() -> None:
    """The binding that it made way for may be refused; then the pod is told the same again."""

    async def scene(run: StatusRun) -> None:
        run.add(pod("p"))
        hold = asyncio.Event()
        run.server.find_fault = lambda each: Fault(wait=hold)
        run.tell("A")
        await run.until(lambda: run.server.sent(part="status"))
        run.tell("B")
        run.writer.nominate(KEY, "n1")
        run.writer.settle(KEY)
        hold.set()
        await run.written()
        assert not run.tell("A")
        assert run.tell("B")
        run.writer.nominate(KEY, "n1")
        await run.written()
        assert run.nominated() == "n1"

    play(scene)


@pytest.mark.parametrize("fault", [Fault(wait=asyncio.Event()), refused(429, retry_after=3_600)])
def test_a_binding_does_not_wait_for_a_write_that_fails(fault: Fault, monkeypatch: pytest.MonkeyPatch) -> None:
    """No answer within the time limit, or an answer that asks for a long pause: the write is not repeated."""
    monkeypatch.setattr(status_writer, "_TIMEOUT", 0.05)

    async def scene(run: StatusRun) -> None:
        run.add(pod("p"))
        run.server.find_fault = lambda each: fault
        run.tell("A")
        await run.until(lambda: run.server.sent(part="status"))
        under_way = run.writer.settle(KEY)
        assert under_way is not None
        await asyncio.wait_for(under_way, PATIENCE)
        assert len(run.server.sent(part="status")) == 1
        assert run.tell("A")

    play(scene)


def test_finish_waits_for_what_is_under_way_and_gives_up_the_rest() -> None:
    async def scene(run: StatusRun) -> None:
        run.add(pod("p"))
        hold = asyncio.Event()
        run.server.find_fault = lambda each: Fault(wait=hold)
        run.tell("A")
        await run.until(lambda: run.server.sent(part="status"))
        run.tell("B")
        finish = asyncio.create_task(run.writer.finish())
        await asyncio.sleep(0)
        assert not finish.done()
        hold.set()
        await asyncio.wait_for(finish, PATIENCE)
        assert [each.status for each in run.server.sent(part="status")] == [200]

    play(scene)


def test_nothing_is_written_while_this_process_does_not_lead(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(status_writer, "_LOOK_EVERY", 0.0)

    async def scene(run: StatusRun) -> None:
        run.add(pod("p"))
        run.may_write = False
        run.tell("A")
        for _ in range(10):
            await asyncio.sleep(0)
        assert not run.server.requests
        run.may_write = True
        await run.written()
        assert len(run.server.sent(part="status")) == 1

    play(scene)
