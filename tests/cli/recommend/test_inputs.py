"""`tutti recommend`: what it reads, and what it says of what it cannot read."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path

import click
import pytest
import yaml

from tests.support.command_line import Run
from tests.support.documents import node, pod
from tests.support.paths import ROOT
from tutti.app.recommend.make_recommendation import make_recommendation
from tutti.cli.options import ClusterInput
from tutti.cli.recommend.advice import advice_text
from tutti.cli.recommend.inputs import RecommendInputs, read_inputs
from tutti.cluster.work.work_budget import WorkBudget
from tutti.recommend.records.recommendation import Recommendation
from tutti.recommend.records.request import RecommendOptions

Tutti = Callable[..., Run]
Write = Callable[..., str]
EXAMPLE = ROOT / "examples" / "recommend"


@pytest.fixture
def given(tmp_path: Path) -> Callable[[str, str], str]:
    """Write a file of a name, and give its path."""

    def written(name: str, text: str) -> str:
        path = tmp_path / name
        path.write_text(text, "utf-8")
        return str(path)

    return written


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "there is no pool in it"),
        ("foo: 1", "want pools of Tutti, Karpenter NodePools, or Auto Scaling groups"),
        ("instance_type,usd_hour\nm5.large,1\n", "want pools of Tutti, Karpenter NodePools, or Auto Scaling groups"),
        ('"a","b"\n"c",1\n', "want pools of Tutti, Karpenter NodePools, or Auto Scaling groups"),
        ("kind: Pod\napiVersion: v1\nmetadata: {name: x}", "want pools of Tutti, Karpenter NodePools"),
        ("pools: []", "pools: there is no pool in it"),
        ("pools: [{name: p, instanceType: m6i.large, colour: red}]", "pool p: colour: no such field"),
        ("pools: [{name: p, instanceType: m6i.huge}]", "pool p: instanceTypes: unknown instance type m6i.huge"),
        ("pools: [{name: p, instanceType: m6i.large, min: 3, max: 2}]", "the minimum 3 is above the maximum 2"),
        ("pools: [{name: p, instanceType: m6i.large, price: free}]", '"free" is not an amount of dollars'),
        ("pools: [", "line"),
    ],
)
def test_wrong_pools(tutti: Tutti, given: Callable[[str, str], str], text: str, problem: str) -> None:
    path = given("pools.yaml", text)
    run = tutti("recommend", "-f", str(EXAMPLE / "cluster.json"), "--pools", path)
    assert (run.code, run.out) == (2, "")
    line = run.err.splitlines()[-1]
    assert line.startswith(f"error: {path}: ")
    assert problem in line


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "there is no price in it"),
        ("type,usd_hour\nm6i.large,0.1\n", "no column instance_type in its first line"),
        ("instance_type\nm6i.large\n", "no column usd_hour, usd_month or on_demand_usd_h in its first line"),
        ("instance_type,usd_hour\nm6i.large,cheap\n", 'line 2: usd_hour: "cheap" is not an amount of dollars'),
        ("instance_type,usd_hour\nm6i.large,-1\n", 'line 2: usd_hour: "-1" is not an amount of dollars'),
        ("instance_type,usd_hour,cpu,memory\nm6i.large,1,2,much\n", 'line 2: memory: "much" is not a quantity'),
        ("instance_type,usd_hour\nm6i.large,1,2\n", "line 2: 3 cells, but the first line names 2 columns"),
    ],
)
def test_wrong_prices(tutti: Tutti, given: Callable[[str, str], str], text: str, problem: str) -> None:
    path = given("prices.csv", text)
    run = tutti("recommend", "-f", str(EXAMPLE / "cluster.json"), "--prices", path)
    assert (run.code, run.out) == (2, "")
    assert f"error: {path}: {problem}" in run.err


@pytest.mark.parametrize("option", ["-f", "--pools", "--prices"])
def test_files_that_are_not_there_and_directories(tutti: Tutti, tmp_path: Path, option: str) -> None:
    base = () if option == "-f" else ("-f", str(EXAMPLE / "cluster.json"))
    run = tutti("recommend", *base, option, str(tmp_path / "none"))
    assert run.code == 2
    assert f"error: {tmp_path / 'none'}: no such file or directory" in run.err
    run = tutti("recommend", *base, option, str(tmp_path))
    assert run.code == 2
    assert f"error: {tmp_path}: " in run.err


def test_an_empty_file(tutti: Tutti, given: Callable[[str, str], str]) -> None:
    path = given("empty.yaml", "")
    run = tutti("recommend", "-f", path)
    assert (run.code, run.out, run.err) == (2, "", f"error: {path}: there is no object in it\n")


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (("--time-limit", "-1"), '"-1" is not a duration'),
        (("--time-limit", "0"), "0 is not a duration above 0."),
        (("--time-limit", "nan"), '"nan" is not a duration'),
        (("--weights", "ram=3"), 'there is no weight "ram" (want cpu, memory or gpu).'),
        (("--weights", "cpu"), 'cpu: "" is not a whole number from 0 to 1,000.'),
        (("--weights", "cpu=1.5"), 'cpu: "1.5" is not a whole number from 0 to 1,000.'),
        (("--weights", "cpu=1,cpu=2"), "cpu is there twice."),
        (("--weights", "cpu=0,memory=0,gpu=0"), "one of them must be above 0."),
        (("--strategy", "fastest"), "'fastest' is not one of"),
        (("--pools", "-", "--prices", "-"), "only one of -f, --pools and --prices can be - (standard input)."),
    ],
)
def test_wrong_options(tutti: Tutti, arguments: tuple[str, ...], problem: str) -> None:
    run = tutti("recommend", "-f", str(EXAMPLE / "cluster.json"), *arguments)
    assert (run.code, run.out) == (2, "")
    assert problem in run.err


def test_nothing_that_could_be_bought(tutti: Tutti, write: Write) -> None:
    run = tutti("recommend", "-f", write(pod("lonely")))
    assert (run.code, run.out) == (2, "")
    why = "there are no nodes or NodePools to infer pools from; name the pools with --pools"
    assert run.err.splitlines()[-1] == f"error: nothing can be bought: {why}"
    run = tutti("recommend", "-f", write(node("a"), pod("old", on="a")))
    assert (run.code, run.err) == (0, "No pending pods found.\n")


def test_standard_input_manifests_and_node_pools_beside_the_dump(tutti: Tutti) -> None:
    dump = (EXAMPLE / "cluster.json").read_text("utf-8")
    ask = ("recommend", "--strategy", "least-cost", "-o", "json", "-f", "-")  # no search that time could cut short
    beside = tutti(*ask, "-f", str(EXAMPLE / "karpenter.yaml"), stdin=dump)
    given = tutti(*ask, "--pools", str(EXAMPLE / "karpenter.yaml"), stdin=dump)
    assert beside.json["scaleUp"] == given.json["scaleUp"] != []
    pools = (EXAMPLE / "pools.yaml").read_text("utf-8")
    run = tutti("recommend", "-f", str(EXAMPLE / "cluster.json"), "--pools", "-", "-o", "name", stdin=pools)
    assert run.code == 0
    assert {line.partition("/")[0] for line in run.lines} == {"batch", "general"}  # which of equal cost depends on time


def test_a_job_that_has_not_been_applied(tutti: Tutti, given: Callable[[str, str], str]) -> None:
    container = {"name": "main", "image": "example/main:v1", "resources": {"requests": {"cpu": "6"}}}
    job = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "new", "namespace": "ml"},
        "spec": {"parallelism": 2, "template": {"spec": {"restartPolicy": "Never", "containers": [container]}}},
    }
    arguments = ("recommend", "-f", str(EXAMPLE / "cluster.json"), "-f", given("job.json", json.dumps(job)))
    assert tutti(*arguments, "-o", "json").json["counts"]["pending"] == 18


def test_prices_of_a_zone_and_a_region(tutti: Tutti, given: Callable[[str, str], str]) -> None:
    pools = given("pools.yaml", "pools: [{name: p, instanceType: m6i.xlarge, zones: [eu-west-1a, eu-west-1b]}]")
    job = pod("one", cpu="3")
    manifest = given("pod.json", json.dumps({"apiVersion": "v1", "kind": "List", "items": [job]}))
    prices = given("prices.csv", "instance_type,zone,usd_month\nm6i.xlarge,eu-west-1b,73\n")
    run = tutti("recommend", "-f", manifest, "--pools", pools, "--prices", prices, "-o", "json")
    bought = run.json["scaleUp"][0]
    assert (bought["zone"], bought["pricePerHour"], bought["pricePerMonth"]) == ("eu-west-1b", 0.1, 73.0)
    no_zone = given("no-zone.yaml", "pools: [{name: p, instanceType: m6i.xlarge}]")
    for region, price in (("eu-west-1", 0.214), ("us-east-1", 0.192)):
        run = tutti("recommend", "-f", manifest, "--pools", no_zone, "--region", region, "-o", "json")
        assert run.json["cost"]["perHour"] == price


NODE_POOL = """
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: general}
spec: {template: {spec: {requirements: [REQUIREMENT]}}}
"""
REGIONS = "name the region with --region (packaged prices: eu-central-1, eu-west-1, us-east-1, us-west-2)"


def test_the_region_of_karpenter_pools_on_an_empty_cluster(
    tutti: Tutti, write: Write, given: Callable[[str, str], str]
) -> None:
    manifest = write(pod("p", cpu="3"))
    zone = "{key: topology.kubernetes.io/zone, operator: In, values: [eu-west-1b]}"
    named = given("zone.yaml", NODE_POOL.replace("REQUIREMENT", zone))
    run = tutti("recommend", "-f", manifest, "--pools", named, "-o", "json")
    assert (run.code, run.json["scaleUp"][0]["zone"]) == (0, "eu-west-1b")
    assert run.json["cost"]["perHour"] > 0
    nowhere = given("nowhere.yaml", NODE_POOL.replace("REQUIREMENT", zone.replace("eu-west-1b", "rack 7")))
    run = tutti("recommend", "-f", manifest, "--pools", nowhere)
    assert run.code == 2
    line = f"nothing is offered in general: no known instance type without a region: {REGIONS}"
    assert run.err.splitlines()[-1] == f"error: nothing can be bought: {line}"


def test_a_region_without_prices(tutti: Tutti, write: Write, given: Callable[[str, str], str]) -> None:
    manifest, pools = write(pod("p", cpu="3")), given("p.yaml", "pools: [{name: p, instanceType: m6i.xlarge}]")
    arguments = ("recommend", "-f", manifest, "--pools", pools, "--region", "mars", "-o", "json")
    known = "known: eu-central-1, eu-west-1, us-east-1, us-west-2; others with a price table"
    line = f'error: --region: no price is known in region "mars" ({known})\n'
    for more in ("", "m6i.xlarge,venus,,1\n", "m6i.xlarge,,eu-west-1a,1\n"):
        prices = given("prices.csv", f"instance_type,region,zone,usd_hour\n{more}")
        run = tutti(*arguments, *(("--prices", prices) if more else ()))
        assert (run.code, run.out, run.err) == (2, "", line)
    for row in ("m6i.xlarge,mars,,1\n", "m6i.xlarge,,,1\n"):  # one of that region, and one that holds everywhere
        prices = given("prices.csv", f"instance_type,region,zone,usd_hour\n{row}")
        run = tutti(*arguments, "--prices", prices)
        assert (run.code, run.json["cost"]["perHour"]) == (0, 1)


def test_a_region_with_nodes_is_one(tutti: Tutti, write: Write, given: Callable[[str, str], str]) -> None:
    pools = given("p.yaml", "pools: [{name: p, instanceType: m6i.xlarge, price: 1}]")
    there = node("n", cpu="1", memory="1Gi", pods="9", labels={"topology.kubernetes.io/region": "mars"})
    run = tutti("recommend", "-f", write(there, pod("p", cpu="3")), "--pools", pools, "--region", "mars", "-o", "json")
    assert (run.code, run.json["cost"]["perHour"]) == (0, 1)


# Scenario files -------------------------------------------------------------------------------------------------------

SCENARIO = {
    "nodePools": [{"name": "p1", "zones": ["eu-west-1a"], "max": 3, "current": 0, "instanceType": "m5.large"}],
    "pods": [{"namePrefix": "app-", "requests": {"cpu": "1", "memory": "1Gi"}, "count": 3}],
    "nodes": [],
}
PRICES = "instance_type,usd_month,cpu,memory_ki,pods\nm5.large,18.204,1920m,6776184,110\n"


def test_a_scenario_file(tutti: Tutti, given: Callable[[str, str], str]) -> None:
    scenario, prices = given("s.json", json.dumps(SCENARIO)), given("prices.csv", PRICES)
    run = tutti("recommend", "-f", scenario, "--prices", prices)
    assert run.code == 0
    assert run.lines[1].split() == ["p1", "eu-west-1a", "m5.large", "+3", "$18.20", "$54.61"]
    huge = given("huge.json", json.dumps(SCENARIO).replace('"count": 3', '"count": 2000000000'))
    run = tutti("recommend", "-f", huge)
    assert (run.code, run.err) == (
        2,
        f"error: {huge}: pods app-: count: 2000000000 is more than the 500000 pods that Tutti makes for one workload\n",
    )
    pools = str(EXAMPLE / "pools.yaml")
    for more, problem in (
        (("--pools", pools), "--pools cannot be given with a scenario file, which has pools of its own."),
        (("--region", "eu-west-1"), "--region cannot be given with a scenario file, which has pools of its own."),
        (
            ("-f", str(EXAMPLE / "cluster.json")),
            f"{scenario}: a scenario file cannot be combined with other files: give one -f",
        ),
    ):
        run = tutti("recommend", "-f", scenario, *more)
        assert (run.code, run.out) == (2, "")
        assert problem in run.err


# Every format, from standard input as well ----------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["gardener-snapshot.json", "scaling-advisor.json", "cluster.json"])
def test_every_format_is_read_from_standard_input(tutti: Tutti, name: str) -> None:
    path = EXAMPLE / name
    run = tutti("recommend", "-f", "-", "-o", "name", stdin=path.read_text("utf-8"))
    assert (run.code, run.out) == (0, tutti("recommend", "-f", str(path), "-o", "name").out)


def test_standard_input_stands_alone_if_it_says_everything(tutti: Tutti) -> None:
    stdin = (EXAMPLE / "gardener-snapshot.json").read_text("utf-8")
    run = tutti("recommend", "-f", str(EXAMPLE / "cluster.json"), "-f", "-", stdin=stdin)
    assert (run.code, run.err) == (
        2,
        "error: stdin: a Gardener snapshot cannot be combined with other files: give one -f\n",
    )


def test_a_byte_order_mark_is_nothing(tutti: Tutti, tmp_path: Path) -> None:
    pools = tmp_path / "pools.yaml"
    for name in ("gardener-snapshot.json", "cluster.json"):
        path = tmp_path / name
        path.write_bytes(b"\xef\xbb\xbf" + (EXAMPLE / name).read_bytes())
        assert tutti("recommend", "-f", str(path), "-o", "name").code == 0
    pools.write_bytes(b"\xef\xbb\xbf" + (EXAMPLE / "pools.yaml").read_bytes())
    assert tutti("recommend", "-f", str(EXAMPLE / "cluster.json"), "--pools", str(pools), "-o", "name").code == 0


# What a document says of how to answer --------------------------------------------------------------------------------


def _inputs(*paths: Path, pools: Path | None = None, seconds: float = 5.0) -> RecommendInputs:
    given = ClusterInput(tuple(map(str, paths)))
    return read_inputs(
        given, pools=str(pools) if pools else None, prices=None, region="", options=RecommendOptions(), seconds=seconds
    )


def test_a_document_has_a_say_in_the_time(tmp_path: Path) -> None:
    tree = json.loads((EXAMPLE / "scaling-advisor.json").read_bytes())
    path = tmp_path / "planner.json"
    path.write_text(json.dumps(tree | {"AdviceGenerationTimeout": 500_000_000}))
    assert (_inputs(path).seconds, _inputs(path, seconds=0.1).seconds) == (0.5, 0.1)
    body = {"cluster": json.loads((EXAMPLE / "cluster.json").read_bytes()), "options": {"timeLimit": 9}}
    path.write_text(json.dumps(body))
    assert _inputs(path).seconds == 9
    assert _inputs(EXAMPLE / "cluster.json").seconds == 5.0


def test_a_constraint_is_answered_with_an_advice(tmp_path: Path) -> None:
    inputs = _inputs(EXAMPLE / "scaling-advisor.json")
    answer = make_recommendation(inputs.request, WorkBudget.of_seconds(5, time.process_time))
    advice = yaml.safe_load(advice_text(answer, inputs.request, constraint=inputs.constraint))
    assert (advice["kind"], advice["metadata"]["name"]) == ("ScalingAdvice", "two-pool")
    assert advice["spec"]["scaleOutPlan"]["items"]
    pools = tmp_path / "constraint.json"
    pools.write_text(json.dumps(json.loads((EXAMPLE / "scaling-advisor.json").read_bytes())["constraint"]))
    beside = _inputs(EXAMPLE / "cluster.json", pools=pools)
    assert beside.constraint is not None
    empty = Recommendation(strategy="optimal", objective="cost", binder="tutti")
    assert yaml.safe_load(advice_text(empty, beside.request, constraint=beside.constraint))["metadata"] == {
        "name": "two-pool", "namespace": "default",
    }  # fmt: skip
    for other in (_inputs(EXAMPLE / "cluster.json"), _inputs(EXAMPLE / "gardener-snapshot.json")):
        with pytest.raises(click.UsageError, match="want a planner request, or a ScalingConstraint"):
            advice_text(answer, other.request, constraint=other.constraint)
