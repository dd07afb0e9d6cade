"""Requests: errors, credentials, time limits, the server's time."""

from __future__ import annotations

import asyncio
import os
import random
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from tests.support.scripted_api_server import ScriptedApiServer, Step, page, refuse, reset
from tutti.client.access.cluster_access import ClusterAccess, UserAccess
from tutti.client.access.credentials import Identity
from tutti.client.api_client import ApiClient
from tutti.client.pod_writes import PodWrites
from tutti.exceptions import ApiError

OK = page(version="1")


def with_client(
    *steps: Step, ask: Callable[[ApiClient], Awaitable[Any]], user: UserAccess | None = None
) -> tuple[Any, ScriptedApiServer]:
    """Ask a scripted server something; return the answer, or the `ApiError`."""

    async def run() -> tuple[Any, ScriptedApiServer]:
        async with ScriptedApiServer(*steps) as server:
            access = ClusterAccess(server=server.url, user=user or UserAccess())
            draw = random.Random(1)
            client = ApiClient(access, user_agent="test", monotonic=time.monotonic, wall=lambda: 0, draw=draw)
            try:
                return await ask(client), server
            except ApiError as error:
                return error, server
            finally:
                await client.close()

    return asyncio.run(run())


def recorded(bodies: list[tuple[str, str, Any]]) -> Step:
    """Return a step that notes method, content type and body."""

    async def step(request: web.Request) -> web.StreamResponse:
        bodies.append((request.method, request.content_type, await request.json()))
        return web.json_response({"kind": "Status"})

    return step


def test_an_error_says_what_the_server_says() -> None:
    error, _ = with_client(
        refuse(409, "Conflict", message="pod g-0 is already assigned"),
        ask=lambda client: client.request("GET", "/api/v1/pods"),
    )
    assert isinstance(error, ApiError)
    assert (error.status, error.reason) == (409, "Conflict")
    assert str(error) == "GET /api/v1/pods: pod g-0 is already assigned"


def test_an_error_without_a_status_object() -> None:
    async def step(_request: web.Request) -> web.StreamResponse:
        return web.Response(status=502, text="<html>bad gateway</html>")

    error, _ = with_client(step, ask=lambda client: client.request("GET", "/version"))
    assert str(error) == "GET /version: status 502"


def test_an_error_that_comes_in_parts() -> None:
    async def step(request: web.Request) -> web.StreamResponse:
        answer = web.StreamResponse(status=429)
        await answer.prepare(request)
        for part in (b'{"reason": "TooManyRequests", "details": {"causes"', b': [{"reason": "DisruptionBudget"}]}}'):
            await answer.write(part)
            await asyncio.sleep(0.01)
        return answer

    error, _ = with_client(step, ask=lambda client: client.request("POST", "/", b"{}"))
    assert (error.status, error.reason, error.causes) == (429, "TooManyRequests", ("DisruptionBudget",))


def test_an_error_that_is_cut_off() -> None:
    async def step(request: web.Request) -> web.StreamResponse:
        answer = web.StreamResponse(status=409)
        await answer.prepare(request)
        await answer.write(b'{"reason": "Conf')
        await asyncio.sleep(0.01)
        reset(request)
        return answer

    error, _ = with_client(step, ask=lambda client: client.request("POST", "/", b"{}"))
    assert error.status == 409


def test_reads_are_repeated_and_writes_are_not() -> None:
    busy = refuse(429, "TooManyRequests", headers={"Retry-After": "0"})
    answer, server = with_client(busy, busy, OK, ask=lambda client: client.read("/api/v1/pods"))
    assert b"items" in answer
    assert len(server.requests) == 3
    error, server = with_client(busy, OK, ask=lambda client: client.request("POST", "/api/v1/pods", b"{}"))
    assert isinstance(error, ApiError)
    assert error.status == 429
    assert error.retry_after == 0
    assert len(server.requests) == 1


@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE", "POST"])
def test_a_request_without_an_answer_is_not_sent_again(method: str) -> None:
    async def drop(request: web.Request) -> web.StreamResponse:
        reset(request)
        return web.Response()

    error, server = with_client(drop, OK, ask=lambda client: client.request(method, "/api/v1/pods/a", b"{}"))
    assert isinstance(error, ApiError)
    assert error.status == 0
    assert len(server.requests) == 1


def test_a_read_that_is_forbidden_is_not_repeated() -> None:
    error, server = with_client(refuse(403, "Forbidden"), ask=lambda client: client.read("/api/v1/secrets"))
    assert error.status == 403
    assert len(server.requests) == 1


def test_new_credentials_after_401(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text("one")
    seen: list[str] = []

    async def unauthorized(request: web.Request) -> web.StreamResponse:
        seen.append(request.headers["Authorization"])
        file.write_text("two")
        return web.Response(status=401)

    async def accepted(request: web.Request) -> web.StreamResponse:
        seen.append(request.headers["Authorization"])
        return web.Response(text="ok")

    user = UserAccess(token_file=file)
    answer, _ = with_client(unauthorized, accepted, ask=lambda client: client.request("GET", "/"), user=user)
    assert answer == b"ok"
    assert seen == ["Bearer one", "Bearer two"]


def test_requests_under_way_survive_a_new_certificate(tmp_path: Path) -> None:
    certificate, key = tmp_path / "c.crt", tmp_path / "c.key"
    certificate.write_text("one")
    key.write_text("key")
    has_begun, may_end = asyncio.Event(), asyncio.Event()

    async def slow(_request: web.Request) -> web.StreamResponse:
        has_begun.set()
        await may_end.wait()
        return web.Response(text="slow")

    async def ask(client: ApiClient) -> list[bytes]:
        before = asyncio.create_task(client.request("POST", "/", b"{}"))
        await has_begun.wait()
        certificate.write_text("two")
        os.utime(certificate, ns=(1, 1))
        after = await asyncio.gather(client.request("GET", "/"), client.request("GET", "/"))
        may_end.set()
        return [await before, *after]

    user = UserAccess(certificate_file=certificate, key_file=key)
    answers, _ = with_client(slow, OK, OK, ask=ask, user=user)
    assert answers[0] == b"slow"
    assert all(b"items" in answer for answer in answers[1:])


def test_impersonation_headers() -> None:
    groups: list[list[str]] = []

    async def step(request: web.Request) -> web.StreamResponse:
        groups.append(request.headers.getall("Impersonate-Group"))
        return web.Response()

    user = UserAccess(headers={"Impersonate-Group": ("dev", "ops")})
    with_client(step, ask=lambda client: client.request("GET", "/"), user=user)
    assert groups == [["dev", "ops"]]


def test_no_answer_in_time() -> None:
    error, _ = with_client(ask=lambda client: client.request("GET", "/", timeout=0.2))
    assert error.status == 0
    assert "no answer in time" in str(error)


class StoppedTime:
    """While it lasts, only `pass_by` moves the time of the event loop."""

    def __enter__(self) -> StoppedTime:
        self._loop, self._seconds = asyncio.get_running_loop(), 1_000.05
        self._loop.time = lambda: self._seconds  # type: ignore[method-assign]
        return self

    def __exit__(self, *_error: object) -> None:
        del self._loop.time  # type: ignore[method-assign]

    async def pass_by(self, seconds: float) -> None:
        """Move the time, and let everything happen that is due."""
        self._seconds += seconds
        for _ in range(50):
            await asyncio.sleep(0)


def test_the_time_limit_is_exact() -> None:
    """A binding must not take longer than the lease lasts."""

    async def ask(client: ApiClient) -> None:
        with StoppedTime() as time:
            request = asyncio.create_task(client.request("POST", "/", b"{}", timeout=5.0))
            await time.pass_by(0)
            await time.pass_by(4.99)
            assert not request.done()
            await time.pass_by(0.02)
            assert request.done()
        await request

    error, _ = with_client(ask=ask)
    assert "no answer in time" in str(error)


def test_the_time_limit_includes_the_second_time_that_a_request_is_sent(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text("one")
    sent, may_reject = [asyncio.Event(), asyncio.Event()], asyncio.Event()

    async def reject(_request: web.Request) -> web.StreamResponse:
        file.write_text("two")
        sent[0].set()
        await may_reject.wait()
        return web.Response(status=401)

    async def be_silent(_request: web.Request) -> web.StreamResponse:
        sent[1].set()
        await asyncio.Event().wait()
        return web.Response()

    async def ask(client: ApiClient) -> None:
        with StoppedTime() as time:
            request = asyncio.create_task(client.request("POST", "/", b"{}", timeout=5.0))
            await sent[0].wait()
            await time.pass_by(4.0)
            may_reject.set()
            await sent[1].wait()
            await time.pass_by(1.01)
            assert request.done()
        await request

    error, server = with_client(reject, be_silent, ask=ask, user=UserAccess(token_file=file))
    assert "no answer in time" in str(error)
    assert len(server.requests) == 2


def test_the_time_limit_includes_new_credentials() -> None:
    async def ask(client: ApiClient) -> None:
        async def run_program() -> Identity:
            await asyncio.Event().wait()
            return Identity()

        await client.request("GET", "/")
        client._credentials.identity = run_program  # type: ignore[method-assign]
        with StoppedTime() as time:
            request = asyncio.create_task(client.request("POST", "/", b"{}", timeout=5.0))
            await time.pass_by(0)
            await time.pass_by(5.01)
            assert request.done()
        await request

    error, server = with_client(OK, OK, ask=ask)
    assert "no answer in time" in str(error)
    assert len(server.requests) == 1


def test_the_first_credentials_may_take_longer() -> None:
    async def ask(client: ApiClient) -> bytes:
        identity, is_logged_in = client._credentials.identity, asyncio.Event()

        async def log_in() -> Identity:
            await is_logged_in.wait()
            return await identity()

        client._credentials.identity = log_in  # type: ignore[method-assign]
        with StoppedTime() as time:
            request = asyncio.create_task(client.request("GET", "/", timeout=5.0))
            await time.pass_by(0)
            await time.pass_by(50)
            is_logged_in.set()
        return await request

    answer, _ = with_client(OK, ask=ask)
    assert b"items" in answer


@pytest.mark.parametrize("timeout", [0.0, -1.0])
def test_a_request_without_time_is_not_sent(timeout: float) -> None:
    error, server = with_client(OK, ask=lambda client: client.request("POST", "/", b"{}", timeout=timeout))
    assert error.status == 0
    assert not server.requests


def test_no_server() -> None:
    async def ask(client: ApiClient) -> None:
        client.access = ClusterAccess(server="http://127.0.0.1:9")
        await client.request("GET", "/version")

    error, _ = with_client(ask=ask)
    assert error.status == 0
    assert "\n" not in str(error)


def test_redirects_are_not_followed() -> None:
    async def step(_request: web.Request) -> web.StreamResponse:
        return web.Response(status=302, headers={"Location": "http://elsewhere.invalid/"})

    error, _ = with_client(step, ask=lambda client: client.request("GET", "/"))
    assert error.status == 302


def test_the_servers_time() -> None:
    async def step(_request: web.Request) -> web.StreamResponse:
        return web.Response(headers={"Date": "Fri, 15 Jan 2027 08:00:00 GMT"})

    async def ask(client: ApiClient) -> int:
        await client.request("GET", "/")
        return client.clock.now()

    now, _ = with_client(step, ask=ask)
    assert abs(now - 1_800_000_000_000_000) < 2_000_000


@pytest.mark.parametrize("dry_run", [True, False])
def test_writes_name_the_uid(dry_run: bool) -> None:
    bodies: list[tuple[str, str, Any]] = []
    step = recorded(bodies)

    async def ask(client: ApiClient) -> None:
        writes = PodWrites(client)
        await writes.bind("ml/g-0", "u1", node="n1", timeout=5)
        await writes.evict("ml/g-0", "u1", dry_run=dry_run)
        await writes.delete("ml/g-0", "u1")
        await writes.patch_status("ml/g-0", "u1", {"nominatedNodeName": None})

    _, server = with_client(step, step, step, step, ask=ask)
    path = "/api/v1/namespaces/ml/pods/g-0"
    assert [each["path"] for each in server.requests] == [f"{path}/binding", f"{path}/eviction", path, f"{path}/status"]
    bind, evict, delete, patch = bodies
    assert bind[2]["metadata"] == {"name": "g-0", "namespace": "ml", "uid": "u1"}
    assert bind[2]["target"]["name"] == "n1"
    assert evict[2]["deleteOptions"]["preconditions"] == {"uid": "u1"}
    assert evict[2]["deleteOptions"].get("dryRun") == (["All"] if dry_run else None)
    assert server.requests[1].get("dryRun") == ("All" if dry_run else None)
    assert (delete[0], delete[2]["preconditions"]) == ("DELETE", {"uid": "u1"})
    assert patch[1] == "application/strategic-merge-patch+json"
    assert patch[2] == {"metadata": {"uid": "u1"}, "status": {"nominatedNodeName": None}}
