"""Preemption in whole runs: victims leave as kube-scheduler lets them leave, and the preemptor gets their room."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from tests.support.api_faults import ApiRequest, Fault, faults, refused
from tests.support.builders import disruption_budget
from tests.support.live_runs import LiveRun, play, quick_policy
from tutti.engine.session.policy import Policy
from tutti.live.scheduler import LiveScheduler

HIGH = {"priority": 100}


async def full_node(run: LiveRun, **options: object) -> tuple[LiveScheduler, str, str]:
    """A node with a pod of low priority, and a preemptor that does not fit beside it."""
    run.add_nodes("n1")
    (victim,) = run.add_pods("victim", cpu="3", on="n1", priority=1, terminationGracePeriodSeconds=30)
    scheduler = await run.started(**options)
    (preemptor,) = run.add_pods("preemptor", cpu="3", **HIGH)
    return scheduler, victim, preemptor


def is_leaving(run: LiveRun, key: str) -> bool:
    return "deletionTimestamp" in run.pod(key)["metadata"]


def nomination(run: LiveRun, key: str) -> str | None:
    return run.pod(key)["status"].get("nominatedNodeName")


def test_the_preemptor_is_bound_when_the_victim_has_gone() -> None:
    async def scene(run: LiveRun) -> None:
        scheduler, victim, preemptor = await full_node(run)
        await run.until(lambda: is_leaving(run, victim))
        await run.until(lambda: nomination(run, preemptor) == "n1")
        await run.until_quiet(scheduler)
        condition = run.condition(victim, "DisruptionTarget")
        assert condition["status"] == "True"
        assert condition["reason"] == "PreemptionByScheduler"
        uid = run.pod(preemptor)["metadata"]["uid"]
        assert condition["message"] == f"tutti: preempting to accommodate pod {uid} of a higher priority"
        writes = [(each.method, each.part) for each in run.server.sent("Pod") if each.key == victim and each.is_write]
        assert writes == [("PATCH", "status"), ("DELETE", "")]
        assert run.server.sent(method="DELETE")[0].body["preconditions"]["uid"] == run.pod(victim)["metadata"]["uid"]
        waits = run.condition(preemptor)
        assert waits["reason"] == "WaitingForPreemption"
        assert waits["message"] == "room is held on node n1 until default/victim has left"
        assert run.events("Preempted") == [("victim", "Preempted by default/preemptor on node n1")]
        assert not run.bound([preemptor])
        run.objects.remove("Pod", victim)
        await run.until_bound([preemptor])
        assert nomination(run, preemptor) is None
        assert len(run.server.sent(method="DELETE")) == 1

    play(scene)


def test_a_victim_that_goes_by_itself_needs_no_request() -> None:
    async def scene(run: LiveRun) -> None:
        run.server.find_fault = faults(lambda each: each.part == "status" and "victim" in each.key, Fault(delay=0.2))
        _, victim, preemptor = await full_node(run)
        await run.until(lambda: run.server.sent(part="status"))
        run.objects.remove("Pod", victim)
        await run.until_bound([preemptor])

    play(scene)


def test_a_refused_eviction_gives_the_room_back() -> None:
    """The preemptor is tried again after its backoff, which grows."""

    async def scene(run: LiveRun) -> None:
        forbidden = refused(403, "Forbidden", "cannot delete pods")
        run.server.find_fault = lambda each: forbidden if each.method == "DELETE" else None
        scheduler, victim, preemptor = await full_node(run)
        await run.until(lambda: scheduler.victims.refused_count >= 3)
        assert not is_leaving(run, victim)
        run.objects.remove("Pod", victim)
        await run.until_bound([preemptor])

    play(scene)


@pytest.mark.parametrize(
    "fault",
    [
        pytest.param(Fault(drop="before"), id="lost"),
        pytest.param(Fault(drop="after"), id="applied"),
        pytest.param(refused(500), id="500"),
        pytest.param(refused(429, retry_after=0), id="429"),
        pytest.param(refused(409, "Conflict", "the object has been modified"), id="409"),
    ],
)
@pytest.mark.parametrize("method", ["PATCH", "DELETE"])
def test_requests_for_victims_are_repeated(fault: Fault, method: str) -> None:
    async def scene(run: LiveRun) -> None:
        run.server.find_fault = faults(lambda each: each.method == method and "victim" in each.key, fault, fault)
        scheduler, victim, preemptor = await full_node(run)
        await run.until(lambda: is_leaving(run, victim))
        assert run.condition(victim, "DisruptionTarget")["status"] == "True"
        run.objects.remove("Pod", victim)
        await run.until_bound([preemptor])
        assert scheduler.victims.refused_count == 0

    play(scene)


def test_a_new_pod_of_the_victims_name_is_not_touched() -> None:
    async def scene(run: LiveRun) -> None:
        run.server.watches.hold("Pod")
        run.add_nodes("n1")
        (victim,) = run.add_pods("victim", cpu="3", on="n1", priority=1)
        (preemptor,) = run.add_pods("preemptor", cpu="3", **HIGH)
        todo = [True]

        def recreate(request: object) -> Fault | None:
            if todo and getattr(request, "part", "") == "status":
                todo.clear()
                run.objects.remove("Pod", victim)
                run.add_pods("victim", cpu="1", on="n1", priority=1)
            return None

        run.server.find_fault = recreate
        await run.started()
        await run.until(lambda: not todo)
        run.server.watches.release()
        await run.until_bound([preemptor])
        assert not is_leaving(run, victim)
        assert not run.condition(victim, "DisruptionTarget")

    play(scene)


def test_a_whole_gang_makes_room_for_a_whole_gang() -> None:
    async def scene(run: LiveRun) -> None:
        run.add_nodes("n1", "n2")
        scheduler = await run.started()
        low = run.add_gang("low", 4, cpu="2", priority=1)
        await run.until_bound(low)
        run.run_pods(low)
        high = run.add_gang("high", 3, cpu="2", **HIGH)
        await run.until(lambda: all(is_leaving(run, key) for key in low))
        await run.until_quiet(scheduler)
        assert {run.condition(key)["reason"] for key in high} == {"WaitingForPreemption"}
        assert not run.bound(high)
        for key in low[:-1]:
            run.objects.remove("Pod", key)
        await run.until_quiet(scheduler)
        assert max(run.bound_counts(high)) in (0, 3)
        run.objects.remove("Pod", low[-1])
        await run.until_bound(high)

    play(scene)


def test_pods_without_less_priority_are_not_evicted() -> None:
    async def scene(run: LiveRun) -> None:
        run.add_nodes("n1")
        run.add_pods("equal", cpu="3", on="n1", **HIGH)
        scheduler = await run.started()
        (waiting,) = run.add_pods("waiting", cpu="3", **HIGH)
        await run.until(lambda: run.condition(waiting))
        await run.until_quiet(scheduler)
        assert run.condition(waiting)["reason"] == "Unschedulable"
        assert not run.server.sent(method="DELETE")

    play(scene)


@pytest.mark.parametrize(
    ("rules", "victims"),
    [
        ({}, {"other", "own"}),
        ({"daemons": True}, {"daemon", "other", "own"}),
        ({"other_schedulers": False}, {"own"}),
    ],
)
def test_rules_say_who_may_be_evicted(rules: dict[str, bool], victims: set[str]) -> None:
    """Mirror pods never, because their kubelet starts them again at once."""

    async def scene(run: LiveRun) -> None:
        policy = quick_policy()
        policy = replace(policy, victims_allowed=replace(policy.victims_allowed, **rules))
        about: dict[str, dict[str, Any]] = {
            "mirror": {"annotations": {"kubernetes.io/config.mirror": "hash"}},
            "daemon": {"owner": ("DaemonSet", "d")},
            "other": {"schedulerName": "default-scheduler"},
            "own": {},
        }
        for name, how in about.items():
            run.add_nodes(name)
            run.add_pods(name, cpu="3", on=name, priority=1, **how)
        scheduler = await run.started(policy=policy)
        preemptors = run.add_pods("a", "b", "c", "d", cpu="3", **HIGH)
        await run.until(lambda: all(run.condition(key) for key in preemptors))
        await run.until_quiet(scheduler)
        assert {name for name in about if is_leaving(run, f"default/{name}")} == victims

    play(scene)


def test_no_preemption_by_option() -> None:
    async def scene(run: LiveRun) -> None:
        scheduler, _, preemptor = await full_node(run, policy=replace(quick_policy(), preemption=False))
        await run.until(lambda: run.condition(preemptor))
        await run.until_quiet(scheduler)
        assert run.condition(preemptor)["reason"] == "Unschedulable"
        assert not run.server.sent(method="DELETE")

    play(scene)


def test_budgets_choose_the_victim() -> None:
    async def scene(run: LiveRun) -> None:
        run.objects.create(disruption_budget("web", 0))
        run.add_nodes("n1", "n2")
        (kept,) = run.add_pods("kept", cpu="3", on="n1", priority=1, app="web")
        (victim,) = run.add_pods("victim", cpu="3", on="n2", priority=1)
        await run.started()
        run.add_pods("preemptor", cpu="3", **HIGH)
        await run.until(lambda: is_leaving(run, victim))
        assert not is_leaving(run, kept)

    play(scene)


def hard_budgets() -> Policy:
    policy = quick_policy()
    return replace(policy, victims_allowed=replace(policy.victims_allowed, hard_budgets=True))


async def full_node_with_budget(run: LiveRun) -> tuple[LiveScheduler, list[str], str]:
    """A node with two pods whose budget allows two disruptions, and a preemptor that needs the room of both."""
    run.objects.create(disruption_budget("web", 2))
    run.add_nodes("n1")
    victims = run.add_pods("v", "w", cpu="2", on="n1", priority=1, app="web")
    scheduler = await run.started(policy=hard_budgets())
    (preemptor,) = run.add_pods("preemptor", cpu="4", **HIGH)
    return scheduler, victims, preemptor


@pytest.mark.parametrize("fault", [None, refused(500), refused(429, retry_after=0), Fault(drop="before")])
def test_hard_budgets_evict_through_the_eviction_api(fault: Fault | None) -> None:
    """All victims are tried in a dry run first; a busy server is asked again."""

    async def scene(run: LiveRun) -> None:
        if fault is not None:
            run.server.find_fault = faults(lambda each: "dryRun" in each.query, fault, fault)
        scheduler, victims, preemptor = await full_node_with_budget(run)
        await run.until(lambda: all(is_leaving(run, key) for key in victims))
        sent = [each for each in run.server.sent(part="eviction") if each.status == 201]
        assert ["dryRun" in each.query for each in sent] == [True, True, False, False]
        assert scheduler.victims.refused_count == 0
        assert not run.server.sent(method="DELETE")
        for key in victims:  # the eviction API writes this condition, too
            await run.until(lambda key=key: "accommodate pod" in run.condition(key, "DisruptionTarget")["message"])
        for key in victims:
            run.objects.remove("Pod", key)
        await run.until_bound([preemptor])

    play(scene)


@pytest.mark.parametrize("gang", [False, True])
def test_nobody_is_evicted_for_pods_that_do_not_wait_any_more(gang: bool) -> None:
    """The server refuses for moments, and meanwhile the pod, or the group of the gang, is deleted."""

    async def scene(run: LiveRun) -> None:
        busy = [True]
        run.server.find_fault = lambda each: refused(500) if each.method == "DELETE" and busy else None
        run.add_nodes("n1")
        (victim,) = run.add_pods("victim", cpu="4", on="n1", priority=1)
        scheduler = await run.started()
        pods = run.add_gang("g", 2, cpu="2", **HIGH) if gang else run.add_pods("p", cpu="4", **HIGH)
        await run.until(lambda: run.server.sent(method="DELETE"))
        if gang:
            kind = "PodGroup.scheduling.x-k8s.io"
            run.objects.patch(kind, "default/g", {"metadata": {"finalizers": ["example.com/wait"]}})
            run.objects.delete(kind, "default/g")
        else:
            run.objects.remove("Pod", pods[0])
        await run.until(lambda: run.condition(victim, "DisruptionTarget")["status"] == "False")
        busy.clear()
        await run.until_quiet(scheduler)
        assert not is_leaving(run, victim)
        if gang:
            assert {run.condition(key)["reason"] for key in pods} == {"WaitingForGang"}
            assert "is being deleted" in run.condition(pods[0])["message"]

    play(scene)


def test_the_first_refusal_of_a_real_eviction_stops_the_rest() -> None:
    """Each dry run is asked alone, so that several may pass although the budget does not allow all together."""

    async def scene(run: LiveRun) -> None:
        run.objects.create(disruption_budget("web", 4))
        run.add_nodes("n1")
        victims = run.add_pods("a", "b", "c", "d", cpu="1", on="n1", priority=1, app="web")
        spent = refused(429, "TooManyRequests", "budget", causes=("DisruptionBudget",))
        first: list[str] = []

        def find_fault(each: ApiRequest) -> Fault | None:
            if each.part != "eviction" or "dryRun" in each.query:
                return None
            first.append(each.key)
            return spent if each.key != first[0] else None

        run.server.find_fault = find_fault
        scheduler = await run.started(policy=hard_budgets())
        (preemptor,) = run.add_pods("preemptor", cpu="4", **HIGH)
        await run.until(lambda: scheduler.victims.refused_count >= 3)
        await run.until(lambda: "cannot be evicted" in run.condition(preemptor)["message"])
        sent = [each for each in run.server.sent(part="eviction") if "dryRun" not in each.query]
        assert [each.status for each in sent[:2]] == [201, 429]
        assert sum(is_leaving(run, key) for key in victims) == 1

    play(scene)


def test_users_learn_no_names_of_other_namespaces() -> None:
    async def scene(run: LiveRun) -> None:
        run.add_nodes("n1", "n2")
        run.add_pods("secret-a", "secret-b", cpu="2", on="n1", priority=1, namespace="theirs")
        run.add_pods("secret-c", cpu="4", on="n2", priority=200, namespace="theirs")
        scheduler = await run.started()
        (preemptor,) = run.add_pods("preemptor", cpu="4", namespace="ours", **HIGH)
        await run.until(lambda: run.condition(preemptor))
        await run.until_quiet(scheduler)
        held = "room is held on node n1 until 2 pods of other namespaces have left"
        assert run.condition(preemptor)["message"] == held
        assert {note for _, note in run.events("Preempted")} == {
            "Preempted by a pod or gang of another namespace on node n1"
        }
        for name in ("secret-a", "secret-b"):
            assert "ours" not in run.condition(f"theirs/{name}", "DisruptionTarget")["message"]
        assert not [note for _, note in run.events("FailedScheduling") if "secret" in note]

    play(scene)


@pytest.mark.parametrize("gang", [False, True])
def test_a_preemptor_is_tried_again_when_its_budget_allows_more(gang: bool) -> None:
    async def scene(run: LiveRun) -> None:
        run.objects.create(disruption_budget("web", 0))
        run.add_nodes("n1")
        (victim,) = run.add_pods("v", cpu="4", on="n1", priority=1, app="web")
        await run.started(policy=hard_budgets())
        if gang:
            preemptor, _ = run.add_gang("preemptor", 2, cpu="2", **HIGH)
        else:
            (preemptor,) = run.add_pods("preemptor", cpu="4", **HIGH)
        await run.until(lambda: run.condition(preemptor))
        assert run.condition(preemptor)["reason"] == "WaitingForBudget"
        assert not is_leaving(run, victim)
        run.objects.patch("PodDisruptionBudget", "default/web", {"status": {"disruptionsAllowed": 1}})
        await run.until(lambda: is_leaving(run, victim))

    play(scene)


def test_a_nomination_is_cleared_when_the_room_is_no_longer_held() -> None:
    """The preemptor's node is gone while it waits for its victim; autoscalers take nominated pods for served."""

    async def scene(run: LiveRun) -> None:
        scheduler, _, preemptor = await full_node(run)
        await run.until(lambda: nomination(run, preemptor) == "n1")
        run.objects.remove("Node", "n1")
        await run.until(lambda: nomination(run, preemptor) is None, "the nomination is cleared")
        await run.until_quiet(scheduler)
        assert run.condition(preemptor)["reason"] == "Unschedulable"

    play(scene)


@pytest.mark.parametrize("moment", ["PATCH", "DELETE", "gone"])
def test_a_new_process_goes_on_where_the_old_one_was_killed(moment: str) -> None:
    async def scene(run: LiveRun) -> None:
        _, victim, preemptor = await full_node(run)
        if moment == "gone":
            await run.until(lambda: is_leaving(run, victim))
            run.objects.remove("Pod", victim)
        else:
            await run.until(lambda: [each for each in run.server.sent(method=moment) if each.key == victim])
        await run.kill()
        await run.started("two")
        if moment != "gone":
            await run.until(lambda: is_leaving(run, victim))
            run.objects.remove("Pod", victim)
        await run.until_bound([preemptor])
        assert len(run.events("Preempted")) <= 1

    play(scene)
