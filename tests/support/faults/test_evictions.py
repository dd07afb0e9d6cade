"""Evictions without a condition, a beneficiary or an end: the check fails and passes."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from tests.controlplane.faults.checks.evictions import PREEMPTED, preempted_pods, useless_evictions
from tests.controlplane.faults.checks.history import (
    AuditedWrite,
    GangChange,
    NodeChange,
    PodChange,
    ProcessChange,
    Record,
    history_of,
)
from tests.controlplane.faults.soak_report import find_violations, missed_numbers
from tests.controlplane.faults.watch_recorder import pod_change

NOBODY = "no pod of a higher priority waited"
FOR_NOTHING = "high has neither started nor been told why it waits"


def pod(time: float, name: str, node: str = "", **fields: object) -> PodChange:
    return PodChange(time, name, name, node=node, **fields)  # type: ignore[arg-type]


def victim(name: str = "v", at: float = 10.0, **fields: object) -> list[PodChange]:
    """Return the changes of a pod of low priority that gets a condition and is deleted."""
    given = {"gang": "low", "priority": 100} | fields
    told = {"disruption": PREEMPTED} | given
    return [pod(1, name, "n", **given), pod(at - 1, name, "n", **told), pod(at, name, "n", **told, deleting=True)]


DELETE = AuditedWrite(10, 0, "delete", "v", "v")
WAITS = pod(5, "p", gang="high", priority=200, nominated="n")
TOLD = replace(WAITS, time=11, reason="Unschedulable", message="no room")


def useless(*records: Record) -> list[str]:
    node = NodeChange(0, "n", cpu=2000, memory=1 << 30, pods=3)
    return [each.problem for each in useless_evictions(history_of([node, *records], end=100))]


def test_an_eviction_for_a_pod_that_starts_is_useful() -> None:
    assert not useless(*victim(), DELETE, WAITS, replace(WAITS, time=11, node="n"))
    assert preempted_pods(history_of(victim())) == 1


def test_a_late_eviction_for_a_pod_that_has_started_is_useful() -> None:
    assert not useless(*victim(), DELETE, WAITS, replace(WAITS, time=9, node="n"))
    early = [replace(WAITS, time=-9.0), replace(WAITS, time=-5.0, node="n")]
    assert useless(*victim(), DELETE, *early) == [NOBODY]


def test_an_eviction_for_a_pod_that_is_told_why_it_waits_is_useful() -> None:
    assert not useless(*victim(), DELETE, WAITS, TOLD)


def test_an_old_message_does_not_explain_an_eviction() -> None:
    old = replace(TOLD, time=6)
    assert useless(*victim(), DELETE, WAITS, old, replace(old, time=12, nominated="")) == [FOR_NOTHING]


def test_an_eviction_for_a_gang_that_its_user_deletes_is_useful() -> None:
    assert not useless(*victim(), DELETE, WAITS, GangChange(11, "high", 1, 200, ended=True))
    assert useless(*victim(), DELETE, WAITS, GangChange(-9, "high", 1, 200, ended=True)) == [FOR_NOTHING]
    gone = replace(WAITS, time=11, gone=True)
    assert useless(*victim(), DELETE, WAITS, gone) == [FOR_NOTHING]


def test_a_single_pod_may_be_deleted_by_its_user_and_not_by_the_scheduler() -> None:
    single = replace(WAITS, gang="")
    gone = replace(single, time=11, gone=True)
    assert not useless(*victim(), DELETE, single, gone)
    assert useless(*victim(), DELETE, single, gone, AuditedWrite(11, 0, "delete", "p", "p"))


def test_an_eviction_without_a_condition_is_useless() -> None:
    assert useless(*victim(disruption=""), DELETE, WAITS, TOLD) == ["it has no condition DisruptionTarget"]


def test_a_condition_that_was_taken_back_does_not_count() -> None:
    status = {"conditions": [{"type": "DisruptionTarget", "status": "True", "reason": PREEMPTED, "message": "for p"}]}
    item = {"metadata": {"uid": "v", "name": "v"}, "spec": {"containers": []}, "status": status}
    assert pod_change(1, item, gone=False).disruption_message == "for p"
    status["conditions"][0]["status"] = "False"
    assert not pod_change(1, item, gone=False).disruption
    without = pod(9.5, "v", "n", gang="low", priority=100)
    changes = [*victim()[:2], without, replace(without, time=10, deleting=True)]
    assert useless(*changes, DELETE, WAITS, TOLD) == ["it has no condition DisruptionTarget"]


def test_an_eviction_for_nobody_is_useless() -> None:
    assert useless(*victim(), DELETE) == [NOBODY]
    assert useless(*victim(), DELETE, replace(WAITS, priority=100), replace(TOLD, priority=100)) == [NOBODY]


def test_an_eviction_for_a_pod_that_waits_silently_is_useless() -> None:
    assert useless(*victim(), DELETE, WAITS) == [FOR_NOTHING]


def test_a_nomination_names_the_beneficiary() -> None:
    other = pod(5, "q", gang="other", priority=200)
    starts = replace(other, time=11, node="m")
    assert useless(*victim(), DELETE, WAITS, other, starts) == [FOR_NOTHING]
    assert not useless(*victim(), DELETE, replace(WAITS, nominated=""), other, starts)


@pytest.mark.parametrize("name", ["default/high", "pod p", "default/p"])
def test_the_condition_names_the_beneficiary(name: str) -> None:
    """By the gang, or by a uid or name of one of its pods, which stands for its gang."""
    named = victim(disruption_message=f"tutti: preempting to accommodate {name} of a higher priority")
    other = [pod(5, "q", gang="other", priority=200, nominated="n"), pod(11, "q", "m", gang="other", priority=200)]
    waits = replace(WAITS, nominated="")
    assert useless(*named, DELETE, waits, *other) == [FOR_NOTHING]
    assert not useless(*named, DELETE, waits, *other, pod(11, "p2", gang="high", priority=200), replace(TOLD, time=12))
    assert useless(*named, DELETE, *other, replace(waits, priority=100)) == [NOBODY]


def test_evictions_for_a_gang_that_never_starts_are_limited() -> None:
    victims: list[Record] = []
    for number in range(40):
        at = 10 + number
        victims += [*victim(f"v{number}", at), AuditedWrite(at, 0, "delete", f"v{number}", f"v{number}")]
    told = [replace(TOLD, time=60)]
    found = useless(*victims, WAITS, *told)
    assert found[0] == "33 pods were evicted for high, which has not started"
    assert len(found) == 8
    starts = pod(20, "p2", "n", gang="high", priority=200)
    assert not useless(*victims, WAITS, *told, replace(starts, time=19, node=""), starts)


def test_an_undone_member_is_replaced_or_explained() -> None:
    undone = [
        pod(1, "v", "n", gang="g"),
        pod(10, "v", "n", gang="g", deleting=True, disruption="Undone"),
        pod(11, "v", "n", gang="g", gone=True),
    ]
    by_name, waits = replace(DELETE, uid=""), pod(12, "w", gang="g")
    assert useless(*undone, by_name, waits) == ["its gang has neither started nor been told why it waits"]
    assert not useless(*undone, by_name, waits, pod(13, "w", "n", gang="g"))
    assert not useless(*undone, by_name, replace(waits, message="waits for 2 more members"))
    assert not useless(*undone, by_name, GangChange(12, "g", 2, ended=True))


def test_a_partial_gang_may_be_undone_as_a_preemption() -> None:
    """The gang was partial before its pod was told of a preemption, so nobody else need wait."""
    gang, waits = GangChange(0, "low", 2, 100), pod(12, "w", gang="low")
    assert not useless(gang, *victim(), DELETE, replace(waits, message="waits for a member"))
    assert useless(gang, *victim(), DELETE, waits)
    own = victim(disruption_message="tutti: default/low cannot be completed")
    assert not useless(*own, DELETE, replace(waits, message="waits for a member"))


def test_a_preempted_gang_is_not_undone() -> None:
    """The gang became partial because its first pod was evicted."""
    gang, other = GangChange(0, "low", 2, 100), victim("u", 11)
    deletes = [replace(DELETE, time=9.9), AuditedWrite(10.9, 0, "delete", "u", "u")]
    told = pod(12, "w", gang="low", message="waits for a member")
    assert useless(gang, *victim(), *other, *deletes, told) == [NOBODY] * 2


def test_a_deleted_pod_without_a_node_is_no_eviction() -> None:
    assert not useless(pod(1, "v"), pod(10, "v", gone=True), DELETE)


def test_a_run_that_ends_too_early_is_no_success() -> None:
    lease = AuditedWrite(1, 0, "lease", "l", holder="a")
    history = history_of([ProcessChange(1, 0, "kill"), lease, replace(lease, time=2, holder="b")])
    assert not missed_numbers(history, faults=0, kills=1, leader_changes=1)
    missed = missed_numbers(history, faults=3, kills=2, leader_changes=2)
    assert missed == ["only 0 of 3 faults", "only 1 of 2 kills", "only 1 of 2 changes of leader"]
    assert replace(find_violations(history, limit=5), missed=missed).broken == missed
