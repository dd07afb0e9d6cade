"""The last plans: counts by namespace, evictions, and a bounded history."""

from __future__ import annotations

from tutti.engine.session.plan import Bound, Eviction, GangPlan, Plan, Unschedulable
from tutti.live.introspection.plan_history import PlanHistory
from tutti.live.introspection.state_query import StateQuery

NOW = 1_800_000_000_000_000


def plan() -> Plan:
    return Plan.of(
        [Bound("a/g-0", "n1", gang="a/g"), Bound("a/g-1", "n1", gang="a/g"), Bound("b/x", "n2")],
        [Eviction("b/victim", "n1", "a/g"), Eviction("c/victim", "n1", "c/other")],
        [Unschedulable("a/y", "no room"), Unschedulable("b/z", "no members", waits_for="members")],
        [],
        gangs=[GangPlan("a/g", "annotation", 2, 2, 0, missing=2, placed=2)],
    )


def test_a_plan_is_summarised() -> None:
    history = PlanHistory()
    history.note(plan(), now=NOW, seconds=0.0123)
    (shown,) = history.shown(StateQuery())
    assert (shown.time, shown.milliseconds) == ("2027-01-15T08:00:00Z", 12.3)
    assert (shown.binds, shown.evicted, shown.gangs_started) == (3, 2, 1)
    assert shown.waiting == {"room": 1, "members": 1}
    assert [each.pod for each in shown.evictions] == ["b/victim", "c/victim"]


def test_a_tenant_sees_what_concerns_the_namespace() -> None:
    history = PlanHistory()
    history.note(plan(), now=NOW, seconds=0.1)
    (shown,) = history.shown(StateQuery(namespace="b", hides_others=True))
    assert (shown.binds, shown.gangs_started, shown.waiting) == (1, 0, {"members": 1})
    assert [(each.pod, each.by) for each in shown.evictions] == [("b/victim", "another namespace")]
    (shown,) = history.shown(StateQuery(namespace="a", hides_others=True))
    assert [(each.pod, each.by) for each in shown.evictions] == [("another namespace", "a/g")]
    assert history.shown(StateQuery(namespace="d", hides_others=True)) == ()


def test_quiet_sessions_are_not_kept_and_old_ones_are_forgotten() -> None:
    history = PlanHistory()
    history.note(Plan.of([], [], [], []), now=NOW, seconds=0.1)
    assert history.shown(StateQuery()) == ()
    for number in range(70):
        history.note(plan(), now=NOW + number, seconds=0.1)
    shown = history.shown(StateQuery())
    assert len(shown) == 50
    assert shown[0].time > shown[-1].time
