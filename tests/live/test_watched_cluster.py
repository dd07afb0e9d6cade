"""The cluster in memory of the live scheduler: reports and refusals go in, plans come out."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from tests.support.builders import COSCHEDULING_LABEL, node, pod, pod_group
from tests.support.live_runs import quick_policy
from tutti.app.replay import replay
from tutti.client.reflector import Unreadable
from tutti.cluster.edits import Put, Remove
from tutti.engine.placement.profile import Profile
from tutti.live.inbox import RefusedBinding, RefusedEviction, TakenBackBinding
from tutti.live.options import SchedulerOptions
from tutti.live.session_recorder import SessionRecorder
from tutti.live.watched_cluster import WatchedCluster
from tutti.wire.recording.reader import RecordingReader

NOW = 1_800_000_000_000_000
SECOND = 1_000_000


def watched(**times: int) -> WatchedCluster:
    return WatchedCluster(Profile.default(), quick_policy(**times))


def places(cluster: WatchedCluster, *entries: Any, now: int = NOW) -> dict[str, str]:
    """Run a session and return the planned node of each pod."""
    return {bound.pod: bound.node for bound in cluster.run_session(entries, now).plan.binds}


def test_reports_become_a_plan() -> None:
    cluster = watched()
    cluster.apply([Put(node("n1")), Put(pod("a", "3"))], NOW)
    assert places(cluster, Put(pod("b", "3"))) == {"default/a": "n1"}
    assert places(cluster) == {}
    assert places(cluster, Remove("Pod", "default/a", "a"), now=NOW + SECOND) == {"default/b": "n1"}


def test_a_refused_binding_is_planned_elsewhere_after_its_backoff() -> None:
    cluster = watched(first_backoff=SECOND, longest_backoff=SECOND, avoided_for=60 * SECOND)
    first = places(cluster, Put(node("n1")), Put(node("n2")), Put(pod("a")))["default/a"]
    result = cluster.run_session([RefusedBinding("default/a", "a", first, "no", avoids_node=True)], NOW)
    assert not result.plan.binds
    assert result.wake == NOW + SECOND
    assert places(cluster, now=NOW + SECOND) == {"default/a": "n2" if first == "n1" else "n1"}


def test_a_gang_that_could_not_begin_avoids_no_node_but_the_cordoned_one() -> None:
    """All members are refused, which is one failure, and the eight other nodes are free."""
    cluster = WatchedCluster(Profile.default(), SchedulerOptions().policy)
    gang = [Put(pod(f"g-{n}", "4", labels={COSCHEDULING_LABEL: "g"})) for n in range(8)]
    binds = cluster.run_session(
        [Put(pod_group("g", 8)), *(Put(node(f"n{n}")) for n in range(9)), *gang], NOW
    ).plan.binds
    cordoned = binds[0].node
    refused = [RefusedBinding(each.pod, each.uid, each.node, f"node {cordoned} is cordoned") for each in binds]
    result = cluster.run_session([Put(node(cordoned, unschedulable=True)), *refused], NOW)
    assert not result.plan.binds
    assert result.wake == NOW + SECOND
    assert len(places(cluster, now=NOW + SECOND)) == 8


def test_surplus_whose_binding_is_refused_waits_for_its_own_backoff() -> None:
    """The backoff doubles with every refusal, and changes of the gang do not end it."""
    cluster = watched(first_backoff=SECOND, longest_backoff=10 * SECOND)
    gang = [pod(f"g-{n}", "1", labels={COSCHEDULING_LABEL: "g"}) for n in range(3)]
    binds = cluster.run_session([Put(pod_group("g", 2)), Put(node("n1")), *map(Put, gang)], NOW).plan.binds
    now, pauses = NOW, []
    reports: list[Any] = [Put(replace(each, spec=replace(each.spec, node_name="n1"))) for each in gang[:2]]
    for _ in range(5):
        surplus = binds[-1]
        assert surplus.pod == "default/g-2"
        refusal = RefusedBinding(surplus.pod, surplus.uid, surplus.node, "no")
        result = cluster.run_session([*reports, refusal], now)
        assert not result.plan.binds
        assert result.wake is not None
        pauses.append((result.wake - now) // SECOND)
        now, reports = result.wake, []
        binds = cluster.run_session([], now).plan.binds
    assert pauses == [1, 2, 4, 8, 10]


def test_a_refusal_of_a_pod_that_is_gone_or_another_changes_nothing() -> None:
    cluster = watched()
    places(cluster, Put(node("n1")), Put(pod("a", "4")))
    cluster.apply([RefusedBinding("default/unknown", "u", "n1", "no")], NOW)
    cluster.apply([Remove("Pod", "default/a", "a"), Put(pod("a", "4", uid="new"))], NOW)
    assert places(cluster, RefusedBinding("default/a", "a", "n1", "no")) == {"default/a": "n1"}


def test_a_refusal_after_the_watch_has_reported_the_binding() -> None:
    cluster = watched()
    places(cluster, Put(node("n1")), Put(pod("a", "4")))
    assert places(cluster, Put(pod("a", "4", on="n1")), RefusedBinding("default/a", "a", "n1", "no")) == {}
    assert places(cluster, Put(pod("b", "4"))) == {}


def test_a_binding_that_is_taken_back_is_planned_at_once() -> None:
    cluster = watched()
    assert places(cluster, Put(node("n1")), Put(pod("a"))) == {"default/a": "n1"}
    assert places(cluster, TakenBackBinding("default/a", "a")) == {"default/a": "n1"}


def test_after_a_refused_eviction_another_victim_is_chosen_for_a_while() -> None:
    """The room and the nomination are given back at once; when no victim is left, no node is bought for that."""
    cluster = watched(first_backoff=SECOND, longest_backoff=SECOND, avoided_for=60 * SECOND)
    cluster.apply([Put(node("n1")), Put(node("n2")), Put(pod("v", "3", on="n1", priority=1))], NOW)
    plan = cluster.run_session([Put(pod("w", "3", on="n2", priority=2)), Put(pod("a", "3", priority=9))], NOW).plan
    for number, name in enumerate("vw"):
        assert [each.pod for each in plan.evictions] == [f"default/{name}"]
        assert [each.pod for each in plan.nominated] == ["default/a"]
        refusal = RefusedEviction(f"default/{name}", name, "default/a", "no")
        plan = cluster.run_session([refusal], NOW + number * SECOND + 1).plan
        assert not plan.evictions
        assert plan.released == ("default/a",)
        plan = cluster.run_session([], NOW + (number + 1) * SECOND).plan
    assert not plan.evictions
    (waiting,) = plan.unschedulable
    assert waiting.waits_for == "correction"
    assert "Pods spared for a while because their eviction was refused: 2." in waiting.message
    result = cluster.run_session([], NOW + 60 * SECOND)
    assert result.wake == NOW + 60 * SECOND + 1
    assert [each.pod for each in cluster.run_session([], result.wake).plan.evictions] == ["default/v"]


def test_an_eviction_that_was_not_sent_spares_nobody() -> None:
    cluster = watched(first_backoff=SECOND)
    cluster.apply([Put(node("n1")), Put(pod("v", "3", on="n1", priority=1))], NOW)
    assert cluster.run_session([Put(pod("a", "3", priority=9))], NOW).plan.evictions
    refusal = RefusedEviction("default/v", "v", "default/a", "not the leader", spares_victim=False)
    assert cluster.run_session([refusal], NOW + 1).plan.released == ("default/a",)
    assert [each.pod for each in cluster.run_session([], NOW + SECOND).plan.evictions] == ["default/v"]


def test_refusals_are_replayed(tmp_path: Path) -> None:
    """The queue is told of them as in the recorded run, so that the plans are the same."""
    policy = replace(quick_policy(first_backoff=SECOND, avoided_for=60 * SECOND), budget=None)
    recorder = SessionRecorder(tmp_path, scheduler_name="default-scheduler", now=lambda: NOW)
    cluster = WatchedCluster(Profile.default(), policy, recorder=recorder)
    entries: list[Any] = [Put(node("n1")), Put(node("n2")), Put(pod("a", "3", priority=9))]
    entries += [Put(pod("v", "3", on="n1", priority=1)), Put(pod("w", "3", on="n2", priority=2))]
    evicted = []
    for number in range(10):
        plan = cluster.run_session(entries, NOW + number * 9 * SECOND).plan
        evicted += [each.pod for each in plan.evictions]
        entries = [RefusedEviction(each.pod, each.uid, each.by, "no") for each in plan.evictions]
        entries += [RefusedBinding(each.pod, each.uid, each.node, "no") for each in plan.binds]
    recorder.close()
    assert set(evicted) == {"default/v", "default/w"}
    (file,) = tmp_path.iterdir()
    result = replay(RecordingReader([gzip.decompress(file.read_bytes())], file=file.name))
    assert result.is_same, str(result)


def test_an_object_that_cannot_be_read_keeps_its_last_version() -> None:
    cluster = watched()
    places(cluster, Put(node("n1")), Put(pod("a", "3", on="n1")))
    cluster.apply([Unreadable("Pod", "default/a", "a", "spec.containers: 7")], NOW)
    assert cluster.cluster.set_aside["Pod", "default/a"] == "spec.containers: 7"
    assert places(cluster, Put(pod("b", "3"))) == {}
