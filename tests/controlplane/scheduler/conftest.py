"""Fixtures of tests of `tutti scheduler`: one control plane for all, a cleared cluster for each.

The control plane has all parts, kube-scheduler included: Kubernetes' own gangs are on, and pods of Jobs run until they
are deleted. The scheduler's service account has the rights of `examples/live/rbac.yaml`; after each test no request of
the account may have been refused.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest

from tests.controlplane.cluster_setup import make_namespace, open_client, wait_for_rights, write_account_kubeconfig
from tests.controlplane.component_flags import ControlPlaneOptions
from tests.controlplane.control_plane import ControlPlane
from tests.controlplane.scheduler.example_objects import apply, example_objects
from tests.controlplane.scheduler.kubelet_stages import write_kubelet_stages
from tests.controlplane.scheduler.scheduler_cluster import SCHEDULER, SchedulerCluster
from tests.controlplane.scheduler.scheduler_process import SchedulerProcesses

_numbers = count(1)


@pytest.fixture(scope="session")
def scheduler_plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """Give a control plane with all parts."""
    stages = write_kubelet_stages(tmp_path_factory.mktemp("kwok") / "stages.yaml")
    options = ControlPlaneOptions(
        controller_manager=True,
        scheduler=True,
        kwok=True,
        kwok_stages=stages,
        native_gangs=True,
        audit=True,
        # On a slow machine kwok renews nodes late.
        controller_manager_flags=("--node-monitor-grace-period=24h",),
    )
    with ControlPlane(options) as plane:
        yield plane


@pytest.fixture(scope="session")
def scheduler_kubeconfig(scheduler_plane: ControlPlane) -> Path:
    """Apply `examples/live/rbac.yaml`; return a kubeconfig of its service account."""

    async def prepare() -> Path:
        documents = example_objects("rbac.yaml")
        async with open_client(scheduler_plane.kubeconfig) as client:
            await apply(client, documents)
            for document in documents:
                if document["kind"] in ("ClusterRole", "Role"):
                    namespace = document["metadata"].get("namespace", "")
                    await wait_for_rights(client, SCHEDULER, document["rules"], namespace=namespace)
            return await write_account_kubeconfig(
                client,
                "tutti-scheduler",
                kubeconfig=scheduler_plane.kubeconfig,
                path=scheduler_plane.folder / "scheduler.kubeconfig",
                namespace="kube-system",
            )

    return asyncio.run(prepare())


@pytest.fixture
def cluster(
    scheduler_plane: ControlPlane, scheduler_kubeconfig: Path, runner: asyncio.Runner
) -> Iterator[SchedulerCluster]:
    """Give a cluster without nodes; remove all objects in the end."""
    scheduler_plane.check()
    opened = open_client(scheduler_plane.kubeconfig)
    client = runner.run(opened.__aenter__())
    namespace = runner.run(make_namespace(client, f"test-{next(_numbers)}"))
    log = scheduler_plane.audit_log
    cluster = SchedulerCluster(client, namespace, log, log.stat().st_size)
    yield cluster
    runner.run(cluster.clear())
    runner.run(opened.__aexit__(None, None, None))
    cluster.check_rights()


@pytest.fixture
def schedulers(cluster: SchedulerCluster, scheduler_kubeconfig: Path, tmp_path: Path) -> Iterator[SchedulerProcesses]:
    """Give what starts schedulers; end them all before the cluster is cleared."""
    processes = SchedulerProcesses(scheduler_kubeconfig, tmp_path)
    yield processes
    processes.stop()
