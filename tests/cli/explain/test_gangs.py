"""`tutti explain gang/NAME`: why a gang waits, where most of it fits, and what would cure it, from manifests."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest
import yaml

from tests.support import documents
from tests.support.builders import COSCHEDULING_LABEL
from tests.support.command_line import Run
from tests.support.documents import Document

Tutti = Callable[..., Run]
pod_group = partial(documents.pod_group, namespace="team")


def rack_node(name: str, *, rack: str = "r1", **how: Any) -> Document:
    return documents.node(name, labels={"rack": rack}, **how)


def members(gang: str, count: int, *, first: int = 0, **how: Any) -> list[Document]:
    """Members of a gang."""
    member = partial(documents.pod, cpu="2", namespace="team", labels={COSCHEDULING_LABEL: gang})
    return [member(f"{gang}-{number}", **{"priority": 0, **how}) for number in range(first, first + count)]


@pytest.fixture
def save(tmp_path: Path) -> Callable[..., str]:
    def saved(*objects: Document, name: str = "gangs.yaml") -> str:
        path = tmp_path / name
        path.write_text(yaml.safe_dump_all(objects), "utf-8")
        return str(path)

    return saved


Save = Callable[..., str]
IN_ONE_RACK = {"tutti.dev/topology-required": "rack"}


def rack_bound(save: Save) -> str:
    nodes = (rack_node("a", cpu=2), rack_node("b"), rack_node("c", rack="r2"))
    return save(*nodes, pod_group("train", 4, annotations=IN_ONE_RACK), *members("train", 4))


def dedented(text: str) -> str:
    return dedent(text).lstrip("\n")


def test_three_of_four_in_a_rack(tutti: Tutti, save: Save) -> None:
    run = tutti("explain", "gang/train", "-f", rack_bound(save))
    assert run.code == 0
    assert run.out == dedented("""
        Name:        train
        Namespace:   team
        Dialect:     coscheduling
        Priority:    0
        Needs:       4 pods in one rack
        Pods:        0 running, 4 waiting
        Eviction:    as a whole
        Outcome:     waits: 3 of 4 pods fit in rack r1; for the next: 0/2 nodes are available: 2 Insufficient cpu.

        DOMAIN   NODES   FITS     STOPPED BY
        r1       2       3 of 4   Insufficient cpu
        r2       1       2 of 4   Insufficient cpu

        Cures:
          - add 1 node like a (in rack r1)
          - add 1 node like b (in rack r1)
          - add 1 node like c (in rack r2)
          - drop its required topology rack
          - lower its minimum from 4 to 3
    """)


def test_a_missing_group(tutti: Tutti, save: Save) -> None:
    run = tutti("explain", "gang/train", "-f", save(rack_node("a"), *members("train", 2)))
    assert run.lines[4:] == [
        "Needs:       not known",
        "Pods:        0 running, 2 waiting",
        "Eviction:    as a whole",
        "Outcome:     cannot be scheduled: PodGroup team/train is not there",
        "",
        "Cures:",
        "  - create PodGroup team/train with minMember 2",
    ]


def test_a_taint(tutti: Tutti, save: Save) -> None:
    tainted = rack_node("b", taints=[{"key": "gpu", "value": "a100", "effect": "NoSchedule"}])
    path = save(rack_node("a"), tainted, pod_group("train", 3), *members("train", 3))
    run = tutti("explain", "gang/train", "-f", path)
    assert run.lines[-4:] == [
        "Cures:",
        "  - add 1 node like a",
        "  - let its pods tolerate gpu=a100:NoSchedule (on 1 node)",
        "  - lower its minimum from 3 to 2",
    ]


def test_too_few_pods(tutti: Tutti, save: Save) -> None:
    run = tutti("explain", "gang/train", "-f", save(rack_node("a"), pod_group("train", 2), *members("train", 1)))
    assert run.lines[-5:] == [
        "Outcome:     waits: 1 of 2 pods exist: the gang waits for 1 more",
        "",
        "Cures:",
        "  - create 1 more pod like train-0",
        "  - lower its minimum from 2 to 1",
    ]


def test_two_gangs_in_each_others_way(tutti: Tutti, save: Save) -> None:
    half = [
        *members("red", 1, on="a"),
        *members("blue", 1, on="a"),
        *members("red", 1, first=1),
        *members("blue", 1, first=1),
    ]
    path = save(rack_node("a"), pod_group("red", 2), pod_group("blue", 2), *half)
    run = tutti("explain", "gang/red", "-f", path)
    assert run.lines[5:] == [
        "Pods:        1 running, 1 waiting",
        "Eviction:    as a whole",
        "Queue:       1 gang comes before it",
        "Outcome:     waits: no pod fits: 0/1 nodes are available: 1 Insufficient cpu.",
        "",
        "Cures:",
        "  - add 1 node like a",
        "  - lower its minimum from 2 to 1",
        "  - raise its priority above 0; it then evicts blue-0",
        "  - evict blue-0 (priority 0; breaks gang blue)",
    ]


def test_a_gang_that_starts_and_one_that_runs(tutti: Tutti, save: Save) -> None:
    path = save(
        rack_node("a"),
        rack_node("b"),
        pod_group("old", 1),
        *members("old", 1, on="a"),
        pod_group("train", 2),
        *members("train", 2),
    )
    run = tutti("explain", "gang/train", "-f", path)
    assert run.lines[-5:] == [
        "Outcome:     starts with 2 pods on b, a",
        "",
        "POD       NODE",
        "train-0   b",
        "train-1   a",
    ]
    assert "Cures" not in run.out
    assert tutti("explain", "gang/old", "-f", path).lines[-1] == "Outcome:     runs"
    assert tutti("explain", "gang", "-f", path).out == dedented("""
        NAMESPACE   NAME    DIALECT        MINIMUM   RUNNING   PENDING   STATUS
        team        old     coscheduling   1         1         0         Running
        team        train   coscheduling   2         0         2         Pending
    """)


def test_whom_a_gang_evicts(tutti: Tutti, save: Save) -> None:
    low = members("low", 2, on="a")
    path = save(rack_node("a"), pod_group("low", 1), *low, pod_group("train", 2), *members("train", 2, priority=9))
    run = tutti("explain", "gang/train", "-f", path)
    assert "Outcome:     starts with 2 pods on a, evicting low-0, low-1" in run.lines


def test_no_cure(tutti: Tutti, save: Save) -> None:
    run = tutti("explain", "gang/train", "-f", save(rack_node("a", cpu=1), pod_group("train", 1), *members("train", 1)))
    assert run.lines[-1] == "Cures:       none was found"


def test_cures_as_data_can_be_read_again(tutti: Tutti, save: Save, write: Save) -> None:
    """What a cure puts, given with -f after the cluster, makes the gang start."""
    path = rack_bound(save)
    answer = tutti("explain", "gang/train", "-f", path, "-o", "json").json
    assert (answer["name"], answer["outcome"]["state"], answer["outcome"]["best"]) == ("train", "waits", 3)
    assert answer["domainKey"] == "rack"
    assert answer["domains"][0] == {"name": "r1", "nodes": 2, "fits": 3, "wanted": 4, "stoppedBy": "Insufficient cpu"}
    for cure in answer["cures"]:
        items = [edit["put"] for edit in cure["edits"]]
        more = write(*items, name="cure.json")
        after = tutti("explain", "gang/train", "-f", path, "-f", more, "-o", "json").json
        assert after["outcome"]["state"] == "starts", cure["text"]
    assert yaml.safe_load(tutti("explain", "gang/train", "-f", path, "-o", "yaml").out) == answer


def test_evictions_as_data(tutti: Tutti, save: Save) -> None:
    path = save(
        rack_node("a"), pod_group("low", 1), *members("low", 2, on="a"), pod_group("train", 2), *members("train", 2)
    )
    answer = tutti("explain", "gang/train", "-f", path, "-o", "json").json
    (evict,) = (cure for cure in answer["cures"] if cure["kind"] == "evict")
    assert (evict["priority"], evict["gangsBroken"], evict["evicts"]) == (0, 1, ["team/low-0", "team/low-1"])
    assert evict["edits"][0] == {"remove": {"kind": "Pod", "namespace": "team", "name": "low-0"}}


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("trian", "gang 'trian' is not in the input: did you mean train?"),
        ("xyz", "gang 'xyz' is not in the input: there are train"),
    ],
)
def test_a_name_that_is_not_there(tutti: Tutti, save: Save, name: str, says: str) -> None:
    run = tutti("explain", f"gang/{name}", "-f", rack_bound(save))
    assert (run.code, run.out) == (2, "")
    assert run.err.splitlines()[-1] == f"error: {says}"
    empty = save(rack_node("a"), name="empty.yaml")
    assert tutti("explain", "gang/x", "-f", empty).err == (
        "error: gang 'x' is not in the input: no pod names a gang there\n"
    )
    assert tutti("explain", "gang", "-f", empty).code == 2


def test_a_pod_of_a_gang(tutti: Tutti, save: Save) -> None:
    run = tutti("explain", "pod/train-0", "-f", rack_bound(save))
    (line,) = (line for line in run.lines if line.startswith("Gang:"))
    assert line.startswith("Gang:        train (waits: 3 of 4 pods fit in rack r1; ")


def test_the_scheduler_is_that_of_the_gang(tutti: Tutti, save: Save) -> None:
    """Of a gang with pods of several schedulers, those of the default scheduler are tried."""
    gang, mixed = members("train", 3, schedulerName="tutti"), members("mixed", 1, schedulerName="tutti")
    groups = (pod_group("train", 3), pod_group("mixed", 2))
    mixed += members("mixed", 1, first=1, schedulerName="default-scheduler")
    path = save(rack_node("a"), *groups, *gang, *mixed)
    assert "waits: 2 of 3 pods fit" in tutti("explain", "gang/train", "-f", path).out
    elsewhere = tutti("explain", "gang/train", "-f", path, "--scheduler-name", "default-scheduler").out
    assert "0 waiting, 3 of another scheduler" in elsewhere
    assert "1 waiting, 1 of another scheduler" in tutti("explain", "gang/mixed", "-f", path).out
