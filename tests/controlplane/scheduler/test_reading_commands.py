"""Commands that read a real cluster, a running scheduler or its recording."""

from __future__ import annotations

import json
import re
import signal
from functools import partial
from pathlib import Path

import pytest

from tests.controlplane.cluster_setup import eventually, make_service_account
from tests.controlplane.control_plane import ControlPlane
from tests.controlplane.manifests import new_pod
from tests.controlplane.scheduler.example_objects import example_objects
from tests.controlplane.scheduler.gang_objects import ANNOTATION, gang_pods
from tests.controlplane.scheduler.scheduler_cluster import SchedulerCluster
from tests.controlplane.scheduler.scheduler_process import SchedulerProcess, SchedulerProcesses, run_tutti
from tests.support.paths import ROOT


async def add_waiting_gang(cluster: SchedulerCluster) -> list[str]:
    """Add two nodes and a gang that needs three."""
    await cluster.add_nodes("a", "b")
    return await cluster.add_pods(gang_pods(ANNOTATION, "train", cluster.namespace, pods=3, cpu="2"))


@pytest.mark.parametrize("form", ["table", "json"])
async def test_a_dump_gives_the_answers_of_the_cluster(
    cluster: SchedulerCluster, scheduler_plane: ControlPlane, form: str
) -> None:
    await add_waiting_gang(cluster)
    await cluster.add_pods([new_pod("small", cluster.namespace)])
    tutti = partial(run_tutti, kubeconfig=scheduler_plane.kubeconfig)
    dump = await tutti("dump")
    assert dump.code == 0, dump.err
    schedule = partial(tutti, "schedule", "--scheduler-name", "tutti", "-o", form)
    from_dump, from_cluster = await schedule("-f", "-", stdin=dump.out), await schedule()
    assert (from_dump.code, from_cluster.code) == (0, 0), from_dump.err + from_cluster.err
    assert from_dump.out == from_cluster.out
    if form == "table":
        assert re.search(r"^gang/train +0/3 +Pending", from_cluster.out, re.MULTILINE)
        assert "1 gang (3 pods) cannot be placed" in from_cluster.out


async def test_explain_reads_the_cluster(cluster: SchedulerCluster, scheduler_plane: ControlPlane) -> None:
    await add_waiting_gang(cluster)
    await cluster.add_pods([new_pod("large", cluster.namespace, cpu="3")])
    explain = partial(run_tutti, "explain", "-n", cluster.namespace, kubeconfig=scheduler_plane.kubeconfig)
    pod = await explain("pod/large")
    assert pod.code == 0, pod.err
    assert "Insufficient cpu" in pod.out
    gang = await explain("gang/train")
    assert gang.code == 0, gang.err
    assert "2 of 3 pods fit" in gang.out


async def test_inspect_asks_the_scheduler(
    cluster: SchedulerCluster,
    schedulers: SchedulerProcesses,
    scheduler_plane: ControlPlane,
    scheduler_kubeconfig: Path,
    tmp_path: Path,
) -> None:
    """The scheduler's account may list pods, so it sees each namespace; the role of the example sees all at once."""
    scheduler = schedulers.start()
    gang = await add_waiting_gang(cluster)
    await cluster.until_waiting(gang, "Unschedulable", message="2 of 3 pods fit")
    url = await scheduler.url()
    inspect = partial(run_tutti, "inspect", "--url", url, kubeconfig=scheduler_kubeconfig)
    queue = await inspect("queue", "-n", cluster.namespace)
    assert queue.code == 0, queue.err
    assert re.search(r"^1 +gang/train +3 +0 +Waiting +room ", queue.out, re.MULTILINE), queue.out
    gangs = await inspect("gangs", "-n", cluster.namespace)
    assert re.search(r"^train +annotation +0/3 +3 +Waiting ", gangs.out, re.MULTILINE), gangs.out
    pod = await inspect("pod/train-0", "-n", cluster.namespace)
    assert "2 of 3 pods fit" in pod.out, pod.out + pod.err
    everything = await inspect("queue", "-A")
    assert everything.code != 0
    assert "/debug/state" in everything.err

    role, _ = example_objects("inspect-rbac.yaml")
    user = await make_service_account(
        cluster.client,
        "inspector",
        kubeconfig=scheduler_plane.kubeconfig,
        path=tmp_path / "inspector.kubeconfig",
        rules=role["rules"],
    )
    overview = await run_tutti("inspect", "-A", "--url", url, kubeconfig=user)
    assert overview.code == 0, overview.err
    assert "State:        leads, ready" in overview.out


def documented_metrics() -> set[str]:
    """Return the names of all metrics in the tables of the documentation."""
    text = (ROOT / "docs" / "scheduler.md").read_text("utf-8")
    rows = [line.split("|")[1] for line in text.splitlines() if re.match(r"\| `(scheduler|tutti)_", line)]
    return {name for row in rows for name in re.findall(r"`([a-z_]+)", row)}


async def test_health_and_metrics_are_as_documented(cluster: SchedulerCluster, schedulers: SchedulerProcesses) -> None:
    scheduler = schedulers.start()
    await scheduler.until_leader()
    gang = await add_waiting_gang(cluster)
    await cluster.until_waiting(gang, "Unschedulable")
    await cluster.until_bound(await cluster.add_pods([new_pod("small", cluster.namespace)]))
    for path in ("/healthz", "/livez", "/readyz"):
        assert (await scheduler.get(path))[0] == 200
    assert (await scheduler.get("/debug/state"))[0] == 401
    _, page = await scheduler.get("/metrics")
    served = set(re.findall(r"^# TYPE ([a-z_]+) ", page, re.MULTILINE))
    names = documented_metrics()
    assert len(names) > 20
    assert not names - served
    await eventually(partial(has_numbers, scheduler), "the metrics count the pods")


async def has_numbers(scheduler: SchedulerProcess) -> bool:
    wanted = {
        'scheduler_pending_pods{queue="unschedulable"}': 3,
        'tutti_gangs{state="waiting"}': 1,
        'scheduler_schedule_attempts_total{profile="tutti",result="scheduled"}': 1,
        "tutti_partial_gangs": 0,
        "tutti_is_ready": 1,
    }
    return {name: await scheduler.metric(name) for name in wanted} == wanted


async def test_a_recording_replays_to_the_same_plans(
    cluster: SchedulerCluster, schedulers: SchedulerProcesses, scheduler_kubeconfig: Path, tmp_path: Path
) -> None:
    scheduler = schedulers.start("--record", str(tmp_path / "recordings"))
    gang = await add_waiting_gang(cluster)
    await cluster.until_waiting(gang, "Unschedulable")
    await cluster.add_nodes("c")
    await cluster.until_bound(gang)
    late = await cluster.add_pods([new_pod("late", cluster.namespace, cpu="2")])
    await cluster.until_waiting(late, "Unschedulable")
    await cluster.delete_pods(gang)
    await cluster.until_bound(late)
    assert scheduler.end(signal.SIGTERM) == 0
    (recording,) = (tmp_path / "recordings").iterdir()
    replay = await run_tutti("replay", str(recording), kubeconfig=scheduler_kubeconfig)
    assert replay.code == 0, replay.out + replay.err
    assert "all plans are the same" in replay.out
    assert "4 pods placed" in replay.out
    assert json.loads((await run_tutti("replay", str(recording), "-o", "json", kubeconfig=scheduler_kubeconfig)).out)
