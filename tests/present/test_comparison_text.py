"""`tutti recommend --compare`: the table, its remarks, and the same as data."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from tests.support import builders
from tests.support.command_line import Run
from tests.support.documents import node, pod
from tests.support.paths import SCENARIOS
from tutti.market.offerings import Offering
from tutti.present.comparison_text import change_text, comparison_text
from tutti.present.recommendation_text import REMAINING_PODS
from tutti.recommend.compare import ComparedPurchase
from tutti.recommend.records.recommendation import Recommendation

Tutti = Callable[..., Run]
Write = Callable[..., str]
ZONE = "topology.kubernetes.io/zone"
POOLS = """
pools:
  - {name: large, zones: [z-1], max: 9, template: {capacity: {cpu: 16, memory: 64Gi}}, price: 0.5}
  - {name: small, zones: [z-1], max: 9, template: {capacity: {cpu: 4, memory: 16Gi}}, price: 0.1}
"""


@pytest.fixture
def pools(tmp_path: Path) -> str:
    path = tmp_path / "pools.yaml"
    path.write_text(POOLS, "utf-8")
    return str(path)


@pytest.fixture
def cluster(write: Write) -> str:
    return write(node("a", labels={ZONE: "z-1"}), *(pod(f"web-{n}", cpu="2") for n in range(7)))


def table_of(run: Run) -> dict[str, list[str]]:
    """The cells of the comparison, by whose purchase it is."""
    first = next(number for number, line in enumerate(run.lines) if line.startswith("PURCHASE BY"))
    last = run.lines.index("", first)
    rows = [[cell.strip() for cell in line.split("   ") if cell.strip()] for line in run.lines[first:last]]
    return {row[0]: row[1:] for row in rows}


def test_the_table_follows_the_answer(tutti: Tutti, cluster: str, pools: str) -> None:
    plain = tutti("recommend", "-f", cluster, "--pools", pools)
    run = tutti("recommend", "-f", cluster, "--pools", pools, "--compare")
    assert run.code == 0
    assert run.lines[: len(plain.lines)] == plain.lines
    table = table_of(run)
    assert list(table) == [
        "PURCHASE BY", "Tutti", "Cluster Autoscaler, least-waste", "Cluster Autoscaler, most-pods",
        "Cluster Autoscaler, price", "Karpenter", "original recommender", "no purchase costs less than",
    ]  # fmt: skip
    assert table["Tutti"][:6] == ["3", "$219.00", "-", "7", "0", "yes"]
    assert table["Cluster Autoscaler, most-pods"][:6] == ["1", "$365.00", "+66.7 %", "7", "0", "yes"]
    assert re.fullmatch("[0-9]+ of [0-9]+", table["Karpenter"][6])
    assert table["original recommender"][6] == "not recorded"
    assert table["no purchase costs less than"][:3] == ["-", "$219.00", "same"]
    assert f'"no purchase costs less than": {REMAINING_PODS}' in run.lines
    assert "better here" not in run.out
    run = tutti("recommend", "-f", cluster, "--pools", pools, "--compare", "--binder", "tutti")
    assert list(table_of(run))[-1] == "no plan costs less than"
    assert "has bound what fits now" not in run.out


@pytest.mark.parametrize(
    ("name", "cost", "original"),
    [
        ("s1", "$291.33", "-0.01 %"),
        ("s2", "$163.87", "+11.1 %"),
        ("s3", "$182.07", "+60.0 %"),
        ("s5", "$127.46", "same"),
    ],
)
def test_scenarios(tutti: Tutti, name: str, cost: str, original: str) -> None:
    arguments = ("recommend", "-f", str(SCENARIOS / f"{name}.json"), "--prices", str(SCENARIOS / "templates.csv"))
    run = tutti(*arguments, "--binder", "tutti", "--compare")
    table = table_of(run)
    assert (table["Tutti"][1], table["original recommender"][2]) == (cost, original)
    assert ("the saving is too small for the extra nodes" in run.out) == (name == "s1")


def test_data(tutti: Tutti, cluster: str, pools: str) -> None:
    arguments = ("recommend", "-f", cluster, "--pools", pools, "--compare")
    run = tutti(*arguments, "-o", "json")
    ours, *peers = run.json["comparison"]
    assert [each["name"] for each in peers] == [
        "cluster-autoscaler/least-waste", "cluster-autoscaler/most-pods", "cluster-autoscaler/price", "karpenter",
        "original-recommender",
    ]  # fmt: skip
    assert (ours["name"], ours["nodes"], ours["holds"], ours["costToOurs"]) == ("tutti", 3, True, 0)
    assert peers[1]["cost"] == {"perHour": 0.5, "perMonth": 365.0, "currency": "USD"}
    assert peers[1]["scaleUp"] == [
        {"nodePool": "large", "zone": "z-1", "instanceType": "large", "capacityType": "on-demand", "incrementBy": 1}
    ]
    assert [each["modelAgreement"] is None for each in (ours, *peers)] == [True, False, False, False, False, True]
    assert peers[3]["modelAgreement"]["agree"] >= 0.95 * peers[3]["modelAgreement"]["cases"]
    assert (peers[1]["costToOurs"], peers[1]["betterThanOurs"]) == (0.666667, False)
    assert yaml.safe_load(tutti(*arguments, "-o", "yaml").out) == run.json
    assert tutti(*arguments, "-o", "json").out == run.out
    assert "comparison" not in tutti("recommend", "-f", cluster, "--pools", pools, "-o", "json").json


def test_without_prices_nodes_are_compared(tutti: Tutti, cluster: str) -> None:
    table = table_of(tutti("recommend", "-f", cluster, "--compare"))
    assert table["Tutti"][:2] == ["3", "<unknown>"]
    assert table["Cluster Autoscaler, price"][-1] == "it chooses by price, and no price is known"
    assert table["no purchase has fewer than"][0] == "3"


def test_everything_fits_already(tutti: Tutti, write: Write, pools: str) -> None:
    path = write(node("a", labels={ZONE: "z-1"}), pod("tiny"))
    table = table_of(tutti("recommend", "-f", path, "--pools", pools, "--compare"))
    assert {tuple(cells[:4]) for who, cells in table.items() if who not in ("PURCHASE BY", "Tutti")} == {
        ("0", "$0.00", "same", "1")
    }
    assert table["Tutti"][-1] == "nothing"


def test_nobody_waits(tutti: Tutti, write: Write) -> None:
    path = write(node("a"), pod("old", on="a"))
    run = tutti("recommend", "-f", path, "--compare")
    assert (run.code, run.out, run.err) == (0, "", "No pending pods found.\n")
    assert tutti("recommend", "-f", path, "--compare", "-o", "json").json["comparison"] == []


def test_names_are_not_compared(tutti: Tutti, cluster: str, pools: str) -> None:
    run = tutti("recommend", "-f", cluster, "--pools", pools, "--compare", "-o", "name")
    assert run.code == 2
    assert "--compare has no names to print" in run.err


# Remarks --------------------------------------------------------------------------------------------------------------


def answer(**more: object) -> Recommendation:
    known = {"strategy": "optimal", "objective": "cost", "binder": "kube-scheduler", "pods": 9, "placed": 9}
    return Recommendation(**{**known, **more})  # type: ignore[arg-type]


def offering(name: str = "m5.large") -> Offering:
    return builders.offering("p", 10**8, kind=name)


def test_a_better_peer_is_told_first() -> None:
    ours = ComparedPurchase(who="tutti", bought=((offering(), 3),), cost=3 * 10**8, placed=9, kept=9, change=0.0)
    peer = ComparedPurchase(
        who="karpenter", bought=((offering(), 2),), cost=2 * 10**8, placed=9, kept=9, change=-1 / 3, better=True
    )
    text = comparison_text((ours, peer), answer(cost=3 * 10**8))
    line = "Karpenter is better here: as many pods for $73.00 a month less; a longer --time-limit may find that, too"
    assert text.split("\n\n")[1].splitlines()[0] == line
    more = ComparedPurchase(who="karpenter", bought=((offering(), 2),), cost=10**8, placed=10, kept=10, better=True)
    assert "Karpenter is better here: 1 pod more gets a node" in comparison_text((ours, more), answer())


def test_a_plan_that_only_tutti_can_bind_says_so() -> None:
    ours = ComparedPurchase(who="tutti", bought=((offering(), 3),), cost=3, placed=9, kept=8, change=0.0, follows=True)
    text = comparison_text((ours,), answer(binder="tutti"))
    assert "8 of 9" in text
    assert "with --binder tutti pods go where the plan says" in text


def test_a_plan_that_may_be_far_from_the_best_says_so() -> None:
    ours = ComparedPurchase(who="tutti", bought=((offering(), 9),), cost=9 * 10**8, placed=9, kept=9, change=0.0)
    peer = ComparedPurchase(who="karpenter", bought=((offering(), 4),), cost=4 * 10**8, placed=9, kept=8, change=-5 / 9)
    warned = comparison_text((ours, peer), answer(cost=9 * 10**8, bound=3 * 10**8, gap=2 / 3))
    assert "ours may be far from the best (gap 67 %): try a longer --time-limit" in warned
    assert "far from" not in comparison_text((ours, peer), answer(cost=9 * 10**8, bound=8 * 10**8, gap=1 / 9))


def test_many_types_are_not_all_named() -> None:
    bought = tuple((offering(f"t{number}"), 9 - number) for number in range(6))
    text = comparison_text((ComparedPurchase(who="tutti", bought=bought, cost=1, placed=9, kept=9),), answer())
    assert "9 t0, 8 t1, 7 t2, 6 t3, 9 others" in text


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (None, "<unknown>"),
        (0.0, "same"),
        (0.111, "+11.1 %"),
        (-0.0001, "-0.01 %"),
        (1.6, "+160.0 %"),
        (1e-9, "+0.00 %"),
    ],
)
def test_changes(change: float | None, text: str) -> None:
    assert change_text(change) == text
