"""`tutti schedule` on clusters with gangs: a line for each gang, its members with -o wide, what it costs others."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import yaml

from tests.support.command_line import Run
from tests.support.documents import Document, node, pod

Tutti = Callable[..., Run]
Write = Callable[..., str]
LEAVING = {"deletionTimestamp": "2026-11-02T08:00:00Z"}


def member(name: str, gang: str, *, metadata: Document | None = None, **fields: Any) -> Document:
    """A pod of a gang; further annotations are fields that start with `tutti`."""
    annotations = {
        f"tutti.dev/{key[6:].replace('_', '-')}": fields.pop(key) for key in list(fields) if key[:6] == "tutti_"
    }
    return pod(name, metadata={**(metadata or {}), "annotations": {"pod-group": gang, **annotations}}, **fields)


def mixed(write: Write) -> str:
    """A gang that fits, one that does not, and pods on their own between them."""
    return write(
        node("a"),
        node("b"),
        pod("first", priority=9),
        member("x-0", "x", cpu="2", priority=5),
        member("x-1", "x", cpu="3", priority=5),
        pod("middle", priority=4, cpu="9"),
        *(member(f"y-{number}", "y", cpu="2", priority=3) for number in range(3)),
        pod("last"),
    )


def test_a_line_for_each_gang_in_the_order_of_the_queue(tutti: Tutti, write: Write) -> None:
    run = tutti("schedule", "-f", mixed(write), "--no-preemption")
    assert run.code == 0
    assert run.lines == [
        "NAME     READY   STATUS    NODE      MESSAGE",
        "first            Placed    a",
        "gang/x   2/2     Placed    2 nodes",
        "middle           Pending   <none>    0/2 nodes are available: 2 Insufficient cpu.",
        "gang/y   0/3     Pending   <none>    1 of 3 pods fit; "
        "for the next: 0/2 nodes are available: 2 Insufficient cpu.",
        "last             Placed    b",
        "",
        "2 gangs (5 pods) and 3 pods pending: 1 gang (2 pods) and 2 pods placed, "
        "1 gang (3 pods) and 1 pod cannot be placed",
    ]


def test_wide_lists_the_members(tutti: Tutti, write: Write) -> None:
    path = write(
        node("a", cpu="3"),
        member("x-0", "x", on="a", tutti_min_member="1"),
        *(member(f"x-{number}", "x") for number in (1, 2, 3)),
        member("x-4", "x", schedulingGates=[{"name": "quota"}]),
    )
    run = tutti("schedule", "-f", path, "-o", "wide")
    waits = "1 above the minimum: no pod fits: 0/1 nodes are available: 1 Insufficient cpu."
    assert run.lines == [
        "NAME     READY   MIN   STATUS    PRIORITY   REQUESTS   SCORE   NODE     MESSAGE",
        f"gang/x   3/4     1     Placed    0                             a        {waits}",
        "  x-0                  Running   0          cpu=1              a",
        "  x-1                  Placed    0          cpu=1      431     a",
        "  x-2                  Placed    0          cpu=1      415     a",
        "  x-3                  Pending   0          cpu=1              <none>",
        "x-4                    Gated     0          cpu=1              <none>   waiting for scheduling gates: [quota]",
        "",
        "1 gang (3 pods) pending: 1 gang (2 pods) placed, 1 surplus pod cannot be placed",
        "1 not considered: 1 gated",
    ]


def test_a_gang_that_runs_and_cannot_grow(tutti: Tutti, write: Write) -> None:
    path = write(node("a", cpu="1"), member("x-0", "x", on="a", tutti_min_member="1"), member("x-1", "x"))
    run = tutti("schedule", "-f", path)
    assert run.lines[1].startswith("gang/x   1/2     Running   a      1 above the minimum: ")
    assert run.lines[-1] == "1 gang (1 pod) pending: 0 placed, 1 surplus pod cannot be placed"
    assert tutti("schedule", "-f", path, "--fail-unschedulable").code == 1


def test_evictions(tutti: Tutti, write: Write) -> None:
    """A gang that goes whole is one line, a member that can be spared one of its own."""
    path = write(
        *(node(name, cpu="1") for name in "abcde"),
        member("whole-0", "whole", on="a", namespace="other"),
        member("whole-1", "whole", on="b", namespace="other"),
        *(member(f"spare-{number}", "spare", on="cd"[number], tutti_min_member="1") for number in range(2)),
        pod("alone", on="e"),
        *(member(f"x-{number}", "x", priority=5) for number in range(3)),
        pod("solo", priority=1),
    )
    run = tutti("schedule", "-f", path)
    assert run.lines == [
        "NAMESPACE   NAME         READY   STATUS    NODE      MESSAGE",
        "default     gang/x       3/3     Placed    3 nodes   evicts 3 pods",
        "default     spare-0              Evicted   c         makes room for gang/x; gang/spare has 1 pod left",
        "other       gang/whole   0/2     Evicted   2 nodes   its 2 pods make room for gang/x in default",
        "default     solo                 Placed    e         evicts 1 pod",
        "default     alone                Evicted   e         makes room for default/solo",
        "",
        "1 gang (3 pods) and 1 pod pending: 1 gang (3 pods) and 1 pod placed, 0 cannot be placed, "
        "1 gang (2 pods) and 2 pods evicted",
    ]


def test_a_pod_on_its_own_evicts_a_gang(tutti: Tutti, write: Write) -> None:
    path = write(
        *(node(name, cpu="1") for name in "ab"),
        *(member(f"low-{number}", "low", on="ab"[number]) for number in range(2)),
        pod("solo", priority=1),
    )
    assert tutti("schedule", "-f", path).lines[1:] == [
        "solo               Placed    a         evicts 2 pods of gang/low",
        "gang/low   0/2     Evicted   2 nodes   its 2 pods make room for default/solo",
        "",
        "1 pod pending: 1 pod placed, 0 cannot be placed, 1 gang (2 pods) evicted",
    ]


def test_budgets_are_named(tutti: Tutti, write: Write) -> None:
    budget = {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "keep", "namespace": "default", "uid": "keep"},
        "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "low"}}},
        "status": {"disruptionsAllowed": 0},
    }
    path = write(node("a", cpu="1"), budget, pod("low", on="a", labels={"app": "low"}), member("x", "x", priority=5))
    run = tutti("schedule", "-f", path)
    assert "gang/x   1/1     Placed    a      evicts 1 pod, breaking 1 disruption budget" in run.lines


def test_room_that_is_held(tutti: Tutti, write: Write) -> None:
    path = write(node("a", cpu="1"), pod("old", on="a", metadata=LEAVING), member("x", "x"))
    run = tutti("schedule", "-f", path, "-o", "wide")
    assert run.lines[1].split(maxsplit=5) == [
        "gang/x",
        "0/1",
        "1",
        "Waiting",
        "0",
        "a      waits for default/old to leave",
    ]
    assert run.lines[2].split() == ["x", "Waiting", "0", "cpu=1", "a"]
    assert run.lines[-1].endswith(": 0 placed, 0 cannot be placed, 1 gang (1 pod) waiting for room that is held")
    assert tutti("schedule", "-f", path, "-o", "name").lines == ["pod/x"]
    assert tutti("schedule", "-f", path, "--fail-unschedulable").code == 1


def test_members_that_are_leaving_do_not_count(tutti: Tutti, write: Write) -> None:
    path = write(
        node("a", cpu="3"),
        member("low-0", "low", on="a", cpu="2"),
        member("low-1", "low", on="a", metadata=LEAVING),
        pod("solo", priority=1, cpu="3"),
    )
    assert tutti("schedule", "-f", path).lines[2].split()[:3] == ["gang/low", "0/1", "Evicted"]


def test_a_gang_and_a_pod_of_one_name(tutti: Tutti, write: Write) -> None:
    path = write(
        *(node(name, cpu="1") for name in "ab"),
        pod("low-0", on="a", priority=-1),
        pod("low-1", on="b", priority=-1),
        member("x-0", "train", priority=1),
        pod("train"),
    )
    assert [line.split()[0] for line in tutti("schedule", "-f", path).lines[1:5]] == [
        "gang/train", "low-0", "train", "low-1",
    ]  # fmt: skip


def test_filters_take_a_gang_as_its_pods(tutti: Tutti, write: Write) -> None:
    path = write(
        node("a", cpu="3"),
        member("x-0", "x", labels={"role": "master"}),
        member("x-1", "x", labels={"role": "worker"}),
        member("z", "x", namespace="other", cpu="9"),
        pod("solo"),
    )
    run = tutti("schedule", "-f", path, "-l", "role=worker", "-o", "wide")
    assert [line.split()[0] for line in run.lines[1:4]] == ["gang/x", "x-0", "x-1"]
    assert run.lines[-1] == "1 gang (2 pods) pending: 1 gang (2 pods) placed, 0 cannot be placed"
    plan = tutti("schedule", "-f", path, "-n", "other", "-o", "json").json
    assert [gang["gang"] for gang in plan["gangs"]] == ["other/x"]
    assert [each["pod"] for each in plan["unschedulable"]] == ["other/z"]
    assert tutti("schedule", "-f", path, "-n", "default", "--fail-unschedulable").code == 0
    assert tutti("schedule", "-f", path, "--fail-unschedulable").code == 1
    assert tutti("schedule", "-f", path, "-l", "role=none").err.endswith("No pending pods found.\n")


def test_forms_for_programs(tutti: Tutti, write: Write) -> None:
    path = mixed(write)
    plan = tutti("schedule", "-f", path, "-o", "json").json
    assert [(gang["gang"], gang["placed"], gang["minimum"]) for gang in plan["gangs"]] == [
        ("default/x", 2, 2), ("default/y", 0, 3),
    ]  # fmt: skip
    assert [bind.get("gang") for bind in plan["binds"]] == [None, "default/x", "default/x", None]
    assert yaml.safe_load(tutti("schedule", "-f", path, "-o", "yaml").out) == plan
    assert tutti("schedule", "-f", path, "-o", "name").lines == [
        "pod/first node/a", "pod/x-0 node/b", "pod/x-1 node/a", "pod/last node/b",
        "pod/middle", "pod/y-0", "pod/y-1", "pod/y-2",
    ]  # fmt: skip


def test_without_gangs_nothing_is_said_of_them(tutti: Tutti, write: Write) -> None:
    plan = tutti("schedule", "-f", write(node("a"), pod("p")), "-o", "json").json
    assert list(plan) == ["counts", "binds", "evictions", "unschedulable", "notConsidered"]
    assert "gang" not in plan["binds"][0]


def test_consolidation(tutti: Tutti, write: Write) -> None:
    objects = [node("a"), node("b"), pod("web-0", cpu="2", on="a"), pod("web-1", cpu="2", on="b")]
    path = write(*objects, pod("big", cpu="4"))
    run = tutti("schedule", "-f", path, "--consolidation")
    assert run.lines[1:] == [
        "big     Placed   a      moves 1 pod",
        "web-0   Moved    a      moved to b, makes room for default/big",
        "",
        "1 pending pod: 1 placed, 0 cannot be placed, 1 pod moved",
    ]
    run = tutti("schedule", "-f", write(*objects, member("x", "x", cpu="4")), "--consolidation")
    assert run.lines[1].split(maxsplit=4) == ["gang/x", "1/1", "Placed", "a", "moves 1 pod"]
    assert run.lines[-1].endswith("0 cannot be placed, 1 pod moved")
    run = tutti("schedule", "-f", path, "--consolidation", "--no-preemption")
    assert (run.code, run.out) == (2, "")
    assert "--consolidation and --no-preemption exclude each other" in run.err


def test_what_is_wrong_with_a_group_is_its_message(tutti: Tutti, write: Write) -> None:
    path = write(
        node("a"),
        pod("p", labels={"scheduling.x-k8s.io/pod-group": "gone"}),
        member("q", "q", tutti_min_member="two"),
        member("r", "r", tutti_min_member="3"),
    )
    assert [line.split(maxsplit=4)[4] for line in tutti("schedule", "-f", path).lines[1:4]] == [
        "PodGroup default/gone is not there",
        'tutti.dev/min-member "two" is not a number',
        "1 of 3 pods exist: the gang waits for 2 more",
    ]


def test_without_nodes(tutti: Tutti, write: Write) -> None:
    run = tutti("schedule", "-f", write(member("x-0", "x"), member("x-1", "x")))
    assert run.lines[1].split(maxsplit=4)[:4] == ["gang/x", "0/2", "Pending", "<none>"]
    assert "no nodes available to schedule pods" in run.lines[1]


def test_names_are_never_cut_and_always_one_line(tutti: Tutti, write: Write) -> None:
    long = "n" * 63
    run = tutti("schedule", "-f", write(node("a"), member(long, long), member("p", "two\nlines\x1b[2J")))
    assert [line.split()[0] for line in run.lines[1:3]] == [f"gang/{long}", "gang/two?lines?[2J"]


def test_ten_thousand_pods_in_gangs(tutti: Tutti, write: Write) -> None:
    nodes = [node(f"n-{number:03}", cpu="64", labels={"rack": f"r-{number // 10}"}) for number in range(100)]
    pods = [member(f"g-{i // 8}-{i % 8}", f"g-{i // 8}", tutti_topology_required="rack") for i in range(10_000)]
    run = tutti("schedule", "-f", write(*nodes, *pods))
    assert len(run.lines) == 1 + 1250 + 2
    assert run.lines[-1] == (
        "1,250 gangs (10,000 pods) pending: 800 gangs (6,400 pods) placed, 450 gangs (3,600 pods) cannot be placed"
    )
    assert sum(" rack=r-" in line for line in run.lines) == 800


def test_a_reader_that_goes_away(write: Write) -> None:
    path = write(node("a"), *(member(f"p-{number}", f"g-{number}", cpu="1m") for number in range(2000)))
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "wb") as closed:
        done = subprocess.run(
            [sys.executable, "-c", "from tutti.cli.main import main; main()", "schedule", "-f", path],
            stdout=closed, stderr=subprocess.PIPE, text=True, check=False,
        )  # fmt: skip
    assert (done.returncode, "Traceback" in done.stderr) == (141, False)
