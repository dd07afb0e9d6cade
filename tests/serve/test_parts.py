"""Parts of the server that need no server."""

from __future__ import annotations

import asyncio
import gzip
import io
import json
from pathlib import Path

import pytest

from tests.serve.conftest import case
from tutti.exceptions import ConflictError, InputError, PoolError
from tutti.recommend.records.request import Binder, Objective, ResourceWeights, Strategy
from tutti.serve import settings
from tutti.serve.http.query import query_options
from tutti.serve.http.refusals import RefusedError, refusal_of, route_of
from tutti.serve.http.request_body import read_body
from tutti.serve.metrics import Metrics, route_label
from tutti.serve.workers import messages, planning
from tutti.serve.workers.messages import PlanJob, QueryOptions, Ready, Route, WorkerSetup
from tutti.serve.workers.planning import Planner, decompressed

SETUP = WorkerSetup(max_body=10_000, time_limit=5.0, max_time_limit=60.0)


def test_a_query_is_read_whole() -> None:
    query = b"objective=nodes&strategy=most-pods&binder=tutti&weights=gpu%3D7&timeLimit=2.5&down=false"
    assert query_options(query, 60) == QueryOptions(
        objective=Objective.NODES,
        strategy=Strategy.MOST_PODS,
        binder=Binder.TUTTI,
        weights=ResourceWeights(gpu=7),
        time_limit=2.5,
        down=False,
    )
    assert query_options(b"", 60) == QueryOptions()


@pytest.mark.parametrize(
    ("error", "status"),
    [(InputError("x", obj="o", field="f"), 400), (PoolError("x"), 422), (ConflictError("x"), 400)],
)
def test_errors_of_the_user_have_their_status(error: Exception, status: int) -> None:
    assert refusal_of(error).status == status


def test_envelopes_go_by_the_path() -> None:
    assert [route_of(path) for path in ("/recommend", "/recommend/", "/v1/recommendations", "/x")] == [
        Route.GARDENER, Route.GARDENER, Route.TUTTI, Route.TUTTI,
    ]  # fmt: skip


def test_unpacking_stops_at_the_limit() -> None:
    assert decompressed(gzip.compress(b"x" * 100), 100) == b"x" * 100
    with pytest.raises(RefusedError) as refused:
        decompressed(gzip.compress(b"x" * 101), 100)
    assert refused.value.status == 413


def test_a_fault_of_ours_is_a_500_without_a_word_of_the_request(monkeypatch: pytest.MonkeyPatch) -> None:
    word = "secret"

    def broken(*_: object, **__: object) -> None:
        raise KeyError(word)

    planner = Planner(SETUP)
    monkeypatch.setattr(planning, "make_recommendation", broken)
    reply, text = planner.answer(PlanJob(id="abc", route=Route.TUTTI), json.dumps(case()).encode())
    assert (reply.status, reply.pods) == (500, 3)
    assert reply.fault.endswith("KeyError")
    assert "in broken" in reply.fault
    assert word not in reply.fault + text.decode()
    assert json.loads(text)["requestId"] == "abc"


def test_too_little_memory_is_a_500(monkeypatch: pytest.MonkeyPatch) -> None:
    def greedy(*_: object, **__: object) -> None:
        raise MemoryError

    monkeypatch.setattr(planning, "make_recommendation", greedy)
    reply, text = Planner(SETUP).answer(PlanJob(id="", route=Route.GARDENER), b'{"Pods": []}')
    assert reply.status == 500
    assert "memory" in json.loads(text)["error"]


def test_messages_come_out_as_they_went_in() -> None:
    pipe = io.BytesIO()
    sent = [
        (Ready(7), b""),
        (PlanJob(id="a", route=Route.TUTTI, options=QueryOptions(down=True), is_gzip=True), b"body"),
    ]
    for message, body in sent:
        messages.write(pipe, message, body)
    pipe.seek(0)
    assert [messages.read(pipe), messages.read(pipe)] == sent
    with pytest.raises(EOFError):
        messages.read(pipe)


def test_a_body_is_given_in_pieces() -> None:
    parts, sizes = [b"ab", b"", b"cd"], list[int]()
    coming = [{"type": "http.request", "body": part, "more_body": part != b"cd"} for part in parts]

    async def receive() -> dict:
        return coming.pop(0)

    assert asyncio.run(read_body(receive, declared="4", limit=4, pause=1, reserve=sizes.append)) == [b"ab", b"cd"]
    assert sizes == [2, 2]


def test_metrics_are_counted_by_fixed_names() -> None:
    metrics = Metrics()
    metrics.request("/recommend/", "POST", status=200, seconds=0.2)
    metrics.request("/etc/passwd", "BREW", status=404, seconds=0.001)
    text = metrics.text(gauges={}, workers={0: 5})
    assert 'tutti_http_requests_total{route="/recommend",method="POST",code="200"} 1' in text
    assert 'tutti_http_requests_total{route="other",method="other",code="404"} 1' in text
    assert 'tutti_http_request_seconds_bucket{route="/recommend",le="0.1"} 0' in text
    assert 'tutti_http_request_seconds_bucket{route="/recommend",le="0.25"} 1' in text
    assert 'tutti_worker_resident_memory_bytes{worker="0"} 5' in text
    assert route_label("/") == "other"


@pytest.mark.parametrize(("text", "count"), [("max 100000", 8), ("200000 100000", 2), ("50000 100000", 1), ("", 8)])
def test_cores_are_those_of_the_container(
    text: str, count: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "cpu.max").write_text(text)
    monkeypatch.setattr(settings, "_CPU_MAX", tmp_path / "cpu.max")
    monkeypatch.setattr(settings.os, "sched_getaffinity", lambda _: set(range(8)), raising=False)
    assert settings.cores() == count
