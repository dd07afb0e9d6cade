"""The status of scheduler-plugins' PodGroups: written if nobody else does, and only then."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.api_faults import Fault, faults, refused
from tests.support.live_runs import LiveRun, play
from tests.support.memory_objects import Document

KIND = "PodGroup.scheduling.x-k8s.io"
SOON = {"groups_left_for": 0.0}
OURS, THEIRS = "tutti-scheduler", "controller"


def status(run: LiveRun, name: str = "g") -> Document:
    return dict(run.objects.get(KIND, f"default/{name}").get("status") or {})


def add_group(run: LiveRun, minimum: int, *, written: Document | None = None, manager: str = "", **more: Any) -> None:
    """Make a group; with a status if `written`, and fields of a manager."""
    metadata: Document = {"name": "g", "namespace": "default", **more}
    if manager:
        metadata["managedFields"] = [{"manager": manager, "operation": "Update", "subresource": "status"}]
    run.objects.create({"metadata": metadata, "spec": {"minMember": minimum}, "status": written or {}}, KIND)


def test_a_group_is_scheduled_when_its_minimum_is_bound() -> None:
    """Pods above the minimum are counted as they come."""

    async def scene(run: LiveRun) -> None:
        run.add_nodes("n1")
        scheduler = await run.started(**SOON)
        add_group(run, 3)
        run.add_members("g", range(2))
        await run.until_quiet(scheduler)
        assert not status(run)
        run.add_members("g", range(2, 3))
        await run.until(lambda: status(run) == {"phase": "Scheduled", "scheduled": 3})
        run.add_members("g", range(3, 4))
        await run.until(lambda: status(run) == {"phase": "Scheduled", "scheduled": 4})
        (first, *_) = run.server.sent(KIND, "status", method="PATCH")
        assert first.query == {"fieldManager": OURS}
        assert "resourceVersion" in first.body["metadata"]

    play(scene)


@pytest.mark.parametrize(
    "group",
    [
        pytest.param({"written": {"phase": "Pending"}, "manager": THEIRS}, id="controller"),
        pytest.param({"written": {"scheduled": 1}, "manager": THEIRS}, id="no-phase"),
        pytest.param({"written": {"phase": "PreScheduling"}}, id="no-managed-fields"),
    ],
)
def test_a_status_of_somebody_else_is_left_alone(group: dict[str, Any]) -> None:
    async def scene(run: LiveRun) -> None:
        run.add_nodes("n1")
        add_group(run, 2, **group)
        scheduler = await run.started(**SOON)
        await run.until_bound(run.add_members("g", range(2)))
        await run.until(lambda: [each for each in run.server.sent(KIND, method="GET") if each.key == "default/g"])
        await run.until_quiet(scheduler)
        assert not run.server.sent(KIND, "status")
        assert status(run) == group["written"]

    play(scene)


def test_a_new_group_is_left_to_its_controller_for_a_while() -> None:
    """The controller writes after the gang is bound, and before the time is over."""

    async def scene(run: LiveRun) -> None:
        run.add_nodes("n1")
        scheduler = await run.started(groups_left_for=2.0)
        await run.until_bound(run.add_gang("g", 2))
        await run.until(lambda: [each for each in run.server.sent(KIND, method="GET") if each.key == "default/g"])
        assert not status(run)
        run.objects.patch(KIND, "default/g", {"status": {"phase": "Pending"}})
        looks = len(run.server.sent(KIND, method="GET"))
        await run.until(lambda: len(run.server.sent(KIND, method="GET")) > looks)
        await run.until_quiet(scheduler)
        assert status(run) == {"phase": "Pending"}

    play(scene)


@pytest.mark.parametrize(
    "fault",
    [
        pytest.param(Fault(drop="before"), id="lost"),
        pytest.param(Fault(drop="after"), id="applied"),
        pytest.param(refused(409, "Conflict", "the object has been modified"), id="409"),
    ],
)
def test_a_write_is_repeated(fault: Fault) -> None:
    async def scene(run: LiveRun) -> None:
        run.add_nodes("n1")
        run.server.find_fault = faults(lambda each: each.kind == KIND and each.part == "status", fault)
        await run.started(**SOON)
        run.add_gang("g", 2)
        await run.until(lambda: status(run) == {"phase": "Scheduled", "scheduled": 2})

    play(scene)


def test_a_controller_that_writes_at_the_same_moment_wins() -> None:
    async def scene(run: LiveRun) -> None:
        run.add_nodes("n1")

        def find(request: Any) -> Fault | None:
            if request.kind == KIND and request.part == "status" and not status(run):
                run.objects.patch(KIND, "default/g", {"status": {"phase": "Pending"}})
            return None

        run.server.find_fault = find
        await run.started(**SOON)
        run.add_gang("g", 2)
        await run.until(lambda: run.server.sent(KIND, "status"))
        await run.until(lambda: len(run.server.sent(KIND, method="GET")) > 2)
        assert status(run) == {"phase": "Pending"}
        assert [each.status for each in run.server.sent(KIND, "status")] == [409]

    play(scene)
