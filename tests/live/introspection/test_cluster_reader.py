"""What is read from the cluster and the queue: turns with reasons and next tries, holds, gangs, numbers, limits."""

from __future__ import annotations

from typing import Any

from tests.support.builders import node, pod
from tutti.cluster.edits import Hold, Put, Remove
from tutti.engine.placement.profile import Profile
from tutti.engine.session.policy import SECOND, Patience, Policy
from tutti.kube.objects import Pod
from tutti.live.introspection.cluster_reader import ClusterPart, ClusterReader
from tutti.live.introspection.state_query import StateQuery
from tutti.live.watched_cluster import WatchedCluster

NOW = 1_800_000_000 * SECOND


def gang(name: str, count: int, minimum: int, **how: Any) -> list[Pod]:
    about = {"pod-group": name, "tutti.dev/min-member": str(minimum)}
    return [pod(f"{name}-{number}", annotations=about, **how) for number in range(count)]


def watched(*objects: Any, session: bool = True) -> WatchedCluster:
    cluster = WatchedCluster(Profile.default(), Policy())
    cluster.apply([Put(obj) for obj in objects], NOW)
    if session:
        cluster.run_session((), NOW)
    return cluster


def read(cluster: WatchedCluster, now: int = NOW, **query: Any) -> ClusterPart:
    return ClusterReader(cluster).read(StateQuery(**query), now)


def test_a_turn_that_waits_for_room_says_why_and_when_it_is_tried_again() -> None:
    part = read(watched(node("n1"), pod("big", cpu="8"), pod("small")), NOW + 5 * SECOND)
    (turn, its_pod), *others = part.queue
    assert not others
    assert its_pod == "default/big"
    assert (turn.name, turn.kind, turn.position, turn.attempts, turn.state) == ("big", "pod", 1, 1, "waiting")
    assert "1 Insufficient cpu" in turn.message
    assert turn.since == turn.tried == "2027-01-15T08:00:00Z"
    assert turn.next_try == "2027-01-15T08:05:00Z"
    assert "node added" in turn.cures
    assert [each.pod for each in part.assumed] == ["default/small"]


def test_a_turn_is_in_backoff_when_a_change_may_have_cured_it() -> None:
    cluster = watched(node("n1"), pod("big", cpu="8"))
    cluster.apply([Put(node("n2", cpu="16"))], NOW)
    cluster.queue.sync(cluster.engine, NOW, Patience())
    ((turn, _),) = read(cluster).queue
    assert (turn.state, turn.next_try) == ("backoff", "2027-01-15T08:00:01Z")
    ((later, _),) = read(cluster, NOW + 2 * SECOND).queue
    assert (later.state, later.next_try) == ("due", None)


def test_positions_count_all_namespaces() -> None:
    pods = [pod(f"p{n}", cpu="8", namespace="ab"[n % 2], priority=n) for n in range(6)]
    cluster = watched(node("n1"), *pods)
    part = read(cluster, namespace="a")
    assert [(turn.name, turn.position) for turn, _ in part.queue] == [("p4", 2), ("p2", 4), ("p0", 6)]
    assert not part.left_out


def test_lists_are_cut_off_and_the_rest_is_counted() -> None:
    cluster = watched(node("n1"), *(pod(f"p{n}", cpu="8") for n in range(5)), *gang("a", 1, 2), *gang("b", 1, 2))
    part = read(cluster, limit=2)
    assert len(part.queue) == 2
    assert part.left_out == {"queue": 5}
    assert read(cluster, limit=1).left_out == {"queue": 6, "gangs": 1}


def test_gangs_that_need_attention_come_first() -> None:
    cluster = watched(node("n1"), *gang("runs", 2, 2), *gang("waits", 2, 3), *gang("above", 3, 1, cpu="2"))
    part = read(cluster)
    assert [(each.name, each.phase) for each in part.gangs] == [
        ("waits", "waiting"), ("above", "whole"), ("runs", "whole"),
    ]  # fmt: skip
    assert part.gangs[0].message == "2 of 3 pods exist: the gang waits for 1 more"
    assert part.numbers.gangs == {"problem": 0, "waiting": 1, "partial": 0, "whole": 2}
    assert part.numbers.pending["unschedulable"] == 4, "two members, and two pods above a minimum"
    assert {(turn.name, turn.kind) for turn, _ in part.queue} == {("waits", "gang"), ("above", "surplus")}


def test_numbers_follow_gangs_that_come_and_go() -> None:
    cluster = watched(node("n1"), *gang("a", 2, 2))
    reader = ClusterReader(cluster)
    assert reader.numbers(NOW).gangs["whole"] == 1
    cluster.apply([Put(each) for each in gang("b", 1, 2)], NOW)
    cluster.run_session((), NOW)
    assert (reader.numbers(NOW).gangs["whole"], reader.numbers(NOW).gangs["waiting"]) == (1, 1)
    cluster.apply([Remove("Pod", "default/a-0"), Remove("Pod", "default/a-1")], NOW)
    assert reader.numbers(NOW).gangs == {"problem": 0, "waiting": 1, "partial": 0, "whole": 0}


def test_gated_pods_are_counted() -> None:
    gated = pod("gated", scheduling_gates=[{"name": "x"}])
    assert read(watched(node("n1"), gated)).numbers.pending == {
        "active": 0, "backoff": 0, "unschedulable": 0, "gated": 1,
    }  # fmt: skip


def test_one_pod_and_one_gang() -> None:
    cluster = watched(node("n1"), *gang("train", 2, 3), pod("single", cpu="9"), pod("runs", on="n1"))
    one = read(cluster, namespace="default", pod="train-0")
    assert [(each.pod, each.state, each.gang) for each in one.pods] == [("default/train-0", "waiting", "default/train")]
    assert [turn.name for turn, _ in one.queue] == ["train"]
    whole = read(cluster, namespace="default", gang="train")
    assert [each.pod for each in whole.pods] == ["default/train-0", "default/train-1"]
    assert [each.name for each in whole.gangs] == ["train"]
    single = read(cluster, namespace="default", pod="single")
    assert ([turn.name for turn, _ in single.queue], single.gangs) == (["single"], [])
    assert read(cluster, namespace="default", pod="runs").pods[0].node == "n1"
    assert read(cluster, namespace="default", pod="nobody").pods == []
    assert read(cluster, namespace="default", gang="nobody").gangs == []


def test_holds_have_amounts_and_an_end() -> None:
    cluster = watched(node("n1"), pod("big", cpu="8"), session=False)
    cluster.cluster.apply(Hold("default/big", "n1", NOW + 60 * SECOND))
    (hold,) = read(cluster).holds
    assert (hold.owner, hold.node, hold.until) == ("default/big", "n1", "2027-01-15T08:01:00Z")
    assert (hold.amounts["cpu"], hold.reserved) == ("8", False)
    assert read(cluster, namespace="other").holds == []


def test_a_reservation_of_another_namespace_is_shown_without_names() -> None:
    cluster = watched(node("n1"), pod("small", on="n1", cpu="1"), pod("big", cpu="4", namespace="secret"))
    later = NOW + 61 * SECOND
    cluster.run_session((), later)
    assert cluster.queue.reservation is not None
    reserved = read(cluster, later, namespace="default", hides_others=True).reservation
    assert reserved is not None
    assert (reserved.turn, reserved.nodes, reserved.holds) == ("", (), 1)
    everything = read(cluster, later)
    assert everything.reservation is not None
    assert everything.reservation.turn == "secret/big"
    assert [hold.reserved for hold in everything.holds] == [True]


def test_a_process_that_has_had_no_session_has_no_queue() -> None:
    part = read(watched(node("n1"), pod("a"), session=False))
    assert (part.queue, part.numbers.pending["active"], part.numbers.nodes) == ([], 0, 1)
