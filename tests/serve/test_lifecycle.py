"""Requests side by side, workers that end, clients that leave, servers that are told to stop."""

from __future__ import annotations

import http.client
import json
import os
import re
import signal
import socket
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import urlsplit

import httpx
import pytest

from tests.serve.conftest import PATIENCE, SLOW, START, Server, case, children, is_running, wait_until
from tutti.serve.background_server import running_server
from tutti.serve.settings import ServerSettings


def post_aside(server: Server, body: object = None, path: str = "/v1/recommendations") -> list:
    """Post from another thread; what comes back, answer or error, is put into the list."""
    got: list = []

    def post() -> None:
        try:
            got.append(httpx.post(server.url + path, json=body or case(), timeout=PATIENCE, trust_env=False))
        except httpx.HTTPError as error:
            got.append(error)

    threading.Thread(target=post, daemon=True).start()
    return got


def leave(server: Server) -> None:
    """Post something, and go away while it is planned."""
    parts = urlsplit(server.url)
    body = json.dumps(case()).encode()
    with socket.create_connection((parts.hostname, parts.port)) as connection:
        head = f"POST /v1/recommendations HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n\r\n"
        connection.sendall(head.encode() + body)
        server.wait_running()


def test_eight_at_once_are_answered_as_alone(server: Server) -> None:
    bodies = [case(5 + number) for number in range(8)]
    alone = [server.post(body).content for body in bodies]
    with ThreadPoolExecutor(8) as many:
        together = list(many.map(lambda body: server.post(body).content, bodies))
    assert together == alone
    assert all(json.loads(text)["counts"]["placed"] for text in alone)


def test_a_large_body_does_not_stop_the_health_check(start: START) -> None:
    server = start("--workers", "1")
    server.hold()  # most of the body finds no room in the pipe to the worker
    got = post_aside(server, {**case(), "padding": " " * 30_000_000})
    server.wait_running()
    for _ in range(10):
        assert server.client.get("/healthz").status_code == 200
    assert not got
    server.release()
    wait_until(lambda: bool(got))
    assert got[0].status_code == 200


@pytest.fixture(scope="module")
def one() -> Iterator[Server]:
    """A server with one worker, which tests may kill."""
    started = Server("--workers", "1", "--queue", "1")
    yield started
    started.close()


def starts(server: Server, after: str) -> float:
    """How many workers were started after one that ended so."""
    found = re.search(rf'after="{after}"}} (\d+)', server.client.get("/metrics").text)
    return int(found[1]) if found else 0


def test_a_client_that_leaves_stops_its_work(start: START) -> None:
    one = start("--workers", "1")
    (worker,) = one.hold()
    leave(one)
    wait_until(lambda: not is_running(worker))
    assert one.post(case()).status_code == 200
    assert starts(one, "disconnect") == 1
    assert one.metric("tutti_plans_running") == 0
    wait_until(lambda: "POST /v1/recommendations 499 " in one.log)


def test_a_worker_that_dies_fails_its_own_request_alone(start: START) -> None:
    one = start("--workers", "1", "--queue", "1")
    (worker,) = one.hold()
    got = post_aside(one)
    one.wait_running()
    waiting = post_aside(one, case())
    wait_until(lambda: one.metric("tutti_plans_waiting") == 1)
    full = one.post(case(), "/recommend")
    assert full.status_code == 503
    assert int(full.headers["retry-after"]) > 0
    assert full.json()["error"] == "all workers are busy: 1 plan under way, 1 request waiting"
    os.kill(worker, signal.SIGKILL)
    wait_until(lambda: bool(got) and bool(waiting))
    assert got[0].status_code == 500
    assert "died" in got[0].json()["error"]
    assert waiting[0].status_code == 200
    assert starts(one, "died") == 1
    assert "Unknown child process" not in one.log


def test_an_idle_worker_that_dies_is_replaced(one: Server) -> None:
    one.wait_ready()
    before, (worker,) = starts(one, "died"), one.workers()
    os.kill(worker, signal.SIGKILL)
    wait_until(lambda: starts(one, "died") == before + 1)
    assert one.post(case()).status_code == 200
    assert one.workers() != [worker]


def test_a_request_that_takes_too_long_is_given_up(start: START) -> None:
    server = start("--workers", "1", "--timeout", "2s")
    (worker,) = server.hold()
    response = server.post(case())
    assert response.status_code == 504
    assert "2 seconds" in response.json()["error"]
    wait_until(lambda: not is_running(worker))
    server.wait_ready()
    assert server.workers() != [worker]
    assert starts(server, "timeout") == 1


def test_sigterm_finishes_what_runs(start: START) -> None:
    server = start("--workers", "1", "--grace", "600s")
    workers, got = server.hold(), post_aside(server)
    server.wait_running()
    server.process.send_signal(signal.SIGTERM)
    wait_until(lambda: " INFO waiting for 1 plan, up to 600s; Ctrl-C again ends at once\n" in server.log)
    server.release()
    assert server.ended() == 0
    assert server.lines[-1].endswith(" INFO ended\n")
    wait_until(lambda: bool(got))
    assert got[0].status_code == 200
    assert not any(map(is_running, workers))
    assert "Traceback" not in server.log
    with pytest.raises(httpx.ConnectError):
        server.client.get("/healthz")


def test_grace_has_an_end(start: START) -> None:
    server = start("--workers", "1", "--grace", "0.5s")
    workers, got = server.hold(), post_aside(server)  # nothing else would ever end it
    server.wait_running()
    assert server.end() == 0
    wait_until(lambda: bool(got))
    assert got[0].status_code == 503
    assert not any(map(is_running, workers))
    assert "Traceback" not in server.log


def test_interrupts_end_it_with_130(start: START) -> None:
    server = start("--workers", "1", ready=False)
    assert server.end(signal.SIGINT) == 130
    assert "Traceback" not in server.log
    assert "waiting for" not in server.log


def test_a_second_interrupt_ends_it_at_once(start: START) -> None:
    server = start("--workers", "1", "--grace", "600s")  # longer than anybody waits here
    server.hold()
    got = post_aside(server)
    server.wait_running()
    server.process.send_signal(signal.SIGINT)
    wait_until(lambda: "Ctrl-C again ends at once" in server.log)
    assert server.end(signal.SIGINT) == 130
    wait_until(lambda: bool(got))
    assert got[0].status_code == 503


def test_a_killed_server_leaves_no_workers(start: START) -> None:
    server = start("--workers", "2")
    post_aside(server, SLOW, "/v1/recommendations?timeLimit=60")
    server.wait_running()
    workers = server.workers()
    assert len(workers) == 2
    server.process.kill()
    wait_until(lambda: not any(map(is_running, workers)))


def test_workers_leave_signals_to_the_server(one: Server) -> None:
    one.wait_ready()
    (worker,) = one.workers()
    for number in (signal.SIGTERM, signal.SIGINT):
        os.kill(worker, number)
    assert one.post(case()).status_code == 200
    assert one.workers() == [worker]


def test_a_worker_that_holds_too_much_is_replaced() -> None:
    settings = ServerSettings(workers=1, worker_memory=1)
    with running_server(settings) as url, httpx.Client(base_url=url, timeout=PATIENCE, trust_env=False) as client:
        for _ in range(2):
            assert client.post("/v1/recommendations", json=case()).status_code == 200
        wait_until(lambda: 'after="memory"} 2' in client.get("/metrics").text)


def test_a_server_inside_a_program_comes_and_goes() -> None:
    before, others = set(threading.enumerate()), set(children(os.getpid()))
    with running_server(ServerSettings(workers=1)) as url:
        assert url.startswith("http://127.0.0.1:")
        answer = httpx.post(f"{url}/v1/recommendations", json=case(), timeout=PATIENCE, trust_env=False)
        assert answer.status_code == 200
        # Threads and processes of its own alone: those of others come and go as they like.
        (thread,) = {each for each in set(threading.enumerate()) - before if each.name == "tutti-recommender"}
        workers = set(children(os.getpid())) - others
        assert workers
    assert not thread.is_alive()
    wait_until(lambda: not any(map(is_running, workers)))
    with pytest.raises(httpx.ConnectError):
        httpx.get(f"{url}/healthz", trust_env=False)


def test_idle_connections_are_kept_for_longer_than_clients_do() -> None:
    """Else a request may go out on a connection that is just being closed."""
    with running_server(ServerSettings(workers=1)) as url:
        parts = urlsplit(url)
        connection = http.client.HTTPConnection(str(parts.hostname), parts.port, timeout=PATIENCE)
        connection.request("GET", "/healthz")
        assert connection.getresponse().read() == b"ok\n"
        first = connection.sock
        time.sleep(6)  # uvicorn's own is 5
        connection.request("GET", "/healthz")
        assert (connection.getresponse().status, connection.sock) == (200, first)
        connection.close()
