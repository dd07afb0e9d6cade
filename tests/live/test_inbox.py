"""The inbox: entries wait in order until the session loop takes them."""

from __future__ import annotations

import asyncio

from tutti.cluster.edits import Put, Remove
from tutti.kube.objects import Pod
from tutti.kube.objects.meta import ObjectMeta
from tutti.kube.objects.pod import PodSpec, PodStatus
from tutti.live.inbox import Inbox, RefusedBinding, RefusedEviction


def test_entries_are_taken_in_order_and_once() -> None:
    async def scene() -> None:
        inbox = Inbox()
        entries = [
            Remove("Pod", "a/b"),
            RefusedBinding("a/b", "1", "n", "no"),
            RefusedEviction("a/c", None, "a/b", "no"),
        ]
        inbox.put(entries[:2])
        inbox.put(entries[2:])
        assert len(inbox) == 3
        assert inbox.take() == entries
        assert inbox.take() == []
        assert not await inbox.wait(0)

    asyncio.run(scene())


def test_waiting_ends_with_an_entry_or_with_the_time() -> None:
    async def scene() -> None:
        inbox = Inbox()
        assert not await inbox.wait(0.001)
        inbox.put(())
        assert not await inbox.wait(-1)
        waiting = asyncio.create_task(inbox.wait(None))
        await asyncio.sleep(0)
        inbox.put((Remove("Pod", "a/b"),))
        assert await asyncio.wait_for(waiting, 60)
        assert await inbox.wait(0)
        assert await inbox.wait(None)
        inbox.take()
        assert not await inbox.wait(0.001)

    asyncio.run(scene())


def test_reports_about_running_pods_wait_for_an_urgent_entry_or_a_moment() -> None:
    running = Put(Pod(ObjectMeta(name="a", namespace="b"), PodSpec(node_name="n"), PodStatus(phase="Running")))

    async def scene() -> None:
        inbox = Inbox()
        inbox.put((running,))
        assert not await inbox.wait(0.001)
        inbox.put((Remove("Pod", "a/c"),))
        assert await inbox.wait(0)
        assert len(inbox.take()) == 2
        inbox.put((running,))
        assert await inbox.wait(60)
        assert inbox.take() == [running]
        assert not await inbox.wait(0.1), "the timer of entries that were taken is cancelled"

    asyncio.run(scene())


def test_pods_that_wait_or_leave_are_urgent() -> None:
    waiting = Pod(ObjectMeta(name="a", namespace="b"), PodSpec(), PodStatus())
    failed = Pod(ObjectMeta(name="a", namespace="b"), PodSpec(node_name="n"), PodStatus(phase="Failed"))
    leaving = ObjectMeta(name="a", namespace="b", deletion_timestamp="2026-01-01T00:00:00Z")

    async def scene() -> None:
        for pod in (waiting, failed, Pod(leaving, PodSpec(node_name="n"), PodStatus(phase="Running"))):
            inbox = Inbox()
            inbox.put((Put(pod),))
            assert await inbox.wait(0)

    asyncio.run(scene())


def test_waiting_ends_on_request() -> None:
    async def scene() -> None:
        inbox = Inbox()
        inbox.wake()
        assert await inbox.wait(None)
        assert inbox.take() == []
        assert not await inbox.wait(0)

    asyncio.run(scene())
