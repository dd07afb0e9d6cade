"""Victims that outlast their grace period: they are reported, and the preemptor looks for other room."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from tests.support.live_runs import LiveRun, play, quick_policy
from tutti.engine.session.policy import Policy

GRACE = {"terminationGracePeriodSeconds": 1}
STAYS = "evicted, but still on node n1 0 s after the end of its grace period"


def impatient() -> Policy:
    """A policy that waits for victims for half a second after their grace."""
    return quick_policy(leaves_within=500_000, retry_after=3_600_000_000)


@pytest.mark.parametrize("gang", [False, True])
def test_the_preemptor_takes_other_room(gang: bool) -> None:
    async def scene(run: LiveRun) -> None:
        run.add_nodes("n1")
        (stuck,) = run.add_pods("stuck", cpu="4", on="n1", priority=1, **GRACE)
        scheduler = await run.started(policy=impatient())
        how = {"cpu": "2", "priority": 100}
        pods = run.add_gang("g", 2, **how) if gang else run.add_pods("p", **how)
        await run.until(lambda: "deletionTimestamp" in run.pod(stuck)["metadata"])
        await run.until(lambda: run.events("EvictionOverdue"))
        ((name, note),) = run.events("EvictionOverdue")
        assert name == "stuck"
        assert note.startswith(STAYS)
        assert scheduler.overdue.count == 1
        await run.until(lambda: "default/stuck was evicted and has not left" in run.condition(pods[0])["message"])
        assert run.condition(pods[0])["reason"] == "Unschedulable"
        await run.until(lambda: not run.pod(pods[0])["status"].get("nominatedNodeName"))
        run.add_nodes("n2")
        (other,) = run.add_pods("other", cpu="4", on="n2", priority=1)
        await run.until_quiet(scheduler)
        if not run.bound(pods):
            await run.until(lambda: "deletionTimestamp" in run.pod(other)["metadata"])
            run.objects.remove("Pod", other)
        await run.until_bound(pods)
        assert {run.node_of(key) for key in pods} == {"n2"}
        assert len(run.events("EvictionOverdue")) == 1

    play(scene)


def test_another_victim_is_chosen() -> None:
    """The condition names the victim that stays, and what is waited for now."""

    async def scene(run: LiveRun) -> None:
        run.add_nodes("n1")
        run.add_pods("stuck", cpu="4", on="n1", priority=1, **GRACE)
        run.add_nodes("n2")
        (other,) = run.add_pods("other", cpu="4", on="n2", priority=2, **GRACE)
        await run.started(policy=impatient())
        (preemptor,) = run.add_pods("p", cpu="4", priority=100)
        await run.until(lambda: "deletionTimestamp" in run.pod(other)["metadata"])
        await run.until(lambda: "default/other has left" in run.condition(preemptor)["message"])
        assert run.condition(preemptor)["message"] == (
            "room is held on node n2 until default/other has left. Looks for other room because default/stuck was "
            "evicted and has not left node n1."
        )
        run.objects.remove("Pod", other)
        await run.until_bound([preemptor])

    play(scene)


@pytest.mark.parametrize("hard_budgets", [False, True])
def test_a_new_process_reports_the_victims_of_the_last(hard_budgets: bool) -> None:
    """Also if they were evicted through the eviction API, which writes the condition, too."""
    policy = impatient()
    policy = replace(policy, victims_allowed=replace(policy.victims_allowed, hard_budgets=hard_budgets))

    async def scene(run: LiveRun) -> None:
        run.add_nodes("n1")
        (stuck,) = run.add_pods("stuck", cpu="4", on="n1", priority=1, **GRACE)
        await run.started(policy=policy)
        (preemptor,) = run.add_pods("p", cpu="4", priority=100)
        await run.until(lambda: "deletionTimestamp" in run.pod(stuck)["metadata"])
        await run.until(lambda: run.condition(stuck, "DisruptionTarget")["reason"] == "PreemptionByScheduler")
        await run.kill()
        scheduler = await run.started("two", policy=policy)
        await run.until(lambda: scheduler.overdue.count == 1)
        await run.until(lambda: "has not left node n1" in run.condition(preemptor)["message"])

    play(scene)


def test_victims_that_leave_and_pods_of_others_are_not_reported() -> None:
    async def scene(run: LiveRun) -> None:
        run.add_nodes("n1", "n2")
        (victim,) = run.add_pods("victim", cpu="4", on="n1", priority=1, **GRACE)
        (deleted,) = run.add_pods("deleted", cpu="4", on="n2", priority=200, **GRACE)
        run.objects.delete("Pod", deleted)
        scheduler = await run.started(policy=impatient())
        run.add_pods("p", cpu="4", priority=100)
        await run.until(lambda: "deletionTimestamp" in run.pod(victim)["metadata"])
        run.objects.remove("Pod", victim)
        ended = run.objects.now() + 4_000_000
        await run.until(lambda: run.objects.now() >= ended)
        assert run.pod(deleted)
        assert scheduler.overdue.count == 0

    play(scene)
