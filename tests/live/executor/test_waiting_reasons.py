"""Why a pod waits, in the words of its condition."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from tutti.engine.session.plan import Eviction, Nominated, Plan, Unschedulable, WaitsFor
from tutti.live.executor.waiting_reasons import Waiting, waiting_pods


@pytest.mark.parametrize(
    ("waits_for", "reason"),
    [
        ("room", "Unschedulable"),
        ("members", "WaitingForGang"),
        ("victims", "WaitingForPreemption"),
        ("budgets", "WaitingForBudget"),
        ("correction", "SchedulerError"),
    ],
)
def test_only_lack_of_room_is_unschedulable(waits_for: WaitsFor, reason: str) -> None:
    plan = Plan.of((), (), [Unschedulable("default/a", "no", waits_for=waits_for)], ())
    assert list(waiting_pods(plan)) == [Waiting("default/a", reason, "no", is_repeated=waits_for == "victims")]


@pytest.mark.parametrize(
    ("victims", "names"),
    [
        ([], "terminating pods"),
        (["a"], "default/a"),
        (["a", "b", "c"], "default/a, default/b, default/c"),
        (["a", "b", "c", "d", "e"], "default/a, default/b, default/c and 2 more"),
    ],
)
@pytest.mark.parametrize("gang", [None, "default/g"])
def test_nominated_pods_wait_for_their_victims(victims: list[str], names: str, gang: str | None) -> None:
    nominated = Nominated("default/p", "n1", gang=gang)
    evictions = [Eviction(f"default/{name}", "n1", gang or "default/p") for name in victims]
    others = [Eviction("default/x", "n2", "default/q")]
    plan = replace(Plan.of((), [*evictions, *others], (), ()), nominated=(nominated,))
    message = f"room is held on node n1 until {names} {'has' if len(victims) == 1 else 'have'} left"
    assert list(waiting_pods(plan)) == [Waiting("default/p", "WaitingForPreemption", message)]
