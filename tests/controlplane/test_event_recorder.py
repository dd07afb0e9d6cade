"""Events on a real API server: one object for a series, and no event that the server refuses is repeated for ever."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from tests.controlplane.cluster_setup import make_pods, send
from tests.controlplane.manifests import new_pod
from tests.support.documents import Document
from tutti.client.api_client import ApiClient
from tutti.client.event_recorder import EventRecorder, Regarding
from tutti.client.resources import EVENTS, Resource

CORE_EVENTS = Resource("", "v1", "events", True, "Event")


@asynccontextmanager
async def recorder(client: ApiClient) -> AsyncIterator[EventRecorder]:
    """Give a recorder that writes in the background."""
    made = EventRecorder(
        client, controller="tutti", instance="test", now=lambda: time.time_ns() // 1_000, draw=random.Random()
    )
    task = asyncio.create_task(made.run())
    try:
        yield made
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def regarding(client: ApiClient, namespace: str) -> Regarding:
    (pod,) = await make_pods(client, [new_pod("a", namespace)])
    return Regarding("Pod", namespace, "a", pod["metadata"]["uid"])


async def events(client: ApiClient, namespace: str) -> list[Document]:
    found: list[Document] = (await send(client, "GET", EVENTS.path(namespace)))["items"]
    return found


async def test_repetitions_are_one_event_with_a_count(client: ApiClient, namespace: str) -> None:
    pod = await regarding(client, namespace)
    async with recorder(client) as made:
        for note in ("no room", "no room", "no room", "no node"):
            made.record(pod, "FailedScheduling", note, action="Scheduling", kind="Warning")
            assert await made.drain(60)
        assert (made.written, made.dropped) == (4, 0)
    found = {each["note"]: each for each in await events(client, namespace)}
    assert set(found) == {"no room", "no node"}
    assert found["no room"]["series"]["count"] == 3
    assert "series" not in found["no node"]
    assert found["no node"]["regarding"]["uid"] == pod.uid


async def test_kubectl_finds_the_event_of_a_pod(client: ApiClient, namespace: str) -> None:
    """`kubectl describe` asks the core API with these selectors."""
    pod = await regarding(client, namespace)
    async with recorder(client) as made:
        made.record(pod, "Scheduled", "bound to n", action="Binding")
        assert await made.drain(60)
    selector = f"involvedObject.name=a,involvedObject.namespace={namespace},involvedObject.uid={pod.uid}"
    answer = await send(client, "GET", CORE_EVENTS.path(namespace), query={"fieldSelector": selector})
    (event,) = answer["items"]
    assert (event["reason"], event["message"], event["reportingComponent"]) == ("Scheduled", "bound to n", "tutti")


async def test_a_refused_event_is_dropped(client: ApiClient, namespace: str) -> None:
    pod = await regarding(client, namespace)
    async with recorder(client) as made:
        made.record(pod, "", "an event without a reason is invalid", action="Binding")
        made.record(Regarding("Pod", "no-such-namespace", "a"), "Scheduled", "nowhere", action="Binding")
        made.record(pod, "Scheduled", "bound to n", action="Binding")
        assert await made.drain(60)
        assert (made.written, made.dropped) == (1, 2)
    assert [each["note"] for each in await events(client, namespace)] == ["bound to n"]
