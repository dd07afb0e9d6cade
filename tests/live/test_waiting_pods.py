"""What pods that wait are told, and how often."""

from __future__ import annotations

import pytest

from tests.support.api_faults import Fault, faults, refused
from tests.support.live_runs import LiveRun, play, quick_policy
from tutti.live.executor import status_writer


def test_only_pods_without_room_are_unschedulable() -> None:
    """Autoscalers buy nodes for that reason."""

    async def scene(run: LiveRun) -> None:
        run.add_nodes("n1")
        scheduler = await run.started()
        (large,) = run.add_pods("large", cpu="5")
        short = run.add_gang("short", 2, minimum=3)
        too_big = run.add_gang("big", 3, cpu="2")
        await run.until(lambda: all(run.condition(key) for key in (large, *short, *too_big)))
        await run.until_quiet(scheduler)
        assert run.condition(large)["reason"] == "Unschedulable"
        assert run.condition(large)["message"].startswith("0/1 nodes are available: 1 Insufficient cpu")
        assert {run.condition(key)["reason"] for key in short} == {"WaitingForGang"}
        assert {run.condition(key)["reason"] for key in too_big} == {"Unschedulable"}
        assert {name for name, _ in run.events("FailedScheduling")} == {"large", "short-0", "short-1"} | {
            f"big-{n}" for n in range(3)
        }

    play(scene)


def test_a_resource_claim_is_refused_by_name() -> None:
    """Tutti does not allocate devices: nobody is bound, and nobody evicted, for a pod that uses one."""

    async def scene(run: LiveRun) -> None:
        run.add_nodes("n1")
        run.add_pods("low", cpu="3", on="n1", priority=1)
        scheduler = await run.started()
        claims = [{"name": "gpu", "resourceClaimName": "two-gpus"}]
        (key,) = run.add_pods("p", cpu="3", priority=9, resourceClaims=claims)
        await run.until(lambda: run.condition(key))
        await run.until_quiet(scheduler)
        assert "resource claim(s) two-gpus: Tutti does not allocate devices yet" in run.condition(key)["message"]
        assert not run.bound([key])
        assert not run.server.sent(method="DELETE")

    play(scene)


def add_taken_node(run: LiveRun, name: str) -> None:
    """Make a node whose port 80 is taken."""
    run.add_pods(f"on-{name}", on=name, host_port=80)
    run.add_nodes(name)


def test_conditions_are_written_when_they_change() -> None:
    async def scene(run: LiveRun) -> None:
        add_taken_node(run, "n1")
        scheduler = await run.started()
        (key,) = run.add_pods("waiting", host_port=80)
        await run.until(lambda: run.condition(key))
        first = run.condition(key)
        add_taken_node(run, "n2")
        await run.until(lambda: run.condition(key)["message"].startswith("0/2"))
        assert run.condition(key)["lastTransitionTime"] == first["lastTransitionTime"]
        run.objects.patch("Node", "n2", {"metadata": {"labels": {"a": "b"}}})
        await run.until_quiet(scheduler)
        assert len(run.server.sent(part="status")) == 2
        assert len(run.events("FailedScheduling")) == 2

    play(scene)


def test_a_new_process_does_not_repeat_what_pods_were_told() -> None:
    async def scene(run: LiveRun) -> None:
        run.add_nodes("n1")
        scheduler = await run.started()
        (large,) = run.add_pods("large", cpu="5")
        await run.until(lambda: run.events("FailedScheduling"))
        await run.until_quiet(scheduler)
        scheduler.stop()
        assert await run.ended()
        scheduler = await run.started("two")
        await run.until_quiet(scheduler)
        assert len(run.server.sent(part="status")) == len(run.events("FailedScheduling")) == 1
        assert run.condition(large)["reason"] == "Unschedulable"

    play(scene)


def test_a_condition_that_gets_no_answer_is_written_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """However long that takes: an autoscaler may wait for the condition."""
    monkeypatch.setattr(status_writer, "_ATTEMPTS", 1)

    async def scene(run: LiveRun) -> None:
        run.add_nodes("n1")
        lost = [Fault(drop="before"), refused(409, "Conflict"), refused(503)]
        run.server.find_fault = faults(lambda each: each.part == "status", *lost)
        await run.started()
        (large,) = run.add_pods("large", cpu="5")
        await run.until(lambda: run.condition(large))

    play(scene)


def test_a_condition_that_is_refused_is_written_at_the_next_attempt() -> None:
    async def scene(run: LiveRun) -> None:
        add_taken_node(run, "n1")
        run.server.find_fault = faults(lambda each: each.part == "status", refused(403))
        scheduler = await run.started()
        (key,) = run.add_pods("waiting", host_port=80)
        await run.until(lambda: scheduler.statuses.failed == 1)
        assert not run.condition(key)
        add_taken_node(run, "n2")
        await run.until(lambda: run.condition(key))

    play(scene)


def test_no_condition_follows_a_binding() -> None:
    """What waits to be written is dropped when the pod is bound, and a write under way ends first."""

    async def scene(run: LiveRun) -> None:
        run.add_nodes("n1")
        run.server.find_fault = faults(lambda each: each.part == "status", Fault(delay=0.3))
        await run.started()
        (large,) = run.add_pods("large", cpu="5")
        await run.until(lambda: run.server.sent(part="status"))
        run.add_nodes("n2", cpu="6")
        await run.until_bound([large])
        assert run.condition(large)["status"] == "True"
        writes = [each.part for each in run.server.sent("Pod") if each.is_write]
        assert writes == ["status", "binding"]

    play(scene)


def test_pods_that_leave_are_forgotten() -> None:
    async def scene(run: LiveRun) -> None:
        run.add_nodes("n1")
        scheduler = await run.started(policy=quick_policy(first_backoff=1))
        keys = run.add_pods(*(f"p{n}" for n in range(20)), cpu="5")
        await run.until(lambda: all(run.condition(key) for key in keys))
        for key in keys[:10]:
            run.objects.delete("Pod", key)
        run.objects.patch("Node", "n1", {"status": {"allocatable": {"cpu": "50"}}})
        await run.until_bound(keys[10:])
        await run.until_quiet(scheduler)
        assert scheduler.statuses.told_count == 0

    play(scene)
