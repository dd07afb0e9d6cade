"""Evictions that the server refuses: what the preemptor is told, and how often."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from tests.support.api_faults import ApiRequest, Fault, faults, refused
from tests.support.builders import disruption_budget
from tests.support.live_runs import LiveRun, play, quick_policy
from tutti.engine.session.policy import Policy
from tutti.live.scheduler import LiveScheduler

DENIED = "admission webhook denied it"
SPENT = "Cannot evict pod as it would violate the pod's disruption budget."


def hard_budgets() -> Policy:
    policy = quick_policy()
    return replace(policy, victims_allowed=replace(policy.victims_allowed, hard_budgets=True))


def reasons(run: LiveRun, key: str) -> list[str]:
    """Return the reasons of a pod's condition, one after the other."""
    found = [""]
    for change in run.objects.changes_of("Pod", key):
        conditions = (change.obj.get("status") or {}).get("conditions") or ()
        reason = next((each.get("reason", "") for each in conditions if each["type"] == "PodScheduled"), "")
        found += [reason] if reason != found[-1] else []
    return found[1:]


def is_deletion(request: ApiRequest) -> bool:
    return request.method == "DELETE"


@pytest.mark.parametrize("gang", [False, True])
def test_the_preemptor_is_told_the_victim_and_the_servers_words(gang: bool) -> None:
    """However often that happens, each pod of the preemptor is told once; then what it waits for."""

    async def scene(run: LiveRun) -> None:
        fault = refused(403, "Forbidden", DENIED)
        run.server.find_fault = lambda each: fault if is_deletion(each) else None
        run.add_nodes("n1")
        (victim,) = run.add_pods("victim", cpu="4", on="n1", priority=1)
        scheduler = await run.started()
        how = {"cpu": "2", "priority": 100}
        pods = run.add_gang("g", 2, **how) if gang else run.add_pods("p", **how)
        await run.until(lambda: scheduler.victims.refused_count >= 4)
        await run.until(lambda: run.condition(victim, "DisruptionTarget")["status"] == "False")
        for key in pods:
            condition = run.condition(key)
            assert condition["reason"] == "SchedulerError"
            assert condition["message"].startswith("default/victim cannot be evicted: ")
            assert DENIED in condition["message"]
            assert reasons(run, key) in (["SchedulerError"], ["WaitingForPreemption", "SchedulerError"])
        assert len([note for _, note in run.events("FailedScheduling") if DENIED in note]) <= len(pods)
        run.server.find_fault = lambda each: None
        await run.until(lambda: run.condition(pods[0])["reason"] == "WaitingForPreemption")
        assert run.condition(pods[0])["message"] == "room is held on node n1 until default/victim has left"
        run.objects.remove("Pod", victim)
        await run.until_bound(pods)

    play(scene)


async def full_node_with_budget(run: LiveRun) -> tuple[LiveScheduler, list[str], str]:
    """A node with two pods whose budget allows two disruptions, and a preemptor that needs the room of both."""
    run.objects.create(disruption_budget("web", 2))
    run.add_nodes("n1")
    victims = run.add_pods("v", "w", cpu="2", on="n1", priority=1, app="web")
    scheduler = await run.started(policy=hard_budgets())
    (preemptor,) = run.add_pods("preemptor", cpu="4", priority=100)
    return scheduler, victims, preemptor


def test_a_budget_that_is_spent_meanwhile_stops_all_evictions() -> None:
    """The dry run of the second victim is refused, nobody is touched, and no autoscaler buys a node for that."""

    async def scene(run: LiveRun) -> None:
        spent = refused(429, "TooManyRequests", SPENT, causes=("DisruptionBudget",))
        run.server.find_fault = lambda each: spent if "dryRun" in each.query and each.key == "default/w" else None
        scheduler, victims, preemptor = await full_node_with_budget(run)
        await run.until(lambda: scheduler.victims.refused_count >= 6)
        condition = run.condition(preemptor)
        assert condition["reason"] == "WaitingForBudget"
        assert "default/w cannot be evicted" in condition["message"]
        assert SPENT in condition["message"]
        run.objects.patch("PodDisruptionBudget", "default/web", {"status": {"disruptionsAllowed": 1}})
        await run.until(lambda: run.condition(preemptor)["message"].startswith("0/1 nodes"))
        await run.until_quiet(scheduler)
        assert reasons(run, preemptor)[-1] == "WaitingForBudget"
        assert "Unschedulable" not in reasons(run, preemptor)
        assert not run.pod(preemptor)["status"].get("nominatedNodeName")
        assert not any(run.condition(key, "DisruptionTarget") for key in victims)
        assert not any("deletionTimestamp" in run.pod(key)["metadata"] for key in victims)

    play(scene)


def test_the_budgets_of_a_refused_eviction_are_not_spent() -> None:
    """No watch reports a budget that the server did not change; the next attempt must find it as it is."""

    async def scene(run: LiveRun) -> None:
        denied = refused(403, "Forbidden", DENIED)
        run.server.find_fault = faults(lambda each: "dryRun" in each.query, denied)
        _, victims, preemptor = await full_node_with_budget(run)
        await run.until(lambda: all("deletionTimestamp" in run.pod(key)["metadata"] for key in victims))
        for key in victims:
            run.objects.remove("Pod", key)
        await run.until_bound([preemptor])

    play(scene)


def test_a_preemptor_that_finds_other_room_forgets_the_refusal() -> None:
    async def scene(run: LiveRun) -> None:
        fault: Fault = refused(403, "Forbidden", DENIED)
        run.server.find_fault = lambda each: fault if is_deletion(each) else None
        run.add_nodes("n1")
        run.add_pods("victim", cpu="4", on="n1", priority=1)
        scheduler = await run.started()
        (key,) = run.add_pods("p", priority=100)
        await run.until(lambda: scheduler.victims.refused_count >= 1)
        run.add_nodes("n2")
        await run.until_bound([key])
        assert run.node_of(key) == "n2"
        assert run.condition(key)["status"] == "True"

    play(scene)
