"""Malformed request bodies: each gets an answer, and the server keeps running."""

from __future__ import annotations

import gzip
import json
import socket
import time
import zlib
from urllib.parse import urlsplit

import pytest

from tests.serve.conftest import PATIENCE, START, Server, case, wait_until
from tutti.serve.openapi.examples import GARDENER

DEEP = 100_000
BAD = {
    "empty": b"",
    "blank": b" \n\t ",
    "not JSON": b"{nodes",
    "cut off": json.dumps(GARDENER["one pool"]).encode()[:-20],
    "deep lists": b"[" * DEEP,
    "deep lists, closed": b"[" * DEEP + b"]" * DEEP,
    "deep objects": b'{"Pods":' * DEEP,
    "deep in a field": b'{"x": ' + b"[" * DEEP + b"]" * DEEP + b', "Pods": 3}',
    "not UTF-8": b'{"ID": "\xff\xfe", "Pods": [{"Name": "\xc3\x28"}]}',
    "half a surrogate": b'{"Pods": [{"Name": "\\ud800"}]}',
    "a number": b"12",
    "a string": b'"hello"',
    "null": b"null",
    "huge number": b'{"WorkerPools": [{"Name": "p", "Maximum": 1e400}]}',
    "huge integer": b'{"WorkerPools": [{"Name": "p", "Maximum": ' + b"9" * 5000 + b"}]}",
    "YAML": b"apiVersion: v1\nkind: Pod\nmetadata: {name: x}\n",
    "YAML bomb": b"a: &a [x,x]\nb: &b [*a,*a]\nc: &c [*b,*b]\n",
    "not gzip": b"\x1f\x8b\x08\x00",
}


@pytest.mark.parametrize("path", ["/recommend", "/v1/recommendations"])
@pytest.mark.parametrize("name", BAD)
def test_bad_bodies_are_refused(server: Server, name: str, path: str) -> None:
    response = server.post(BAD[name], path)
    assert response.status_code == 400, response.text
    assert response.json()["error"]
    assert "body.json" not in response.text


def test_unknown_fields_of_a_snapshot_are_accepted(server: Server) -> None:
    body = {**GARDENER["one pool"], "Colour": {"deep": [1, 2, 3]}}
    assert server.post(body, "/recommend").status_code == 200


def test_hostile_sizes_are_refused_before_anything_is_made_of_them(server: Server) -> None:
    body = case()
    body["pods"][0]["count"] = 10**12
    assert server.post(body).status_code == 400
    body["pods"][0] = {"namePrefix": "a", "requests": {"cpu": "1000000000000000"}}
    response = server.post(body)  # a quantity like any other, and more than any node has
    assert (response.status_code, response.json()["counts"]["placed"]) == (200, 0)


@pytest.fixture(scope="module")
def small() -> Server:
    """A server that takes 100,000 bytes."""
    started = Server("--workers", "1", "--max-body", "100k")
    started.wait_ready()
    yield started
    started.close()


@pytest.fixture(scope="module")
def hasty() -> Server:
    """A server with little patience; no request but a slow one goes to it."""
    started = Server("--workers", "1", "--read-timeout", "3s")
    yield started
    started.close()


def test_a_body_past_the_limit_is_refused_whether_it_says_so_or_not(small: Server) -> None:
    body = b"[" + b" " * 100_000
    response = small.post(body)
    assert response.status_code == 413
    assert "100,000 bytes" in response.json()["error"]
    chunks = (body[start : start + 1000] for start in range(0, len(body), 1000))
    assert small.client.post("/recommend", content=chunks).status_code == 413
    assert small.post(b"[" + b" " * 99_990).status_code == 400


def test_a_body_past_the_limit_is_refused_before_it_is_sent(small: Server) -> None:
    with _connected(small) as connection:
        connection.sendall(b"POST /recommend HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000000\r\n\r\n")
        assert connection.recv(1000).startswith(b"HTTP/1.1 413")


@pytest.mark.parametrize("size", [200_000, 100_000_000])
def test_a_gzip_bomb_is_stopped_at_the_limit(small: Server, size: int) -> None:
    packer = zlib.compressobj(9, wbits=31)
    bomb = b"".join(packer.compress(b" " * 1_000_000) for _ in range(size // 1_000_000)) or packer.compress(b" " * size)
    bomb += packer.flush()
    assert len(bomb) < 100_000
    held = small.metric("tutti_worker_resident_memory_bytes")
    response = small.post(bomb, headers={"Content-Encoding": "gzip"})
    assert response.status_code == 413
    assert small.metric("tutti_worker_resident_memory_bytes") < held + 20_000_000


PACKED = gzip.compress(b"{}", mtime=0)
"""Without the time of day: every process must find the same tests."""


@pytest.mark.parametrize(
    "data",
    [b"not gzip", PACKED[:-4], PACKED + b"more", PACKED * 2, b""],
    ids=["not gzip", "cut off", "more behind it", "two streams", "empty"],
)
def test_what_is_not_one_gzip_stream_is_refused(small: Server, data: bytes) -> None:
    assert small.post(data, headers={"Content-Encoding": "gzip"}).status_code == 400


def test_a_body_that_comes_too_slowly_is_given_up(hasty: Server) -> None:
    with _connected(hasty) as connection:
        connection.sendall(b"POST /recommend HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n{")
        started = time.monotonic()
        assert connection.recv(1000).startswith(b"HTTP/1.1 408")
        assert time.monotonic() - started > 2.5
    assert hasty.metric("tutti_uploads") == 0


@pytest.mark.parametrize("sent", [b"", b"POST /recommend HTTP/1.1\r\nHost: x\r\nX-Slow: "])
def test_headers_that_do_not_come_are_given_up(hasty: Server, sent: bytes) -> None:
    with _connected(hasty) as connection:
        connection.sendall(sent)
        assert connection.recv(1000) == b""


def test_a_client_that_leaves_within_its_body_is_forgotten(start: START) -> None:
    patient = start("--workers", "1", "--read-timeout", "600s")  # so that it is not this which ends the wait
    with _connected(patient) as connection:
        connection.sendall(b"POST /recommend HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n{")
        wait_until(lambda: patient.metric("tutti_uploads") == 1)
    wait_until(lambda: patient.metric("tutti_uploads") == 0)
    assert patient.metric("tutti_worker_starts_total") == 1


def _connected(server: Server) -> socket.socket:
    parts = urlsplit(server.url)
    return socket.create_connection((parts.hostname, parts.port), timeout=PATIENCE)
