"""Nodes over their room, pods bound twice, pods lost: each check fails and passes."""

from __future__ import annotations

from tests.controlplane.faults.checks.history import (
    AuditedWrite,
    GangChange,
    NodeChange,
    PodChange,
    Record,
    history_of,
)
from tests.controlplane.faults.checks.invariants import (
    nodes_over_allocatable,
    pods_bound_twice,
    pods_lost,
    silent_pods,
)

NODE = NodeChange(0, "n", cpu=2000, memory=1 << 30, pods=3)


def pod(time: float, name: str, node: str = "", **fields: object) -> PodChange:
    given: dict[str, object] = {"gang": "g", "cpu": 1000, "memory": 1 << 20} | fields
    return PodChange(time, name, name, node=node, **given)  # type: ignore[arg-type]


def bind(time: float, name: str, node: str = "n", replica: int = 0) -> AuditedWrite:
    return AuditedWrite(time, replica, "bind", name, name, node)


def lost(*records: Record) -> list[str]:
    return [each.problem for each in pods_lost(history_of([NODE, GangChange(0, "g", 2, 100), *records], end=100))]


# Room -----------------------------------------------------------------------------------------------------------------


def test_a_node_has_room_for_what_it_has() -> None:
    assert not nodes_over_allocatable(history_of([NODE, pod(1, "a", "n"), pod(2, "b", "n")]))


def test_one_pod_too_many_is_found_for_each_resource() -> None:
    for fields, problem in (
        ({}, "cpu 3000m of 2000m after the bind of c"),
        ({"cpu": 0, "memory": 1 << 29}, f"memory {3 << 29} of {1 << 30} after the bind of c"),
    ):
        pods = [pod(time, name, "n", **fields) for time, name in enumerate("abc", 1)]
        (found,) = nodes_over_allocatable(history_of([NODE, *pods]))
        assert (found.time, found.name, found.problem) == (3, "n", problem)
    many = [pod(time, name, "n", cpu=0, memory=0) for time, name in enumerate("abcd", 1)]
    assert [each.problem for each in nodes_over_allocatable(history_of([NODE, *many]))] == [
        "4 of 3 pods after the bind of d"
    ]


def test_a_pod_takes_room_until_it_has_ended() -> None:
    full: list[Record] = [NODE, pod(1, "a", "n"), pod(2, "b", "n")]
    for change in (pod(3, "a", "n", phase="Succeeded"), pod(3, "a", "n", gone=True)):
        assert not nodes_over_allocatable(history_of([*full, change, pod(4, "c", "n")]))
    assert nodes_over_allocatable(history_of([*full, pod(3, "a", "n", deleting=True), pod(4, "c", "n")]))


# Binds ----------------------------------------------------------------------------------------------------------------


def test_two_accepted_bindings_of_a_pod_are_found() -> None:
    assert not pods_bound_twice(history_of([bind(1, "a"), bind(2, "b")]))
    (found,) = pods_bound_twice(history_of([bind(1, "a"), bind(2, "b"), bind(3, "a", replica=1)]))
    assert (found.time, found.name, found.problem) == (3, "a", "2 Bindings were accepted")


def test_a_pod_with_two_nodes_is_found() -> None:
    assert not pods_bound_twice(history_of([pod(1, "a"), pod(2, "a", "n"), pod(3, "a", "n", gone=True)]))
    (found,) = pods_bound_twice(history_of([pod(1, "a"), pod(2, "a", "n"), pod(3, "a", "m")]))
    assert found.problem == "moved from n to m"


# Waiting pods ---------------------------------------------------------------------------------------------------------


def test_a_gang_that_waits_although_it_fits_is_lost() -> None:
    assert lost(pod(1, "a"), pod(1, "b")) == ["2 of 2 wait, 2 would fit; no reason is given"]
    told = {"reason": "Unschedulable", "message": "0/1 nodes"}
    assert lost(pod(1, "a", **told), pod(1, "b", **told)) == ["2 of 2 wait, 2 would fit; Unschedulable: 0/1 nodes"]


def test_a_gang_that_does_not_fit_is_not_lost() -> None:
    assert not lost(pod(1, "other", "n", gang=""), pod(1, "a"), pod(1, "b"))
    assert not lost(pod(1, "a", cpu=1500), pod(1, "b", cpu=1500))
    assert not lost(pod(1, "a"))  # a member is missing


def test_a_missing_member_that_fits_is_lost() -> None:
    assert lost(pod(1, "a", "n"), pod(1, "b")) == ["1 of 2 wait, 1 would fit; no reason is given"]


def test_room_of_nominated_pods_is_taken() -> None:
    nominated = pod(1, "x", gang="h", priority=200, nominated="n")
    assert not lost(pod(1, "a"), pod(1, "b"), nominated)
    assert lost(pod(1, "a", priority=300), pod(1, "b", priority=300), nominated)


def test_gangs_that_are_gone_are_not_lost() -> None:
    assert not lost(pod(1, "a"), pod(1, "b"), GangChange(5, "g", 2, ended=True))
    assert not lost(pod(1, "a"), pod(1, "b"), pod(2, "a", gone=True))


def test_pods_that_wait_silently_are_found() -> None:
    told = pod(1, "b", reason="Unschedulable", message="0/1 nodes")
    assert [each.name for each in silent_pods(history_of([pod(1, "a"), told, pod(1, "c", "n")]))] == ["a"]
