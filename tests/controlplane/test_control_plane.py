"""The control plane itself: its processes end with the process that started them, its helpers do what they say."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.controlplane.audit_log import read_audit_log
from tests.controlplane.cluster_setup import (
    BUDGETS,
    JOBS,
    NODES,
    create,
    eventually,
    install_crds,
    make_nodes,
    make_pods,
    send,
)
from tests.controlplane.control_plane import ControlPlane, ControlPlaneError
from tests.controlplane.manifests import (
    coscheduling_pod_group_crd,
    disruption_budget,
    job,
    new_pod,
    ready_node,
    volcano_pod_group_crd,
)
from tests.support.documents import Document
from tests.support.paths import ROOT
from tutti.client.api_client import MERGE_PATCH, ApiClient
from tutti.client.pod_writes import PodWrites
from tutti.client.resources import PODS

_PATIENCE = 120
"""Seconds; only something that hangs takes so long."""


# Processes ------------------------------------------------------------------------------------------------------------


@contextmanager
def command(folder: Path) -> Iterator[tuple[subprocess.Popen[str], dict[str, Any]]]:
    """Give the process of the command and what it printed; kill the process in the end."""
    arguments = [sys.executable, "-m", "tests.controlplane.control_plane", "--dir", str(folder)]
    with subprocess.Popen(arguments, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            yield process, json.loads(process.stdout.readline())
        finally:
            process.kill()


def is_running(pid: int) -> bool:
    """Return whether a process exists and is no zombie."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text("utf-8").rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"


def wait_until_gone(pids: dict[str, int]) -> None:
    end = time.monotonic() + _PATIENCE
    while left := {name: pid for name, pid in pids.items() if is_running(pid)}:
        assert time.monotonic() < end, f"still running: {left}"
        time.sleep(0.05)


needs_proc = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="only Linux has death signals and /proc")


@needs_proc
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGKILL])
def test_no_process_outlives_the_command(tmp_path: Path, number: signal.Signals) -> None:
    with command(tmp_path) as (process, printed):
        assert set(printed["pids"]) == {"etcd", "kube-apiserver"}
        assert all(is_running(pid) for pid in printed["pids"].values())
        assert Path(printed["kubeconfig"]).is_file()
        process.send_signal(number)
        assert process.wait(_PATIENCE) == (-number if number == signal.SIGKILL else 0)
        wait_until_gone(printed["pids"])


@needs_proc
def test_the_command_ends_if_a_part_ends(tmp_path: Path) -> None:
    with command(tmp_path) as (process, printed):
        os.kill(printed["pids"]["kube-apiserver"], signal.SIGKILL)
        assert process.wait(_PATIENCE) == 1
        assert process.stderr is not None
        assert "kube-apiserver has ended" in process.stderr.read()
        wait_until_gone(printed["pids"])


def test_missing_programs_are_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TUTTI_CONTROL_PLANE", str(tmp_path / "empty"))
    with pytest.raises(ControlPlaneError, match="run `make control-plane` first"), ControlPlane(folder=tmp_path):
        pass


# Helpers --------------------------------------------------------------------------------------------------------------


async def test_nodes_are_ready_and_keep_their_own_taints(client: ApiClient) -> None:
    taint = {"key": "dedicated", "value": "batch", "effect": "NoSchedule"}
    nodes = [ready_node(f"bulk-{number}", cpu="8", zone="a") for number in range(20)]
    await make_nodes(client, [*nodes, ready_node("bulk-tainted", taints=[taint])])
    stored = {each["metadata"]["name"]: each for each in (await send(client, "GET", NODES.path()))["items"]}
    first = stored["bulk-0"]
    assert first["status"]["allocatable"]["cpu"] == "8"
    assert [c["status"] for c in first["status"]["conditions"] if c["type"] == "Ready"] == ["True"]
    assert all("taints" not in stored[node["metadata"]["name"]]["spec"] for node in nodes)
    assert stored["bulk-tainted"]["spec"]["taints"] == [taint]


async def test_the_audit_log_has_bindings_and_no_secrets(
    control_plane: ControlPlane, client: ApiClient, namespace: str
) -> None:
    offset = control_plane.audit_log.stat().st_size
    (pod,) = await make_pods(client, [new_pod("a", namespace)])
    await make_nodes(client, [ready_node(f"node-of-{namespace}")])
    uid = pod["metadata"]["uid"]
    await PodWrites(client).bind(f"{namespace}/a", uid, node=f"node-of-{namespace}", timeout=30)
    secret = {"metadata": {"name": "s", "namespace": namespace}, "stringData": {"password": "not-in-the-log"}}
    await send(client, "POST", f"/api/v1/namespaces/{namespace}/secrets", secret)
    entries = [e for e in read_audit_log(control_plane.audit_log, offset=offset) if e.object_ref.namespace == namespace]
    bindings = [e for e in entries if e.object_ref.subresource == "binding"]
    assert [(e.object_ref.name, e.request_object["target"]["name"]) for e in bindings] == [
        ("a", f"node-of-{namespace}")
    ]
    assert [e.response_status.code for e in bindings] == [201]
    created = {e.object_ref.resource: e.request_object for e in entries if e.verb == "create" and e not in bindings}
    assert created == {"pods": None, "secrets": None}
    assert b"not-in-the-log" not in control_plane.audit_log.read_bytes()


async def test_a_job_runs_on_the_nodes_that_its_pods_are_bound_to(
    client_with_kubelets: ApiClient, namespace_with_kubelets: str
) -> None:
    client, namespace = client_with_kubelets, namespace_with_kubelets
    await make_nodes(client, [ready_node("kubelet-1"), ready_node("kubelet-2")])
    await create(client, JOBS, job("batch", namespace, pods=2))
    pods = await eventually(lambda: pods_of(client, namespace, count=2), "the controller makes the pods")
    for pod, node in zip(pods, ("kubelet-1", "kubelet-2"), strict=True):
        metadata = pod["metadata"]
        await PodWrites(client).bind(f"{namespace}/{metadata['name']}", metadata["uid"], node=node, timeout=30)

    async def is_complete() -> bool:
        status = (await send(client, "GET", JOBS.path(namespace, "batch")))["status"]
        return any(c["type"] == "Complete" and c["status"] == "True" for c in status.get("conditions", []))

    await eventually(is_complete, "the job completes")
    done = await pods_of(client, namespace, count=2)
    assert done is not None
    assert sorted(pod["spec"]["nodeName"] for pod in done) == ["kubelet-1", "kubelet-2"]
    assert {pod["status"]["phase"] for pod in done} == {"Succeeded"}


async def pods_of(client: ApiClient, namespace: str, *, count: int) -> list[Document] | None:
    """Return the pods of a namespace if there are so many."""
    found: list[Document] = (await send(client, "GET", PODS.path(namespace)))["items"]
    return found if len(found) == count else None


async def test_the_controller_keeps_the_status_of_budgets(
    client_with_kubelets: ApiClient, namespace_with_kubelets: str
) -> None:
    client, namespace = client_with_kubelets, namespace_with_kubelets
    await make_nodes(client, [ready_node("kubelet-3")])
    pods = await make_pods(client, [new_pod(name, namespace, labels={"app": "web"}) for name in ("a", "b")])
    for pod in pods:
        metadata = pod["metadata"]
        await PodWrites(client).bind(f"{namespace}/{metadata['name']}", metadata["uid"], node="kubelet-3", timeout=30)
    await create(client, BUDGETS, disruption_budget("web", namespace, app="web", min_available=1))

    async def allowed() -> bool:
        status = (await send(client, "GET", BUDGETS.path(namespace, "web"))).get("status", {})
        return bool(status.get("disruptionsAllowed") == 1)

    await eventually(allowed, "the budget allows one disruption")
    await PodWrites(client).evict(f"{namespace}/a", pods[0]["metadata"]["uid"])

    async def is_gone() -> bool:
        return await pods_of(client, namespace, count=1) is not None

    await eventually(is_gone, "the kubelet ends the evicted pod")


async def test_custom_groups_have_a_status(client_with_kubelets: ApiClient, namespace_with_kubelets: str) -> None:
    client, namespace = client_with_kubelets, namespace_with_kubelets
    for resource in await install_crds(client, coscheduling_pod_group_crd(), volcano_pod_group_crd()):
        group = {"apiVersion": resource.api_version, "kind": "PodGroup"}
        await create(client, resource, {**group, "metadata": {"name": "g", "namespace": namespace}, "spec": {}})
        path = resource.path(namespace, "g", "status")
        await send(client, "PATCH", path, {"status": {"phase": "Running"}}, content_type=MERGE_PATCH)
        stored = await send(client, "GET", resource.path(namespace, "g"))
        assert stored["status"] == {"phase": "Running"}
