"""The condition of Kubernetes' own PodGroups: written once, when the last pod that the group needs is bound."""

from __future__ import annotations

import asyncio

from tests.support.api_faults import ApiRequest, Fault, faults, refused
from tests.support.live_runs import LiveRun, play
from tutti.kube.objects import PodGroup

KIND = PodGroup.KIND


def add_group(run: LiveRun, minimum: int) -> None:
    run.objects.create({"metadata": {"name": "g"}, "spec": {"schedulingPolicy": {"gang": {"minCount": minimum}}}}, KIND)


def is_scheduled(run: LiveRun) -> bool:
    conditions = (run.objects.get(KIND, "default/g").get("status") or {}).get("conditions") or ()
    return [(each["type"], each["status"]) for each in conditions] == [("PodGroupInitiallyScheduled", "True")]


def test_the_condition_follows_the_last_binding() -> None:
    async def scene(run: LiveRun) -> None:
        run.add_nodes("n1")
        last = refused(429, retry_after=0)
        run.server.find_fault = faults(lambda each: each.is_binding and each.key == "default/g-1", last, last)
        await run.started()
        add_group(run, 2)
        gang = run.add_pods("g-0", "g-1", schedulingGroup={"podGroupName": "g"})
        await run.until(lambda: is_scheduled(run))
        assert run.bound(gang) == set(gang)
        await run.until_bound(run.add_pods("g-2", schedulingGroup={"podGroupName": "g"}))
        assert len(run.server.sent(KIND, "status")) == 1

    play(scene)


def test_a_gang_that_lacks_a_pod_gets_no_condition() -> None:
    async def scene(run: LiveRun) -> None:
        run.add_nodes("n1")
        fault = refused(422, "Invalid", "no")
        run.server.find_fault = lambda each: fault if each.is_binding and each.key == "default/g-1" else None
        scheduler = await run.started()
        add_group(run, 2)
        run.add_pods("g-0", "g-1", schedulingGroup={"podGroupName": "g"})
        await run.until(lambda: scheduler.binder.refused_count)
        await run.until(lambda: run.events("PartialGang"))
        assert not run.server.sent(KIND, "status")
        run.server.find_fault = lambda each: None
        await run.until(lambda: is_scheduled(run))

    play(scene)


def test_the_next_process_writes_what_a_killed_one_could_not() -> None:
    async def scene(run: LiveRun) -> None:
        run.add_nodes("n1")

        def find(request: ApiRequest) -> Fault | None:
            return Fault(wait=asyncio.Event()) if request.kind == KIND and request.part == "status" else None

        run.server.find_fault = find
        await run.started("one")
        add_group(run, 2)
        gang = run.add_pods("g-0", "g-1", schedulingGroup={"podGroupName": "g"})
        await run.until(lambda: run.server.sent(KIND, "status"))
        assert run.bound(gang) == set(gang)
        await run.kill("one")
        run.server.find_fault = lambda each: None
        await run.started("two")
        await run.until(lambda: is_scheduled(run))

    play(scene)


def test_groups_that_are_not_whole_or_of_others_are_not_taken_over() -> None:
    async def scene(run: LiveRun) -> None:
        run.add_nodes("n1")
        add_group(run, 2)
        run.add_pods("g-0", on="n1", schedulingGroup={"podGroupName": "g"})
        run.add_pods("g-1", "g-2", on="n1", schedulingGroup={"podGroupName": "g"}, schedulerName="other")
        scheduler = await run.started()
        await run.until_quiet(scheduler)
        assert not scheduler.groups[0].tasks
        assert not run.server.sent(KIND, "status")

    play(scene)


def test_the_condition_waits_while_this_process_may_not_write() -> None:
    async def scene(run: LiveRun) -> None:
        run.add_nodes("n1")
        scheduler = await run.started()
        (writer, _) = scheduler.groups
        may_write, writer._may_write = writer._may_write, lambda: False
        add_group(run, 1)
        run.add_pods("g-0", schedulingGroup={"podGroupName": "g"})
        await run.until(lambda: writer.tasks)
        assert not run.server.sent(KIND, "status")
        writer._may_write = may_write
        await run.until(lambda: is_scheduled(run))

    play(scene)
