"""Every document is decoded once, whatever its format, by every route of the server and by `tutti recommend`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support.decode_counter import DecodeCounter
from tests.support.documents import node, pod
from tests.support.paths import SCENARIOS
from tests.support.wire_bodies import advisor_pod, planner, smallest
from tutti.cli.loading import load_cluster
from tutti.cli.options import ClusterInput
from tutti.cli.recommend.inputs import read_inputs
from tutti.recommend.records.request import RecommendOptions
from tutti.serve.workers.messages import PlanJob, Route, WorkerSetup
from tutti.serve.workers.planning import Planner

ONCE = 1.03
"""The names of the top level, and those that tell a document's format, may be looked at twice."""
POOLS = {"pools": [{"name": "x", "instanceType": "m5.large", "zones": ["eu-west-1a"], "max": 30}]}


def objects() -> list[Any]:
    return [node("n1"), node("n2"), *(pod(f"p{number}", cpu="100m") for number in range(40))]


def gardener() -> Any:
    tree = smallest()
    first = tree["Pods"][0]
    return tree | {"Pods": [first | {"Name": f"p{number}"} for number in range(40)]}


def with_constraint() -> Any:
    return {"apiVersion": "v1", "kind": "List", "items": [*objects(), planner()["constraint"]]}


def in_another_case() -> Any:
    tree = gardener()
    tree["Pods"][-1]["Spec"]["Containers"] = tree["Pods"][-1]["Spec"].pop("containers")
    return tree


TREES: dict[str, Any] = {
    "list": {"apiVersion": "v1", "kind": "List", "items": objects()},
    "array": objects(),
    "object": pod("p", cpu="1") | {"metadata": {"name": "p", "annotations": {"a": "b" * 4000}}},
    "gardener": gardener(),
    "planner": planner(*(advisor_pod(f"p{number}", "100m", "1Gi") for number in range(40))),
    "constraint": with_constraint(),
    "tutti": {"cluster": {"apiVersion": "v1", "kind": "List", "items": objects()}, "pools": POOLS},
    "scenario": json.loads((SCENARIOS / "s5.json").read_bytes()),
}
POSTED = [
    (Route.GARDENER, "gardener"),
    (Route.ADVISOR, "planner"),
    (Route.ADVISOR, "constraint"),
    *((Route.TUTTI, name) for name in TREES),
]


@pytest.fixture
def counter(monkeypatch: pytest.MonkeyPatch) -> DecodeCounter:
    counter = DecodeCounter()
    counter.install(monkeypatch)
    return counter


@pytest.mark.parametrize(("route", "name"), POSTED)
def test_a_body_that_is_posted(counter: DecodeCounter, route: Route, name: str):
    tree = TREES[name]
    planning = Planner(WorkerSetup(max_body=10**6, time_limit=0.1, max_time_limit=1))
    body = json.dumps(tree).encode()
    counter.reset()
    reply, text = planning.answer(PlanJob(id="", route=route), body)
    assert reply.status == (422 if name == "object" else 200), text
    assert_once(counter, len(body))


def assert_once(counter: DecodeCounter, size: int) -> None:
    assert 0.9 < counter.values / size < ONCE
    assert counter.looked_through <= 2 * size
    assert counter.names <= size


def test_a_body_that_cannot_be_planned_is_not_decoded_again_for_the_answer(counter: DecodeCounter):
    tree = TREES["planner"] | {"scoringStrategy": "cheapest"}
    body = json.dumps(tree).encode()
    planning = Planner(WorkerSetup(max_body=10**6, time_limit=0.1, max_time_limit=1))
    counter.reset()
    reply, text = planning.answer(PlanJob(id="", route=Route.ADVISOR), body)
    assert (reply.status, json.loads(text)["RequestRef"]["id"]) == (400, "r-1")
    counter.values -= len(text)
    assert_once(counter, len(body))


def test_names_in_another_case_are_tried_before_they_are_folded(counter: DecodeCounter):
    body = json.dumps(in_another_case()).encode()
    planning = Planner(WorkerSetup(max_body=10**6, time_limit=0.1, max_time_limit=1))
    counter.reset()
    reply, _ = planning.answer(PlanJob(id="", route=Route.GARDENER), body)
    assert reply.status == 200
    assert counter.values < 2 * ONCE * len(body)


@pytest.mark.parametrize("name", TREES)
def test_a_file_of_tutti_recommend(counter: DecodeCounter, tmp_path: Path, name: str):
    path = tmp_path / "input.json"
    path.write_text(json.dumps(TREES[name]))
    counter.reset()
    read_inputs(ClusterInput((str(path),)), pools=None, prices=None, region="", options=RecommendOptions(), seconds=1)
    assert_once(counter, path.stat().st_size)


@pytest.mark.parametrize("name", ["list", "constraint"])
def test_a_yaml_file_of_tutti_recommend(counter: DecodeCounter, tmp_path: Path, name: str):
    path = tmp_path / "input.yaml"
    path.write_text(yaml.safe_dump(TREES[name]))
    read_inputs(ClusterInput((str(path),)), pools=None, prices=None, region="", options=RecommendOptions(), seconds=1)
    assert counter.values == path.stat().st_size


def test_a_file_with_a_constraint_beside_the_cluster(counter: DecodeCounter, tmp_path: Path):
    cluster, pools = tmp_path / "cluster.json", tmp_path / "pools.json"
    cluster.write_text(json.dumps(TREES["list"]))
    pools.write_text(json.dumps(planner()["constraint"]))
    read = read_inputs(
        ClusterInput((str(cluster),)), pools=str(pools), prices=None, region="", options=RecommendOptions(), seconds=1
    )
    assert read.constraint is not None
    header_and_constraint = 2 * pools.stat().st_size
    assert_once(counter, cluster.stat().st_size + header_and_constraint)


def test_a_file_of_other_commands(counter: DecodeCounter, tmp_path: Path):
    path = tmp_path / "input.json"
    path.write_text(json.dumps(TREES["list"]))
    load_cluster(ClusterInput((str(path),)), ())
    assert_once(counter, path.stat().st_size)
