"""Commands without `-f` read the cluster of a kubeconfig context: which kinds, which namespace, which errors."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.cluster_api_server import ClusterApiServer, failure, forbidden, kubeconfig, plural
from tests.support.command_line import Run, interrupted
from tests.support.documents import Document, manifest, node, pod
from tutti.client.needed_kinds import kinds_to_dump, kinds_to_explain, kinds_to_recommend, kinds_to_schedule
from tutti.kube.objects import KINDS

Tutti = Callable[..., Run]
Serve = Callable[..., ClusterApiServer]
READERS = (("schedule",), ("explain", "pod/p"), ("recommend",), ("dump",))


@pytest.fixture(autouse=True)
def _no_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tutti.client.backoff.Backoff.next", lambda *_: 0.0)


def error_line(run: Run) -> str:
    """Return the one line of a run that failed."""
    assert (run.code, run.out) == (2, "")
    assert run.err.startswith("error: ")
    assert run.err.count("\n") == 1
    return run.err.removeprefix("error: ").rstrip("\n")


def workload(kind: str) -> Document:
    spec = {"replicas": 3, "template": {"spec": {"containers": [{"name": "c"}]}}}
    return manifest(kind, "web", namespace="default", uid="1") | {"apiVersion": "apps/v1", "spec": spec}


@pytest.mark.parametrize(
    ("command", "kinds"),
    [
        ("schedule", kinds_to_schedule()),
        ("schedule --scale deployment/web=1", kinds_to_schedule(scales=True)),
        ("explain pod/p", kinds_to_explain()),
        ("recommend", kinds_to_recommend()),
        ("recommend --down", kinds_to_recommend(down=True)),
        ("dump", kinds_to_dump()),
    ],
)
def test_every_command_requests_the_kinds_it_needs(tutti: Tutti, serve: Serve, command: str, kinds: list[str]) -> None:
    server = serve(node("a"), pod("p"), workload("Deployment"))
    assert tutti(*command.split()).code == 0
    served = {kind for kind in kinds if KINDS[kind].WIRE_KIND not in ("PodGroup", "NodePool")}
    served -= {"Workload", "CompositePodGroup"}
    requested = sorted(path.rpartition("/")[2] for path in server.paths if path not in ("/api", "/apis"))
    assert requested == sorted(plural(KINDS[kind].WIRE_KIND) for kind in served)


def test_pools_of_a_file_are_not_requested(tutti: Tutti, serve: Serve, tmp_path: Path) -> None:
    pool = {"apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": {"name": "p"}, "spec": {"template": {}}}
    server = serve(node("a"), pod("p", on="a"), pool)
    pools = tmp_path / "pools.yaml"
    pools.write_text("pools: [{name: x, instanceType: m6i.large, zones: [us-east-1a]}]")
    run = tutti("recommend", "--pools", str(pools), "--region", "us-east-1")
    assert run.code == 0, run.err
    assert not [path for path in server.paths if "karpenter" in path]


def test_the_namespace_of_the_context(tutti: Tutti, serve: Serve) -> None:
    serve(node("a"), pod("p", namespace="x"), pod("p", namespace="y"), pod("q", namespace="x"), namespace="y")
    assert "Namespace:   y" in tutti("explain", "pod/p").out
    assert "Namespace:   x" in tutti("explain", "pod/p", "-n", "x").out
    line = error_line(tutti("explain", "pod/q"))
    assert line == "pod 'q' is not in namespace y of the input, but in x: choose with -n"
    assert error_line(tutti("explain", "pod/r")) == "pod 'r' is not in namespace y of the input"
    assert [line.split()[0] for line in tutti("schedule").lines[1:4]] == ["x", "x", "y"]


def test_gangs_of_all_namespaces_are_listed(tutti: Tutti, serve: Serve) -> None:
    labels = {"pod-group.scheduling.sigs.k8s.io/name": "g", "pod-group.scheduling.sigs.k8s.io/min-available": "1"}
    serve(node("a"), pod("p", namespace="x", labels=labels), namespace="y")
    assert "g" in tutti("explain", "gang").out
    line = error_line(tutti("explain", "gang/g"))
    assert line == "gang 'g' is not in namespace y of the input, but in x: choose with -n"


def test_options_choose_file_and_context(tutti: Tutti, serve: Serve, tmp_path: Path) -> None:
    server = serve(node("a"), pod("p"))
    path = kubeconfig(tmp_path, server.url)
    for options in (
        ("--kubeconfig", str(path)),
        ("--context", "test"),
        ("--context", "test", "--kubeconfig", str(path)),
    ):
        assert tutti("schedule", *options).code == 0
    line = error_line(tutti("schedule", "--context", "prod"))
    assert line == f"{path}: context prod: there is no such context; known contexts: test"


@pytest.mark.parametrize("command", READERS[:3])
@pytest.mark.parametrize("option", ["--context", "--kubeconfig"])
def test_files_and_a_context_exclude_each_other(tutti: Tutti, command: tuple[str, ...], option: str) -> None:
    run = tutti(*command, "-f", "x.json", option, "y")
    assert run.code == 2
    assert run.err.splitlines()[-1] == f"Error: -f reads files and {option} reads a cluster: give one of them."


@pytest.mark.parametrize("command", READERS)
def test_without_any_cluster_the_message_has_both_ways(tutti: Tutti, command: tuple[str, ...]) -> None:
    line = error_line(tutti(*command))
    assert line.startswith("there is no cluster to read: pass -f FILE with a dump, or --kubeconfig FILE; KUBECONFIG (")


@pytest.mark.parametrize("command", READERS)
def test_a_missing_permission_is_named(tutti: Tutti, serve: Serve, command: tuple[str, ...]) -> None:
    server = serve(node("a"), pod("p"))
    server.answers["/api/v1/nodes"] = [lambda: forbidden("nodes")]
    assert error_line(tutti(*command)) == f"context test ({server.url}): no permission to list nodes"


def test_a_kind_that_cannot_be_read_has_a_note(tutti: Tutti, serve: Serve) -> None:
    server = serve(node("a"), pod("p", labels={"app": "x"}))
    path = "/api/v1/services"
    server.answers[path] = [lambda: forbidden("services")]
    run = tutti("schedule")
    assert run.code == 0
    assert run.err.splitlines() == [
        "note: no permission to list services in all namespaces: pods may be spread differently",
        "note: there are no Services in the input: 1 pod may be spread differently",
    ]
    server.answers[path] = [lambda: forbidden("services")]
    run = tutti("dump")
    assert run.err == "note: no permission to list services in all namespaces: pods may be spread differently\n"
    assert '"kind":"Service' not in run.out


def test_an_expired_token(tutti: Tutti, serve: Serve) -> None:
    server = serve(node("a"))
    server.answers["/api"] = [lambda: failure(401, "Unauthorized", "Unauthorized")]
    problem = "the server does not accept the credentials: log in again, or check the user of the context"
    assert error_line(tutti("schedule")) == f"context test ({server.url}): {problem}"


def test_no_server(tutti: Tutti, tmp_path: Path) -> None:
    path = kubeconfig(tmp_path, "http://127.0.0.1:9")
    line = error_line(tutti("schedule", "--kubeconfig", str(path)))
    assert line.startswith("context test (http://127.0.0.1:9): GET /api: Cannot connect to host 127.0.0.1:9")


def test_a_bad_kubeconfig(tutti: Tutti, tmp_path: Path) -> None:
    path = tmp_path / "config"
    path.write_text("users: 7")
    assert error_line(tutti("dump", "--kubeconfig", str(path))).startswith(f"{path}: not a kubeconfig")


def test_tokens_are_never_printed(tutti: Tutti, serve: Serve) -> None:
    server = serve(node("a"), pod("p"))
    server.answers["/api"] = [lambda: failure(500, "InternalError", "broken")]
    printed = [tutti("dump"), tutti("dump"), tutti("schedule", "-o", "json")]
    assert not [run for run in printed if "secret-token" in run.out + run.err]


def test_ctrl_c_while_the_server_does_not_answer(serve: Serve) -> None:
    serve(node("a"), pod("p"))
    ended = interrupted("dump", at="tutti.client.cluster_reader:discover")
    assert (ended.code, ended.out, ended.err) == (130, b"", b"")


def test_an_empty_cluster(tutti: Tutti, serve: Serve) -> None:
    serve(node("a"), workload("ReplicaSet"))
    run = tutti("schedule")
    assert (run.code, run.out, run.err) == (0, "", "No pending pods found.\n")  # controllers make pods, not Tutti
    dump = tutti("dump").out
    assert tutti("schedule", "-f", "-", stdin=dump).err == run.err
