"""Times without a scheduler that can act, and gangs that are partial."""

from __future__ import annotations

from typing import Any

import pytest

from tests.controlplane.faults.checks.availability import (
    able_intervals,
    leader_changes,
    leading_intervals,
    refused_intervals,
)
from tests.controlplane.faults.checks.history import (
    AuditedWrite,
    Fault,
    GangChange,
    OpenWatch,
    PodChange,
    ProcessChange,
    Record,
    history_of,
)
from tests.controlplane.faults.checks.intervals import intersected, merged, total, without
from tests.controlplane.faults.checks.partial_gangs import PartialGang, partial_gangs

START = ProcessChange(0, 0, "start")
WATCHES = [OpenWatch(0, 100, 0, kind) for kind in ("pods", "nodes", "podgroups")]


def bound(time: float, name: str, gang: str = "g", **fields: Any) -> PodChange:
    return PodChange(time, name, name, gang, node="n", **fields)


def found(*records: Record, end: float = 100) -> list[PartialGang]:
    history = history_of([START, *WATCHES, GangChange(0, "g", 3), *records], end=end)
    return partial_gangs(history, able_intervals(history), refused_intervals(history))


def able(*records: Record) -> list[tuple[float, float]]:
    return able_intervals(history_of(records, end=100))


def lease(time: float, holder: str, replica: int = 0) -> AuditedWrite:
    return AuditedWrite(time, replica, "lease", "tutti", holder=holder, duration=15)


def test_sets_of_intervals() -> None:
    assert merged([(3, 4), (1, 2), (2, 3), (6, 5)]) == [(1, 4)]
    assert intersected([(0, 5), (6, 9)], [(4, 7), (8, 10)]) == [(4, 5), (6, 7), (8, 9)]
    assert without([(0, 10)], [(-1, 1), (2, 3), (9, 12)]) == [(1, 2), (3, 9)]
    assert total([(0, 1), (5, 7)]) == 3


# When the scheduler can act -------------------------------------------------------------------------------------------


def test_a_scheduler_without_a_lease_leads_while_it_runs() -> None:
    killed = [ProcessChange(10, 0, "kill"), ProcessChange(12, 0, "start")]
    assert able(START, *WATCHES, *killed) == [(0, 10), (12, 100)]
    frozen = [ProcessChange(10, 0, "freeze"), ProcessChange(30, 0, "thaw"), ProcessChange(40, 0, "exit")]
    assert able(START, *WATCHES, *frozen) == [(0, 10), (30, 40)]


def test_a_watch_must_be_open_and_not_held_back() -> None:
    late = [OpenWatch(5, 100, 0, "pods"), OpenWatch(0, 90, 0, "nodes")]
    assert able(START, *late) == [(5, 90)]
    held = Fault(20, 25, 0, 0, "held-watch", "watch", "GET", "/api/v1/pods")
    other = Fault(50, 55, 0, 0, "held-watch", "watch", "GET", "/api/v1/services")
    assert able(START, *late, held, other) == [(5, 20), (25, 90)]
    assert able(START) == []


def test_a_partition_is_an_excuse_of_its_replica() -> None:
    partitions = [Fault(20, 30, 0, 0, "partition", "all"), Fault(50, 55, 0, 1, "partition", "all")]
    assert able(START, *WATCHES, *partitions) == [(0, 20), (30, 100)]


def test_a_leader_leads_until_its_renew_deadline() -> None:
    """The lease lasts 15 s, so a leader acts until 10 s after its last renewal."""
    history = history_of([START, lease(5, "a"), lease(7, "a")], end=100)
    assert leading_intervals(history) == {0: [(5, 17)]}


def test_leadership_ends_with_the_process_a_release_or_another_leader() -> None:
    both = [START, ProcessChange(0, 1, "start"), ProcessChange(6, 0, "kill"), ProcessChange(7, 0, "start")]
    history = history_of([*both, lease(5, "a"), lease(20, "b", 1), lease(22, "", 1), lease(23, "c")], end=30)
    assert leading_intervals(history) == {0: [(5, 6), (23, 30)], 1: [(20, 22)]}
    assert leader_changes(history) == 2


# Partial gangs --------------------------------------------------------------------------------------------------------


def test_a_gang_that_is_bound_whole_is_partial_for_a_moment() -> None:
    periods = found(bound(10, "a"), bound(10.5, "b"), bound(11, "c"))
    assert periods == [PartialGang("g", 10, 11, 1.0, was_whole=False, is_open=False)]


def test_a_gang_without_pods_is_not_partial() -> None:
    assert not found(PodChange(1, "a", "a", "g"))
    assert not found(bound(1, "a", gang="unknown"))


def test_a_gang_that_is_undone_is_not_partial_any_more() -> None:
    (period,) = found(bound(10, "a"), bound(14, "a", deleting=True))
    assert (period.seconds, period.is_open) == (4, False)


@pytest.mark.parametrize("lost", [{"gone": True}, {"phase": "Failed"}, {"deleting": True}])
def test_a_gang_that_loses_a_pod_is_partial(lost: dict[str, Any]) -> None:
    whole = [bound(1, name) for name in "abc"]
    (period,) = found(*whole, bound(20, "a", **lost), bound(26, "d"))
    assert (period.seconds, period.was_whole) == (6, True)


def test_a_gang_that_is_partial_at_the_end_is_open() -> None:
    (period,) = found(bound(60, "a"))
    assert (period.seconds, period.is_open) == (40, True)


def test_a_deleted_gang_does_not_count() -> None:
    ended = GangChange(20, "g", 3, ended=True)
    (period,) = found(bound(18, "a"), ended, bound(25, "b"))
    assert (period.end, period.is_open) == (20, False)
    assert not found(ended, bound(25, "b"))


def test_only_time_counts_in_which_the_scheduler_can_act() -> None:
    killed = [ProcessChange(10, 0, "kill"), ProcessChange(15, 0, "start")]
    (period,) = found(*killed, bound(9, "a"), bound(17, "b"), bound(17, "c"))
    assert (period.seconds, period.able) == (8, 3)


def test_a_refused_write_excuses_the_gang_of_its_pod_only() -> None:
    path = "/api/v1/namespaces/default/pods/{}/binding"
    refused = [
        Fault(10, 11, 0, 0, "429", "bind", "POST", path.format("b"), 2),
        Fault(14, 15, 0, 0, "delay", "bind", "POST", path.format("other")),
        Fault(14, 15, 0, 0, "delay", "event", "POST", "/api/v1/namespaces/default/events"),
    ]
    (period,) = found(*refused, bound(9, "a"), bound(17, "b"), bound(17, "c"), bound(1, "other", gang="h"))
    assert (period.seconds, period.able) == (8, 5)
