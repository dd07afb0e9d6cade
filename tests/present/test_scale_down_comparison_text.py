"""`tutti recommend --down --compare`: Cluster Autoscaler's scale-down beside ours, as text, data and on the page."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.command_line import Run
from tests.support.documents import node, pod
from tests.support.paths import EXAMPLES
from tutti.present.scale_down_comparison_text import node_rows, scale_down_comparison_text
from tutti.recommend.down.compare_cluster_autoscaler import DeletedNode, PeerScaleDown
from tutti.recommend.records.down_plan import DownPlan, Removal, RemovalReason, StayingNode
from tutti.recommend.records.new_nodes import NewNode

Tutti = Callable[..., Run]
Write = Callable[..., str]
EXAMPLE = EXAMPLES / "recommend"
OVERGROWN = ("-f", str(EXAMPLE / "overgrown.json"), "--pools", str(EXAMPLE / "overgrown-pools.yaml"))


def removal(name: str, price: int | None = 10**8, wait: int = 600) -> Removal:
    return Removal(
        node=name, pool="p", zone="z", instance_type="t", capacity_type="on-demand", price=price,
        why=RemovalReason.EMPTY, utilization=0.0, wait=wait,
    )  # fmt: skip


def gone(name: str, price: int | None = 10**8, wait: int = 600) -> DeletedNode:
    return DeletedNode(node=name, pool="p", price=price, wait=wait, empty=True)


def test_the_comparison_follows_the_plan(tutti: Tutti) -> None:
    plain = tutti("recommend", *OVERGROWN, "--down")
    run = tutti("recommend", *OVERGROWN, "--down", "--compare")
    assert run.code == 0
    assert run.lines[: len(plain.lines)] == plain.lines
    assert "SCALE-DOWN BY" not in plain.out
    assert "the dump is from about" in run.err
    theirs = next(line for line in run.lines if line.startswith("Cluster Autoscaler   "))
    assert theirs.split("   ")[1].strip() == "6"


def test_data(tutti: Tutti) -> None:
    (theirs,) = tutti("recommend", *OVERGROWN, "--down", "--compare", "-o", "json").json["scaleDownComparison"]
    assert theirs["name"] == "cluster-autoscaler"
    assert theirs["saving"] == {"perHour": 3.518, "perMonth": 2568.14, "currency": "USD"}
    assert theirs["remove"][0] == {
        "node": "ip-10-0-1-20.ec2.internal", "nodePool": "general", "pricePerHour": 0.384, "empty": False,
        "unneededSecondsLeft": 600,
    }  # fmt: skip
    assert {each["message"] for each in theirs["stay"]} >= {"its group would fall below its minimum"}
    assert theirs["modelAgreement"]["agree"] <= theirs["modelAgreement"]["cases"]
    assert "scaleDownComparison" not in tutti("recommend", *OVERGROWN, "--compare", "-o", "json").json


def test_the_page_has_it(tutti: Tutti, tmp_path: Path) -> None:
    page = tmp_path / "plan.html"
    assert tutti("recommend", *OVERGROWN, "--down", "--report", str(page)).code == 0
    text = page.read_text("utf-8")
    assert "Comparison with Cluster Autoscaler" in text
    assert "Cluster Autoscaler: its group would fall below its minimum" in text
    assert "<li>nodes that it cannot remove in one round (budget, turn) wait for" in text  # a remark of its own, whole


@pytest.mark.parametrize("objects", [(), (node("a"),)])
def test_clusters_about_which_nothing_can_be_said(tutti: Tutti, write: Write, objects: tuple[dict, ...]) -> None:
    run = tutti("recommend", "-f", write(*objects), "--down", "--compare")
    assert (run.code, "SCALE-DOWN BY" in run.out) == (0, False)


def test_nodes_of_no_pool(tutti: Tutti, write: Write) -> None:
    run = tutti("recommend", "-f", write(node("a"), pod("old", on="a")), "--down", "--compare")
    assert run.code == 0
    assert next(line for line in run.lines if line.startswith("Cluster Autoscaler   ")).split()[2] == "0"
    assert "\nNODE " not in run.out


def test_each_has_its_reason_where_only_one_lets_a_node_go() -> None:
    plan = DownPlan(
        removals=(removal("a"), removal("b", wait=0)),
        staying_nodes=(StayingNode(node="c", pool="p", reason="NotWorthMoving", message="it would not pay"),),
        saving=2 * 10**8,
    )
    theirs = PeerScaleDown(gone=(gone("a", wait=90), gone("c")), kept={"b": "80% of it is requested"}, saving=2 * 10**8)
    found = {each.node: each for each in node_rows(plan, theirs)}
    assert (found["a"].ours, found["a"].theirs, found["a"].because) == (600, 90, "")
    assert found["b"].because == "Cluster Autoscaler: 80% of it is requested"
    assert found["c"].because == "Tutti: it would not pay"
    rows = [
        line.split() for line in scale_down_comparison_text(plan, theirs).splitlines() if line[:2] in ("a ", "b ", "c ")
    ]
    assert [row[2:6] for row in rows] == [
        ["after", "10m", "after", "1m30s"], ["now", "stays", "$0.1000", "Cluster"], ["stays", "after", "10m", "$0.1000"]
    ]  # fmt: skip


def test_remarks() -> None:
    new = NewNode(name="n", pool="p", zone="z", instance_type="t", capacity_type="on-demand", price=10**8)
    plan = DownPlan(removals=(removal("a"),), nodes=(new,), saving=10**8, purchase=5)
    text = scale_down_comparison_text(plan, PeerScaleDown(gone=(gone("a"), gone("b")), saving=3 * 10**8, late=2))
    assert "1 for 1 new" in text
    assert "+200.0 %" in text
    for line in (
        "Cluster Autoscaler saves more here: $0.2000 an hour",
        "Cluster Autoscaler removes nodes and never replaces them with cheaper ones",
        "time ran out before the model of Cluster Autoscaler had checked 2 nodes: try a longer --time-limit",
        "for ten minutes after it has bought nodes",
    ):
        assert line in text


@pytest.mark.parametrize(
    ("ours", "theirs", "expected"),
    [(None, 10**8, "<unknown>"), (10**8, None, "<unknown>"), (0, 0, "same"), (0, 10**8, "<unknown>")],
)
def test_prices_that_are_not_known(ours: int | None, theirs: int | None, expected: str) -> None:
    text = scale_down_comparison_text(DownPlan(saving=ours), PeerScaleDown(saving=theirs))
    assert expected in text.splitlines()[2]
