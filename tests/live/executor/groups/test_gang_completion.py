"""When the planned bindings of a gang have all succeeded, and when a gang is forgotten."""

from __future__ import annotations

from tutti.engine.session.plan import Bound, GangPlan, Plan
from tutti.live.executor.groups.gang_completion import GangCompletion

GANG = "default/g"


def plan(*names: str, running: int = 0, dialect: str = "native") -> Plan:
    gang = GangPlan(
        gang=GANG, dialect=dialect, minimum=2, pods=2, running=running, missing=len(names), placed=len(names)
    )
    return Plan.of(map(bound, names), (), (), (), (), [gang])


def bound(name: str) -> Bound:
    return Bound(f"default/{name}", "n1", gang=GANG)


def test_a_gang_is_complete_with_its_last_binding() -> None:
    completion = GangCompletion("native")
    completion.expect(plan("g-0", "g-1"))
    assert completion.note_bound(bound("g-0")) is None
    gang = completion.note_bound(bound("g-1"))
    assert gang is not None
    assert gang.gang == GANG
    assert completion.note_bound(bound("g-2")) is None
    assert len(completion) == 0


def test_gangs_of_other_dialects_are_not_followed() -> None:
    completion = GangCompletion("native")
    completion.expect(plan("g-0", dialect="volcano"))
    assert completion.note_bound(bound("g-0")) is None


def test_a_gang_whose_pod_is_gone_is_forgotten() -> None:
    completion = GangCompletion("native")
    completion.expect(plan("g-0", "g-1"))
    completion.note_bound(bound("g-0"))
    completion.note_gone("default/g-0")
    assert len(completion) == 1
    completion.note_gone("default/g-1")
    assert len(completion) == 0


def test_a_later_plan_replaces_an_earlier_one() -> None:
    completion = GangCompletion("native")
    completion.expect(plan("g-0", "g-1"))
    completion.note_bound(bound("g-0"))
    completion.expect(plan("g-2", running=1))
    completion.note_gone("default/g-1")
    assert completion.note_bound(bound("g-2")) is not None
