"""Writes to pods: every write names the uid, and the server says what is wrong."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Awaitable, Callable

import pytest

from tests.support.builders import disruption_budget, pod
from tests.support.memory_api_server import MemoryApiServer
from tests.support.memory_objects import Document
from tutti.client.api_client import ApiClient
from tutti.client.pod_writes import PodWrites
from tutti.exceptions import ApiError

KEY = "default/p"


def play(scene: Callable[[MemoryApiServer, PodWrites], Awaitable[None]]) -> None:
    async def run() -> None:
        async with MemoryApiServer() as server:
            draw = random.Random(1)
            client = ApiClient(server.access, user_agent="test", monotonic=time.monotonic, wall=lambda: 0, draw=draw)
            try:
                await scene(server, PodWrites(client))
            finally:
                await client.close()

    asyncio.run(run())


def uid(stored: Document) -> str:
    return str(stored["metadata"]["uid"])


def test_bind() -> None:
    async def scene(server: MemoryApiServer, writes: PodWrites) -> None:
        stored = server.objects.create(pod("p"))
        await writes.bind(KEY, uid(stored), node="n1", timeout=30)
        bound = server.objects.get("Pod", KEY)
        assert bound["spec"]["nodeName"] == "n1"
        assert [(each["type"], each["status"]) for each in bound["status"]["conditions"]] == [("PodScheduled", "True")]

    play(scene)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"spec": {"nodeName": "n2"}}, 'already assigned to node "n2"'),
        ({"spec": {"schedulingGates": [{"name": "g"}]}}, "has non-empty .spec.schedulingGates"),
        ({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}}, "is being deleted"),
        (None, "Precondition failed: UID in precondition: other"),
    ],
)
def test_a_binding_that_is_refused(change: Document | None, message: str) -> None:
    async def scene(server: MemoryApiServer, writes: PodWrites) -> None:
        stored = server.objects.create(pod("p"))
        if change is not None:
            server.objects.patch("Pod", KEY, change)
        with pytest.raises(ApiError, match=message) as caught:
            await writes.bind(KEY, "other" if change is None else uid(stored), node="n1", timeout=30)
        assert (caught.value.status, caught.value.reason) == (409, "Conflict")
        with pytest.raises(ApiError) as caught:
            await writes.bind("default/unknown", "u", node="n1", timeout=30)
        assert caught.value.status == 404

    play(scene)


def test_evictions_respect_budgets() -> None:
    async def scene(server: MemoryApiServer, writes: PodWrites) -> None:
        server.objects.create(disruption_budget("web", 1))
        first, second = (server.objects.create(pod(name, on="n1", app="web")) for name in ("p", "q"))
        await writes.evict(KEY, uid(first), dry_run=True)
        assert "deletionTimestamp" not in server.objects.get("Pod", KEY)["metadata"]
        await writes.evict(KEY, uid(first))
        assert "deletionTimestamp" in server.objects.get("Pod", KEY)["metadata"]
        for dry_run in (True, False):
            with pytest.raises(ApiError) as caught:
                await writes.evict("default/q", uid(second), dry_run=dry_run)
            assert (caught.value.status, caught.value.causes) == (429, ("DisruptionBudget",))
        assert "deletionTimestamp" not in server.objects.get("Pod", "default/q")["metadata"]

    play(scene)


def test_delete_with_the_pods_grace_period() -> None:
    async def scene(server: MemoryApiServer, writes: PodWrites) -> None:
        running = server.objects.create(pod("p", on="n1", terminationGracePeriodSeconds=7))
        pending = server.objects.create(pod("q"))
        with pytest.raises(ApiError) as caught:
            await writes.delete(KEY, "other")
        assert caught.value.status == 409
        await writes.delete(KEY, uid(running))
        await writes.delete("default/q", uid(pending))
        assert server.objects.get("Pod", KEY)["metadata"]["deletionGracePeriodSeconds"] == 7
        assert server.objects.find("Pod", "default/q") is None

    play(scene)


def test_conditions_are_merged_by_type() -> None:
    async def scene(server: MemoryApiServer, writes: PodWrites) -> None:
        stored = server.objects.create(pod("p"))
        first = {"type": "PodScheduled", "status": "False", "reason": "A", "lastTransitionTime": "t"}
        await writes.patch_status(KEY, uid(stored), {"conditions": [first], "nominatedNodeName": "n1"})
        second = {"type": "PodScheduled", "status": "False", "reason": "B"}
        other = {"type": "DisruptionTarget", "status": "True"}
        await writes.patch_status(KEY, uid(stored), {"conditions": [second, other], "nominatedNodeName": None})
        status = server.objects.get("Pod", KEY)["status"]
        assert status["conditions"] == [first | second, other]
        assert "nominatedNodeName" not in status
        with pytest.raises(ApiError) as caught:
            await writes.patch_status(KEY, "other", {"conditions": [other]})
        assert caught.value.status == 422

    play(scene)
