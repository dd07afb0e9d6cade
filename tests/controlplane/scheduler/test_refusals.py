"""Pods that a node must have something special for: devices of a DeviceClass, features that a kubelet declares."""

from __future__ import annotations

from tests.controlplane.cluster_setup import create, make_nodes, send
from tests.controlplane.manifests import new_pod, ready_node
from tests.controlplane.scheduler.scheduler_cluster import SchedulerCluster
from tests.controlplane.scheduler.scheduler_process import SchedulerProcesses
from tests.support.documents import Document
from tutti.client.resources import Resource

DEVICE_CLASSES = Resource("resource.k8s.io", "v1", "deviceclasses", False, "DeviceClass")
FPGA = "example.com/fpga"
RESTART_ALL = {"action": "RestartAllContainers", "exitCodes": {"operator": "In", "values": [42]}}
FEATURE = "RestartAllContainersOnContainerExits"


async def test_a_device_is_refused_by_name(cluster: SchedulerCluster, schedulers: SchedulerProcesses) -> None:
    await cluster.add_nodes("a")
    await create(
        cluster.client,
        DEVICE_CLASSES,
        {"metadata": {"name": "fpgas"}, "spec": {"extendedResourceName": FPGA}},
    )
    try:
        schedulers.start()
        amounts = {"cpu": "1", FPGA: "1"}
        container = {"name": "main", "image": "main", "resources": {"requests": amounts, "limits": amounts}}
        pods = await cluster.add_pods([new_pod("needs-device", cluster.namespace, containers=[container])])
        message = await cluster.until_waiting(pods, "Unschedulable")
        assert f"1 node(s) would need devices of DeviceClass fpgas for {FPGA}: Tutti does not" in message
        await make_nodes(cluster.client, [ready_node("b", **{FPGA: "1"})])
        assert await cluster.until_bound(pods) == {"needs-device": "b"}
    finally:
        await send(cluster.client, "DELETE", DEVICE_CLASSES.path(name="fpgas"))


async def test_a_feature_that_no_node_declares(cluster: SchedulerCluster, schedulers: SchedulerProcesses) -> None:
    """kube-scheduler refuses the same pod with the same words, and takes the same node."""
    await cluster.add_nodes("a")
    schedulers.start()
    pods = [restarting_pod("ours", cluster.namespace, "tutti")]
    pods.append(restarting_pod("theirs", cluster.namespace, "default-scheduler"))
    names = await cluster.add_pods(pods)
    ours = await cluster.until_waiting(["ours"], "Unschedulable")
    assert ours.startswith("0/1 nodes are available: 1 node(s) didn't match Pod's required features.")
    assert ours == await cluster.until_waiting(["theirs"], "Unschedulable")
    declaring = ready_node("b")
    declaring["status"]["declaredFeatures"] = [FEATURE]
    await make_nodes(cluster.client, [declaring])
    assert await cluster.until_bound(names) == {"ours": "b", "theirs": "b"}


def restarting_pod(name: str, namespace: str, scheduler: str) -> Document:
    """Return a pod that restarts all its containers when one exits with a certain code."""
    container = {"name": "main", "image": "main", "restartPolicy": "Never", "restartPolicyRules": [RESTART_ALL]}
    return new_pod(name, namespace, scheduler=scheduler, containers=[container], restartPolicy="Never")
