"""The files of `examples/live`, applied to a real cluster, do what they say."""

from __future__ import annotations

from tests.controlplane.cluster_setup import JOBS, eventually, send
from tests.controlplane.scheduler.example_objects import apply, example_objects
from tests.controlplane.scheduler.pod_history import PodHistory
from tests.controlplane.scheduler.scheduler_cluster import SchedulerCluster, node_of
from tests.controlplane.scheduler.scheduler_process import SchedulerProcesses


async def test_the_pods_of_a_job_start_together_or_not_at_all(
    cluster: SchedulerCluster, schedulers: SchedulerProcesses
) -> None:
    await cluster.add_nodes("a")
    schedulers.start()
    await cluster.apply_example("gang-job.yaml")
    await cluster.until(lambda pods: len(pods) == 4, "the controller makes the pods")
    await cluster.until_waiting(await cluster.job_pods("train"), "Unschedulable", message="2 of 4 pods fit")
    await cluster.add_nodes("b")
    await cluster.until_job_runs("train", pods=4)


async def test_of_a_deadlock_pair_one_runs_and_one_waits_whole(
    cluster: SchedulerCluster, schedulers: SchedulerProcesses
) -> None:
    await cluster.add_nodes("a", "b", "c", "d")
    schedulers.start()
    await cluster.apply_example("deadlock-pair.yaml")
    await cluster.until(lambda pods: sum(bool(node_of(pod)) for pod in pods.values()) >= 6, "one Job runs")
    running = {name.partition("-")[0] for name in await cluster.bound()}
    assert len(running) == 1, "pods of both Jobs run"
    first = running.pop()
    second = "right" if first == "left" else "left"
    await cluster.until_job_runs(first, pods=6)
    await cluster.until(lambda pods: len(pods) == 12, "the controller makes all pods")
    await cluster.until_waiting(await cluster.job_pods(second), "Unschedulable")
    await cluster.delete_job(first)
    await cluster.until_job_runs(second, pods=6)


async def test_an_urgent_gang_evicts_a_whole_gang(cluster: SchedulerCluster, schedulers: SchedulerProcesses) -> None:
    """Two pods less would be enough room, but a gang does not run in part."""
    await cluster.add_nodes("a", "b", "c", "d")
    schedulers.start()
    await cluster.apply_example("gang-job.yaml")
    await cluster.until_job_runs("train", pods=4)
    victims = set(await cluster.job_pods("train"))
    async with PodHistory(cluster.client, cluster.namespace) as history:
        await cluster.apply_example("preemption.yaml")
        await cluster.until_job_runs("urgent", pods=6)
        await cluster.until(lambda pods: not victims & set(pods), "the victims are gone")
    targets = history.with_condition("DisruptionTarget")
    assert set(targets) == victims, "the gang is evicted as a whole"
    assert {each["reason"] for each in targets.values()} == {"PreemptionByScheduler"}
    job = await send(cluster.client, "GET", JOBS.path(cluster.namespace, "train"))
    assert "failed" not in job["status"], "the Job has ignored the eviction"
    assert not job["status"].get("conditions")


async def test_the_api_server_accepts_the_deployment_and_its_pods(cluster: SchedulerCluster) -> None:
    (deployment,) = example_objects("deployment.yaml")
    template = deployment["spec"]["template"]
    metadata = template["metadata"] | {"name": "tutti-scheduler-x", "namespace": "kube-system"}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": template["spec"]}
    stored, of_template = await apply(cluster.client, [deployment, pod], dry_run=True)
    assert stored["spec"]["replicas"] == 2
    assert of_template["spec"]["priority"] == 2_000_000_000


async def test_the_api_server_serves_the_scheduler_by_its_flow_schemas(
    cluster: SchedulerCluster, schedulers: SchedulerProcesses
) -> None:
    await cluster.apply_example("flow-schema.yaml")
    await cluster.add_nodes("a")
    scheduler = schedulers.start()
    await scheduler.until_leader()
    levels = {"tutti-scheduler-leases": "leader-election", "tutti-scheduler": "workload-high"}

    metric = "apiserver_flowcontrol_dispatched_requests_total"
    wanted = [f'{metric}{{flow_schema="{name}",priority_level="{level}"}}' for name, level in levels.items()]

    async def are_used() -> bool:
        page = (await cluster.client.request("GET", "/metrics", accept="text/plain")).decode()
        return all(line in page for line in wanted)

    await eventually(are_used, "requests are dispatched by both schemas")
