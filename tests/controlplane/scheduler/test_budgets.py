"""Disruption budgets on a real cluster: with `--respect-budgets` they decide who may be evicted."""

from __future__ import annotations

from tests.controlplane.cluster_setup import BUDGETS, create, eventually, send
from tests.controlplane.manifests import disruption_budget, new_pod
from tests.controlplane.scheduler.example_objects import apply, example_objects
from tests.controlplane.scheduler.scheduler_cluster import SchedulerCluster
from tests.controlplane.scheduler.scheduler_process import SchedulerProcesses


async def test_a_budget_protects_pods_until_it_is_gone(
    cluster: SchedulerCluster, schedulers: SchedulerProcesses
) -> None:
    await cluster.add_nodes("a", "b")
    (urgent_class, _) = example_objects("preemption.yaml")
    await apply(cluster.client, [urgent_class])
    schedulers.start("--respect-budgets")
    web = [new_pod(f"web-{number}", cluster.namespace, cpu="2", labels={"app": "web"}) for number in range(2)]
    await cluster.until_bound(await cluster.add_pods(web))
    await create(cluster.client, BUDGETS, disruption_budget("web", cluster.namespace, app="web", min_available=2))

    async def is_counted() -> bool:
        status = (await send(cluster.client, "GET", BUDGETS.path(cluster.namespace, "web"))).get("status", {})
        return bool(status.get("expectedPods") == 2 and status.get("disruptionsAllowed") == 0)

    await eventually(is_counted, "the controller counts the pods")
    urgent = await cluster.add_pods([new_pod("urgent", cluster.namespace, cpu="2", priorityClassName="urgent")])
    await cluster.until_waiting(urgent, "WaitingForBudget", message="Insufficient cpu")
    assert not evictions(cluster)
    assert len(await cluster.bound()) == 2

    await send(cluster.client, "DELETE", BUDGETS.path(cluster.namespace, "web"))
    await cluster.until_bound(urgent)
    assert [code for code in evictions(cluster) if code == 201]
    assert len(await cluster.bound()) == 2, "one pod was evicted"


def evictions(cluster: SchedulerCluster) -> list[int]:
    """Return the answers to the evictions that the scheduler requested; none may be a plain delete."""
    writes = cluster.writes()
    assert not [entry for entry in writes if entry.verb == "delete"]
    return [entry.response_status.code for entry in writes if entry.object_ref.subresource == "eviction"]
