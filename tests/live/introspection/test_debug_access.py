"""Who sees the state: reviews by the API server, remembered for a while, limited to a rate."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from aiohttp import web

from tests.support.scripted_api_server import ScriptedApiServer, Step, refuse
from tutti.client.access.cluster_access import ClusterAccess
from tutti.client.api_client import ApiClient
from tutti.live.introspection.debug_access import DebugAccess, Refused

TOKEN = "secret-token"


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def answers(body: dict[str, Any], seen: list[Any] | None = None) -> Step:
    """Answer a review with a status, and note what was asked."""

    async def step(request: web.Request) -> web.StreamResponse:
        if seen is not None:
            seen.append(await request.json())
        return web.json_response({"status": body}, status=201)

    return step


USER = answers({"authenticated": True, "user": {"username": "ann", "uid": "7", "groups": ["g"], "extra": {"k": ["v"]}}})
UNKNOWN = answers({"authenticated": False, "error": "no"})
YES, NO = answers({"allowed": True}), answers({"allowed": False})


def with_access(*steps: Step, ask: Callable[[DebugAccess, Clock], Awaitable[Any]]) -> tuple[Any, list[dict[str, str]]]:
    async def run() -> tuple[Any, list[dict[str, str]]]:
        clock = Clock()
        async with ScriptedApiServer(*steps) as server:
            access = ClusterAccess(server=server.url)
            draw = random.Random(1)
            client = ApiClient(access, user_agent="test", monotonic=time.monotonic, wall=lambda: 0, draw=draw)
            try:
                return await ask(DebugAccess(client, clock), clock), server.requests
            except Refused as refused:
                return refused, server.requests
            finally:
                await client.close()

    return asyncio.run(run())


def see(namespace: str = "", token: str = TOKEN) -> Callable[[DebugAccess, Clock], Awaitable[bool]]:
    async def ask(access: DebugAccess, _clock: Clock) -> bool:
        return await access.sees_everything(token, namespace)

    return ask


def test_the_right_to_get_the_path_shows_everything() -> None:
    asked: list[Any] = []
    answer, requests = with_access(USER, answers({"allowed": True}, asked), ask=see())
    assert answer is True
    assert [each["path"].rpartition("/")[2] for each in requests] == ["tokenreviews", "subjectaccessreviews"]
    spec = asked[0]["spec"]
    assert spec == {
        "user": "ann", "uid": "7", "groups": ["g"], "extra": {"k": ["v"]},
        "nonResourceAttributes": {"path": "/debug/state", "verb": "get"},
    }  # fmt: skip


def test_the_right_to_list_pods_shows_the_namespace() -> None:
    asked: list[Any] = []
    answer, _ = with_access(USER, NO, answers({"allowed": True}, asked), ask=see("team-a"))
    assert answer is False
    wanted = {"namespace": "team-a", "verb": "list", "version": "v1", "resource": "pods"}
    assert asked[0]["spec"]["resourceAttributes"] == wanted


@pytest.mark.parametrize(
    ("steps", "namespace", "token", "status", "words"),
    [
        ((), "", "", 401, "send a bearer token"),
        ((UNKNOWN,), "", TOKEN, 401, "does not accept this token"),
        ((USER, NO), "", TOKEN, 403, "name a namespace"),
        ((USER, NO, NO), "team-b", TOKEN, 403, "user ann may neither get /debug/state nor list pods in team-b"),
        ((USER, answers({"allowed": True, "denied": True}), NO), "x", TOKEN, 403, "ann"),
        ((refuse(403, message="forbidden"),), "", TOKEN, 503, "let it create tokenreviews"),
        ((refuse(500),), "", TOKEN, 503, "did not say who you are"),
    ],
)
def test_refusals_say_what_to_do(steps: tuple[Step, ...], namespace: str, token: str, status: int, words: str) -> None:
    refused, _ = with_access(*steps, ask=see(namespace, token))
    assert isinstance(refused, Refused)
    assert refused.status == status
    assert words in str(refused)
    assert TOKEN not in str(refused)


def test_answers_count_for_some_seconds() -> None:
    async def ask(access: DebugAccess, clock: Clock) -> bool:
        assert await access.sees_everything(TOKEN, "")
        clock.now = 9
        assert await access.sees_everything(TOKEN, ""), "no further request"
        clock.now = 11
        return await access.sees_everything(TOKEN, "a")

    answer, requests = with_access(USER, YES, USER, NO, YES, ask=ask)
    assert answer is False, "the right was taken away"
    assert len(requests) == 5


def test_many_new_tokens_are_refused_before_the_api_server_is_asked() -> None:
    async def ask(access: DebugAccess, clock: Clock) -> int:
        refused = 0
        for number in range(40):
            try:
                await access.sees_everything(f"token {number}", "")
            except Refused as error:
                refused += error.status == 429
        clock.now = 1.0
        with pytest.raises(Refused) as error_later:
            await access.sees_everything("one more", "")
        assert error_later.value.status == 401
        return refused

    refused, requests = with_access(*[UNKNOWN] * 40, ask=ask)
    assert (refused, len(requests)) == (10, 31)
