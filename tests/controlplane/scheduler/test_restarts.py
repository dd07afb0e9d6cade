"""Schedulers that end: by kill -9, by a signal, with a standby; and an API server that restarts."""

from __future__ import annotations

import signal
from collections import Counter
from datetime import datetime

import pytest

from tests.controlplane.control_plane import ControlPlane
from tests.controlplane.manifests import new_pod
from tests.controlplane.scheduler.gang_objects import ANNOTATION, gang_pods
from tests.controlplane.scheduler.scheduler_cluster import SchedulerCluster, node_of
from tests.controlplane.scheduler.scheduler_process import SchedulerProcesses

GANGS, SIZE, ROOM = 40, 4, 30
"""So many gangs of so many pods, and room for so many gangs."""
LEASE = 15
"""Seconds of the lease."""


async def test_kill_9_leaves_no_gang_in_part(cluster: SchedulerCluster, schedulers: SchedulerProcesses) -> None:
    """A cap on bindings makes sure that each kill comes in the middle."""
    await cluster.add_nodes(*(f"node-{number}" for number in range(ROOM)), cpu=str(SIZE))
    gangs = [f"gang-{number:02}" for number in range(GANGS)]
    await cluster.add_pods([pod for gang in gangs for pod in gang_pods(ANNOTATION, gang, cluster.namespace, pods=SIZE)])
    for bound in (10, 50):
        scheduler = schedulers.start("--no-leader-elect", "--max-qps", "20")

        await until_so_many_are_bound(cluster, bound)
        scheduler.end(signal.SIGKILL)
        assert len(await cluster.bound()) < ROOM * SIZE
    schedulers.start("--no-leader-elect")
    await until_so_many_are_bound(cluster, ROOM * SIZE)
    running = Counter(name.rpartition("-")[0] for name in await cluster.bound())
    assert running == dict.fromkeys(running, SIZE), "a gang runs in part"
    await cluster.until_waiting(set(await cluster.pods()) - await cluster.bound(), "Unschedulable")
    bindings = cluster.bindings()
    assert len(bindings) == len(set(bindings)) == ROOM * SIZE, "a pod was bound twice"


async def until_so_many_are_bound(cluster: SchedulerCluster, count: int) -> None:
    await cluster.until(lambda pods: sum(bool(node_of(pod)) for pod in pods.values()) >= count, f"{count} are bound")


async def test_a_standby_takes_over_from_a_killed_leader(
    cluster: SchedulerCluster, schedulers: SchedulerProcesses
) -> None:
    await cluster.add_nodes("a")
    leader = schedulers.start()
    await leader.until_leader()
    standby = schedulers.start()
    await standby.until_ready()
    assert await standby.metric("tutti_is_leader") == 0
    first = await cluster.add_pods([new_pod("first", cluster.namespace)])
    await cluster.until_bound(first)
    leader.end(signal.SIGKILL)
    before = await cluster.lease()
    second = await cluster.add_pods([new_pod("second", cluster.namespace)])
    await cluster.until_bound(second)
    after = await cluster.lease()
    assert after["holderIdentity"] not in ("", before["holderIdentity"])
    waited = datetime.fromisoformat(after["acquireTime"]) - datetime.fromisoformat(before["renewTime"])
    assert LEASE <= waited.total_seconds() < 3 * LEASE

    assert standby.end(signal.SIGTERM) == 0
    assert not (await cluster.lease()).get("holderIdentity"), "SIGTERM gives the lease back"
    third = schedulers.start()
    await third.until_leader()
    assert len(cluster.bindings()) == 2


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 0), (signal.SIGINT, 130)])
async def test_a_signal_ends_the_leader_in_order(
    cluster: SchedulerCluster, schedulers: SchedulerProcesses, number: signal.Signals, code: int
) -> None:
    """The signal comes while a gang is being bound; the gang is finished."""
    await cluster.add_nodes("a", cpu="32")
    scheduler = schedulers.start("--max-qps", "10")
    await scheduler.until_leader()
    gang = await cluster.add_pods(gang_pods(ANNOTATION, "train", cluster.namespace, pods=20))
    await cluster.until(lambda pods: any(node_of(pod) for pod in pods.values()), "the first pod is bound")
    assert scheduler.end(number) == code, scheduler.log
    assert await cluster.bound() == set(gang)
    assert not (await cluster.lease()).get("holderIdentity")
    assert "Traceback" not in scheduler.log


async def test_a_restart_of_the_api_server_loses_nothing(
    cluster: SchedulerCluster, schedulers: SchedulerProcesses, scheduler_plane: ControlPlane
) -> None:
    """Without a lease, because a server that is away for longer than its renew deadline ends the process."""
    await cluster.add_nodes("a")
    scheduler = schedulers.start("--no-leader-elect")
    waiting = await cluster.add_pods(gang_pods(ANNOTATION, "before", cluster.namespace, pods=4))
    await cluster.until_waiting(waiting, "Unschedulable")
    scheduler_plane.restart_api_server(kill=True)
    await cluster.client.read("/readyz")  # the old connections of this client end
    late = await cluster.add_pods([new_pod("late", cluster.namespace, cpu="1")])
    await cluster.until_bound(late)
    cluster.forgive_refusals()
    assert not set(waiting) & await cluster.bound()
    await cluster.add_nodes("b", "c")
    await cluster.until_bound(waiting)
    assert scheduler.is_alive
    bindings = cluster.bindings()
    assert len(bindings) == len(set(bindings)) == 5
