"""The HTTP server of the scheduler: routes, refusals, limits of connections, TLS, addresses in use."""

from __future__ import annotations

import asyncio
import json
import shutil
import subprocess
from collections.abc import Awaitable, Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast
from urllib.parse import quote

import aiohttp
import pytest

from tutti.exceptions import InputError, TuttiError
from tutti.live.introspection import http_connections
from tutti.live.introspection.debug_access import DebugAccess, Refused
from tutti.live.introspection.http_routes import HttpRoutes
from tutti.live.introspection.http_server import HttpServer, is_private
from tutti.live.introspection.state_query import StateQuery
from tutti.live.options import HttpOptions
from tutti.wire.scheduler_state import SchedulerState


class Source:
    """A scheduler with settable answers."""

    def __init__(self) -> None:
        self.health: list[str] = []
        self.missing: list[str] = []
        self.queries: list[StateQuery] = []
        self.error: Exception | None = None
        self.is_asked, self.answers = asyncio.Event(), asyncio.Event()
        self.answers.set()

    def health_problems(self) -> list[str]:
        return self.health

    def readiness_problems(self) -> list[str]:
        return self.missing

    def notes(self) -> list[str]:
        return ["services cannot be read"]

    async def metrics_text(self) -> str:
        self.is_asked.set()
        await self.answers.wait()
        return "a 1\n"

    async def state(self, query: StateQuery) -> SchedulerState:
        self.queries.append(query)
        if self.error is not None:
            raise self.error
        return SchedulerState(time="t", version="v", scheduler_name="tutti", identity="me", leads=True)


class Access:
    """Tokens: `all` sees everything, `one` sees a namespace."""

    async def sees_everything(self, token: str, namespace: str) -> bool:
        if token not in ("all", "one"):
            raise Refused(401, "who are you?")
        if token == "one" and not namespace:
            raise Refused(403, "name a namespace")
        return token == "all"


def serve(ask: Callable[[str, Source], Awaitable[Any]], options: HttpOptions | None = None) -> Any:
    async def run() -> Any:
        source = Source()
        routes = HttpRoutes(source, cast(DebugAccess, Access()))
        server = HttpServer(options or HttpOptions(port=0), routes.handle)
        await server.start()
        try:
            return await ask(server.url, source)
        finally:
            await server.stop()

    return asyncio.run(run())


async def get(url: str, method: str = "GET", **headers: str) -> tuple[int, str]:
    async with (
        aiohttp.ClientSession() as session,
        session.request(method, url, headers=headers, ssl=False) as answer,
    ):
        return answer.status, await answer.text()


def test_health_and_readiness_name_every_problem() -> None:
    async def ask(url: str, source: Source) -> None:
        assert await get(f"{url}/healthz") == (200, "ok\n")
        assert await get(f"{url}/readyz") == (200, "ok\nnote: services cannot be read\n")
        source.health, source.missing = ["the lease thread has ended"], ["pods are not listed yet"]
        assert await get(f"{url}/livez") == (503, "the lease thread has ended\n")
        assert await get(f"{url}/readyz") == (503, "pods are not listed yet\nnote: services cannot be read\n")
        assert (await get(f"{url}/healthz", "HEAD"))[0] == 503

    serve(ask)


def test_other_paths_and_methods_are_refused() -> None:
    async def ask(url: str, _source: Source) -> None:
        assert (await get(f"{url}/nowhere"))[0] == 404
        assert (await get(f"{url}/metrics", "POST"))[0] == 405
        assert await get(f"{url}/metrics") == (200, "a 1\n")

    serve(ask)


def test_the_state_needs_a_token_and_is_cut_to_the_namespace() -> None:
    async def ask(url: str, source: Source) -> None:
        path = f"{url}/debug/state"
        assert await get(path) == (401, "who are you?\n")
        assert await get(path, Authorization="Bearer one") == (403, "name a namespace\n")
        status, body = await get(f"{path}?namespace=a&pod=p&limit=7", Authorization="bearer one")
        assert (status, json.loads(body)["identity"]) == (200, "me")
        assert source.queries == [StateQuery("a", "p", "", 7, hides_others=True)]
        await get(path, Authorization="Bearer all")
        assert source.queries[1] == StateQuery()

    serve(ask)


@pytest.mark.parametrize("name", ["train", "My_Gang", "my gang/1", "g\u00e4ng"])
def test_a_gang_may_have_any_name(name: str) -> None:
    async def ask(url: str, source: Source) -> None:
        status, _ = await get(f"{url}/debug/state?namespace=a&gang={quote(name, safe='')}", Authorization="Bearer all")
        assert (status, source.queries[0].gang) == (200, name)

    serve(ask)


@pytest.mark.parametrize(
    "query",
    [
        "limit=0",
        "limit=x",
        "limit=99999",
        "limit=%C2%B2",
        "namespace=A",
        "pod=x",
        "namespace=a&pod=x&gang=y",
        "namespace=a&gang=" + "x" * 1_001,
        "names=x",
    ],
)
def test_questions_that_make_no_sense(query: str) -> None:
    async def ask(url: str, source: Source) -> None:
        status, _ = await get(f"{url}/debug/state?{query}", Authorization="Bearer all")
        assert status == 400
        assert not source.queries

    serve(ask)


def test_an_error_is_an_answer_and_nothing_else() -> None:
    async def ask(url: str, source: Source) -> None:
        source.error = ZeroDivisionError("secret")
        status, body = await get(f"{url}/debug/state", Authorization="Bearer all")
        assert (status, body) == (500, "internal error: see the scheduler's log\n")
        assert (await get(f"{url}/healthz"))[0] == 200

    serve(ask)


async def is_closed(reader: asyncio.StreamReader) -> bool:
    """Wait until the server closes a connection without an answer."""
    try:
        return not await reader.read()
    except ConnectionError:
        return True


def port_of(url: str) -> int:
    return int(url.rpartition(":")[2])


@pytest.fixture
def tls_options(tmp_path: Path) -> HttpOptions:
    if shutil.which("openssl") is None:
        pytest.skip("needs openssl to make a certificate")
    cert, key = tmp_path / "cert.pem", tmp_path / "key.pem"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2",
         "-keyout", key, "-out", cert, "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"],
        check=True, capture_output=True,
    )  # fmt: skip
    return HttpOptions(port=0, tls_cert=str(cert), tls_key=str(key))


@pytest.mark.parametrize("has_tls", [False, True])
def test_idle_connections_keep_no_probe_out(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, tls_options: HttpOptions, has_tls: bool
) -> None:
    """The oldest idle connection makes room; with TLS, connections without a handshake count, too."""
    monkeypatch.setattr(http_connections, "_MOST_CONNECTIONS", 2)

    async def ask(url: str, _source: Source) -> None:
        streams = [await asyncio.open_connection("127.0.0.1", port_of(url)) for _ in range(3)]
        readers = [asyncio.create_task(is_closed(reader)) for reader, _ in streams]
        assert await readers[0]
        assert not readers[2].done()
        assert await get(f"{url}/healthz") == (200, "ok\n")
        assert await readers[1]
        for reader in readers:
            reader.cancel()
        for _, writer in streams:
            writer.close()

    serve(ask, tls_options if has_tls else None)
    assert not caplog.records


def test_a_connection_is_refused_while_all_others_are_answered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_connections, "_MOST_CONNECTIONS", 1)

    async def ask(url: str, source: Source) -> None:
        source.answers.clear()
        first = asyncio.create_task(get(f"{url}/metrics"))
        await source.is_asked.wait()
        reader, writer = await asyncio.open_connection("127.0.0.1", port_of(url))
        assert await is_closed(reader)
        writer.close()
        source.answers.set()
        assert await first == (200, "a 1\n")

    serve(ask)


def test_a_connection_ends_although_its_client_never_sends_its_headers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_connections, "_HEADERS_WITHIN", 0.1)

    async def ask(url: str, _source: Source) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port_of(url))
        writer.write(b"GET /healthz HTTP/1.1\r\n")
        assert await is_closed(reader)
        writer.close()

    serve(ask)


def test_a_connection_ends_although_its_answer_never_comes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_connections, "_LIFETIME", 0.1)

    async def ask(url: str, source: Source) -> None:
        source.answers.clear()
        reader, writer = await asyncio.open_connection("127.0.0.1", port_of(url))
        writer.write(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n")
        assert await is_closed(reader)
        writer.close()

    serve(ask)


@pytest.mark.parametrize(
    "request_bytes",
    [
        b"GET /debug/state HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer SECRET\x01\r\n\r\n",
        b"GET /" + b"SECRET" * 10_000 + b" HTTP/1.1\r\n\r\n",
        b"\x16\x03\x01 SECRET\r\n\r\n",
    ],
)
def test_what_is_not_http_is_neither_logged_nor_sent_back(
    caplog: pytest.LogCaptureFixture, request_bytes: bytes
) -> None:
    async def ask(url: str, _source: Source) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port_of(url))
        writer.write(request_bytes)
        answer = await reader.read()
        assert answer.startswith((b"HTTP/1.1 400 ", b"HTTP/1.0 400 "))
        assert answer.endswith(b"\r\n\r\nbad request\n")
        writer.close()

    serve(ask)
    assert not caplog.records


def test_an_address_in_use_is_one_clear_line() -> None:
    async def ask(url: str, _source: Source) -> None:
        port = int(url.rpartition(":")[2])
        second = HttpServer(HttpOptions(port=port), cast(Any, None))
        with pytest.raises(TuttiError, match=r"is in use: choose another port with --port"):
            await second.start()

    serve(ask)


def test_a_wrong_certificate_is_named(tmp_path: Path) -> None:
    (tmp_path / "cert").write_text("no certificate")
    (tmp_path / "key").write_text("no key")
    options = HttpOptions(port=0, tls_cert=str(tmp_path / "cert"), tls_key=str(tmp_path / "key"))
    with pytest.raises(InputError, match="not a certificate"):
        serve(cast(Any, None), options)


@pytest.mark.parametrize(
    ("address", "has_tls", "private"),
    [
        ("127.0.0.1", False, True),
        ("::1", False, True),
        ("::ffff:127.0.0.1", False, True),
        ("10.0.0.7", False, False),
        ("fe80::1%eth0", False, False),
        ("10.0.0.7", True, True),
    ],
)
def test_only_tls_and_loopback_are_private(address: str, has_tls: bool, private: bool) -> None:
    about = {"sockname": (address, 10271), "sslcontext": object() if has_tls else None}
    request = SimpleNamespace(transport=SimpleNamespace(get_extra_info=about.get))
    assert is_private(cast(Any, request)) is private


def test_the_state_is_not_sent_over_plain_http_to_other_machines(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tutti.live.introspection.http_routes.is_private", lambda _request: False)

    async def ask(url: str, _source: Source) -> None:
        status, body = await get(f"{url}/debug/state", Authorization="Bearer all")
        assert status == 403
        assert "plain HTTP" in body
        assert (await get(f"{url}/metrics"))[0] == 200

    serve(ask)
