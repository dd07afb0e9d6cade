"""Cluster Autoscaler's scale-up beside what the real one did, as recorded."""

from __future__ import annotations

import itertools
import json
from collections import Counter
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.paths import VECTORS
from tutti.autoscalers.cluster_autoscaler import orchestrator as module
from tutti.autoscalers.cluster_autoscaler.balancing_processor import split
from tutti.autoscalers.cluster_autoscaler.binpacking_estimator import round_robin
from tutti.autoscalers.cluster_autoscaler.orchestrator import ScaleUpOptions, ScaleUpOrchestrator, cluster_autoscaler
from tutti.autoscalers.shared.cluster_snapshot import ColumnSnapshot, EngineSnapshot
from tutti.autoscalers.shared.purchase import Purchase
from tutti.cluster.work.work_budget import WorkBudget
from tutti.conformance.case_files import read_lines
from tutti.conformance.cluster_autoscaler_cases import read_cluster_autoscaler_case
from tutti.conformance.model_scale_up import CHOICE, ESTIMATE, OPTIONS, ScaleUpChecks, read_scale_up_checks
from tutti.conformance.models import PURCHASE, ModelCheck
from tutti.conformance.purchase_cases import PurchaseCase
from tutti.exceptions import InputError
from tutti.kube.objects import Pod
from tutti.recommend.records.request import Request

VECTORS = str(VECTORS / "purchases" / "cluster-autoscaler.jsonl.gz")
FAMILIES = (
    "resources", "zones", "zonal-spread", "hostname", "constraints", "max-size", "existing-room",
    "from-zero-daemonsets",
)  # fmt: skip


def bought_for(request: Request, expander: str, budget: WorkBudget | None = None) -> Purchase:
    options = ScaleUpOptions(expander=expander)
    return cluster_autoscaler(request.cluster, request.catalogue, request.daemon_sets, options=options, budget=budget)


class Recorded(NamedTuple):
    scaled: ScaleUpChecks
    raw: dict[str, Any]

    @property
    def case(self) -> PurchaseCase:
        return self.scaled.case

    @property
    def expect(self) -> dict[str, Any]:
        expect: dict[str, Any] = self.raw["expect"]
        return expect

    def scale_up(self) -> ScaleUpOrchestrator:
        return self.scaled.scale_up()

    def checks(self, what: str) -> list[ModelCheck]:
        return [check for check in self.scaled.checks() if check.part == what]


@lru_cache(maxsize=1)
def recorded() -> list[Recorded]:
    found = []
    for number, line in read_lines(VECTORS):
        raw = json.loads(line)
        if raw["kind"] != "scale-down":
            found.append(Recorded(read_scale_up_checks(VECTORS, number, line), raw))
    return found


def of_kind(kind: str, family: str | None = None) -> list[Recorded]:
    found = [each for each in recorded() if each.raw["kind"] == kind and family in (None, each.case.family)]
    assert found
    return found


# The whole ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("family", FAMILIES)
def test_it_buys_what_the_real_one_bought(family: str) -> None:
    for each in of_kind("scale-up", family):
        assert [check.agrees for check in each.checks(PURCHASE)] == [True], each.case.name
        run = each.scale_up()
        for _ in run.loops():
            pass
        purchase = run.purchase()
        names = {o.key for o in each.case.request.objects if isinstance(o, Pod) and not o.spec.node_name}
        placed = [*(pod for _, pods in purchase.nodes for pod in pods), *(pod for pod, _ in purchase.on_existing)]
        assert Counter([*placed, *purchase.left]) == Counter(names)
        assert len(purchase.on_existing) >= each.expect.get("boundBefore", 0)
        if "ties" not in each.expect:
            assert (len(placed), purchase.cost) == (each.case.peer.placed, each.case.peer.cost), each.case.name


@pytest.mark.parametrize("family", FAMILIES)
def test_numbers_and_the_engine_agree(family: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for each in of_kind("scale-up", family):
        run = each.scale_up()
        if isinstance(run._snapshot, ColumnSnapshot):
            by_numbers = [(loop.options, loop.deltas) for loop in run.loops()]
            with monkeypatch.context() as patch:
                patch.setattr(module, "snapshot_of", EngineSnapshot)
                again = each.scale_up()
            assert [(loop.options, loop.deltas) for loop in again.loops()] == by_numbers
            assert again.purchase() == run.purchase()


# Its parts ------------------------------------------------------------------------------------------------------------


def test_the_estimator() -> None:
    for each in of_kind("estimate"):
        assert [check.agrees for check in each.checks(ESTIMATE)] == [True], each.case.name


def test_the_options_of_the_first_loop() -> None:
    checks = [check for each in of_kind("scale-up") for check in each.checks(OPTIONS)]
    different = [check for check in checks if not check.agrees]
    # With many plain shapes the real one's own runs differ by a node.
    assert {check.place for check in different} <= {"r5-large"}
    assert len(different) <= 0.01 * len(checks)


def test_the_expanders() -> None:
    checks = [check for each in of_kind("scale-up") for check in each.checks(CHOICE)]
    assert [check for check in checks if not check.exact] == []
    assert len(checks) > 100


@given(st.lists(st.integers(0, 5), min_size=1, max_size=8), st.integers(0, 30), st.integers(0, 7))
def test_in_turns_is_one_by_one(copies: list[int], wanted: int, start: int) -> None:
    start %= len(copies)
    left, given_, last, at = list(copies), [0] * len(copies), None, start
    for _ in range(wanted):
        order = [(at + step) % len(copies) for step in range(len(copies))]
        found = next((place for place in order if left[place]), None)
        if found is None:
            break
        left[found] -= 1
        given_[found] += 1
        last, at = found, found + 1
    counted, who = round_robin(np.array(copies, dtype=np.int64), wanted, start)
    assert counted.tolist() == given_
    if wanted:
        assert who == last


def test_a_scale_up_is_split_from_the_smallest_group_on() -> None:
    assert split(4, [3, 0, 1], [10, 10, 10]) == [0, 3, 1]
    assert split(5, [0, 0, 0], [1, 10, 10]) == [1, 2, 2]
    assert split(9, [0, 0], [2, 3]) == [2, 3]


# The edges ------------------------------------------------------------------------------------------------------------


def test_time_is_up() -> None:
    each = next(e for e in of_kind("scale-up") if e.case.name == "resources-02-price")
    purchase = bought_for(each.case.request, "price", budget=WorkBudget.of_seconds(0.0, lambda: 0.0))
    assert not purchase.nodes
    assert len(purchase.left) == sum(listed["count"] for listed in each.raw["pods"])


def test_time_is_up_midway() -> None:
    each = next(e for e in of_kind("scale-up") if e.case.name == "constraints-02")
    whole = bought_for(each.case.request, "price")
    seen = set()
    for ticks in (3, 30, 60, 120, 200, 300, 500, 1000):
        clock = itertools.count()
        budget = WorkBudget.of_seconds(ticks, lambda: float(next(clock)))  # noqa: B023
        purchase = bought_for(each.case.request, "price", budget=budget)
        assert purchase.nodes == whole.nodes[: len(purchase.nodes)]
        assert all(pods for _, pods in purchase.nodes)
        assert purchase.placed + len(purchase.left) == whole.placed + len(whole.left)
        seen.add(len(purchase.nodes))
    assert len(seen) > 2


def test_an_expander_that_nobody_knows() -> None:
    with pytest.raises(InputError, match="least-waste"):
        bought_for(recorded()[0].case.request, "best")


def test_the_reader() -> None:
    by_name = {each.case.name: each for each in recorded()}
    assert len(by_name) == 81
    waiting = [o for o in by_name["constraints-06"].case.request.objects if isinstance(o, Pod) and not o.spec.node_name]
    assert len(waiting) == 38, "the ten expendable pods are left out"
    peer = by_name["constraints-06"].case.peer
    assert (peer.placed, peer.cost, peer.nodes) == (34, 25_172_800_000, 8)
    limits = by_name["max-size-03"].case.request.catalogue.limits
    assert [(limit.what, limit.left) for limit in limits] == [("cpu", 0)]
    with pytest.raises(InputError, match="line 7"):
        read_cluster_autoscaler_case("some.jsonl", 7, b'{"name": "x"}')
