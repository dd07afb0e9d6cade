"""What-ifs: drain, cordon, add, scale."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.support.command_line import Run
from tests.support.documents import Document, node, pod

Tutti = Callable[..., Run]
Write = Callable[..., str]
MIRROR = {"annotations": {"kubernetes.io/config.mirror": "x"}}


def binds(run: Run) -> dict[str, str]:
    return {bind["pod"]: bind["node"] for bind in run.json["binds"]}


def replica_set(name: str, deployment: str, replicas: int, namespace: str = "default") -> Document:
    labels = {"app": deployment}
    container = {"name": "main", "image": "x", "resources": {"requests": {"cpu": "1"}}}
    return {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {
            "name": name,
            "namespace": namespace,
            "uid": name,
            "ownerReferences": [{"kind": "Deployment", "name": deployment, "uid": "d", "controller": True}],
        },
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": {"containers": [container]}},
        },
    }


def test_drain_makes_pods_pending_and_cordons_the_node(tutti: Tutti, write: Write) -> None:
    path = write(
        node("a"),
        node("b"),
        pod("owned", on="a", owner=("ReplicaSet", "r")),
        pod("alone", on="a"),
        pod("daemon", on="a", owner=("DaemonSet", "d")),
        pod("static", on="a", metadata=MIRROR),
        pod("leaving", on="a", metadata={"deletionTimestamp": "2026-11-02T08:00:00Z"}),
        pod("other", on="b"),
    )
    run = tutti("schedule", "-f", path, "--drain", "a", "-o", "json")
    assert binds(run) == {"default/owned": "b", "default/alone": "b"}
    assert "note: a is drained of 2 pods, of which 1 without a controller would not be created again" in run.err


def test_a_drained_pod_comes_after_all_pending_pods(tutti: Tutti, write: Write) -> None:
    made = {"creationTimestamp": "2020-01-01T00:00:00Z"}
    path = write(node("a"), node("b", cpu="1"), pod("old", on="a", metadata=made), pod("waiting", metadata=made))
    run = tutti("schedule", "-f", path, "--drain", "a", "-o", "json")
    assert binds(run) == {"default/waiting": "b"}
    assert "1 node(s) were unschedulable" in run.json["unschedulable"][0]["message"]


def test_a_cordoned_node_keeps_its_pods_and_takes_no_more(tutti: Tutti, write: Write) -> None:
    path = write(node("a"), node("b"), pod("there", on="a"), pod("new"))
    assert binds(tutti("schedule", "-f", path, "--cordon", "a", "-o", "json")) == {"default/new": "b"}
    run = tutti("schedule", "-f", path, "--cordon", "a", "--cordon", "b", "-o", "json")
    assert run.json["unschedulable"][0]["reasons"] == {"node(s) were unschedulable": 2}


def test_added_nodes_are_like_the_one_named_but_fresh(tutti: Tutti, write: Write) -> None:
    taints = [
        {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"},
        {"key": "gpu", "effect": "NoSchedule"},
    ]
    bears = [{"key": "gpu", "operator": "Exists"}]
    path = write(
        node("a", labels={"pool": "gpu"}, unschedulable=True, taints=taints),
        pod("there", cpu="4", on="a"),
        pod("daemon", cpu="1", on="a", owner=("DaemonSet", "d")),
        pod("x", cpu="3", tolerations=bears, nodeSelector={"pool": "gpu"}),
        pod("y", cpu="3", tolerations=bears, nodeSelector={"kubernetes.io/hostname": "a-new-2"}),
        pod("z", cpu="4", tolerations=bears),
        pod("intolerant", cpu="1"),
    )
    run = tutti("schedule", "-f", path, "--add", "a=2", "-o", "json")
    assert binds(run) == {"default/x": "a-new-1", "default/y": "a-new-2"}
    reasons = {each["pod"]: each["reasons"] for each in run.json["unschedulable"]}
    # The daemon's copies leave three cores on each new node; the cordon stays where it was.
    assert reasons["default/z"] == {"Insufficient cpu": 2, "node(s) were unschedulable": 1}
    assert reasons["default/intolerant"] == {"node(s) had untolerated taint(s)": 2, "node(s) were unschedulable": 1}


def test_adding_goes_before_draining(tutti: Tutti, write: Write) -> None:
    path = write(node("a"), pod("p", on="a", owner=("ReplicaSet", "r")))
    assert binds(tutti("schedule", "-f", path, "--drain", "a", "--add", "a=1", "-o", "json")) == {
        "default/p": "a-new-1"
    }


@pytest.mark.parametrize("name", ["deployment/web", "deploy/web", "deployments/web", "deployment.apps/web", "rs/web-1"])
def test_scale_up_and_down(tutti: Tutti, write: Write, name: str) -> None:
    path = write(node("a"), replica_set("web-1", "web", 1), pod("web-1-x", on="a", owner=("ReplicaSet", "web-1")))
    run = tutti("schedule", "-f", path, "--scale", f"{name}=6", "-o", "json")
    assert run.json["counts"]["binds"] == 3
    assert run.json["counts"]["unschedulable"] == 2
    assert f"note: {name} is scaled to 6: 5 pods more" in run.err
    run = tutti("schedule", "-f", path, "--scale", f"{name}=0", "--scale", f"{name}=1")
    assert f"note: {name} is scaled to 0: 1 pod fewer" in run.err
    assert f"note: {name} has 1 already" in run.err


def test_scale_finds_its_workload(tutti: Tutti, write: Write) -> None:
    path = write(node("a"), replica_set("web-1", "web", 0, "x"), replica_set("web-2", "web", 0, "y"))
    run = tutti("schedule", "-f", path, "--scale", "deployment/web=1")
    assert run.err == "error: --scale: deployment/web is in several namespaces (x, y): choose one with -n\n"
    assert tutti("schedule", "-f", path, "--scale", "deployment/web=1", "-n", "x").lines[1].split()[1] == "Placed"
    run = tutti("schedule", "-f", path, "--scale", "sts/db=1")
    assert run.err.startswith("error: statefulset 'db' is not in the input (dump statefulsets too")


@pytest.mark.parametrize(
    ("option", "value", "line"),
    [
        ("--drain", "c", "node 'c' is not in the cluster"),
        ("--cordon", "c", "node 'c' is not in the cluster"),
        ("--add", "c=1", "node 'c' is not in the cluster"),
        ("--add", "a", '--add: want NODE=COUNT, got "a"'),
        ("--add", "a=-1", '--add: want NODE=COUNT, got "a=-1"'),
        ("--scale", "web=3", "--scale: want KIND/NAME=COUNT with a kind of"),
        ("--scale", "daemonset/d=3", "--scale: want KIND/NAME=COUNT with a kind of"),
        ("--add", f"a=1{5000 * '0'}", "--add: a: 1000"),
        ("--scale", "job/x=500001", "--scale: job/x: 500001 is more than the 500000 pods that Tutti makes for one"),
        ("--scale", "deployment/web", '--scale: want KIND/NAME=COUNT, got "deployment/web"'),
    ],
)
def test_invalid_what_ifs(tutti: Tutti, write: Write, option: str, value: str, line: str) -> None:
    run = tutti("schedule", "-f", write(node("a")), option, value)
    assert (run.code, run.out) == (2, "")
    assert run.err.startswith(f"error: {line}")
    assert len(run.err.splitlines()) == 1
