"""Watches that fall behind, are cut or expire, kinds that come and go, rights that lack, and clocks that jump."""

from __future__ import annotations

import logging

import pytest
from msgspec.structs import replace

from tests.support.api_faults import Fault, faults, refused
from tests.support.live_runs import LiveRun, ShiftedClock, play

GROUPS = "PodGroup.scheduling.x-k8s.io"


def test_a_watch_that_falls_behind() -> None:
    """What was planned is assumed: nothing is sent twice, and no room is used twice."""

    async def scene(run: LiveRun) -> None:
        run.add_nodes("n1")
        early = run.add_pods("a", "b")
        run.server.watches.hold("Pod")
        scheduler = await run.started()
        await run.until_bound(early)
        late = run.add_pods("c", "d", "e")
        run.add_nodes("n2", cpu="1")
        sessions = scheduler.sessions.sessions
        await run.until(lambda: scheduler.newest.node("n2") and scheduler.sessions.sessions > sessions)
        assert len(run.server.sent(part="binding")) == 2
        run.server.watches.release()
        await run.until_bound(late)
        await run.until_quiet(scheduler)
        assert [each.status for each in run.server.sent(part="binding")] == [201] * 5
        assert sorted(run.node_of(key) for key in (*early, *late)) == ["n1"] * 4 + ["n2"]

    play(scene)


def test_a_watch_that_falls_behind_by_a_minute() -> None:
    """What was planned stays assumed for as long as that takes, and the room is not given to others."""

    async def scene(run: LiveRun) -> None:
        run.add_nodes("n1")
        (old,) = run.add_pods("old", cpu="3", priority=1)
        clock = ShiftedClock()
        run.server.watches.hold("Pod")
        scheduler = await run.started(clock=clock)
        await run.until_bound([old])
        run.objects.seconds_ahead += 61
        clock.ahead += 61
        run.add_nodes("n2", cpu="1")
        sessions = scheduler.sessions.sessions
        await run.until(lambda: scheduler.newest.node("n2") and scheduler.sessions.sessions > sessions)
        assert len(run.server.sent(part="binding")) == 1
        (new,) = run.add_pods("new", cpu="3", priority=1)
        run.server.watches.release()
        await run.until(lambda: run.condition(new))
        await run.until_quiet(scheduler)
        assert run.condition(new)["reason"] == "Unschedulable"
        assert [each.status for each in run.server.sent(part="binding")] == [201]
        assert not run.server.sent(method="DELETE")

    play(scene)


def test_a_node_watch_that_falls_behind() -> None:
    """Bindings to a node that is gone are applied by the server; the pods are replaced when the watch says so."""

    async def scene(run: LiveRun) -> None:
        run.add_nodes("n1")
        scheduler = await run.started()
        run.server.watches.hold("Node")
        run.objects.remove("Node", "n1")
        run.add_nodes("n2")
        (lost,) = run.add_pods("a")
        await run.until_bound([lost])
        assert run.node_of(lost) == "n1"
        run.server.watches.release()
        await run.until(lambda: scheduler.newest.node("n2"))
        run.objects.remove("Pod", lost)
        await run.until_bound(run.add_pods("a"))
        assert run.node_of("default/a") == "n2"

    play(scene)


@pytest.mark.parametrize("is_compacted", [True, False], ids=["410", "resumed"])
def test_watches_that_are_cut_lose_nothing(is_compacted: bool) -> None:
    async def scene(run: LiveRun) -> None:
        run.add_nodes("n1")
        gone, stays = run.add_pods("gone", "stays", cpu="3", on="n1", schedulerName="other")[0], "default/late"
        scheduler = await run.started()
        run.server.find_fault = lambda each: Fault(drop="before") if each.is_watch else None
        run.server.watches.cut()
        run.objects.remove("Pod", gone)
        run.objects.remove("Pod", "default/stays")
        run.add_pods("late", cpu="3")
        if is_compacted:
            run.objects.compact()
        run.server.find_fault = lambda each: None
        await run.until_bound([stays])
        await run.until_quiet(scheduler)
        assert scheduler.watches.reflectors["Pod"].lists == (2 if is_compacted else 1)

    play(scene)


def test_a_watch_that_is_cut_in_the_middle_of_a_line() -> None:
    async def scene(run: LiveRun) -> None:
        run.add_nodes("n1")
        run.server.find_fault = faults(
            lambda each: each.kind == "Pod" and "resourceVersion" in each.query, Fault(cut_after=2), Fault(cut_after=1)
        )
        await run.started()
        await run.until_bound(run.add_pods("a", "b", "c", "d"))

    play(scene)


def test_a_server_without_streamed_lists_and_with_small_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tutti.client.reflector.PAGE_SIZE", 3)

    async def scene(run: LiveRun) -> None:
        run.add_nodes("n1", "n2", "n3", "n4", "n5")
        invalid = refused(422, "Invalid", "sendInitialEvents is forbidden")
        run.server.find_fault = lambda each: invalid if "sendInitialEvents" in each.query else None
        keys = run.add_pods(*(f"p{n}" for n in range(20)))
        await run.started()
        await run.until_bound(keys)

    play(scene)


def test_bookmarks_keep_quiet_watches_fresh() -> None:
    async def scene(run: LiveRun) -> None:
        run.add_nodes("n1")
        scheduler = await run.started()
        await run.until_bound(run.add_pods("a"))
        await run.until_quiet(scheduler)
        newest, heard = run.objects.version, scheduler.watches.reflectors["Node"].heard_at
        run.server.watches.send_bookmarks()
        await run.until(lambda: scheduler.watches.reflectors["Node"].heard_at > heard)
        run.objects.compact()
        run.server.watches.cut("Node")
        await run.until(lambda: len(run.server.sent("Node")) == 2)
        assert int(run.server.sent("Node")[-1].query["resourceVersion"]) >= newest
        assert scheduler.watches.reflectors["Node"].lists == 1

    play(scene)


# Kinds and rights -----------------------------------------------------------------------------------------------------


def test_a_kind_that_comes_later_is_picked_up() -> None:
    async def scene(run: LiveRun) -> None:
        run.add_nodes("n1")
        scheduler = await run.started(rediscover_every=0.1)
        gang = run.add_members("g", range(3))
        await run.until_quiet(scheduler)
        assert not run.bound(gang)
        run.objects.add_kind(GROUPS)
        run.add_group("g", 3)
        await run.until_bound(gang)

    play(scene, without=(GROUPS,))


def test_a_kind_that_is_removed_is_forgotten() -> None:
    async def scene(run: LiveRun) -> None:
        run.add_nodes("n1")
        scheduler = await run.started(rediscover_every=0.1)
        run.add_group("g", 3)
        await run.until(scheduler.watches.reflectors[GROUPS].known_uids)
        run.objects.remove_kind(GROUPS)
        await run.until(lambda: GROUPS not in scheduler.watches.reflectors)
        gang = run.add_members("g", range(3))
        await run.until(lambda: run.condition(gang[0]))
        await run.until_quiet(scheduler)
        assert not run.bound(gang)
        run.objects.add_kind(GROUPS)
        run.add_group("g", 3)
        await run.until_bound(gang)

    play(scene)


def test_a_kind_that_is_missing_for_a_moment() -> None:
    """An API server that has just started may not have read all CustomResourceDefinitions yet."""

    async def scene(run: LiveRun) -> None:
        run.add_nodes("n1")
        scheduler = await run.started(rediscover_every=0.1)
        run.add_group("g", 3)
        await run.until(scheduler.watches.reflectors[GROUPS].known_uids)
        resource = run.objects.resources.pop(GROUPS)
        run.server.watches.cut(GROUPS)
        await run.until(lambda: GROUPS not in scheduler.watches.reflectors)
        run.objects.resources[GROUPS] = resource
        await run.until_bound(run.add_members("g", range(3)))

    play(scene)


def test_a_kind_that_changes_its_version() -> None:
    """The CustomResourceDefinition was updated; its objects are the same."""

    async def scene(run: LiveRun) -> None:
        run.add_nodes("n1")
        scheduler = await run.started(rediscover_every=0.1)
        run.add_group("g", 3)
        await run.until(scheduler.watches.reflectors[GROUPS].known_uids)
        resource = run.objects.resources[GROUPS] = replace(run.objects.resources[GROUPS], version="v1beta1")
        await run.until(lambda: scheduler.watches.reflectors[GROUPS].resource == resource)
        await run.until_bound(run.add_members("g", range(3)))

    play(scene)


def test_a_server_that_is_away_at_the_start_is_named_at_once(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(logging.getLogger("tutti.live"), "disabled", False)  # import-linter disables loggers

    async def scene(run: LiveRun) -> None:
        run.add_nodes("n1")
        keys = run.add_pods("a")
        run.server.find_fault = lambda each: refused(503) if each.path == "/api" else None
        scheduler = run.start()
        await run.until(lambda: any("cannot be read: GET /api" in record.message for record in caplog.records))
        assert not scheduler.is_ready
        run.server.find_fault = lambda _: None
        await run.until_bound(keys)

    with caplog.at_level(logging.WARNING, "tutti.live"):
        play(scene)


@pytest.mark.parametrize("kind", ["PodDisruptionBudget", "PersistentVolumeClaim", GROUPS])
def test_a_missing_right_of_an_optional_kind_is_a_note(
    kind: str, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(logging.getLogger("tutti.live"), "disabled", False)  # import-linter disables loggers

    async def scene(run: LiveRun) -> None:
        run.add_nodes("n1")
        run.server.forbidden.add(kind)
        clock = ShiftedClock()
        scheduler = run.start(clock=clock)
        await run.until(lambda: len(scheduler.watches.unlisted()) == 1 and scheduler.watches.notes())
        assert not scheduler.is_ready
        clock.ahead += 11
        await run.until_bound(run.add_pods("a"))
        assert scheduler.is_ready
        name = run.objects.resources[kind].name
        (note,) = scheduler.watches.notes()
        assert note.startswith(f"{name} cannot be read: ")
        await run.until(lambda: any(name in record.message for record in caplog.records))

    with caplog.at_level(logging.WARNING, "tutti.live"):
        play(scene)


def test_rights_that_come_late() -> None:
    """A server that has just started does not know the rights of its users yet."""

    async def scene(run: LiveRun) -> None:
        run.add_nodes("n1")
        run.server.find_fault = faults(lambda each: each.kind == "PodDisruptionBudget", refused(403, "Forbidden"))
        scheduler = await run.started()
        assert scheduler.watches.reflectors["PodDisruptionBudget"].synced.is_set()

    play(scene)


@pytest.mark.parametrize("kind", ["Pod", "Node"])
def test_a_required_kind_that_cannot_be_read_any_more(kind: str) -> None:
    async def scene(run: LiveRun) -> None:
        run.add_nodes("n1")
        clock = ShiftedClock()
        scheduler = await run.started(clock=clock)
        run.server.forbidden.add(kind)
        run.server.watches.cut(kind)
        await run.until(lambda: scheduler.watches.reflectors[kind].problem)
        assert scheduler.is_ready
        clock.ahead += 11
        assert not scheduler.is_ready
        assert scheduler.introspection.readiness_problems() == [f"{kind.lower()}s cannot be read any more"]
        run.server.forbidden.clear()
        await run.until(lambda: scheduler.is_ready)

    play(scene)


def test_a_silent_watch_of_a_required_kind() -> None:
    """The server ends every watch after five minutes; one that lasts longer is broken."""

    async def scene(run: LiveRun) -> None:
        run.add_nodes("n1")
        clock = ShiftedClock()
        scheduler = await run.started(clock=clock)
        clock.ahead += 300
        assert scheduler.is_ready
        clock.ahead += 100
        assert not scheduler.is_ready
        run.server.watches.send_bookmarks()
        await run.until(lambda: scheduler.is_ready)

    play(scene)


@pytest.mark.parametrize("kind", ["Pod", "Node"])
def test_a_missing_right_of_a_required_kind_keeps_it_from_being_ready(kind: str) -> None:
    async def scene(run: LiveRun) -> None:
        run.add_nodes("n1")
        keys = run.add_pods("a")
        run.server.forbidden.add(kind)
        scheduler = run.start()
        await run.until(scheduler.watches.notes)
        assert not scheduler.is_ready
        assert "nothing can be scheduled" in scheduler.watches.notes()[0]
        assert not [each for each in run.server.requests if each.is_write]
        run.server.forbidden.clear()
        await run.until_bound(keys)
        assert scheduler.is_ready
        assert not scheduler.watches.notes()

    play(scene)


def test_a_server_that_is_away_at_the_start() -> None:
    async def scene(run: LiveRun) -> None:
        run.add_nodes("n1")
        keys = run.add_pods("a")
        run.server.find_fault = lambda each: refused(503)
        scheduler = run.start()
        await run.until(lambda: scheduler.watches.problem is not None)
        assert "the kinds of the server cannot be read" in scheduler.watches.notes()[-1]
        run.server.find_fault = lambda each: None
        await run.until_bound(keys)

    play(scene)


def test_an_object_that_cannot_be_read_stops_nothing() -> None:
    async def scene(run: LiveRun) -> None:
        run.add_nodes("n1")
        scheduler = await run.started()
        (bad,) = run.add_pods("bad")
        await run.until_bound([bad])
        run.objects.patch("Pod", bad, {"spec": {"containers": 7}})
        await run.until_bound(run.add_pods("a"))
        await run.until(lambda: ("Pod", bad) in scheduler.cluster.cluster.set_aside)

    play(scene)


# Clocks ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seconds", [3_600, -3_600])
def test_the_servers_clock_jumps(seconds: int) -> None:
    async def scene(run: LiveRun) -> None:
        run.add_nodes("n1")
        scheduler = await run.started()
        run.objects.seconds_ahead = seconds
        await run.until_bound(run.add_pods("a"))
        await run.until(lambda: abs(scheduler.now() - run.objects.now()) < 2_000_000)
        assert scheduler.client.clock.jumps == 1
        await run.until_bound(run.add_gang("g", 2))

    play(scene)


def test_this_machines_clock_jumps() -> None:
    """The machine was asleep: the server's Date header puts the time right."""

    async def scene(run: LiveRun) -> None:
        run.add_nodes("n1")
        clock = ShiftedClock()
        scheduler = await run.started(clock=clock)
        clock.ahead += 3_600
        await run.until_bound(run.add_pods("a"))
        await run.until(lambda: abs(scheduler.now() - run.objects.now()) < 2_000_000)

    play(scene)


def test_a_clock_that_jumps_there_and_back_delays_nobody() -> None:
    """A binding fails while the server's clock is an hour ahead: its backoff must not last an hour."""

    async def scene(run: LiveRun) -> None:
        run.add_nodes("n1")
        scheduler = await run.started()
        run.objects.seconds_ahead = 3_600
        run.server.find_fault = faults(lambda each: each.is_binding, refused(403))
        await run.until_bound(run.add_pods("a", cpu="0"))
        await run.until(lambda: scheduler.client.clock.jumps == 1)
        run.server.find_fault = faults(lambda each: each.is_binding and each.key == "default/b", refused(403))
        (key,) = run.add_pods("b")
        await run.until(lambda: scheduler.binder.refused_count == 2)
        run.objects.seconds_ahead = 0
        await run.until_bound(run.add_pods("c", cpu="0"))
        await run.until_bound([key])
        assert scheduler.client.clock.jumps == 2

    play(scene)
