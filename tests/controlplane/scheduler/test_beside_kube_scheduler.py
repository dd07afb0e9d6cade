"""The scheduler beside kube-scheduler on the same nodes, and as its shadow."""

from __future__ import annotations

from collections import Counter

from tests.controlplane.cluster_setup import eventually
from tests.controlplane.manifests import new_pod
from tests.controlplane.scheduler.gang_objects import ANNOTATION, gang_pods
from tests.controlplane.scheduler.scheduler_cluster import SchedulerCluster
from tests.controlplane.scheduler.scheduler_process import SchedulerProcess, SchedulerProcesses

KUBE_SCHEDULER = "default-scheduler"


async def test_the_pods_of_both_schedulers_land(cluster: SchedulerCluster, schedulers: SchedulerProcesses) -> None:
    """Both prefer the emptier nodes, so the schedulers do not fill a node at the same moment."""
    await cluster.add_nodes("a", "b", "c", "d", cpu="16")
    schedulers.start()
    pods = [
        new_pod(f"{scheduler}-{number}", cluster.namespace, cpu="1", scheduler=scheduler)
        for number in range(12)
        for scheduler in ("tutti", KUBE_SCHEDULER)
    ]
    nodes = await cluster.until_bound(await cluster.add_pods(pods))
    assert max(Counter(nodes.values()).values()) <= 16
    assert len(cluster.bindings()) == 12


async def test_pods_of_kube_scheduler_take_room(cluster: SchedulerCluster, schedulers: SchedulerProcesses) -> None:
    await cluster.add_nodes("a", "b", cpu="4")
    others = [new_pod(f"web-{number}", cluster.namespace, cpu="1", scheduler=KUBE_SCHEDULER) for number in range(5)]
    others = await cluster.add_pods(others)
    await cluster.until_bound(others)
    schedulers.start()
    gang = await cluster.add_pods(gang_pods(ANNOTATION, "train", cluster.namespace, pods=4))
    await cluster.until_waiting(gang, "Unschedulable", message="3 of 4 pods fit")
    await cluster.delete_pods(others[:1])
    nodes = await cluster.until_bound(gang)
    left = await cluster.until_bound(others[1:])
    assert Counter([*nodes.values(), *left.values()]) == {"a": 4, "b": 4}


async def until_logged(scheduler: SchedulerProcess, *texts: str) -> None:
    async def is_logged() -> bool:
        assert scheduler.is_alive, scheduler.log
        return all(text in scheduler.log for text in texts)

    await eventually(is_logged, f"the log has {texts}")


async def test_a_dry_run_writes_nothing(cluster: SchedulerCluster, schedulers: SchedulerProcesses) -> None:
    """One dry run for each scheduler's pods; kube-scheduler binds its own meanwhile."""
    await cluster.add_nodes("a", "b")
    own, shadow = schedulers.start("--dry-run"), schedulers.start("--dry-run", "--scheduler-name", KUBE_SCHEDULER)
    for scheduler in (own, shadow):
        await scheduler.until_ready()
    gang = await cluster.add_pods(gang_pods(ANNOTATION, "train", cluster.namespace, pods=2))
    await cluster.add_pods([new_pod("large", cluster.namespace, cpu="3")])
    others = [
        new_pod("web", cluster.namespace, cpu="1", scheduler=KUBE_SCHEDULER),
        new_pod("large-web", cluster.namespace, cpu="3", scheduler=KUBE_SCHEDULER),
    ]
    await cluster.add_pods(others)
    key = f"{cluster.namespace}/"
    await until_logged(own, *(f"would bind {key}{name} to " for name in gang), f"{key}large waits (Unschedulable)")
    await until_logged(shadow, f"{key}large-web waits (Unschedulable)")
    await cluster.until_bound(["web"])
    pods = await cluster.pods()
    assert all(not pods[name]["status"].get("conditions") for name in (*gang, "large")), "a dry run tells no pod"
    assert cluster.requests()
    assert not cluster.writes()
    for scheduler in (own, shadow):
        status, page = await scheduler.get("/metrics")
        assert status == 200
        assert "scheduler_schedule_attempts_total" in page
    assert f"would bind {key}train" not in shadow.log
    assert f"{key}large-web" not in own.log
