"""Gangs of four dialects on a real cluster: whole, or waiting whole with the reason.

All tests share one scheduler, which was started before the CustomResourceDefinition of Volcano was installed. The test
of that dialect comes last, because the scheduler may take 30 seconds to notice the kind.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.controlplane.cluster_setup import create, eventually, install_crds, open_client, send
from tests.controlplane.control_plane import ControlPlane
from tests.controlplane.manifests import coscheduling_pod_group_crd, volcano_pod_group_crd
from tests.controlplane.scheduler.gang_objects import (
    ANNOTATION,
    COSCHEDULING,
    GROUPS,
    NATIVE,
    VOLCANO,
    gang_pods,
    pod_group,
)
from tests.controlplane.scheduler.scheduler_cluster import SchedulerCluster
from tests.controlplane.scheduler.scheduler_process import SchedulerProcess, SchedulerProcesses

DIALECTS = [NATIVE, COSCHEDULING, ANNOTATION, VOLCANO]


@pytest.fixture(scope="module")
def scheduler(
    scheduler_plane: ControlPlane, scheduler_kubeconfig: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[SchedulerProcess]:
    """Give a scheduler that was started before Volcano was installed."""

    async def prepare() -> None:
        async with open_client(scheduler_plane.kubeconfig) as client:
            await install_crds(client, coscheduling_pod_group_crd())
            await scheduler.until_ready()
            await install_crds(client, volcano_pod_group_crd())

    processes = SchedulerProcesses(scheduler_kubeconfig, tmp_path_factory.mktemp("scheduler"))
    scheduler = processes.start("--no-leader-elect")  # each test clears the lease
    asyncio.run(prepare())
    yield scheduler
    assert scheduler.is_alive, scheduler.log
    processes.stop()


async def add_group(cluster: SchedulerCluster, dialect: str, name: str, *, minimum: int) -> None:
    """Create the object of a group, if the dialect has one."""
    if dialect in GROUPS:
        await create(cluster.client, GROUPS[dialect], pod_group(dialect, name, cluster.namespace, minimum=minimum))


@pytest.mark.parametrize("dialect", [NATIVE, COSCHEDULING])
async def test_pods_wait_for_the_object_of_their_group(
    cluster: SchedulerCluster, scheduler: SchedulerProcess, dialect: str
) -> None:
    await cluster.add_nodes("a")
    gang = await cluster.add_pods(gang_pods(dialect, "late", cluster.namespace, pods=2))
    await cluster.until_waiting(gang, "WaitingForGang", message="late")
    await add_group(cluster, dialect, "late", minimum=2)
    assert await cluster.until_bound(gang) == dict.fromkeys(gang, "a")


async def test_of_two_gangs_with_room_for_one_exactly_one_starts(
    cluster: SchedulerCluster, scheduler: SchedulerProcess
) -> None:
    """The gangs are of different dialects."""
    await cluster.add_nodes("a", "b", "c")
    for dialect in (NATIVE, COSCHEDULING):
        await add_group(cluster, dialect, dialect, minimum=4)
    pods = {dialect: gang_pods(dialect, dialect, cluster.namespace, pods=4) for dialect in (NATIVE, COSCHEDULING)}
    mixed = [pod for pair in zip(*pods.values(), strict=True) for pod in pair]
    await cluster.add_pods(mixed)
    await cluster.until(lambda found: sum("nodeName" in pod["spec"] for pod in found.values()) >= 4, "a gang runs")
    bound = await cluster.bound()
    winner = NATIVE if f"{NATIVE}-0" in bound else COSCHEDULING
    loser = COSCHEDULING if winner == NATIVE else NATIVE
    assert bound == {f"{winner}-{number}" for number in range(4)}
    await cluster.until_waiting([f"{loser}-{number}" for number in range(4)], "Unschedulable")
    await cluster.delete_pods(bound)
    await cluster.until_bound([f"{loser}-{number}" for number in range(4)])


@pytest.mark.parametrize("dialect", DIALECTS)
async def test_a_gang_waits_whole_for_members_and_for_room(
    cluster: SchedulerCluster, scheduler: SchedulerProcess, dialect: str
) -> None:
    await cluster.add_nodes("a")
    await add_group(cluster, dialect, "train", minimum=4)
    gang = await cluster.add_pods(gang_pods(dialect, "train", cluster.namespace, pods=3, minimum=4))
    # Before the kind of Volcano is noticed, the message is another one.
    message = "3 of 4 pods exist: the gang waits for 1 more" if dialect != VOLCANO else ""
    await cluster.until_waiting(gang, "WaitingForGang", message=message)

    gang += await cluster.add_pods(gang_pods(dialect, "train", cluster.namespace, pods=range(3, 4), minimum=4))
    await cluster.until_waiting(gang, "Unschedulable", message="Insufficient cpu")

    await cluster.add_nodes("b")
    nodes = await cluster.until_bound(gang)
    assert sorted(nodes.values()) == ["a", "a", "b", "b"]
    assert len(cluster.bindings()) == 4
    if dialect == NATIVE:
        await eventually(lambda: is_initially_scheduled(cluster, "train"), "the group has its condition")
    elif dialect == COSCHEDULING:
        await eventually(lambda: is_scheduled(cluster, "train", 4), "the group says that its pods are scheduled")
    elif dialect in GROUPS:
        group = await send(cluster.client, "GET", GROUPS[dialect].path(cluster.namespace, "train"))
        assert "status" not in group, "other dialects have controllers that write the status"


async def is_scheduled(cluster: SchedulerCluster, name: str, count: int) -> bool:
    group = await send(cluster.client, "GET", GROUPS[COSCHEDULING].path(cluster.namespace, name))
    return bool(group.get("status") == {"phase": "Scheduled", "scheduled": count})


async def is_initially_scheduled(cluster: SchedulerCluster, name: str) -> bool:
    group = await send(cluster.client, "GET", GROUPS[NATIVE].path(cluster.namespace, name))
    conditions = {each["type"]: each["status"] for each in group.get("status", {}).get("conditions", ())}
    return conditions.get("PodGroupInitiallyScheduled") == "True"
