"""`tutti recommend`: what it prints, in every form."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support.command_line import Run, interrupted
from tests.support.documents import node, pod
from tests.support.paths import EXAMPLES
from tutti.market.offerings import Catalogue
from tutti.present.recommendation_text import recommendation_text
from tutti.recommend.records.new_nodes import NewNode
from tutti.recommend.records.recommendation import Placement, Recommendation
from tutti.recommend.records.request import Request

Tutti = Callable[..., Run]
Write = Callable[..., str]
ZONE, POOL = "topology.kubernetes.io/zone", "eks.amazonaws.com/nodegroup"
POOLS = """
pools:
  - {name: small, zones: [z-1, z-2], max: 4, template: {capacity: {cpu: 4, memory: 16Gi}}, price: 0.1}
  - {name: large, zones: [z-1], max: 1, template: {capacity: {cpu: 16, memory: 64Gi}}, price: 0.5}
"""
REST = "for the pods that remain after kube-scheduler binds those that fit existing nodes"


@pytest.fixture
def pools(tmp_path: Path) -> str:
    path = tmp_path / "pools.yaml"
    path.write_text(POOLS, "utf-8")
    return str(path)


def cluster(write: Write, *, waiting: int = 5) -> str:
    """A full node, pods of two cores that wait, one that fits nowhere, and one that is not considered."""
    return write(
        node("a", labels={ZONE: "z-1", POOL: "small"}),
        pod("old", cpu="3", on="a"),
        *(pod(f"web-{number}", cpu="2", owner=("ReplicaSet", "web")) for number in range(waiting)),
        pod("tiny", cpu="1", nodeSelector={"kubernetes.io/hostname": "a"}),
        pod("huge", cpu="64", namespace="batch"),
        pod("gated", schedulingGates=[{"name": "quota"}]),
    )


def test_a_namespace_shows_its_pods_and_the_nodes_for_all(tutti: Tutti, write: Write, pools: str) -> None:
    def lines(*options: str) -> list[str]:
        return tutti("recommend", "-f", cluster(write), "--pools", pools, *options).lines

    everything = lines()
    own, batch = lines("-n", "default"), lines("-n", "batch")
    assert own[:6] == batch[:6] == everything[:6]
    assert batch[6:] == [line for line in everything[6:] if "not considered" not in line]
    assert own[6:] == everything[6:7] == ["1 not considered: 1 gated"]
    pending = tutti("recommend", "-f", cluster(write), "--pools", pools, "-n", "batch", "-o", "json").json["pending"]
    assert [each["pod"] for each in pending] == ["batch/huge"]
    applied = lines("-n", "batch", "--apply")
    assert applied[: len(batch)] == batch
    assert [line.split()[:2] for line in applied[len(batch) + 1 : -2]] == [["NAME", "STATUS"], ["huge", "Pending"]]
    assert applied[-1] == "1 pending pod: 0 placed, 1 cannot be placed"


@pytest.mark.parametrize(("namespace", "code"), [("default", 0), ("batch", 1)])
def test_only_shown_pods_fail(tutti: Tutti, write: Write, pools: str, namespace: str, code: int) -> None:
    run = tutti("recommend", "-f", cluster(write), "--pools", pools, "-n", namespace, "--fail-unschedulable")
    assert run.code == code


def test_table(tutti: Tutti, write: Write, pools: str) -> None:
    run = tutti("recommend", "-f", cluster(write), "--pools", pools)
    assert run.code == 0
    assert run.lines == [
        "POOL    ZONE   TYPE    NODES   PRICE/MONTH   COST/MONTH",
        "small   z-1    small   +3      $73.00        $219.00",
        "",
        "6 of 7 pending pods get a node: 1 on existing nodes, 5 on 3 new nodes",
        f"cost $219.00 a month ($0.3000 an hour); proved: no purchase costs less {REST}",
        "every new node is needed: without any one of them some pod would wait",
        "1 not considered: 1 gated",
        "",
        "1 pod stays pending:",
        "PODS   NAMESPACE   EXAMPLE   REASON",
        "1      batch       huge      no node would take it, of 1 there and 4 to buy: 5 Insufficient cpu",
    ]


def test_wide_lists_the_nodes_with_what_they_take(tutti: Tutti, write: Write, pools: str) -> None:
    run = tutti("recommend", "-f", cluster(write), "--pools", pools, "-o", "wide")
    assert run.lines[3:8] == [
        "NODE              STATUS   POOL    ZONE   TYPE     PODS   TAKES",
        "small-z-1-new-1   New      small   z-1    small    2      2 web",
        "small-z-1-new-2   New      small   z-1    small    2      2 web",
        "small-z-1-new-3   New      small   z-1    small    1      1 web",
        "a                 There    small   z-1    <none>   1      1 tiny",
    ]


def test_pods_with_one_reason_share_a_line_and_pools_say_why_not(tutti: Tutti, write: Write, pools: str) -> None:
    run = tutti("recommend", "-f", cluster(write, waiting=40), "--pools", pools)
    assert "15 of 42 pending pods get a node: 1 on existing nodes, 14 on 4 new nodes" in run.lines
    shown = [line.split()[:3] for line in run.lines[run.lines.index("27 pods stay pending:") :] if " web-" in line]
    assert shown == [["26", "default", "web-21"]]
    tainted = Path(pools)
    tainted.write_text(POOLS.replace("price: 0.5", "taints: [{key: gpu}], price: 0.5"), "utf-8")
    run = tutti("recommend", "-f", cluster(write), "--pools", pools)
    assert run.lines[-2:] == ["POOL    NOT USED BECAUSE", "large   no waiting pod tolerates its taint gpu:NoSchedule"]


def test_json_and_yaml_are_the_same_answer(tutti: Tutti, write: Write, pools: str) -> None:
    path = cluster(write)
    run = tutti("recommend", "-f", path, "--pools", pools, "-o", "json")
    answer: dict[str, Any] = run.json
    assert list(answer) == [
        "scaleUp", "nodes", "onExisting", "pending", "pools", "alternatives", "counts", "cost", "bound", "gap",
        "minimal", "objective", "strategy", "binder", "holds", "notes",
    ]  # fmt: skip
    assert answer["scaleUp"] == [
        {
            "nodePool": "small",
            "zone": "z-1",
            "instanceType": "small",
            "capacityType": "on-demand",
            "incrementBy": 3,
            "nodeNames": ["small-z-1-new-1", "small-z-1-new-2", "small-z-1-new-3"],
            "pricePerHour": 0.1,
            "pricePerMonth": 73.0,
        }
    ]
    assert sorted(name for each in answer["nodes"] for name in each["pods"]) == [f"default/web-{n}" for n in range(5)]
    assert answer["onExisting"] == [{"pod": "default/tiny", "node": "a"}]
    assert [each["pod"] for each in answer["pending"]] == ["batch/huge"]
    assert answer["counts"] == {"pending": 7, "placed": 6, "onExisting": 1, "onNew": 5, "newNodes": 3}
    assert answer["cost"] == {"perHour": 0.3, "perMonth": 219.0, "currency": "USD"}
    assert (answer["minimal"], answer["objective"], answer["binder"]) == (True, "cost", "kube-scheduler")
    assert answer["holds"] == []
    assert yaml.safe_load(tutti("recommend", "-f", path, "--pools", pools, "-o", "yaml").out) == answer
    assert tutti("recommend", "-f", path, "--pools", pools, "-o", "json").out == run.out


def test_names(tutti: Tutti, write: Write, pools: str) -> None:
    arguments = ("recommend", "-f", cluster(write), "--pools", pools, "-o", "name")
    assert tutti(*arguments).lines == ["small/z-1/small +3"]
    Path(pools).write_text(POOLS.replace("price: 0.1", "capacityTypes: [spot], spotPrice: 0.03"), "utf-8")
    assert tutti(*arguments).lines == ["small/z-1/small/spot +3"]
    alike = write(node("a", labels={ZONE: "z-1"}), pod("p", cpu="4"), pod("q", cpu="4"), name="alike.json")
    assert tutti("recommend", "-f", alike, "-o", "name").lines == ["nodes-like-a/z-1/ +1"]


def test_when_tutti_binds_the_answer_says_where_every_pod_goes(tutti: Tutti, write: Write, pools: str) -> None:
    arguments = ("recommend", "-f", cluster(write), "--pools", pools, "--binder", "tutti")
    answer = tutti(*arguments, "-o", "json").json
    assert len(answer["holds"]) == answer["counts"]["placed"] == 6
    run = tutti(*arguments, "--apply")
    for hold in answer["holds"]:
        name = hold["pod"].partition("/")[2]
        assert any(line.split()[1:4] == [name, "Placed", hold["node"]] for line in run.lines)
    assert run.lines[-2:] == ["8 pending pods: 6 placed, 1 cannot be placed", "1 not considered: 1 gated"]


@pytest.mark.parametrize("form", ["table", "wide"])
def test_apply_shows_where_pods_are_after_the_purchase(tutti: Tutti, write: Write, pools: str, form: str) -> None:
    path = cluster(write)
    nodes = {
        name: each["name"]
        for each in tutti("recommend", "-f", path, "--pools", pools, "-o", "json").json["nodes"]
        for name in each["pods"]
    }
    run = tutti("recommend", "-f", path, "--pools", pools, "--apply", "-o", form)
    for key, on in nodes.items():
        assert any(f" {key.partition('/')[2]} " in line and f" {on}" in line for line in run.lines)
    assert "8 pending pods: 6 placed, 1 cannot be placed" in run.lines
    plan = tutti("recommend", "-f", path, "--pools", pools, "--apply", "-o", "json").json["plan"]
    assert {bind["pod"]: bind["node"] for bind in plan["binds"]} == {**nodes, "default/tiny": "a"}


@pytest.mark.parametrize("binder", ["kube-scheduler", "tutti"])
def test_apply_lists_every_pod_that_gets_a_node_beside_a_gang(
    tutti: Tutti, write: Write, pools: str, binder: str
) -> None:
    """Pods that find room at once, a gang that needs new nodes, and pods that a node was promised to before."""
    team, pair = ({"annotations": {"pod-group": name, "tutti.dev/min-member": "2"}} for name in ("team", "pair"))
    waiting = [pod("now", cpu="100m"), pod("web", cpu="3")]
    waiting += [pod(f"team-{number}", cpu="3", metadata=team) for number in range(3)]
    promised = [pod("soon", cpu="100m"), *(pod(f"pair-{number}", cpu="100m", metadata=pair) for number in range(2))]
    for each in promised:
        each["status"] = {"phase": "Pending", "nominatedNodeName": "a"}
    here = node("a", labels={ZONE: "z-1", POOL: "small"})
    path = write(here, pod("old", cpu="3", on="a"), *waiting, *promised)
    arguments = ("recommend", "-f", path, "--pools", pools, "--apply", "--binder", binder)
    run = tutti(*arguments)
    assert "8 of 8 pending pods get a node" in run.out
    assert (
        run.lines[-1] == "2 gangs (5 pods) and 3 pods pending: 2 gangs (5 pods) and 3 pods placed, 0 cannot be placed"
    )
    shown = [line.split() for line in run.lines[-7:-2]]
    assert sorted(line[0] for line in shown) == ["gang/pair", "gang/team", "now", "soon", "web"]
    ready = {line[0]: line[1:3] for line in shown if line[0].startswith("gang/")}
    assert ready == {"gang/team": ["3/3", "Placed"], "gang/pair": ["2/2", "Placed"]}
    wide = tutti(*arguments, "-o", "wide")
    for bind in tutti(*arguments, "-o", "json").json["plan"]["binds"]:
        name = bind["pod"].partition("/")[2]
        assert any(line.split()[:2] == [name, "Placed"] and f" {bind['node']}" in line for line in wide.lines)


@pytest.mark.parametrize("strategy", ["least-cost", "least-waste", "most-pods"])
def test_strategies_that_go_node_by_node_prove_nothing(tutti: Tutti, write: Write, pools: str, strategy: str) -> None:
    run = tutti("recommend", "-f", cluster(write), "--pools", pools, "--strategy", strategy, "--weights", "cpu=1")
    assert f"chosen by {strategy}: how much better a plan could be is not known" in run.out
    answer = tutti("recommend", "-f", cluster(write), "--pools", pools, "--strategy", strategy, "-o", "json").json
    assert (answer["bound"], answer["gap"], answer["strategy"]) == (None, None, strategy)


def test_the_objective_nodes_counts_nodes(tutti: Tutti, write: Write, pools: str) -> None:
    run = tutti("recommend", "-f", cluster(write), "--pools", pools, "--objective", "nodes")
    assert f"1 new node (cost $365.00 a month ($0.5000 an hour)); proved: no purchase has fewer {REST}" in run.lines


def test_without_prices_nodes_are_counted(tutti: Tutti, write: Write) -> None:
    run = tutti("recommend", "-f", cluster(write))
    assert run.code == 0
    assert f"3 new nodes (cost unknown); proved: no purchase has fewer {REST}" in run.lines
    assert "note: no price is known: the plan is the one with the fewest nodes" in run.err
    answer = tutti("recommend", "-f", cluster(write), "-o", "json").json
    assert (answer["cost"], answer["bound"], answer["objective"]) == (None, {"nodes": 3}, "nodes")


def test_what_has_no_price_is_left_out_with_a_note(tutti: Tutti, write: Write, pools: str) -> None:
    Path(pools).write_text(POOLS.replace(", price: 0.5", ""), "utf-8")
    run = tutti("recommend", "-f", cluster(write), "--pools", pools)
    note = "left out because they have no price, while other offerings have one: large (on-demand)"
    assert f"note: {note}\n" in run.err
    assert note in tutti("recommend", "-f", cluster(write), "--pools", pools, "-o", "json").json["notes"]
    run = tutti("recommend", "-f", cluster(write), "--pools", pools, "--objective", "nodes")
    assert "left out" not in run.err


def test_capacity_types_have_a_column_where_not_all_are_on_demand(tutti: Tutti, write: Write, tmp_path: Path) -> None:
    path = tmp_path / "spot.yaml"
    path.write_text(POOLS.replace("price: 0.1", "capacityTypes: [spot], spotPrice: 0.03"), "utf-8")
    run = tutti("recommend", "-f", cluster(write), "--pools", str(path))
    assert run.lines[0].split() == ["POOL", "ZONE", "TYPE", "CAPACITY", "NODES", "PRICE/MONTH", "COST/MONTH"]
    assert run.lines[1].split() == ["small", "z-1", "small", "spot", "+3", "$21.90", "$65.70"]


def test_evictions_that_would_do_are_named(tutti: Tutti, write: Write, pools: str) -> None:
    path = write(
        node("a", labels={ZONE: "z-1"}), *(pod(f"low-{n}", on="a", priority=-5) for n in range(4)), pod("high", cpu="4")
    )
    run = tutti("recommend", "-f", path, "--pools", pools)
    message = (
        "instead of buying for default/high, evicting default/low-0, default/low-1, default/low-2 and 1 more would do"
    )
    assert run.lines[-1] == message


def test_fail_unschedulable(tutti: Tutti, write: Write, pools: str) -> None:
    assert tutti("recommend", "-f", cluster(write), "--pools", pools, "--fail-unschedulable").code == 1
    path = write(node("a", labels={ZONE: "z-1"}), pod("tiny"), name="fine.json")
    run = tutti("recommend", "-f", path, "--pools", pools, "--fail-unschedulable")
    assert (run.code, run.lines) == (
        0,
        ["1 of 1 pending pod gets a node: 1 on existing nodes", "nothing has to be bought"],
    )


@pytest.mark.parametrize("form", ["table", "wide", "name"])
def test_nobody_waits(tutti: Tutti, write: Write, form: str) -> None:
    run = tutti("recommend", "-f", write(node("a"), pod("old", on="a")), "-o", form)
    assert (run.code, run.out, run.err) == (0, "", "No pending pods found.\n")


def test_nobody_waits_and_that_costs_nothing(tutti: Tutti, write: Write) -> None:
    answer = tutti("recommend", "-f", write(node("a"), pod("old", on="a")), "-o", "json").json
    nothing = {"perHour": 0, "perMonth": 0, "currency": "USD"}
    assert (answer["cost"], answer["bound"], answer["gap"]) == (nothing, nothing, 0)


def test_nothing_is_cheaper_than_nothing(tutti: Tutti, write: Write, pools: str) -> None:
    Path(pools).write_text(POOLS.replace("price: 0.1", "price: 0"), "utf-8")
    run = tutti("recommend", "-f", cluster(write), "--pools", pools)
    assert f"cost $0.00 a month ($0.0000 an hour); proved: no purchase costs less {REST}" in run.lines


def test_a_pod_that_only_an_unpriced_pool_would_take_waits_for_a_price(tutti: Tutti, write: Write, pools: str) -> None:
    Path(pools).write_text(POOLS.replace(", price: 0.5", ""), "utf-8")
    path = write(
        node("a"), pod("old", cpu="4", on="a"), pod("web", cpu="2"), pod("big", cpu="10"), pod("huge", cpu="64")
    )
    arguments = ("recommend", "-f", path, "--pools", pools)
    reasons = {each["pod"]: each["reason"] for each in tutti(*arguments, "-o", "json").json["pending"]}
    hint = "--prices gives one, --objective nodes needs none"
    price = f"only offerings without a known price would take it: pool large ({hint})"
    assert reasons.pop("default/big") == price
    assert list(reasons) == ["default/huge"]
    assert reasons["default/huge"].endswith("to buy: 5 Insufficient cpu")
    by_nodes = tutti(*arguments, "--objective", "nodes", "-o", "json").json
    assert [each["pod"] for each in by_nodes["pending"]] == ["default/huge"]


def test_the_bound_is_for_the_rest_only_where_kube_scheduler_binds_some_before(
    tutti: Tutti, write: Write, pools: str
) -> None:
    """kube-scheduler gives the only node to the small pod, which is older; Tutti keeps it for the large one."""
    here = node("a", cpu="4", labels={ZONE: "z-1", POOL: "small"})
    sure = {"metadata": {"creationTimestamp": "2026-01-01T00:00:00Z"}}
    path = write(here, pod("few", cpu="1", **sure), pod("many", cpu="4"))
    Path(pools).write_text(POOLS.replace("cpu: 4,", "cpu: 3,"), "utf-8")
    arguments = ("recommend", "-f", path, "--pools", pools)
    run = tutti(*arguments)
    assert f"cost $365.00 a month ($0.5000 an hour); proved: no purchase costs less {REST}" in run.lines
    run = tutti(*arguments, "--binder", "tutti")
    assert "cost $73.00 a month ($0.1000 an hour); proved: no plan for these pods costs less" in run.lines
    run = tutti("recommend", "-f", write(here, pod("large", cpu="5")), "--pools", pools)
    assert "cost $365.00 a month ($0.5000 an hour); proved: no plan for these pods costs less" in run.lines


@pytest.mark.parametrize("there", [False, True])
@pytest.mark.parametrize(
    ("binder", "gap"),
    [
        ("kube-scheduler", "(gap 20.00 %; more time may close the gap, unless spread constraints cause it)"),
        ("tutti", "(gap 20.00 %)"),
    ],
)
def test_a_gap_says_whose_it_may_be(binder: str, gap: str, there: bool) -> None:
    new = NewNode(name="n", pool="p", zone="z", instance_type="t", capacity_type="on-demand", price=10**9)
    answer = Recommendation(
        strategy="optimal", objective="cost", binder=binder, nodes=(new,), pods=1, placed=1,
        cost=10**9, bound=8 * 10**8, gap=0.2, on_existing=(Placement(pod="default/p", node="a"),) if there else (),
    )  # fmt: skip
    least = "no plan for these pods costs less than $584.00"
    if there and binder == "kube-scheduler":
        least = f"no purchase costs less than $584.00 {REST}"
    line = f"cost $730.00 a month ($1.0000 an hour); {least} {gap}"
    assert line in recommendation_text(answer, Request(objects=(), catalogue=Catalogue()), (), wide=False)


def test_ten_thousand_pods(tutti: Tutti, write: Write, pools: str) -> None:
    Path(pools).write_text(POOLS.replace("max: 4", "max: 9999"), "utf-8")
    path = write(
        node("a", labels={ZONE: "z-1"}), *(pod(f"job-{n}", cpu=f"{100 + 50 * (n % 7)}m") for n in range(10_000))
    )
    run = tutti("recommend", "-f", path, "--pools", pools, "--time-limit", "10", "--binder", "tutti")
    assert "10,000 of 10,000 pending pods get a node" in run.out


def test_an_interrupt_ends_it_without_a_word(write: Write, pools: str) -> None:
    Path(pools).write_text(POOLS.replace("max: 4", "max: 9999"), "utf-8")
    path = write(*(pod(f"job-{n}", cpu=f"{1 + n % 97 / 50:.2f}") for n in range(4_000)))
    arguments = ("recommend", "-f", path, "--pools", pools, "--time-limit", "60")
    run = interrupted(*arguments, at="tutti.app.recommend.make_recommendation:make_recommendation")
    assert (run.code, run.out) == (130, b"")
    assert b"Traceback" not in run.err


def test_pods_that_take_their_time_to_end_are_told_of(tutti: Tutti, tmp_path: Path) -> None:
    example = EXAMPLES / "recommend"
    cluster, pools = tmp_path / "cluster.json", str(example / "overgrown-pools.yaml")
    objects = json.loads((example / "overgrown.json").read_text("utf-8"))
    plain = tutti("recommend", "-f", str(example / "overgrown.json"), "--pools", pools, "--down", "--no-consolidate")
    for each in objects["items"]:
        if each["kind"] == "Pod":
            each["spec"]["terminationGracePeriodSeconds"] = 300
    cluster.write_text(json.dumps(objects), "utf-8")
    arguments = ("recommend", "-f", str(cluster), "--pools", pools, "--down", "--no-consolidate")
    steps = tutti(*arguments, "-o", "json").json["scaleDown"]["steps"]
    assert {step["graceSeconds"] for step in steps} == {0, 300}
    waits = sum(bool(step["move"]) for step in steps)
    line = f"steps wait for pods to terminate, up to {5 * waits}m"
    assert line in tutti(*arguments).lines
    assert "take their time" not in plain.out
