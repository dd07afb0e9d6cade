"""Limits on uploads: slow clients do not block plans of other clients, and uploads hold a bounded number of bytes."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Iterator
from urllib.parse import urlsplit

import pytest

from tests.serve.conftest import PATIENCE, START, Server, case, wait_until
from tutti.serve.http.refusals import RefusedError
from tutti.serve.http.upload_limits import UploadLimits
from tutti.serve.settings import ServerSettings


@contextlib.contextmanager
def slow(server: Server, count: int, *, sent: int = 1) -> Iterator[list[socket.socket]]:
    """So many clients that have sent the beginning of a body, and do not go on."""
    parts = urlsplit(server.url)
    head = b"POST /recommend HTTP/1.1\r\nHost: x\r\nContent-Length: 60000\r\n\r\n"
    with contextlib.ExitStack() as stack:
        found = []
        for _ in range(count):
            connection = socket.create_connection((parts.hostname, parts.port), timeout=PATIENCE)
            found.append(stack.enter_context(connection))
            connection.sendall(head + b" " * sent)
        yield found


def test_slow_clients_keep_nobody_from_a_plan(start: START) -> None:
    server = start("--workers", "1", "--queue", "0", "--read-timeout", "600s", "--timeout", "600s")
    with slow(server, 40):
        wait_until(lambda: server.metric("tutti_uploads") == 40)
        assert server.metric("tutti_plans_waiting") == 0
        answer = server.post(case())
        assert answer.status_code == 200, answer.text
        assert server.metric("tutti_uploads") == 40
    wait_until(lambda: server.metric("tutti_uploads") == 0)
    assert server.metric("tutti_upload_bytes") == 0


def test_the_number_of_bodies_has_a_limit(start: START) -> None:
    server = start("--workers", "1", "--uploads", "3", "--read-timeout", "600s")
    with slow(server, 3) as clients:
        wait_until(lambda: server.metric("tutti_uploads") == 3)
        refused = server.post(case())
        assert refused.status_code == 503
        assert int(refused.headers["retry-after"]) > 0
        assert refused.json()["error"] == "too many uploads at once: 3 uploads under way"
        assert server.client.get("/healthz").status_code == 200
        clients[0].close()
        wait_until(lambda: server.metric("tutti_uploads") == 2)
        assert server.post(case()).status_code == 200


def test_the_bytes_of_all_bodies_have_a_limit(start: START) -> None:
    """Four of the largest bodies; what they declare does not count."""
    server = start("--workers", "1", "--max-body", "60k", "--read-timeout", "600s")
    with slow(server, 5, sent=48_000) as clients:
        wait_until(lambda: server.metric("tutti_uploads") == 5)
        wait_until(lambda: server.metric("tutti_upload_bytes") == 240_000)
        refused = server.post(case())
        assert refused.status_code == 503
        assert refused.json()["error"].startswith("uploads hold 240,000 bytes")
        assert server.metric("tutti_upload_bytes") == 240_000
        clients[0].sendall(b" " * 12_000)
        assert clients[0].recv(1000).startswith(b"HTTP/1.1 503")
        wait_until(lambda: server.metric("tutti_upload_bytes") == 192_000)
        assert server.post(case()).status_code == 200


def test_a_body_is_not_read_when_there_is_no_place_for_its_plan(start: START) -> None:
    server = start("--workers", "1", "--queue", "0", "--read-timeout", "600s")
    server.hold()
    with slow(server, 1, sent=60_000):
        server.wait_running()
        with slow(server, 1) as (late,):
            assert late.recv(1000).startswith(b"HTTP/1.1 503")
        assert server.metric("tutti_uploads") == 0


def test_places_are_given_back_however_a_body_ends() -> None:
    uploads = UploadLimits(max_count=2, max_bytes=10)
    with uploads.admit() as take, uploads.admit() as other:
        take(6)
        other(4)
        assert (uploads.count, uploads.held) == (2, 10)
        with pytest.raises(RefusedError, match="2 uploads under way"), uploads.admit():
            pass
        with pytest.raises(RefusedError, match="hold 10 bytes") as refused:
            take(1)
    assert (refused.value.status, refused.value.headers) == (503, {"Retry-After": "5"})
    assert (uploads.count, uploads.held) == (0, 0)
    assert ServerSettings(max_body=100).upload_memory == 400
