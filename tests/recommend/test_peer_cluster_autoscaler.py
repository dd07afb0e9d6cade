"""Cluster Autoscaler's scale-up beside what the real one did, as recorded."""

from __future__ import annotations

import itertools
import json
from collections import Counter
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tutti.conformance.cases import read_lines
from tutti.conformance.cluster_autoscaler import read_cluster_autoscaler_case
from tutti.conformance.purchases import PurchaseCase
from tutti.exceptions import InputError
from tutti.kube.objects import Pod
from tutti.recommend.peers import cluster_autoscaler as module
from tutti.recommend.peers.balance import split
from tutti.recommend.peers.cluster_autoscaler import ScaleUp, cluster_autoscaler
from tutti.recommend.peers.estimator import Option, in_turns
from tutti.recommend.peers.expanders import Market, Pricing, best
from tutti.recommend.peers.ground import Columns, Live
from tutti.recommend.request import Deadline

VECTORS = str(Path(__file__).parent.parent / "conformance" / "purchases" / "cluster-autoscaler.jsonl.gz")
FAMILIES = (
    "resources", "zones", "zonal-spread", "hostname", "constraints", "max-size", "existing-room",
    "from-zero-daemonsets",
)  # fmt: skip


class Recorded(NamedTuple):
    case: PurchaseCase
    raw: dict[str, Any]

    @property
    def expect(self) -> dict[str, Any]:
        expect: dict[str, Any] = self.raw["expect"]
        return expect

    def scale_up(self) -> ScaleUp:
        options = self.raw.get("options") or {}
        return ScaleUp(
            self.case.request,
            self.raw.get("expander") or "most-pods",
            balance=bool(options.get("balanceSimilarNodeGroups")),
            pricing=self.pricing,
        )

    @property
    def pricing(self) -> Pricing:
        return msgspec.convert(self.raw.get("pricing", {}), Pricing)

    def shape(self, run: ScaleUp, number: int) -> str:
        """The recorded number of a shape."""
        name = run.site.shapes[number].pods[0].split("/")[1][:-4]
        prefixes = [each["pod"]["metadata"]["generateName"] for each in self.raw["pods"]]
        return str(prefixes.index(name))


@lru_cache(maxsize=1)
def recorded() -> list[Recorded]:
    found = []
    for number, line in read_lines(VECTORS):
        case = read_cluster_autoscaler_case(VECTORS, number, line)
        if case is not None:
            found.append(Recorded(case, json.loads(line)))
    return found


def of_kind(kind: str, family: str | None = None) -> list[Recorded]:
    found = [each for each in recorded() if each.raw["kind"] == kind and family in (None, each.case.family)]
    assert found
    return found


def pools(deltas: dict[int, int], run: ScaleUp) -> dict[str, int]:
    return {run.site.offerings[number].pool: count for number, count in deltas.items()}


# The whole ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("family", FAMILIES)
def test_it_buys_what_the_real_one_bought(family: str) -> None:
    for each in of_kind("scale-up", family):
        run = each.scale_up()
        bought = [pools(loop.deltas, run) for loop in run.loops() if loop.deltas]
        courses = [each.expect["loops"], *(tie["loops"] for tie in each.expect.get("ties", ()))]
        assert bought in courses, each.case.name
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
        if isinstance(run._ground, Columns):
            by_numbers = [(loop.options, loop.deltas) for loop in run.loops()]
            with monkeypatch.context() as patch:
                patch.setattr(module, "ground_of", Live)
                again = each.scale_up()
            assert [(loop.options, loop.deltas) for loop in again.loops()] == by_numbers
            assert again.purchase() == run.purchase()


# Its parts ------------------------------------------------------------------------------------------------------------


def test_the_estimator() -> None:
    for each in of_kind("estimate"):
        run = each.scale_up()
        waiting, estimator = run._waiting, run._estimator
        option = estimator.estimate(0, estimator.schedulable(0, waiting), waiting, most=run._stock.nodes_left(0))
        got = {"nodes": option.nodes, "byShape": {each.shape(run, s): count for s, count in option.pods.items()}}
        answers = [each.expect["estimate"], *each.expect.get("ties", ())]
        assert got in [{"nodes": answer["nodes"], "byShape": answer["byShape"]} for answer in answers], each.case.name


def test_the_options_of_the_first_loop() -> None:
    different, total = [], 0
    for each in of_kind("scale-up"):
        run = each.scale_up()
        loop = next(run.loops(), None)
        if loop is None or "options" not in each.expect:
            continue
        mine = {run.site.offerings[option.offering].pool: option for option in loop.options}
        theirs = each.expect["options"][0]
        assert mine.keys() == theirs.keys()
        for group, answer in theirs.items():
            total += 1
            nodes, pods = mine[group].nodes, sum(mine[group].pods.values())
            seen = {answer["nodes"], *answer.get("nodesSeen", ())}
            placed = {sum(answer["pods"].values()), *answer.get("podsSeen", ())}
            if not (min(seen) <= nodes <= max(seen) and min(placed) <= pods <= max(placed)):
                different.append((each.case.name, group))
    # With many plain shapes the real one's own runs differ by a node.
    assert {group for _, group in different} <= {"r5-large"}
    assert len(different) <= 0.01 * total


def test_the_expanders() -> None:
    total = 0
    for each in of_kind("scale-up"):
        run, nodes = each.scale_up(), len(each.raw["nodes"])
        numbers = {offering.pool: number for number, offering in enumerate(run.site.offerings)}
        shapes = {each.shape(run, number): number for number in range(len(run.site.shapes))}
        loops = each.expect["loops"]
        for place, (options, expected) in enumerate(
            zip(each.expect.get("options", ()), each.expect.get("best", ()), strict=False)
        ):
            weighed = [
                Option(numbers[group], option["nodes"], {shapes[s]: n for s, n in option["pods"].items()})
                for group, option in sorted(options.items(), key=lambda item: numbers[item[0]])
            ]
            there = nodes + sum(sum(loop.values()) for loop in loops[:place])
            market = Market(offerings=run.site.offerings, shapes=run.site.shapes, nodes=there, pricing=each.pricing)
            found = best(each.raw["expander"], market, weighed)
            assert [run.site.offerings[option.offering].pool for option in found] == expected, each.case.name
            total += 1
    assert total > 100


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
    counted, who = in_turns(np.array(copies, dtype=np.int64), wanted, start)
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
    purchase = cluster_autoscaler(each.case.request, "price", deadline=Deadline(lambda: 0.0, 0.0))
    assert not purchase.nodes
    assert len(purchase.left) == sum(listed["count"] for listed in each.raw["pods"])


def test_time_is_up_midway() -> None:
    each = next(e for e in of_kind("scale-up") if e.case.name == "constraints-02")
    whole = cluster_autoscaler(each.case.request, "price")
    seen = set()
    for ticks in (3, 30, 60, 120, 200, 300, 500, 1000):
        clock = itertools.count()
        purchase = cluster_autoscaler(each.case.request, "price", deadline=Deadline(lambda: float(next(clock)), ticks))  # noqa: B023
        assert purchase.nodes == whole.nodes[: len(purchase.nodes)]
        assert all(pods for _, pods in purchase.nodes)
        assert purchase.placed + len(purchase.left) == whole.placed + len(whole.left)
        seen.add(len(purchase.nodes))
    assert len(seen) > 2


def test_an_expander_that_nobody_knows() -> None:
    with pytest.raises(InputError, match="least-waste"):
        cluster_autoscaler(recorded()[0].case.request, "best")


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
