"""Two schedulers and one lease, and processes that are killed at any moment."""

from __future__ import annotations

import asyncio

import pytest

from tests.support.api_faults import ApiRequest, Fault
from tests.support.live_runs import LEASE, LiveRun, ShiftedClock, play, quick_policy
from tutti.exceptions import ApiError
from tutti.live import scheduler
from tutti.live.options import LeaseOptions

LEASE_KEY = "kube-system/tutti-scheduler"


def holder(run: LiveRun) -> str:
    lease = run.objects.find("Lease", LEASE_KEY)
    return str(lease["spec"]["holderIdentity"]) if lease is not None else ""


def writes(run: LiveRun, identity: str) -> list[ApiRequest]:
    """Return the writes of a process, except those to the lease."""
    sent = run.server.sent(agent=f"({identity})")
    return [each for each in sent if each.is_write and each.kind != "Lease"]


def take_lease(run: LiveRun, identity: str) -> None:
    """Let another process take the lease, whoever holds it."""
    run.objects.patch("Lease", LEASE_KEY, {"spec": {"holderIdentity": identity, "leaseTransitions": 9}})


async def wait_out(run: LiveRun, identity: str, clock: ShiftedClock) -> None:
    """Let the lease of a process that is gone expire for another one."""
    reads = len(run.server.sent("Lease", method="GET", agent=f"({identity})"))
    await run.until(lambda: len(run.server.sent("Lease", method="GET", agent=f"({identity})")) > reads + 1)
    clock.ahead += 20


def test_the_standby_writes_nothing_and_takes_over_from_a_killed_leader() -> None:
    """It lists all pods first: the leader's last bindings may not have reached its watch."""

    async def scene(run: LiveRun) -> None:
        run.add_nodes("n1")
        clock = ShiftedClock()
        await run.started("one", lease=LEASE)
        two = run.start("two", lease=LEASE, clock=clock)
        await run.until(lambda: two.is_ready)
        run.server.watches.hold("Pod", "(two)")
        first = run.add_pods("a", cpu="3")
        await run.until_bound(first)
        await run.kill("one")
        assert holder(run) == "one"
        run.add_pods("b", cpu="3")
        await wait_out(run, "two", clock)
        await run.until(lambda: holder(run) == "two")
        await run.until(lambda: run.condition("default/b"))
        (taken, *_) = run.server.sent("Lease", method="PUT", agent="(two)")
        lists = [each for each in run.server.sent("Pod", agent="(two)") if "sendInitialEvents" in each.query]
        assert len(lists) == 2
        assert taken.time < lists[1].time < writes(run, "two")[0].time
        assert run.condition("default/b")["reason"] == "Unschedulable"
        assert not [each for each in writes(run, "two") if each.is_binding]
        await run.kill("two")

    play(scene)


def test_a_process_that_finds_the_lease_free_lists_pods_once() -> None:
    async def scene(run: LiveRun) -> None:
        run.add_nodes("n1")
        for identity in ("one", "two"):
            scheduler = await run.started(identity, lease=LEASE)
            assert scheduler.watches.reflectors["Pod"].lists == 1
            scheduler.stop()
            await run.ended(identity)

    play(scene)


def test_a_process_that_cannot_list_pods_does_not_take_the_lease() -> None:
    async def scene(run: LiveRun) -> None:
        run.add_nodes("n1")
        run.server.forbidden.add("Pod")
        one = run.start("one", lease=LEASE)
        await run.until(lambda: one.watches.notes() and run.server.sent("Lease"))
        assert not run.server.sent("Lease", method="POST")
        run.server.forbidden.clear()
        await run.until_bound(run.add_pods("a"))
        (lease,) = run.server.sent("Lease", method="POST")
        assert lease.time > run.server.sent("Pod")[1].time

    play(scene)


def test_a_leader_that_cannot_read_pods_any_more_gives_the_lease_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scheduler, "_BLIND_FOR", 5.0)

    async def scene(run: LiveRun) -> None:
        run.add_nodes("n1")
        clock = ShiftedClock()
        one = await run.started("one", lease=LEASE, clock=clock)
        run.server.forbidden.add("Pod")
        run.server.watches.cut("Pod")
        await run.until(lambda: one.watches.reflectors["Pod"].problem)

        clock.ahead += 6
        with pytest.raises(ApiError, match="pods cannot be read any more"):
            await run.ended("one")
        assert holder(run) == ""

    play(scene)


def test_a_stopped_leader_hands_over_at_once() -> None:
    async def scene(run: LiveRun) -> None:
        run.add_nodes("n1")
        one = await run.started("one", lease=LEASE)
        two = run.start("two", lease=LEASE)
        await run.until(lambda: two.is_ready)
        one.stop()
        assert await run.ended("one")
        await run.until_bound(run.add_pods("a"))
        assert holder(run) == "two"
        assert run.objects.get("Lease", LEASE_KEY)["spec"]["leaseTransitions"] == 1
        assert len(writes(run, "one")) == 0

    play(scene)


def test_a_lease_is_not_given_back_while_a_write_is_under_way(monkeypatch: pytest.MonkeyPatch) -> None:
    """A part breaks, and a binding has no answer: the server may apply it later, so that the lease must expire."""
    monkeypatch.setattr(scheduler, "_WRITES_GRACE", 0.05)

    async def scene(run: LiveRun) -> None:
        run.add_nodes("n1")
        one = await run.started("one", lease=LEASE)
        run.server.find_fault = lambda each: Fault(wait=asyncio.Event()) if each.is_binding else None
        run.add_pods("a")
        await run.until(lambda: run.server.sent(part="binding"))

        def fail(*_arguments: object) -> None:
            raise RuntimeError("a session that fails")

        one.cluster.run_session = fail  # type: ignore[method-assign, assignment]
        run.add_nodes("n2")
        with pytest.raises(RuntimeError, match="a session that fails"):
            await run.ended("one")
        assert holder(run) == "one"

    play(scene)


def test_a_stopped_leader_waits_for_the_answers_to_its_evictions() -> None:
    async def scene(run: LiveRun) -> None:
        run.add_nodes("n1")
        run.add_pods("victim", cpu="4", on="n1", priority=1)
        hold = asyncio.Event()
        one = await run.started("one", lease=LEASE)
        run.server.find_fault = lambda each: Fault(wait=hold) if each.method == "DELETE" else None
        run.add_pods("preemptor", cpu="4", priority=100)
        await run.until(lambda: run.server.sent("Pod", method="DELETE"))
        one.stop()
        await run.until(lambda: not one.is_ready)
        assert holder(run) == "one"
        hold.set()
        assert await run.ended("one")
        assert holder(run) == ""
        assert [each.status for each in run.server.sent("Pod", method="DELETE")] == [200]

    play(scene)


def test_a_lease_that_is_lost_in_the_middle_of_a_gang() -> None:
    """No binding leaves any more, the process ends, and the next leader completes the gang."""

    async def scene(run: LiveRun) -> None:
        run.add_nodes("n1")
        held = asyncio.Event()
        one = await run.started("one", lease=LEASE, max_in_flight=1)
        run.server.find_fault = lambda each: Fault(wait=held) if each.is_binding else None
        gang = run.add_gang("g", 4)
        await run.until(lambda: run.server.sent(part="binding"))
        take_lease(run, "somebody")
        await run.until(lambda: one.leadership.is_lost)
        held.set()
        assert not await run.ended("one")
        assert len(run.bound(gang)) == 1
        assert holder(run) == "somebody"
        clock = ShiftedClock()
        two = run.start("two", lease=LEASE, clock=clock)
        await run.until(lambda: two.is_ready)
        await wait_out(run, "two", clock)
        await run.until_bound(gang)
        assert len(run.server.sent(part="binding")) == 4

    play(scene)


def test_a_leader_without_contact_stops_writing_before_another_may_lead() -> None:
    """Its clock says that the lease was not renewed in time."""

    async def scene(run: LiveRun) -> None:
        run.add_nodes("n1")
        clock = ShiftedClock()
        one = await run.started("one", lease=LEASE, clock=clock)
        run.server.find_fault = lambda each: Fault(drop="before") if each.kind == "Lease" else None
        clock.ahead += 11
        assert not one.leadership.may_write
        run.add_pods("a")
        assert not await run.ended("one")
        assert not run.bound()

    play(scene)


def test_only_one_of_many_leads() -> None:
    async def scene(run: LiveRun) -> None:
        run.add_nodes("n1", cpu="20")
        schedulers = [run.start(f"s{n}", lease=LeaseOptions(retry_period=0.2)) for n in range(4)]
        keys = run.add_pods(*(f"p{n}" for n in range(20)))
        await run.until_bound(keys)
        await run.until(lambda: all(each.is_ready for each in schedulers))
        assert len({each.user_agent for each in run.server.sent(part="binding")}) == 1
        assert sum(each.leadership.may_write for each in schedulers) == 1

    play(scene)


@pytest.mark.parametrize("count", range(5))
def test_killed_after_some_bindings_of_a_gang(count: int) -> None:
    """The next process reads everything from the server, and completes the gang."""

    async def scene(run: LiveRun) -> None:
        run.add_nodes("n1", "n2", cpu="2")
        held = asyncio.Event()
        sent = 0

        def find(request: ApiRequest) -> Fault | None:
            nonlocal sent
            sent += request.is_binding
            return Fault(wait=held) if request.is_binding and sent > count else None

        run.server.find_fault = find
        await run.started("one", policy=quick_policy(partial_for=600_000_000))
        gang = run.add_gang("g", 4)
        await run.until(lambda: sent >= 4 and len(run.bound(gang)) == count)
        await run.kill("one")
        run.server.find_fault = lambda each: None
        two = await run.started("two", policy=quick_policy(partial_for=600_000_000))
        await run.until_bound(gang)
        await run.until_quiet(two)
        assert sorted(run.node_of(key) for key in gang) == ["n1", "n1", "n2", "n2"]
        assert len(run.server.sent(part="binding", agent="(two)")) == 4 - count
        assert not run.server.sent(method="DELETE")

    play(scene)


def test_many_kills() -> None:
    """Eight processes are killed while gangs arrive; every gang is bound, and no node has more than fits."""

    async def scene(run: LiveRun) -> None:
        run.add_nodes(*(f"n{n}" for n in range(5)), cpu="8")
        keys: list[str] = []
        for number in range(8):
            live = await run.started(f"s{number}")
            keys += run.add_gang(f"g{number}", 5)
            await run.until(lambda binder=live.binder: binder.waiting or binder.bound_count)
            for _ in range(number):
                await asyncio.sleep(0)
            await run.kill(f"s{number}")
        await run.started("last")
        await run.until_bound(keys)
        nodes = [run.node_of(key) for key in keys]
        assert {node: nodes.count(node) for node in nodes} == {f"n{n}": 8 for n in range(5)}

    play(scene)
