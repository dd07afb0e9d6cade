"""The table that `tutti schedule` prints where no gang has a part in the plan."""

from __future__ import annotations

import pytest

from tutti.engine.session.plan import Bound, Eviction, Plan
from tutti.present.pod_plan_table import pod_plan_summary


def plan(evicted: int, moved: int) -> Plan:
    """A pod is placed; pods are evicted and moved for it."""
    gone = [Eviction(pod=f"default/gone-{number}", node="a", by="default/x") for number in range(evicted)]
    gone += [Eviction(pod=f"default/moved-{number}", node="a", by="default/x", to="b") for number in range(moved)]
    return Plan.of([Bound(pod="default/x", node="a")], gone, (), ())


@pytest.mark.parametrize(
    ("evicted", "moved", "words"),
    [
        (0, 0, ""),
        (1, 0, ", 1 pod evicted"),
        (0, 2, ", 2 pods moved"),
        (1, 2, ", 1 pod evicted, 2 pods moved"),
        (3, 1, ", 3 pods evicted, 1 pod moved"),
    ],
)
def test_summary_counts_evictions_and_moves_apart(evicted: int, moved: int, words: str) -> None:
    assert pod_plan_summary(plan(evicted, moved)) == f"1 pending pod: 1 placed, 0 cannot be placed{words}"
