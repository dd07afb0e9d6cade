"""Recorded arrivals of kube-scheduler's own gang scheduling: never fewer pods, never more victims."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import pytest
from msgspec.structs import replace

from tests.support.paths import VECTORS
from tutti.cluster.cluster import Cluster
from tutti.cluster.edits import Bind, Remove
from tutti.conformance import native_gang_cases
from tutti.conformance.case_files import read_lines
from tutti.conformance.case_formats import run_line
from tutti.conformance.native_gang_cases import (
    GangAnswer,
    NativeGangCase,
    NativeGangOutcome,
    plan_arrival,
    read_native_gang_case,
    run_native_gang_case,
)
from tutti.engine.explain.node_verdicts import node_verdicts
from tutti.engine.placement.engine import Engine
from tutti.engine.session.plan import Bound, GangPlan, Plan
from tutti.exceptions import InputError

PATH = str(VECTORS / "native-gang.jsonl.gz")
LINES = list(read_lines(PATH))
CASES = [read_native_gang_case(PATH, *line) for line in LINES]
FAMILIES = {
    "plain": 31, "mixed": 30, "surplus": 28, "selector": 32, "anti-affinity": 32, "rack": 33, "spread": 35,
    "preempt-solo": 56, "preempt-gang": 29, "preempt-rack": 31,
}  # fmt: skip


def recorded(number: int) -> dict[str, Any]:
    line: dict[str, Any] = json.loads(LINES[number][1])
    return line


def first_case(*, evicts: bool) -> NativeGangCase:
    """The first recorded gang of several pods that kube-scheduler starts with, or without, victims."""
    return next(case for case in CASES if len(case.native.bound) > 1 and bool(case.native.evicted) == evicts)


def test_no_arrival_is_left_out() -> None:
    assert Counter(case.family for case in CASES) == FAMILIES
    assert sum(bool(case.native.bound) for case in CASES) == 211
    assert sum(bool(case.native.evicted) for case in CASES) == 11


@pytest.mark.parametrize("family", FAMILIES)
def test_never_fewer_pods_and_never_more_victims(family: str) -> None:
    outcomes = [run_native_gang_case(case) for case in CASES if case.family == family]
    assert [each.case for each in outcomes if each.worse] == []
    assert sum(each.same for each in outcomes) > len(outcomes) / 2


@pytest.mark.parametrize("family", FAMILIES)
def test_kube_schedulers_filters_accept_every_binding(family: str) -> None:
    """A binding that kube-scheduler would refuse must not count as a better answer."""
    for case in CASES:
        if case.family != family:
            continue
        plan, cluster = plan_arrival(case), Cluster(case.objects)
        engine = Engine(cluster)
        for eviction in plan.evictions:
            cluster.apply(Remove("Pod", eviction.pod))
        for bound in plan.binds:
            assert bound.node in node_verdicts(engine, bound.pod).feasible, (case.name, bound.pod)
            cluster.apply(Bind(bound.pod, bound.node))


def test_a_better_native_answer_is_worse() -> None:
    case = first_case(evicts=True)
    ours = run_native_gang_case(case)
    assert not ours.worse
    fewer_victims = replace(case, native=GangAnswer(case.native.bound, ours.tutti.evicted[1:]))
    assert run_native_gang_case(fewer_victims).worse
    more_pods = replace(case, native=GangAnswer({**ours.tutti.bound, "default/one-more": "n0"}, ours.tutti.evicted))
    assert run_native_gang_case(more_pods).worse


def test_more_pods_and_fewer_victims_are_better() -> None:
    case = first_case(evicts=True)
    ours = run_native_gang_case(case).tutti
    more_victims = run_native_gang_case(replace(case, native=GangAnswer(ours.bound, (*ours.evicted, "default/x"))))
    assert (more_victims.better, more_victims.fewer_victims, more_victims.more_pods) == (True, True, False)
    case = first_case(evicts=False)
    waits = run_native_gang_case(replace(case, native=GangAnswer()))
    assert (waits.better, waits.fewer_victims, waits.more_pods) == (True, False, True)


def test_more_pods_do_not_excuse_more_victims() -> None:
    case = first_case(evicts=True)
    outcome = run_native_gang_case(replace(case, native=GangAnswer()))
    assert outcome.more_pods
    assert outcome.worse
    assert not outcome.better


def test_other_nodes_are_neither_same_nor_worse() -> None:
    case = first_case(evicts=False)
    ours = run_native_gang_case(case).tutti
    assert run_native_gang_case(replace(case, native=ours)).same
    elsewhere = run_native_gang_case(replace(case, native=GangAnswer(dict.fromkeys(ours.bound, "elsewhere"))))
    assert (elsewhere.same, elsewhere.better, elsewhere.worse) == (False, False, False)


def test_a_partial_gang_is_worse(monkeypatch: pytest.MonkeyPatch) -> None:
    case = first_case(evicts=False)
    pod, node = next(iter(case.native.bound.items()))
    gang = GangPlan("default/g0", "native", minimum=2, pods=2, running=0, missing=2, placed=1)
    plan = replace(Plan.of([Bound(pod, node)], (), (), ()), gangs=(gang,))
    monkeypatch.setattr(native_gang_cases, "plan_arrival", lambda _: plan)
    outcome = run_native_gang_case(replace(case, native=GangAnswer()))
    assert outcome.partial == ("default/g0",)
    assert outcome.worse


def test_an_exception_is_worse(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(_: NativeGangCase) -> Plan:
        raise RuntimeError("broken")

    monkeypatch.setattr(native_gang_cases, "plan_arrival", fails)
    outcome = run_line(PATH, *LINES[0])
    assert isinstance(outcome, NativeGangOutcome)
    assert (outcome.failed, outcome.worse, outcome.same) == ("RuntimeError: broken", True, False)


def test_names_without_a_namespace_are_in_that_of_the_gang() -> None:
    number = next(index for index, case in enumerate(CASES) if case.native.evicted)
    line = recorded(number)
    for each in (*line["objects"], *line["arrives"]):
        if each["kind"] != "Node":
            each["metadata"]["namespace"] = "team"
    case = read_native_gang_case(PATH, 1, json.dumps(line).encode())
    assert all(pod.startswith("team/") for pod in (*case.arriving, *case.native.bound, *case.native.evicted))
    assert not run_native_gang_case(case).worse


def test_other_pending_pods_are_not_tried() -> None:
    number = next(index for index, case in enumerate(CASES) if case.native.bound)
    line = recorded(number)
    waiting = json.loads(json.dumps(line["arrives"][0]))
    waiting["metadata"] |= {"name": "waiting", "uid": "waiting"}
    waiting["spec"].pop("schedulingGroup", None)
    line["objects"].append(waiting)
    case = read_native_gang_case(PATH, 1, json.dumps(line).encode())
    assert {each.pod for each in plan_arrival(case).binds} == set(case.native.bound)


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"arrives": []}, "arrives: no pod arrives: list the pods of the arriving gang"),
        ({"expect": {"bound": {"x": "n0"}}}, "expect: bound: pod default/x does not arrive"),
        ({"expect": {"evicted": ["x"]}}, "expect: evicted: pod default/x is not in the cluster"),
        ({"expect": {"evicted": 7}}, "Expected `array`, got `int` - at `$.expect.evicted`"),
        ({"objects": [{"kind": "Pod", "apiVersion": "v1"}]}, "objects: pod default/without a name: metadata.name"),
    ],
)
def test_lines_that_cannot_be_read(change: dict[str, Any], problem: str) -> None:
    with pytest.raises(InputError) as error:
        read_native_gang_case("file", 3, json.dumps(recorded(0) | change).encode())
    assert str(error.value).startswith(f"file: line 3: {problem}")


def test_a_bound_pod_does_not_arrive() -> None:
    line = recorded(0)
    line["arrives"][0]["spec"]["nodeName"] = "n0"
    with pytest.raises(InputError, match="pod default/g0-0 has a node already"):
        read_native_gang_case("file", 1, json.dumps(line).encode())
