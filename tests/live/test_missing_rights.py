"""An API server that has just started and has not read its roles yet: it answers 403 to everything for moments."""

from __future__ import annotations

from tests.support.api_faults import ApiRequest, Fault, faults, refused
from tests.support.live_runs import LiveRun, ShiftedClock, play, quick_policy
from tutti.live.executor.evictions import victim_requests

NO_RIGHT = refused(
    403,
    "Forbidden",
    'pods "a" is forbidden: User "test" cannot create resource "pods/binding" in API group ""',
)


def targets(run: LiveRun) -> list[str]:
    return [str(request.body["target"]["name"]) for request in run.server.sent(part="binding")]


def test_a_binding_is_sent_again() -> None:
    async def scene(run: LiveRun) -> None:
        run.add_nodes("n1", "n2")
        run.server.find_fault = faults(lambda each: each.is_binding, *[NO_RIGHT] * 3)
        scheduler = await run.started()
        (key,) = run.add_pods("a")
        await run.until_bound([key])
        await run.until_quiet(scheduler)
        assert scheduler.binder.refused_count == 0
        assert targets(run) == [run.node_of(key)] * 4
        assert not run.events("FailedScheduling")

    play(scene)


def test_a_right_that_stays_missing_is_told_and_no_node_is_avoided() -> None:
    async def scene(run: LiveRun) -> None:
        run.add_nodes("n1")
        clock = ShiftedClock()
        has_right = False

        def find(request: ApiRequest) -> Fault | None:
            if not request.is_binding or has_right:
                return None
            clock.ahead += 2
            return NO_RIGHT

        run.server.find_fault = find
        scheduler = await run.started(clock=clock, policy=quick_policy(avoided_for=3_600_000_000))
        (key,) = run.add_pods("a")
        await run.until(lambda: scheduler.binder.refused_count == 2)
        assert run.condition(key)["reason"] == "SchedulerError"
        assert 'cannot create resource "pods/binding"' in run.condition(key)["message"]
        assert "avoided" not in run.condition(key)["message"]
        has_right = True
        await run.until_bound([key])

    play(scene)


def test_evictions_conditions_and_events_are_written_again() -> None:
    async def scene(run: LiveRun) -> None:
        run.add_nodes("n1")
        (victim,) = run.add_pods("victim", cpu="4", on="n1", priority=1)
        hit: set[tuple[str, str]] = set()

        def find(request: ApiRequest) -> Fault | None:
            what = request.method, request.kind if request.kind == "Event" else request.key
            if request.kind not in ("Pod", "Event") or not request.is_write or what in hit:
                return None
            hit.add(what)
            return NO_RIGHT

        run.server.find_fault = find
        scheduler = await run.started()
        (preemptor,) = run.add_pods("preemptor", cpu="4", priority=100)
        await run.until(lambda: "deletionTimestamp" in run.pod(victim)["metadata"])
        await run.until(lambda: run.condition(preemptor) and run.events("Preempted"))
        assert {("DELETE", victim), ("PATCH", victim), ("PATCH", preemptor), ("POST", "Event")} <= hit
        assert scheduler.victims.refused_count == scheduler.statuses.failed == scheduler.events.dropped == 0

    play(scene)


def test_rights_that_stay_missing_end_the_retries() -> None:
    """A preemptor is told that its victim cannot be evicted."""

    async def scene(run: LiveRun) -> None:
        run.add_nodes("n1")
        run.add_pods("victim", cpu="4", on="n1", priority=1)
        clock = ShiftedClock()

        def find(request: ApiRequest) -> Fault | None:
            if request.method != "DELETE":
                return None
            clock.ahead += victim_requests._RETRY_FOR
            return NO_RIGHT

        run.server.find_fault = find
        await run.started(clock=clock)
        (preemptor,) = run.add_pods("preemptor", cpu="4", priority=100)
        await run.until(lambda: run.condition(preemptor).get("reason") == "SchedulerError")
        assert run.condition(preemptor)["message"].startswith("default/victim cannot be evicted")

    play(scene)
