"""The watch torture table: what a reflector does when server or network misbehave."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable
from typing import Any

import pytest
from aiohttp import web

from tests.support.scripted_api_server import (
    ScriptedApiServer,
    Step,
    bookmark,
    event,
    expired,
    page,
    pieces,
    refuse,
    reset,
    watch,
)
from tutti.client.access.cluster_access import ClusterAccess
from tutti.client.api_client import ApiClient
from tutti.client.backoff import Backoff
from tutti.client.reflector import Change, Reflector, Unreadable
from tutti.client.resources import PODS
from tutti.cluster.edits import Put, Remove

REFUSES_STREAMS = refuse(422, "Invalid", message="sendInitialEvents is forbidden")


def pod(name: str, version: int, *, uid: str = "", **annotations: str) -> dict[str, Any]:
    metadata = {"name": name, "namespace": "default", "uid": uid or f"uid-{name}", "resourceVersion": str(version)}
    return {"kind": "Pod", "apiVersion": "v1", "metadata": {**metadata, "annotations": annotations}}


class NotedBackoff(Backoff):
    """Does not wait, and notes how many failures there were before each wait."""

    def __init__(self) -> None:
        super().__init__(random.Random(1))
        self.failures: list[int] = []

    def next(self, at_least: float | None = None) -> float:
        self.failures.append(self._failures)
        super().next(at_least)
        return 0.0


def follow(
    *steps: Step,
    streams_lists: bool = True,
    seconds: float = 10,
    backoff: Backoff | None = None,
    on_report: Callable[[], None] = lambda: None,
) -> tuple[list[Change], ScriptedApiServer]:
    """Run a reflector until the script has ended; return the changes that it reported."""

    async def run() -> tuple[list[Change], ScriptedApiServer]:
        changes: list[Change] = []
        draw = random.Random(1)

        def report(new: list[Change]) -> None:
            changes.extend(new)
            on_report()

        async with ScriptedApiServer(*steps) as server:
            access = ClusterAccess(server=server.url)
            client = ApiClient(access, user_agent="test", monotonic=time.monotonic, wall=lambda: 0, draw=draw)
            reflector = Reflector(
                client,
                PODS,
                report,
                monotonic=time.monotonic,
                draw=draw,
                streams_lists=streams_lists,
                backoff=backoff or Backoff(draw, first=0.02),
            )
            task = asyncio.create_task(reflector.run())
            try:
                await asyncio.wait_for(server.done.wait(), seconds)
                assert not task.done()
            finally:
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)
                await client.close()
            return changes, server

    return asyncio.run(run())


def told(changes: list[Change]) -> list[str]:
    """Return changes as short texts."""
    texts = []
    for change in changes:
        match change:
            case Put(obj):
                texts.append(f"+{obj.metadata.name}@{obj.metadata.resource_version}")
            case Remove(_, key, uid):
                texts.append(f"-{key.removeprefix('default/')}:{uid}")
            case Unreadable(_, key):
                texts.append(f"?{key.removeprefix('default/')}")
    return texts


def both(test: Callable[..., None]) -> Callable[..., None]:
    return pytest.mark.parametrize("streams", [True, False], ids=["stream", "pages"])(test)


def lists(*objects: dict[str, Any], version: str, streams: bool) -> Step:
    """Return the step of a complete list."""
    if not streams:
        return page(*objects, version=version)
    return watch(*(event("ADDED", obj) for obj in objects), bookmark(version, ends_list=True))


@both
def test_resumes_after_the_server_closes(streams: bool) -> None:
    changes, server = follow(
        lists(pod("a", 3), version="5", streams=streams),
        watch(event("ADDED", pod("b", 7))),
        watch(event("MODIFIED", pod("a", 8))),
        streams_lists=streams,
    )
    assert told(changes) == ["+a@3", "+b@7", "+a@8"]
    assert [asked.get("resourceVersion") for asked in server.requests[1:]] == ["5", "7", "8"]


@both
def test_a_bookmark_is_where_the_watch_resumes(streams: bool) -> None:
    _, server = follow(lists(version="5", streams=streams), watch(bookmark("900")), streams_lists=streams)
    assert server.requests[-1]["resourceVersion"] == "900"
    assert server.requests[-1]["allowWatchBookmarks"] == "1" or server.requests[-1]["allowWatchBookmarks"] == "true"


@both
def test_a_reset_in_the_middle_of_a_line_loses_nothing(streams: bool) -> None:
    changes, server = follow(
        lists(version="5", streams=streams),
        watch(event("ADDED", pod("a", 6)), cut=event("ADDED", pod("b", 7))[:40], then=reset),
        watch(event("ADDED", pod("b", 7))),
        streams_lists=streams,
    )
    assert told(changes) == ["+a@6", "+b@7"]
    assert server.requests[2]["resourceVersion"] == "6"


def test_waits_as_long_as_the_server_asks() -> None:
    start = time.monotonic()
    changes, _ = follow(
        lists(version="5", streams=True),
        refuse(429, "TooManyRequests", headers={"Retry-After": "1"}),
        watch(event("ADDED", pod("a", 6))),
    )
    assert told(changes) == ["+a@6"]
    assert time.monotonic() - start >= 1


def test_only_line_feeds_end_lines() -> None:
    text = "a\u0085b\u2028c\x0bd\x1ce"
    changes, _ = follow(lists(version="5", streams=True), watch(event("ADDED", pod("a", 6, note=text))))
    (change,) = changes
    assert isinstance(change, Put)
    assert (change.obj.metadata.annotations or {})["note"] == text


def test_lines_and_characters_are_split_anywhere() -> None:
    line = event("ADDED", pod("a", 6, note="größe")) + b"\n" + event("ADDED", pod("b", 7)) + b"\n"
    cuts = [line[place : place + 3] for place in range(0, len(line), 3)]
    changes, _ = follow(lists(version="5", streams=True), pieces(*cuts))
    assert told(changes) == ["+a@6", "+b@7"]


@both
@pytest.mark.parametrize("is_inside", [True, False], ids=["inside", "status"])
def test_lists_again_if_the_version_is_too_old(streams: bool, is_inside: bool) -> None:
    """And reports what has gone, what is new, and nothing of what is the same."""
    changes, server = follow(
        lists(pod("a", 1), pod("b", 2), pod("c", 3), pod("d", 4, uid="old"), version="5", streams=streams),
        watch(expired()) if is_inside else refuse(410, "Expired"),
        lists(pod("a", 1), pod("c", 9), pod("d", 8, uid="new"), version="12", streams=streams),
        watch(event("MODIFIED", pod("a", 13))),
        streams_lists=streams,
    )
    assert told(changes[:4]) == ["+a@1", "+b@2", "+c@3", "+d@4"]
    assert told(changes[4:]) == ["+c@9", "-d:old", "+d@8", "-b:uid-b", "+a@13"]
    assert server.requests[3]["resourceVersion"] == "12"


def test_a_server_without_streamed_lists_gives_pages() -> None:
    changes, server = follow(
        REFUSES_STREAMS,
        page(pod("a", 1), version="5", token="more"),
        page(pod("b", 2), version="5"),
        watch(expired()),
        page(pod("a", 1), version="6"),
        watch(),
    )
    assert told(changes) == ["+a@1", "+b@2", "-b:uid-b"]
    assert [asked.get("continue") for asked in server.requests[1:3]] == [None, "more"]
    assert all("sendInitialEvents" not in asked for asked in server.requests[1:])


def test_pages_that_expire_are_read_at_once() -> None:
    changes, server = follow(
        page(pod("a", 1), version="5", token="more"),
        refuse(410, "Expired"),
        page(pod("a", 6), pod("b", 2), version="7"),
        watch(),
        streams_lists=False,
    )
    assert told(changes) == ["+a@1", "+a@6", "+b@2"]
    assert "limit" not in server.requests[2]


def test_a_list_that_is_cut_removes_nothing() -> None:
    changes, _ = follow(
        lists(pod("a", 1), pod("b", 2), version="5", streams=True),
        watch(expired()),
        watch(event("ADDED", pod("a", 6)), then=reset),
        lists(pod("a", 6), pod("b", 2), version="9", streams=True),
        watch(),
    )
    assert told(changes) == ["+a@1", "+b@2", "+a@6"]


def test_an_older_server_does_not_bring_a_removed_object_back() -> None:
    changes, _ = follow(
        lists(pod("a", 1), version="5", streams=True),
        watch(event("DELETED", pod("a", 7)), expired()),
        lists(pod("a", 1), version="6", streams=True),
        watch(event("ADDED", pod("a", 9, uid="new"))),
    )
    assert told(changes) == ["+a@1", "-a:uid-a", "+a@9"]


def test_a_late_delete_of_an_earlier_object_removes_nothing() -> None:
    changes, _ = follow(
        lists(pod("a", 1, uid="new"), version="5", streams=True), watch(event("DELETED", pod("a", 6, uid="old")))
    )
    assert told(changes) == ["+a@1"]


def test_an_unreadable_object_stops_nothing() -> None:
    bad = {**pod("bad", 6), "spec": {"containers": 7}}
    changes, _ = follow(
        lists(version="5", streams=True), watch(event("ADDED", bad), event("ADDED", pod("a", 7))), watch()
    )
    assert told(changes) == ["?bad", "+a@7"]
    assert isinstance(changes[0], Unreadable)
    assert "spec.containers" in changes[0].problem


@pytest.mark.parametrize("status", [403, 404, 500, 503])
def test_errors_are_tried_again(status: int) -> None:
    changes, _ = follow(
        refuse(status),
        lists(pod("a", 1), version="5", streams=True),
        refuse(status),
        watch(event("ADDED", pod("b", 6))),
    )
    assert told(changes) == ["+a@1", "+b@6"]


def test_garbage_in_the_stream_is_an_error() -> None:
    changes, _ = follow(lists(version="5", streams=True), watch(b"<html>"), watch(event("ADDED", pod("a", 6))))
    assert told(changes) == ["+a@6"]


@both
def test_watches_that_end_at_once_are_asked_for_more_and_more_rarely(streams: bool) -> None:
    backoff = NotedBackoff()
    follow(lists(version="5", streams=streams), *[watch()] * 4, streams_lists=streams, backoff=backoff)
    assert backoff.failures == list(range(5 if streams else 4))


def test_an_event_makes_the_waits_short_again() -> None:
    backoff = NotedBackoff()
    follow(
        lists(version="5", streams=True), watch(), watch(event("ADDED", pod("a", 6))), watch(), watch(), backoff=backoff
    )
    assert backoff.failures == [0, 1, 0, 1, 2]


@both
def test_a_version_that_is_too_old_after_each_list(streams: bool) -> None:
    """The first time it is listed again at once, then more and more rarely."""
    backoff = NotedBackoff()
    steps = [lists(version="5", streams=streams), watch(expired())]
    if streams:
        steps = [watch(bookmark("5", ends_list=True), expired())]
    follow(*steps * 5, streams_lists=streams, backoff=backoff)
    assert backoff.failures == [0, 1, 2, 3]


@pytest.mark.parametrize("status", [500, 429])
def test_error_events_again_and_again(status: int) -> None:
    backoff, error = NotedBackoff(), event("ERROR", {"kind": "Status", "code": status, "message": "no"})
    follow(lists(version="5", streams=True), *[watch(error)] * 4, backoff=backoff)
    assert backoff.failures == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("kind", ["ADDED", "BOOKMARK", "DELETED", "ERROR"])
@pytest.mark.parametrize("obj", [5, {"metadata": {"name": 7}, "code": "x"}], ids=["number", "object"])
def test_garbage_in_an_event_loses_nothing(kind: str, obj: Any) -> None:
    changes, server = follow(
        lists(version="5", streams=True),
        watch(event("ADDED", pod("a", 6)), event(kind, obj)),
        watch(event("ADDED", pod("b", 7))),
    )
    assert told(changes) == ["+a@6", "+b@7"]
    assert server.requests[2]["resourceVersion"] == "6"


def test_garbage_in_a_page_loses_nothing() -> None:
    changes, _ = follow(
        page(pod("a", 6), {"metadata": {"name": 7}}, version="7"),
        page(pod("a", 6), pod("b", 8), version="9"),
        watch(),
        streams_lists=False,
    )
    assert told(changes) == ["+a@6", "+b@8"]


def test_a_list_may_take_long_if_it_goes_on() -> None:
    reported = asyncio.Event()

    async def slow_list(request: web.Request) -> web.StreamResponse:
        loop = asyncio.get_running_loop()
        answer = web.StreamResponse()
        await answer.prepare(request)
        for number in range(4):
            await answer.write(event("ADDED", pod(f"p-{number}", number + 1)) + b"\n")
            await reported.wait()
            reported.clear()
            ahead = loop.time() + 40 - time.monotonic()
            loop.time = lambda ahead=ahead: time.monotonic() + ahead  # type: ignore[method-assign]
        await answer.write(bookmark("5", ends_list=True) + b"\n")
        return answer

    changes, server = follow(slow_list, watch(), on_report=reported.set, seconds=1_000)
    assert told(changes) == ["+p-0@1", "+p-1@2", "+p-2@3", "+p-3@4"]
    assert server.requests[1]["resourceVersion"] == "5"


def test_a_list_that_outlasts_a_stream_is_read_in_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tutti.client.reflector._WATCH_SECONDS", (0, 0))
    changes, server = follow(watch(event("ADDED", pod("a", 1))), page(pod("a", 1), pod("b", 2), version="5"), watch())
    assert told(changes) == ["+a@1", "+b@2"]
    assert server.requests[1]["limit"] == "500"
