"""The loss of victim sets: which pods leave if gangs may be evicted pod by pod, or only whole."""

from __future__ import annotations

import pytest

from tests.support.builders import COSCHEDULING_LABEL, node, pod, pod_group
from tutti.cluster.cluster import Cluster
from tutti.engine.session.schedule import schedule
from tutti.kube.gangs import tutti_annotations
from tutti.kube.objects import Object


def gang(name: str, count: int, cpu: str, *, minimum: int, disruption: str = "single", **how: object) -> list[Object]:
    group = pod_group(name, minimum, {tutti_annotations.DISRUPTION: disruption})
    labels = {COSCHEDULING_LABEL: name}
    return [group, *(pod(f"{name}-{number}", cpu, labels=labels, **how) for number in range(count))]  # type: ignore[arg-type]


def victims(*objects: Object) -> list[str]:
    """The pods that a gang of one pod of 3 CPUs evicts."""
    high = gang("high", 1, "3", minimum=1, priority=10)
    plan = schedule(Cluster((*objects, *high)))
    assert [each.pod for each in plan.binds] == ["default/high-0"]
    return sorted(each.pod.removeprefix("default/") for each in plan.evictions)


def solo_pods(count: int, cpu: str) -> list[Object]:
    return [node("solos", "3"), *(pod(f"solo-{number}", cpu, on="solos") for number in range(count))]


@pytest.mark.parametrize("gangs", [1, 5], ids=["all sets", "shortlists"])
def test_pods_of_a_gang_evicted_pod_by_pod_count_one_by_one(gangs: int) -> None:
    lows = [
        each
        for number in range(gangs)
        for each in (node(f"n{number}", "3"), *gang(f"low{number}", 3, "1", minimum=3, on=f"n{number}"))
    ]
    assert victims(*lows, *solo_pods(2, "1500m")) == ["solo-0", "solo-1"]


def test_a_gang_that_is_evicted_whole_counts_once() -> None:
    low = gang("low", 3, "1", minimum=3, disruption="whole", on="n0")
    assert victims(node("n0", "3"), *low, *solo_pods(2, "1500m")) == ["low-0", "low-1", "low-2"]


def test_of_equally_many_pods_those_leave_that_break_fewer_gangs() -> None:
    low = gang("low", 2, "1500m", minimum=2, on="n0")
    assert victims(node("n0", "3"), *low, *solo_pods(2, "1500m")) == ["low-0", "low-1"]
    surplus = gang("low", 3, "1", minimum=1, on="n0")
    assert victims(node("n0", "3"), *surplus, *solo_pods(3, "1")) == ["low-0", "low-1", "low-2"]
