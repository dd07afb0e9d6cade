"""`tutti explain`: the verdict of every node, for pods that wait and pods that run."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

import yaml

from tests.support.command_line import Run
from tests.support.documents import node, pod

Tutti = Callable[..., Run]
Write = Callable[..., str]
TAINT = {"key": "gpu", "effect": "NoSchedule"}


def head(run: Run) -> dict[str, str]:
    """The lines before the tables."""
    lines = run.out.partition("\n\n")[0].splitlines()
    return {label: text.strip() for label, _, text in (line.partition(":") for line in lines)}


def tables(run: Run) -> list[list[str]]:
    return [part.splitlines() for part in run.out.rstrip("\n").split("\n\n")[1:]]


def test_a_pending_pod_that_fits(tutti: Tutti, write: Write) -> None:
    path = write(node("a"), node("b"), node("c", taints=[TAINT]), pod("there", on="a"), pod("p"))
    run = tutti("explain", "pod/p", "-f", path)
    assert run.code == 0
    fields = head(run)
    assert (fields["Name"], fields["Namespace"], fields["Node"], fields["Requests"]) == (
        "p",
        "default",
        "<none>",
        "cpu=1",
    )
    assert fields["Outcome"].startswith("goes to b: score ")
    assert fields["Nodes"] == "2 could take it, 1 could not"
    scores, reasons = tables(run)
    assert scores[0].split() == ["NODE", "TOTAL", "TAINTS", "FIT", "VOLUMES", "BALANCE", "IMAGES"]
    assert [line.split()[0] for line in scores[1:]] == ["b", "a"]
    for line in scores[1:]:
        total, *parts = map(int, line.split()[1:])
        assert total == sum(parts)
    assert reasons == [
        "NODE   REFUSED BY        EVICTION   REASON",
        "c      TaintToleration   no help    node(s) had untolerated taint(s)",
    ]


def test_a_pending_pod_that_fits_nowhere(tutti: Tutti, write: Write) -> None:
    path = write(node("a"), node("b", cpu="1"), pod("there", cpu="3", on="a"), pod("p", cpu="2"))
    run = tutti("explain", "p", "-f", path)
    assert head(run)["Outcome"] == (
        "0/2 nodes are available: 2 Insufficient cpu. preemption: 0/2 nodes are available: "
        "1 No preemption victims found for incoming pod, 1 Preemption is not helpful for scheduling."
    )
    assert tables(run) == [
        [
            "NODE   REFUSED BY         EVICTION     REASON",
            "a      NodeResourcesFit   could help   Insufficient cpu",
            "b      NodeResourcesFit   no help      Insufficient cpu",
        ]
    ]


def test_whom_a_pod_would_evict(tutti: Tutti, write: Write) -> None:
    there = (pod("low", cpu="2", on="a", priority=1), pod("lower", cpu="2", on="a", priority=0))
    path = write(node("a"), *there, pod("p", cpu="2", priority=9))
    run = tutti("explain", "pod/p", "-f", path)
    assert head(run)["Preemption"] == "would evict default/lower from a and go there"
    assert tables(run)[0][1].split() == ["a", "NodeResourcesFit", "of", "1", "pod", "Insufficient", "cpu"]
    explanation = tutti("explain", "pod/p", "-f", path, "-o", "json").json
    assert (explanation["evicts"], explanation["nominated"], explanation["goesTo"]) == (["default/lower"], "a", None)
    assert explanation["nodes"][0]["victims"] == ["default/lower"]


def test_a_running_pod_that_would_stay(tutti: Tutti, write: Write) -> None:
    path = write(node("a"), node("b"), pod("other", on="b"), pod("p", on="a"))
    fields = head(tutti("explain", "pod/p", "-f", path))
    assert fields["Node"] == "a"
    assert fields["Outcome"].startswith("if pending again today, it would go to a again: score ")
    assert fields["Outcome"].partition("next best is ")[2].startswith("b with")


def test_a_running_pod_that_would_go_elsewhere(tutti: Tutti, write: Write) -> None:
    path = write(node("a"), node("b"), pod("other", on="a"), pod("p", on="a"))
    assert "it would go to b: score" in head(tutti("explain", "pod/p", "-f", path))["Outcome"]
    path = write(node("a", taints=[TAINT]), node("b"), pod("p", on="a"))
    outcome = head(tutti("explain", "pod/p", "-f", path))["Outcome"]
    assert outcome == (
        "if pending again today, it would go to b: the only node that can take it; "
        "a would refuse it: node(s) had untolerated taint(s)"
    )
    path = write(node("b"), pod("p", on="gone"))
    run = tutti("explain", "pod/p", "-f", path)
    assert head(run)["Outcome"].endswith("gone no longer exists")
    assert "note: 1 pod is on a node that is not in the input" in run.err
    path = write(node("a", taints=[TAINT]), pod("p", on="a"))
    assert "it would get no node: 0/1 nodes" in head(tutti("explain", "pod/p", "-f", path))["Outcome"]


def test_large_clusters_are_grouped_unless_wide(tutti: Tutti, write: Write) -> None:
    nodes = [node(f"n-{number:02}", taints=[TAINT] if number % 2 else []) for number in range(30)]
    path = write(*nodes, pod("p", cpu="9"))
    (grouped,) = tables(tutti("explain", "pod/p", "-f", path))
    assert [line.split()[:2] for line in grouped[1:]] == [["15", "n-00,n-02,n-04,..."], ["15", "n-01,n-03,n-05,..."]]
    (wide,) = tables(tutti("explain", "pod/p", "-f", path, "-o", "wide"))
    assert len(wide) == 31
    assert wide[1].split() == ["n-00", "cpu=4", "NodeResourcesFit", "no", "help", "Insufficient", "cpu"]


def test_many_different_scores_are_cut(tutti: Tutti, write: Write) -> None:
    nodes = [node(f"n-{number:02}", cpu=f"{4 + number}") for number in range(40)]
    (scores,) = tables(tutti("explain", "pod/p", "-f", write(*nodes, pod("p", cpu="3"))))
    assert scores[-1].endswith("more lines; -o wide has every node")


def test_wide_counts_what_is_free_without_the_pod_itself(tutti: Tutti, write: Write) -> None:
    path = write(node("a"), node("b"), pod("p", on="a"), pod("other", cpu="500m", on="b"))
    (scores,) = tables(tutti("explain", "pod/p", "-f", path, "-o", "wide"))
    assert {line.split()[0]: line.split()[1] for line in scores[1:]} == {"a": "cpu=4", "b": "cpu=3500m"}
    assert "NODERESOURCESFIT" in scores[0]


def test_structured(tutti: Tutti, write: Write) -> None:
    path = write(node("a"), node("b"), node("c", taints=[TAINT]), pod("p", on="a"))
    explanation = tutti("explain", "pod/p", "-f", path, "-o", "json").json
    assert (explanation["pod"], explanation["node"], explanation["goesTo"]) == ("default/p", "a", "a")
    assert [each["name"] for each in explanation["nodes"]] == ["a", "b", "c"]
    assert explanation["nodes"][0]["total"] == sum(explanation["nodes"][0]["scores"].values())
    assert explanation["nodes"][2]["plugin"] == "TaintToleration"
    assert explanation["nodes"][2]["evictionCouldHelp"] is False
    assert yaml.safe_load(tutti("explain", "pod/p", "-f", path, "-o", "yaml").out) == explanation


def test_pods_that_nobody_tries(tutti: Tutti, write: Write) -> None:
    path = write(node("a"), pod("g", schedulingGates=[{"name": "wait"}]), pod("v", schedulerName="volcano"))
    assert head(tutti("explain", "g", "-f", path))["Skipped"].endswith("waiting for scheduling gates: [wait]")
    fields = head(tutti("explain", "v", "-f", path, "--scheduler-name", "default-scheduler"))
    assert fields["Skipped"].endswith("schedulerName is volcano")
    assert fields["Outcome"] == "goes to a: the only node that can take it"


def test_the_scheduler_is_that_of_the_pod(tutti: Tutti, write: Write, tmp_path: Path) -> None:
    """The name in the pod also chooses the profile, if the configuration has one of that name."""
    path = write(node("a", taints=[TAINT]), pod("v", schedulerName="volcano"), pod("o", schedulerName="other"))
    assert "Skipped" not in head(tutti("explain", "v", "-f", path))
    profiles = [
        {"schedulerName": "default-scheduler"},
        {"schedulerName": "volcano", "plugins": {"multiPoint": {"disabled": [{"name": "TaintToleration"}]}}},
    ]
    kind = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
    configuration = tmp_path / "profiles.yaml"
    configuration.write_text(yaml.safe_dump({**kind, "profiles": profiles}))
    explain = partial(tutti, "explain", "-f", path, "--profile", str(configuration))
    fields = head(explain("v"))
    assert fields["Outcome"] == "goes to a: the only node that can take it"
    assert "Skipped" not in fields
    assert "untolerated taint" in head(explain("v", "--scheduler-name", "default-scheduler"))["Outcome"]
    assert head(explain("o"))["Skipped"].endswith("schedulerName is other")


def test_pods_named_by_node(tutti: Tutti, write: Write) -> None:
    term = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["a"]}]}
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}}
    run = tutti("explain", "p", "-f", write(node("a", cpu="1"), node("b"), pod("p", cpu="2", affinity=affinity)))
    assert "node(s) didn't satisfy plugin(s) [NodeAffinity]" in head(run)["Outcome"]
    assert tables(run)[0][2].endswith("node(s) didn't satisfy plugin(s) [NodeAffinity]")


def test_which_pod(tutti: Tutti, write: Write) -> None:
    done = pod("done") | {"status": {"phase": "Failed"}}
    path = write(node("a"), pod("p", namespace="x"), pod("p", namespace="y"), done)
    assert head(tutti("explain", "pods/p", "-n", "y", "-f", path))["Namespace"] == "y"
    for arguments, line in (
        (("pod/p",), "pod 'p' is in several namespaces (x, y): choose one with -n"),
        (("pod/q",), "pod 'q' is not in the input"),
        (("pod/p", "-n", "z"), "pod 'p' is not in namespace z of the input, but in x, y: choose with -n"),
        (("pod/q", "-n", "z"), "pod 'q' is not in namespace z of the input"),
        (("node/a",), 'want pod/NAME, got "node/a"'),
        (("pod/done",), "pod 'default/done' has finished (Failed): the scheduler is done with it"),
    ):
        run = tutti("explain", *arguments, "-f", path)
        assert (run.code, run.out, run.err) == (2, "", f"error: {line}\n")
