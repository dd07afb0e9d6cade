"""Pods with volumes: the node reaches the volume, and the claim is bound before the pod."""

from __future__ import annotations

import asyncio

import pytest

from tests.controlplane.audit_log import read_audit_log
from tests.controlplane.cluster_setup import create, create_if_absent, eventually, send
from tests.controlplane.manifests import HOSTNAME, new_pod
from tests.controlplane.scheduler.gang_objects import ANNOTATION, gang_pods
from tests.controlplane.scheduler.scheduler_cluster import CLAIMS, VOLUMES, SchedulerCluster
from tests.controlplane.scheduler.scheduler_process import SchedulerProcesses
from tests.support.documents import Document
from tutti.client.resources import Resource

STORAGE_CLASSES = Resource("storage.k8s.io", "v1", "storageclasses", False, "StorageClass")
LOCAL, DYNAMIC = "local", "dynamic"
PROVISIONERS = {LOCAL: "kubernetes.io/no-provisioner", DYNAMIC: "disk.example"}
SELECTED_NODE = "volume.kubernetes.io/selected-node"


@pytest.fixture(autouse=True)
def storage_classes(cluster: SchedulerCluster, runner: asyncio.Runner) -> None:
    """Make the classes of volumes, which are bound or provisioned when a pod needs them."""
    for name, provisioner in PROVISIONERS.items():
        mode = {"provisioner": provisioner, "volumeBindingMode": "WaitForFirstConsumer"}
        runner.run(create_if_absent(cluster.client, STORAGE_CLASSES, {"metadata": {"name": name}, **mode}))


async def add_volume(cluster: SchedulerCluster, name: str, *, on: str, claim: Document | None = None) -> None:
    """Make a volume that only one node reaches; a provisioner makes it for a claim."""
    term = {"matchExpressions": [{"key": HOSTNAME, "operator": "In", "values": [on]}]}
    spec: Document = {
        "capacity": {"storage": "1Gi"},
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": DYNAMIC if claim else LOCAL,
        "persistentVolumeReclaimPolicy": "Retain",
        "local": {"path": "/mnt/disk"},
        "nodeAffinity": {"required": {"nodeSelectorTerms": [term]}},
    }
    if claim is not None:
        spec["claimRef"] = {key: claim["metadata"][key] for key in ("namespace", "name", "uid")}
    await create(cluster.client, VOLUMES, {"metadata": {"name": name}, "spec": spec})


async def add_claim(cluster: SchedulerCluster, name: str, storage_class: str = LOCAL) -> None:
    spec = {
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": storage_class,
        "resources": {"requests": {"storage": "1Gi"}},
    }
    await create(cluster.client, CLAIMS, {"metadata": {"name": name, "namespace": cluster.namespace}, "spec": spec})


def with_claim(pod: Document, claim: str) -> Document:
    volume = {"name": "data", "persistentVolumeClaim": {"claimName": claim}}
    return {**pod, "spec": {**pod["spec"], "volumes": [volume]}}


async def volume_of(cluster: SchedulerCluster, claim: str) -> str:
    """Return the volume to which a claim is bound."""
    stored = await send(cluster.client, "GET", CLAIMS.path(cluster.namespace, claim))
    assert stored["status"]["phase"] == "Bound"
    return str(stored["spec"]["volumeName"])


async def test_a_pod_gets_the_node_of_its_volume(cluster: SchedulerCluster, schedulers: SchedulerProcesses) -> None:
    await cluster.add_nodes("a", "b", "c")
    await add_volume(cluster, "disk-b", on="b")
    await add_claim(cluster, "data")
    schedulers.start()
    (pod,) = await cluster.add_pods([with_claim(new_pod("db", cluster.namespace), "data")])
    assert await cluster.until_bound([pod]) == {"db": "b"}
    assert await volume_of(cluster, "data") == "disk-b"
    steps = [
        (entry.object_ref.resource, entry.object_ref.subresource)
        for entry in read_audit_log(cluster.audit_log, offset=cluster.audit_offset)
        if entry.object_ref.name in ("disk-b", "data", "db") and entry.verb in ("update", "patch", "create")
    ]
    reference = steps.index(("persistentvolumes", ""))
    bound = steps.index(("persistentvolumeclaims", "status"))
    assert reference < bound < steps.index(("pods", "binding"))


async def test_each_member_of_a_gang_gets_the_node_of_its_volume(
    cluster: SchedulerCluster, schedulers: SchedulerProcesses
) -> None:
    await cluster.add_nodes("a", "b", "c")
    for number, node in enumerate(("c", "b")):
        await add_volume(cluster, f"disk-{node}", on=node)
        await add_claim(cluster, f"data-{number}")
    schedulers.start()
    pods = gang_pods(ANNOTATION, "db", cluster.namespace, pods=2)
    gang = await cluster.add_pods([with_claim(pod, f"data-{number}") for number, pod in enumerate(pods)])
    nodes = await cluster.until_bound(gang)
    assert {await volume_of(cluster, f"data-{n}"): nodes[f"db-{n}"] for n in range(2)} == {"disk-b": "b", "disk-c": "c"}


async def test_a_gang_waits_whole_for_the_volume_of_a_member(
    cluster: SchedulerCluster, schedulers: SchedulerProcesses
) -> None:
    await cluster.add_nodes("a", "b")
    await add_volume(cluster, "disk-a", on="a")
    for number in range(2):
        await add_claim(cluster, f"data-{number}")
    schedulers.start()
    pods = gang_pods(ANNOTATION, "db", cluster.namespace, pods=2)
    gang = await cluster.add_pods([with_claim(pod, f"data-{number}") for number, pod in enumerate(pods)])
    await cluster.until_waiting(gang, "Unschedulable", message="persistent volumes to bind")
    volume = await send(cluster.client, "GET", VOLUMES.path(name="disk-a"))
    assert "claimRef" not in volume["spec"], "no volume is taken for a gang that cannot start"
    await add_volume(cluster, "disk-b", on="b")
    nodes = await cluster.until_bound(gang)
    assert set(nodes.values()) == {"a", "b"}


async def test_a_volume_is_provisioned_for_the_node_of_its_pod(
    cluster: SchedulerCluster, schedulers: SchedulerProcesses
) -> None:
    """The test is the provisioner."""
    await cluster.add_nodes("a", "b")
    await add_claim(cluster, "data", DYNAMIC)
    schedulers.start()
    (pod,) = await cluster.add_pods([with_claim(new_pod("db", cluster.namespace), "data")])

    async def claim_with_node() -> Document | None:
        claim = await send(cluster.client, "GET", CLAIMS.path(cluster.namespace, "data"))
        return claim if SELECTED_NODE in claim["metadata"].get("annotations", {}) else None

    claim = await eventually(claim_with_node, "the claim has a node")
    assert not await cluster.bound(), "the pod waits for its volume"
    node = claim["metadata"]["annotations"][SELECTED_NODE]
    await add_volume(cluster, "disk-new", on=node, claim=claim)
    assert await cluster.until_bound([pod]) == {"db": node}
    assert await volume_of(cluster, "data") == "disk-new"
