"""The fault proxy against a scripted API server: each fault does what it says, and the log says so."""

from __future__ import annotations

import asyncio
import io
import json
import random
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import aiohttp
import pytest
from aiohttp import web

from tests.controlplane.faults import fault_plan as plan
from tests.controlplane.faults.direct_client import DirectAccess
from tests.controlplane.faults.fault_proxy import FaultProxy
from tests.support.scripted_api_server import ScriptedApiServer, Step

BINDING = "/api/v1/namespaces/default/pods/a/binding"
PODS = "/api/v1/pods"
LINE = b'{"type":"ADDED","object":{}}\n'


class PlannedFaults(plan.FaultPlan):
    """One fault for each request, in order, then none; open watches get theirs at once."""

    def __init__(self, *faults: plan.PlannedFault | None, watch: plan.PlannedFault | None = None) -> None:
        super().__init__(plan.FaultRates(), random.Random(1))
        self._faults, self._watch = list(faults), watch

    def for_request(self, request: str, method: str) -> plan.PlannedFault | None:
        return self._faults.pop(0) if self._faults else None

    def until_watch_fault(self) -> float:
        return 0.0 if self._watch is not None else float("inf")

    def for_open_watch(self) -> plan.PlannedFault | None:
        return self._watch


class Scene:
    """A client, the proxy and a scripted server behind it."""

    def __init__(self, session: aiohttp.ClientSession, server: ScriptedApiServer, proxy: FaultProxy) -> None:
        self.session, self.server, self.proxy = session, server, proxy

    async def send(self, method: str, path: str, **more: object) -> tuple[int, bytes]:
        async with self.session.request(method, path, **more) as answer:  # type: ignore[arg-type]
            return answer.status, await answer.read()


def play(
    steps: Sequence[Step], faults: PlannedFaults, scene: Callable[[Scene], Awaitable[None]]
) -> list[dict[str, Any]]:
    """Play a scene; return what the proxy logged."""
    log = io.BytesIO()

    async def run() -> None:
        async with ScriptedApiServer(*steps) as server:
            proxy = FaultProxy(7, DirectAccess(server.url, "secret", False), faults, log)
            port = await proxy.start()
            async with aiohttp.ClientSession(f"http://127.0.0.1:{port}") as session:
                await scene(Scene(session, server, proxy))
            await proxy.stop()

    asyncio.run(run())
    return [json.loads(line) for line in log.getvalue().splitlines()]


def answer(status: int = 200, body: bytes = b'{"kind":"Status"}') -> Step:
    async def step(_request: web.Request) -> web.StreamResponse:
        return web.Response(status=status, body=body, content_type="application/json")

    return step


def stream(*pieces: bytes, held: asyncio.Event | None = None) -> Step:
    async def step(request: web.Request) -> web.StreamResponse:
        reply = web.StreamResponse()
        await reply.prepare(request)
        for piece in pieces:
            await reply.write(piece)
        if held is not None:
            await held.wait()
        return reply

    return step


def kinds(log: list[dict[str, Any]], tag: str = "fault") -> list[object]:
    return [record["kind"] for record in log if record["type"] == tag]


def test_requests_pass_with_a_token_and_the_number_of_the_replica() -> None:
    seen: list[web.Request] = []

    async def note(request: web.Request) -> web.StreamResponse:
        seen.append(request)
        return web.Response(status=201, text=await request.text(), headers={"X-Kubernetes-Pf": "yes"})

    async def scene(scene: Scene) -> None:
        headers = {"User-Agent": "kube-scheduler", "Content-Type": "application/json"}
        assert await scene.send("POST", f"{BINDING}?x=a%26b", data=b"{}", headers=headers) == (201, b"{}")

    assert play([note], PlannedFaults(), scene) == []
    (request,) = seen
    assert request.headers["Authorization"] == "Bearer secret"
    assert request.headers["User-Agent"] == "kube-scheduler replica/7"
    assert request.raw_path == f"{BINDING}?x=a%26b"


@pytest.mark.parametrize("status", [429, 409, 500, 503])
def test_refusals_are_not_forwarded(status: int) -> None:
    async def scene(scene: Scene) -> None:
        found, body = await scene.send("POST", BINDING)
        assert (found, json.loads(body)["code"], scene.server.requests) == (status, status, [])

    (fault,) = play([], PlannedFaults(plan.PlannedFault(str(status), status=status)), scene)
    assert (fault["kind"], fault["request"], fault["replica"]) == (str(status), "bind", 7)
    assert fault.get("retry_after", 0.0) == (1.0 if status == 429 else 0.0)


@pytest.mark.parametrize(("kind", "forwarded"), [(plan.DROP, 0), (plan.LOST_REPLY, 1), (plan.RESET, 1)])
def test_lost_connections(kind: str, forwarded: int) -> None:
    async def scene(scene: Scene) -> None:
        with pytest.raises(aiohttp.ClientError):
            await scene.send("POST", BINDING)
        assert len(scene.server.requests) == forwarded

    assert kinds(play([answer(201)], PlannedFaults(plan.PlannedFault(kind)), scene)) == [kind]


@pytest.mark.parametrize("kind", [plan.DELAY, plan.SLOW_REPLY])
def test_delays(kind: str) -> None:
    async def scene(scene: Scene) -> None:
        assert (await scene.send("POST", BINDING))[0] == 201

    (fault,) = play([answer(201)], PlannedFaults(plan.PlannedFault(kind, 0.2)), scene)
    assert fault["end"] - fault["time"] >= 0.2


def test_a_watch_is_streamed_as_it_comes() -> None:
    async def scene(scene: Scene) -> None:
        async with scene.session.get(f"{PODS}?watch=1") as reply:
            assert await reply.content.readline() == LINE
            assert not reply.content.at_eof()

    (watch,) = play([stream(LINE, held=asyncio.Event())], PlannedFaults(), scene)
    assert (watch["type"], watch["resource"]) == ("watch", "pods")


def test_a_watch_is_cut_in_the_middle_of_a_line() -> None:
    async def scene(scene: Scene) -> None:
        async with scene.session.get(f"{PODS}?watch=1") as reply:
            with pytest.raises(aiohttp.ClientError):
                await reply.read()

    log = play([stream(LINE, held=asyncio.Event())], PlannedFaults(watch=plan.PlannedFault(plan.CUT_WATCH)), scene)
    assert kinds(log) == [plan.CUT_WATCH]


def test_a_watch_is_held_back_and_then_complete() -> None:
    async def scene(scene: Scene) -> None:
        assert (await scene.send("GET", f"{PODS}?watch=1"))[1] == LINE * 3

    log = play([stream(LINE, LINE, LINE)], PlannedFaults(watch=plan.PlannedFault(plan.HELD_WATCH, 0.1)), scene)
    assert set(kinds(log)) == {plan.HELD_WATCH}


def test_no_byte_passes_during_a_partition() -> None:
    async def scene(scene: Scene) -> None:
        partition = asyncio.create_task(scene.proxy.partition(0.3))
        await asyncio.sleep(0)
        request = asyncio.create_task(scene.send("POST", BINDING))
        done, _ = await asyncio.wait([partition, request], return_when=asyncio.FIRST_COMPLETED)
        assert done == {partition}
        assert (await request)[0] == 201

    assert kinds(play([answer(201)], PlannedFaults(), scene)) == [plan.PARTITION]


def test_classes_of_requests() -> None:
    lease = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/tutti"
    assert plan.request_class("PUT", lease, {}) == "lease"
    assert plan.request_class("POST", BINDING, {}) == "bind"
    assert plan.request_class("GET", PODS, {"watch": "true"}) == "watch"
    assert plan.request_class("GET", PODS, {"limit": "500"}) == "read"
    assert plan.request_class("DELETE", "/api/v1/namespaces/default/pods/a", {}) == "write"
    assert plan.request_class("POST", "/apis/events.k8s.io/v1/namespaces/default/events", {}) == "event"
    assert plan.resource_of("/apis/scheduling.k8s.io/v1beta1/namespaces/default/podgroups/g") == "podgroups"
    assert plan.resource_of("/api/v1/nodes") == "nodes"


def test_faults_have_their_share_and_follow_the_seed() -> None:
    def drawn(seed: int) -> list[plan.PlannedFault | None]:
        faults = plan.FaultPlan(plan.FaultRates(), random.Random(seed))
        return [faults.for_request("bind", "POST") for _ in range(2000)]

    assert drawn(3) == drawn(3) != drawn(4)
    found = [fault.kind for fault in drawn(3) if fault is not None]
    assert 200 < len(found) < 400
    assert set(found) == set(plan.KINDS["bind"])
    off = plan.FaultPlan(plan.FaultRates(), random.Random(3))
    off.enabled = False
    assert off.for_request("bind", "POST") is None
    assert off.for_open_watch() is None


def test_reads_of_leases_meet_no_conflicts() -> None:
    faults = plan.FaultPlan(plan.FaultRates(shares={"lease": 1.0}), random.Random(3))
    assert "409" not in {fault.kind for _ in range(200) if (fault := faults.for_request("lease", "GET"))}
