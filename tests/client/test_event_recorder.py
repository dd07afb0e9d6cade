"""Events: written once, counted when repeated, never lost while the process lives."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from aiohttp import web

from tests.support.scripted_api_server import ScriptedApiServer
from tutti.client.access.cluster_access import ClusterAccess
from tutti.client.api_client import ApiClient
from tutti.client.event_recorder import EventRecorder, Regarding

POD = Regarding("Pod", "ml", "g-0", "u1")


class EventServer(ScriptedApiServer):
    """An API server that keeps events; `statuses` are its next answers, 0 for an answer that is lost."""

    def __init__(self, *statuses: int) -> None:
        super().__init__()
        self.statuses = list(statuses)
        self.events: dict[str, dict[str, Any]] = {}

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        body = await request.json()
        status = self.statuses.pop(0) if self.statuses else 200
        if status >= 400:
            return web.json_response({"kind": "Status", "code": status, "reason": "x"}, status=status)
        if request.method == "PATCH":
            self.events[request.path.rpartition("/")[2]] |= body
        elif body["metadata"]["name"] in self.events:
            return web.json_response({"kind": "Status", "code": 409, "reason": "AlreadyExists"}, status=409)
        else:
            self.events[body["metadata"]["name"]] = body
        if status == 0:
            assert request.transport is not None
            request.transport.abort()
        return web.json_response(body)


def run(
    scene: Callable[[EventRecorder], Awaitable[None]], *statuses: int, now: Callable[[], int] = lambda: 0
) -> tuple[list[dict[str, Any]], EventRecorder]:
    """Play a scene; return the events that the server has in the end."""

    async def play() -> tuple[list[dict[str, Any]], EventRecorder]:
        draw = random.Random(1)
        async with EventServer(*statuses) as server:
            access = ClusterAccess(server=server.url)
            client = ApiClient(access, user_agent="test", monotonic=time.monotonic, wall=now, draw=draw)
            recorder = EventRecorder(client, controller="tutti", instance="tutti-1", now=now, draw=draw)
            task = asyncio.create_task(recorder.run())
            try:
                await scene(recorder)
                assert await recorder.drain(10)
            finally:
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)
                await client.close()
            return list(server.events.values()), recorder

    return asyncio.run(play())


def test_an_event() -> None:
    async def scene(recorder: EventRecorder) -> None:
        recorder.record(POD, "Scheduled", "Successfully assigned ml/g-0 to n1", action="Binding")

    (event,), recorder = run(scene, now=lambda: 1_800_000_000_250_000)
    assert (event["reason"], event["type"], event["action"]) == ("Scheduled", "Normal", "Binding")
    assert event["regarding"]["uid"] == "u1"
    assert event["eventTime"] == "2027-01-15T08:00:00.250000Z"
    assert event["reportingController"] == "tutti"
    assert recorder.written == 1


@pytest.mark.parametrize("pause", [0, 0.05], ids=["at once", "later"])
def test_a_repeated_event_is_counted(pause: float) -> None:
    async def scene(recorder: EventRecorder) -> None:
        for _ in range(5):
            recorder.record(POD, "FailedScheduling", "0/3 nodes", action="Scheduling", kind="Warning")
            await asyncio.sleep(pause)
        recorder.record(POD, "FailedScheduling", "0/4 nodes", action="Scheduling", kind="Warning")

    events, _ = run(scene)
    counts = {event["note"]: event.get("series", {}).get("count", 1) for event in events}
    assert counts == {"0/3 nodes": 5, "0/4 nodes": 1}


def test_an_old_event_is_not_counted_on() -> None:
    now = [0]

    async def scene(recorder: EventRecorder) -> None:
        recorder.record(POD, "FailedScheduling", "0/3 nodes", action="Scheduling")
        now[0] += 301_000_000
        recorder.record(POD, "FailedScheduling", "0/3 nodes", action="Scheduling")

    events, _ = run(scene, now=lambda: now[0])
    assert len(events) == 2


def test_busy_servers_and_lost_answers_lose_no_event() -> None:
    async def scene(recorder: EventRecorder) -> None:
        for number in range(20):
            recorder.record(Regarding("Pod", "ml", f"g-{number}", f"u{number}"), "Scheduled", "ok", action="Binding")

    events, recorder = run(scene, 429, 500, 0, 503, 0)
    assert len(events) == 20
    assert recorder.dropped == 0


def test_refused_events_are_dropped_and_counted() -> None:
    async def scene(recorder: EventRecorder) -> None:
        recorder.record(POD, "Scheduled", "ok", action="Binding")

    events, recorder = run(scene, 403)
    assert not events
    assert recorder.dropped == 1


def test_a_refused_event_may_be_said_again() -> None:
    async def scene(recorder: EventRecorder) -> None:
        recorder.record(POD, "Scheduled", "ok", action="Binding")
        assert await recorder.drain(10)
        recorder.record(POD, "Scheduled", "ok", action="Binding")

    events, _ = run(scene, 403)
    assert len(events) == 1


def test_long_notes_are_cut() -> None:
    async def scene(recorder: EventRecorder) -> None:
        recorder.record(POD, "FailedScheduling", "x" * 5_000, action="Scheduling")

    (event,), _ = run(scene)
    assert len(event["note"]) == 1_024


def test_an_object_gets_few_events_and_others_are_not_concerned() -> None:
    now = [0]
    other = Regarding("Pod", "ml", "g-1", "u2")

    async def scene(recorder: EventRecorder) -> None:
        def warn(about: Regarding, count: int) -> None:
            for number in range(count):
                note = f"{now[0]}-{number}"
                recorder.record(about, "FailedScheduling", note, action="Scheduling", kind="Warning")

        warn(POD, 30)
        warn(other, 1)
        now[0] += 301_000_000
        warn(POD, 3)
        recorder.record(POD, "Scheduled", "to n1", action="Binding", repeats=False)

    events, recorder = run(scene, now=lambda: now[0])
    notes = {uid: [event["note"] for event in events if event["regarding"]["uid"] == uid] for uid in ("u1", "u2")}
    assert sorted(notes["u1"]) == sorted([*(f"0-{number}" for number in range(25)), "301000000-0", "to n1"])
    assert len(notes["u2"]) == 1
    assert recorder.dropped == 7


def test_repetitions_count_to_the_limit_of_an_object() -> None:
    async def scene(recorder: EventRecorder) -> None:
        for _ in range(30):
            recorder.record(POD, "FailedScheduling", "0/3 nodes", action="Scheduling")
            assert await recorder.drain(10)

    (event,), recorder = run(scene)
    assert event["series"]["count"] == 25
    assert recorder.written == 25


def test_events_that_cannot_repeat_are_not_remembered() -> None:
    async def scene(recorder: EventRecorder) -> None:
        for number in range(20):
            about = Regarding("Pod", "ml", f"g-{number}", f"u{number}")
            recorder.record(about, "Scheduled", "ok", action="Binding", repeats=False)

    events, recorder = run(scene)
    assert len(events) == 20
    assert not recorder._series
    assert not recorder._limits
