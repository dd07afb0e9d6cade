"""Whole runs of the live scheduler where nothing goes wrong: pods, gangs, and the end of the process."""

from __future__ import annotations

import asyncio

import pytest

from tests.support.api_faults import ApiRequest, Fault, faults, refused
from tests.support.builders import COSCHEDULING_LABEL
from tests.support.live_runs import LEASE, LiveRun, ShiftedClock, play, quick_policy


def test_plain_pods_are_bound_with_events() -> None:
    async def scene(run: LiveRun) -> None:
        run.add_nodes("n1", "n2")
        early = run.add_pods("a", "b")
        scheduler = await run.started()
        late = run.add_pods("c", "d")
        await run.until_bound([*early, *late])
        await run.until(lambda: len(run.events("Scheduled")) == 4)
        assert sorted(run.events("Scheduled")) == [
            (name, f"Successfully assigned default/{name} to {run.node_of(f'default/{name}')}") for name in "abcd"
        ]
        assert run.condition(early[0]) == run.condition(early[0]) | {"type": "PodScheduled", "status": "True"}
        await run.until_quiet(scheduler)
        assert [request.status for request in run.server.sent(part="binding")] == [201] * 4
        (event,) = [each for each in run.objects.all("Event") if each["regarding"]["name"] == "a"]
        assert event["reportingController"] == "tutti"
        assert event["regarding"]["uid"] == run.pod("default/a")["metadata"]["uid"]

    play(scene)


def test_pods_of_other_schedulers_and_gated_pods_are_left_alone() -> None:
    async def scene(run: LiveRun) -> None:
        run.add_nodes("n1")
        others = run.add_pods("other", schedulerName="default-scheduler")
        gated = run.add_pods("gated", schedulingGates=[{"name": "wait"}])
        ours = run.add_pods("ours")
        scheduler = await run.started()
        await run.until_bound(ours)
        await run.until_quiet(scheduler)
        assert not run.bound([*others, *gated])
        assert not run.server.sent(part="status")
        run.objects.patch("Pod", gated[0], {"spec": {"schedulingGates": None}})
        await run.until_bound(gated)

    play(scene)


def test_a_gang_is_bound_whole_or_not_at_all() -> None:
    async def scene(run: LiveRun) -> None:
        run.add_nodes("n1", "n2")
        scheduler = await run.started()
        large, small = run.add_gang("large", 9), run.add_gang("small", 8)
        await run.until_bound(small)
        await run.until_quiet(scheduler)
        assert max(run.bound_counts(large)) == 0
        run.add_nodes("n3")
        for key in small:
            run.objects.remove("Pod", key)
        await run.until_bound(large)
        assert len(run.server.sent(part="binding")) == 17

    play(scene)


def test_a_gang_waits_for_its_last_pod_and_its_group() -> None:
    async def scene(run: LiveRun) -> None:
        run.add_nodes("n1")
        scheduler = await run.started()
        early = run.add_pods("g-0", labels={COSCHEDULING_LABEL: "g"})
        await run.until(lambda: run.condition(early[0]))
        assert run.condition(early[0])["reason"] == "WaitingForGang"
        run.add_group("g", 3)
        more = run.add_members("g", [1])
        await run.until(lambda: run.condition(more[0]))
        await run.until_quiet(scheduler)
        assert run.condition(early[0])["reason"] == run.condition(more[0])["reason"] == "WaitingForGang"
        assert not run.server.sent(part="binding")
        await run.until_bound([*early, *more, *run.add_members("g", [2])])

    play(scene)


def test_an_annotated_gang_starts_when_its_pods_have_come() -> None:
    async def scene(run: LiveRun) -> None:
        run.add_nodes("n1")
        await run.started()
        pods = run.add_pods("a", "b", "c", gang="g")
        await run.until_bound(pods)

    play(scene)


def test_a_gang_whose_node_is_cordoned_before_its_binding_waits_whole() -> None:
    """The plan is made; before the first binding is sent, the watch reports the cordon."""

    async def scene(run: LiveRun) -> None:
        run.add_nodes("n1", "n2", cpu="2")
        busy = run.add_pods("busy", cpu="0")
        hold = asyncio.Event()

        def wait(request: ApiRequest) -> Fault | None:
            return Fault(wait=hold) if request.is_binding and request.key == busy[0] else None

        run.server.find_fault = wait
        scheduler = await run.started(max_in_flight=1)
        await run.until(lambda: run.server.sent(part="binding"))
        gang = run.add_gang("g", 4)
        await run.until(lambda: scheduler.binder.waiting == 5, "the gang is planned")
        run.objects.patch("Node", "n2", {"spec": {"unschedulable": True}})
        await run.until(lambda: scheduler.newest.problem_of_node("n2", None))
        hold.set()
        await run.until_bound(busy)
        await run.until_quiet(scheduler)
        assert scheduler.binder.refused_count == 4
        assert len(run.server.sent(part="binding")) == 1
        run.objects.patch("Node", "n2", {"spec": {"unschedulable": False}})
        await run.until_bound(gang)

    play(scene)


def test_stop_finishes_gangs_that_were_begun_and_releases_the_lease() -> None:
    async def scene(run: LiveRun) -> None:
        run.add_nodes("n1")
        hold = asyncio.Event()
        scheduler = await run.started(lease=LEASE, max_in_flight=1)

        def wait(request: ApiRequest) -> Fault | None:
            return Fault(wait=hold) if request.is_binding else None

        run.server.find_fault = wait
        begun = run.add_gang("begun", 3, cpu="100m")
        await run.until(lambda: run.server.sent(part="binding"))
        others = [*run.add_gang("other", 3, cpu="100m"), *run.add_pods("single", cpu="100m")]
        await run.until(lambda: scheduler.binder.waiting == 7)
        scheduler.stop()
        await run.until(lambda: not scheduler.is_ready)
        hold.set()
        assert await run.ended()
        assert run.bound() == set(begun)
        assert len(run.events("Scheduled")) == 3
        lease = run.objects.get("Lease", "kube-system/tutti-scheduler")
        assert lease["spec"]["holderIdentity"] == ""
        assert not run.bound(others)

    play(scene)


def test_stop_ends_also_while_the_server_is_away() -> None:
    async def scene(run: LiveRun) -> None:
        run.add_nodes("n1")
        clock = ShiftedClock()
        scheduler = await run.started(clock=clock)
        run.server.find_fault = lambda request: None if request.is_watch else Fault(drop="before")
        run.add_pods("a")
        await run.until(lambda: run.server.sent(part="binding"))
        scheduler.stop()
        clock.ahead += 60
        assert await run.ended()

    play(scene)


def test_stop_does_not_wait_for_as_long_as_a_busy_server_asks() -> None:
    """The rest of a gang that was begun is sent again at once."""

    async def scene(run: LiveRun) -> None:
        run.add_nodes("n1")
        scheduler = await run.started(lease=LEASE)
        busy = refused(429, "TooManyRequests", retry_after=3_600)
        run.server.find_fault = faults(lambda each: each.is_binding and each.key == "default/g-1", busy)
        gang = run.add_gang("g", 2)
        await run.until(lambda: scheduler.binder.errors[429])
        scheduler.stop()
        assert await run.ended()
        assert run.bound(gang) == set(gang)
        assert run.objects.get("Lease", "kube-system/tutti-scheduler")["spec"]["holderIdentity"] == ""

    play(scene)


@pytest.mark.parametrize("part", ["watches", "binder", "victims", "statuses", "groups"])
def test_a_part_that_breaks_ends_the_process(part: str) -> None:
    """A new process reads everything anew; one that lacks a part would look well and do nothing."""

    async def scene(run: LiveRun) -> None:
        run.add_nodes("n1")
        run.add_nodes("n2", cpu="2")
        run.add_pods("victim", cpu="4", on="n1", priority=1)
        scheduler = await run.started(groups_left_for=0.0)

        def fail(*_arguments: object, **_more: object) -> None:
            raise RuntimeError(f"{part} broke")

        match part:
            case "watches":
                scheduler.watches.reflectors["Node"]._report = fail
            case "binder":
                scheduler.binder._settle = fail
            case "victims":
                scheduler.victims._now = fail  # type: ignore[assignment]
            case "statuses":
                scheduler.statuses._status = fail  # type: ignore[assignment, method-assign]
            case _:
                scheduler.groups[1]._resource = fail
        run.add_nodes("n3", cpu="0")
        run.add_gang("g", 2)
        run.add_pods("huge", cpu="100")
        run.add_pods("preemptor", cpu="4", priority=100)
        with pytest.raises(RuntimeError, match=f"{part} broke"):
            await run.ended()

    play(scene)


def test_a_dry_run_writes_nothing() -> None:
    async def scene(run: LiveRun) -> None:
        run.add_nodes("n1")
        run.add_pods("a", "b", cpu="3")
        clock = ShiftedClock()
        scheduler = await run.started(dry_run=True, lease=LEASE, clock=clock)
        run.add_pods("c")
        run.add_gang("g", 9)
        run.add_pods("victim", cpu="1", on="n1", priority=-1)
        run.add_pods("preemptor", cpu="4", priority=9)
        await run.until_quiet(scheduler)
        clock.ahead += 40
        sessions = scheduler.sessions.sessions
        await run.until(lambda: scheduler.sessions.sessions > sessions, "what has not happened is taken back")
        await run.until_quiet(scheduler)
        assert not [request for request in run.server.requests if request.is_write]

    play(scene)


@pytest.mark.parametrize("queueing", ["fifo", "backfill", "reservation"])
def test_many_pods_and_gangs(queueing: str) -> None:
    """Never more on a node than it has room for, and everything that fits is bound."""

    async def scene(run: LiveRun) -> None:
        run.add_nodes(*(f"n{n}" for n in range(10)), cpu="8")
        run.start(policy=quick_policy(queueing=queueing))
        keys = run.add_pods(*(f"p{n}" for n in range(20)))
        for number in range(10):
            keys += run.add_gang(f"g{number}", 6)
        await run.until_bound(keys)
        used: dict[str, int] = {}
        for key in keys:
            used[run.node_of(key)] = used.get(run.node_of(key), 0) + 1
        assert used == {f"n{n}": 8 for n in range(10)}

    play(scene)
