"""`tutti schedule`: what it prints, in every form, and what it says about what it did not look at."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from tests.support.command_line import Run
from tests.support.documents import node, pod

Tutti = Callable[..., Run]
Write = Callable[..., str]


def small(write: Write) -> str:
    """Two nodes; one pod that fits, one that does not, and three that are not considered."""
    return write(
        node("a"),
        node("b", taints=[{"key": "gpu", "effect": "NoSchedule"}]),
        pod("fits", labels={"app": "web"}),
        pod("large", cpu="64", namespace="batch", tolerations=[{"key": "gpu", "operator": "Exists"}]),
        pod("gated", schedulingGates=[{"name": "quota"}]),
        pod("elsewhere", schedulerName="volcano"),
        pod("going", metadata={"deletionTimestamp": "2026-11-02T08:00:00Z"}),
        pod("done") | {"status": {"phase": "Succeeded"}},
    )


def test_table(tutti: Tutti, write: Write) -> None:
    run = tutti("schedule", "-f", small(write))
    assert run.code == 0
    assert run.lines == [
        "NAMESPACE   NAME    STATUS    NODE     MESSAGE",
        "default     fits    Placed    a",
        "batch       large   Pending   <none>   0/2 nodes are available: 2 Insufficient cpu. "
        "preemption: 0/2 nodes are available: 2 Preemption is not helpful for scheduling.",
        "",
        "5 pending pods: 1 placed, 1 cannot be placed",
        "3 not considered: 1 other scheduler, 1 gated, 1 terminating",
    ]


def test_wide_lists_also_what_was_not_considered(tutti: Tutti, write: Write) -> None:
    run = tutti("schedule", "-f", small(write), "-o", "wide", "-n", "default")
    assert run.lines[:6] == [
        "NAME        STATUS    PRIORITY   REQUESTS   SCORE   NODE     MESSAGE",
        "fits        Placed    0          cpu=1      454     a",
        "elsewhere   Skipped   0          cpu=1              <none>   schedulerName is volcano",
        "gated       Gated     0          cpu=1              <none>   waiting for scheduling gates: [quota]",
        "going       Skipped   0          cpu=1              <none>   the pod is being deleted",
        "",
    ]


def test_json_and_yaml_are_the_same_plan(tutti: Tutti, write: Write) -> None:
    path = small(write)
    plan = tutti("schedule", "-f", path, "-o", "json").json
    assert plan["counts"] == {"pending": 5, "binds": 1, "evictions": 0, "unschedulable": 1, "notConsidered": 3}
    assert [bind["pod"] for bind in plan["binds"]] == ["default/fits"]
    assert plan["unschedulable"][0]["reasons"] == {"Insufficient cpu": 2}
    assert plan["unschedulable"][0]["nodes"] == 2
    assert {each["cause"] for each in plan["notConsidered"]} == {"gated", "other scheduler", "terminating"}
    assert yaml.safe_load(tutti("schedule", "-f", path, "-o", "yaml").out) == plan


def test_names(tutti: Tutti, write: Write) -> None:
    assert tutti("schedule", "-f", small(write), "-o", "name").lines == ["pod/fits node/a", "pod/large"]


def test_a_namespace_or_labels_choose_what_is_shown_not_what_is_placed(tutti: Tutti, write: Write) -> None:
    path = write(
        node("a"), pod("first", cpu="3", namespace="x"), pod("second", cpu="3", namespace="y", labels={"k": "v"})
    )
    for chosen in (("-n", "y"), ("-l", "k=v"), ("-l", "k in (u,v),!other")):
        run = tutti("schedule", "-f", path, *chosen)
        assert "second" in run.out
        assert "first" not in run.out
        assert "0/1 nodes are available: 1 Insufficient cpu." in run.out
        assert "1 pending pod: 0 placed, 1 cannot be placed" in run.out
    assert tutti("schedule", "-f", path, "-n", "y", "-A").lines[0].startswith("NAMESPACE")
    assert tutti("schedule", "-f", path, "-n", "y").lines[0].startswith("NAME ")


def test_bad_selector(tutti: Tutti, example: str) -> None:
    run = tutti("schedule", "-f", example, "-l", "app is web")
    assert (run.code, run.out) == (2, "")
    assert run.err == 'error: -l: "app is web" is not a condition on a label (want for example app=web)\n'


def test_nothing_to_do(tutti: Tutti, write: Write) -> None:
    for objects in ((), (node("a"),), (node("a"), pod("p", on="a"))):
        run = tutti("schedule", "-f", write(*objects))
        assert (run.code, run.out, run.err) == (0, "", "No pending pods found.\n")
        assert tutti("schedule", "-f", write(*objects), "-o", "json").json["counts"]["pending"] == 0


def test_without_nodes(tutti: Tutti, write: Write) -> None:
    run = tutti("schedule", "-f", write(pod("p")))
    assert run.code == 0
    assert run.lines[1].split(maxsplit=3) == ["p", "Pending", "<none>", "no nodes available to schedule pods"]


def test_the_queue_goes_by_priority_age_and_name(tutti: Tutti, write: Write) -> None:
    old, new = ({"creationTimestamp": f"2026-11-0{day}T08:00:00Z"} for day in (1, 2))
    path = write(
        node("a"),
        pod("d"),
        pod("c", metadata=new),
        pod("b", metadata=new),
        pod("a", metadata=old),
        pod("z", priority=5),
    )
    assert [line.split()[0] for line in tutti("schedule", "-f", path, "-o", "name").lines] == [
        "pod/z", "pod/a", "pod/b", "pod/c", "pod/d",
    ]  # fmt: skip


def test_preemption_is_carried_out_and_shown(tutti: Tutti, write: Write) -> None:
    path = write(node("a"), pod("low", cpu="3", on="a", priority=1), pod("high", cpu="3", priority=9))
    run = tutti("schedule", "-f", path)
    assert run.lines[1:3] == [
        "high   Placed    a      evicts 1 pod",
        "low    Evicted   a      makes room for default/high",
    ]
    assert run.lines[-1] == "1 pending pod: 1 placed, 0 cannot be placed, 1 pod evicted"
    assert "note: there are no PodDisruptionBudgets in the input: 1 eviction may break budgets" in run.err
    plan = tutti("schedule", "-f", path, "-o", "json").json
    assert plan["binds"][0]["evicts"] == ["default/low"]
    assert plan["evictions"] == [{"pod": "default/low", "node": "a", "by": "default/high", "priority": 1}]
    kept = tutti("schedule", "-f", path, "--no-preemption")
    assert "0/1 nodes are available: 1 Insufficient cpu.\n" in kept.out
    assert "Evicted" not in kept.out


def test_exit_code_for_scripts(tutti: Tutti, write: Write) -> None:
    path = small(write)
    assert tutti("schedule", "-f", path, "--fail-unschedulable").code == 1
    assert tutti("schedule", "-f", path, "--fail-unschedulable", "-n", "default").code == 0


def test_sources(tutti: Tutti, write: Write, tmp_path: Path) -> None:
    objects = [node("a"), pod("p")]
    text = json.dumps({"kind": "List", "items": objects})
    (tmp_path / "folder").mkdir()
    for number, obj in enumerate(objects):
        (tmp_path / "folder" / f"{number}.yaml").write_text(yaml.safe_dump(obj), "utf-8")
    (tmp_path / "packed.json.gz").write_bytes(gzip.compress(text.encode()))
    (tmp_path / "all.yaml").write_text(yaml.safe_dump_all(objects), "utf-8")
    for path in (tmp_path / "folder", tmp_path / "packed.json.gz", tmp_path / "all.yaml"):
        assert tutti("schedule", "-f", str(path), "-o", "name").out == "pod/p node/a\n"
    assert tutti("schedule", "-f", "-", "-o", "name", stdin=text).out == "pod/p node/a\n"
    nodes, pods = write(objects[0], name="nodes.json"), write(objects[1], name="pods.json")
    assert tutti("schedule", "-f", pods, "-f", nodes, "-o", "name").out == "pod/p node/a\n"


def test_a_manifest_on_top_of_a_dump(tutti: Tutti, write: Write, tmp_path: Path) -> None:
    container = {"name": "main", "image": "x", "resources": {"requests": {"cpu": "1"}}}
    template = {"metadata": {"labels": {"app": "new"}}, "spec": {"restartPolicy": "Never", "containers": [container]}}
    job = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "new", "namespace": "x"}}
    job["spec"] = {"parallelism": 3, "template": template}
    cron = {"apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": "nightly", "namespace": "x"}}
    cron["spec"] = {"schedule": "@daily", "jobTemplate": {"spec": {"template": template}}}
    manifest = tmp_path / "new.yaml"
    manifest.write_text(yaml.safe_dump_all([job, cron]), "utf-8")
    run = tutti("schedule", "-f", write(node("a"), pod("p", on="a")), "-f", str(manifest))
    assert "note: 4 pods made for 2 workloads" in run.err
    assert run.lines[-1] == "4 pending pods: 3 placed, 1 cannot be placed"


@pytest.mark.parametrize("flag", [(), ("--scheduler-name", "default-scheduler")])
def test_profile(tutti: Tutti, write: Write, example: str, flag: tuple[str, ...]) -> None:
    profile = str(Path(example).with_name("profile.yaml"))
    levelled = tutti("schedule", "-f", example, "-o", "json").json
    packed = tutti("schedule", "-f", example, "-o", "json", "--profile", profile, *flag).json
    assert {bind["pod"]: bind["node"] for bind in levelled["binds"]} != {b["pod"]: b["node"] for b in packed["binds"]}
    run = tutti("schedule", "-f", example, "--profile", example)
    assert run.code == 2
    assert run.err.startswith(f"error: {example}: ")
    run = tutti("schedule", "-f", example, "--profile", str(Path(example).parent))
    assert run.code == 2


def test_another_scheduler(tutti: Tutti, write: Write) -> None:
    run = tutti("schedule", "-f", small(write), "--scheduler-name", "volcano")
    assert run.lines[1].split() == ["elsewhere", "Placed", "a"]
    assert "4 not considered: 4 other scheduler" in run.out


def test_ten_thousand_pods(tutti: Tutti, write: Write) -> None:
    path = write(*(node(f"n-{number:03}", cpu="64") for number in range(100)), *(pod(f"p-{i}") for i in range(10_000)))
    run = tutti("schedule", "-f", path, "-o", "json")
    assert run.json["counts"] == {
        "pending": 10_000, "binds": 6400, "evictions": 0, "unschedulable": 3600, "notConsidered": 0,
    }  # fmt: skip
    used: dict[str, int] = {}
    for bind in run.json["binds"]:
        used[bind["node"]] = used.get(bind["node"], 0) + 1
    assert set(used.values()) == {64}
