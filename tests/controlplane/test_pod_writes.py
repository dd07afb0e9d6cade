"""Writes to pods on a real API server: which answers tell the scheduler that the world has changed."""

from __future__ import annotations

import secrets
from collections.abc import Awaitable, Callable

import pytest

from tests.controlplane.cluster_setup import BUDGETS, create, make_nodes, make_pods, send
from tests.controlplane.manifests import disruption_budget, new_pod, ready_node
from tests.support.documents import Document
from tutti.client.api_client import MERGE_PATCH, ApiClient
from tutti.client.pod_writes import PodWrites
from tutti.client.resources import PODS
from tutti.exceptions import ApiError

OTHER_UID = "00000000-0000-0000-0000-000000000000"


async def make_node(client: ApiClient) -> str:
    (node,) = await make_nodes(client, [ready_node(f"node-{secrets.token_hex(4)}")])
    return str(node["metadata"]["name"])


async def make_pod(client: ApiClient, namespace: str, name: str = "a", **how: object) -> tuple[str, str]:
    """Return key and uid of a new pod."""
    (pod,) = await make_pods(client, [new_pod(name, namespace, **how)])  # type: ignore[arg-type]
    return f"{namespace}/{name}", pod["metadata"]["uid"]


async def running_pod(client: ApiClient, namespace: str, name: str, *, app: str) -> tuple[str, str]:
    """Return key and uid of a pod that is bound and says that it runs and is ready."""
    pod, uid = await make_pod(client, namespace, name, labels={"app": app})
    await PodWrites(client).bind(pod, uid, node=await make_node(client), timeout=30)
    ready = {"type": "Ready", "status": "True"}
    await PodWrites(client).patch_status(pod, uid, {"phase": "Running", "conditions": [ready]})
    return pod, uid


async def read_pod(client: ApiClient, pod: str) -> Document:
    return await send(client, "GET", PODS.path(*pod.split("/")))


async def remove_pod(client: ApiClient, pod: str) -> None:
    await send(client, "DELETE", PODS.path(*pod.split("/")), {"gracePeriodSeconds": 0})


async def test_a_bound_pod_names_its_node(client: ApiClient, namespace: str) -> None:
    node = await make_node(client)
    pod, uid = await make_pod(client, namespace)
    await PodWrites(client).bind(pod, uid, node=node, timeout=30)
    bound = await read_pod(client, pod)
    assert bound["spec"]["nodeName"] == node
    assert {c["type"]: c["status"] for c in bound["status"]["conditions"]}["PodScheduled"] == "True"


async def test_a_pod_of_another_uid_is_not_bound(client: ApiClient, namespace: str) -> None:
    pod, _ = await make_pod(client, namespace)
    with pytest.raises(ApiError, match="UID in precondition") as refusal:
        await PodWrites(client).bind(pod, OTHER_UID, node=await make_node(client), timeout=30)
    assert (refusal.value.status, refusal.value.reason) == (409, "Conflict")
    assert "nodeName" not in (await read_pod(client, pod))["spec"]


@pytest.mark.parametrize("is_same_node", [True, False], ids=["same node", "other node"])
async def test_a_second_binding_conflicts(client: ApiClient, namespace: str, is_same_node: bool) -> None:
    node = await make_node(client)
    pod, uid = await make_pod(client, namespace)
    await PodWrites(client).bind(pod, uid, node=node, timeout=30)
    second = node if is_same_node else await make_node(client)
    with pytest.raises(ApiError, match="already assigned to node") as refusal:
        await PodWrites(client).bind(pod, uid, node=second, timeout=30)
    assert (refusal.value.status, refusal.value.reason) == (409, "Conflict")
    assert (await read_pod(client, pod))["spec"]["nodeName"] == node


async def test_a_deleted_pod_is_not_found(client: ApiClient, namespace: str) -> None:
    node = await make_node(client)
    pod, uid = await make_pod(client, namespace)
    await remove_pod(client, pod)
    with pytest.raises(ApiError) as refusal:
        await PodWrites(client).bind(pod, uid, node=node, timeout=30)
    assert (refusal.value.status, refusal.value.reason) == (404, "NotFound")


async def test_a_terminating_pod_is_not_bound(client: ApiClient, namespace: str) -> None:
    node = await make_node(client)
    pod, uid = await make_pod(client, namespace)
    await hold_with_finalizer(client, pod, ["tutti.dev/test"])
    await remove_pod(client, pod)
    with pytest.raises(ApiError, match="is being deleted") as refusal:
        await PodWrites(client).bind(pod, uid, node=node, timeout=30)
    assert refusal.value.status == 409
    await hold_with_finalizer(client, pod, [])


async def hold_with_finalizer(client: ApiClient, pod: str, finalizers: list[str]) -> None:
    body = {"metadata": {"finalizers": finalizers}}
    await send(client, "PATCH", PODS.path(*pod.split("/")), body, content_type=MERGE_PATCH)


async def test_a_gated_pod_is_not_bound(client: ApiClient, namespace: str) -> None:
    node = await make_node(client)
    pod, uid = await make_pod(client, namespace, schedulingGates=[{"name": "tutti.dev/test"}])
    with pytest.raises(ApiError, match=r"schedulingGates|scheduling gates") as refusal:
        await PodWrites(client).bind(pod, uid, node=node, timeout=30)
    assert refusal.value.status == 409
    assert "nodeName" not in (await read_pod(client, pod))["spec"]


async def test_a_new_pod_of_the_same_name_is_never_written(client: ApiClient, namespace: str) -> None:
    """The server repeats an eviction that conflicts, so its answer takes ten seconds."""
    node = await make_node(client)
    pod, old = await make_pod(client, namespace)
    await remove_pod(client, pod)
    _, new = await make_pod(client, namespace)
    writes = PodWrites(client)
    requests: dict[str, Callable[[], Awaitable[None]]] = {
        "bind": lambda: writes.bind(pod, old, node=node, timeout=30),
        "evict": lambda: writes.evict(pod, old),
        "delete": lambda: writes.delete(pod, old),
        "patch": lambda: writes.patch_status(pod, old, {"nominatedNodeName": node}),
    }
    statuses = {}
    for name, request in requests.items():
        with pytest.raises(ApiError) as refusal:
            await request()
        statuses[name] = refusal.value.status
    assert statuses == {"bind": 409, "evict": 409, "delete": 409, "patch": 422}
    found = await read_pod(client, pod)
    assert found["metadata"]["uid"] == new
    assert "deletionTimestamp" not in found["metadata"]
    assert "nodeName" not in found["spec"]
    assert "nominatedNodeName" not in found["status"]


async def test_a_status_patch_keeps_other_conditions(client: ApiClient, namespace: str) -> None:
    pod, uid = await make_pod(client, namespace)
    writes = PodWrites(client)
    await writes.patch_status(pod, uid, {"conditions": [{"type": "Tested", "status": "True"}]})
    unschedulable = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "no room"}
    await writes.patch_status(pod, uid, {"conditions": [unschedulable], "nominatedNodeName": "n"})
    status = (await read_pod(client, pod))["status"]
    assert {c["type"] for c in status["conditions"]} == {"Tested", "PodScheduled"}
    assert status["nominatedNodeName"] == "n"
    await writes.patch_status(pod, uid, {"nominatedNodeName": None})
    assert "nominatedNodeName" not in (await read_pod(client, pod))["status"]


async def test_an_eviction_obeys_the_budget(client: ApiClient, namespace: str) -> None:
    """No controller runs here, so the budget's status is what the test writes."""
    first, first_uid = await running_pod(client, namespace, "a", app="web")
    second, second_uid = await running_pod(client, namespace, "b", app="web")
    await create(client, BUDGETS, disruption_budget("web", namespace, app="web", min_available=1))
    await write_budget_status(client, namespace, allowed=1)
    writes = PodWrites(client)

    await writes.evict(first, first_uid, dry_run=True)
    assert "deletionTimestamp" not in (await read_pod(client, first))["metadata"]
    await writes.evict(first, first_uid)
    assert "deletionTimestamp" in (await read_pod(client, first))["metadata"]
    for dry_run in (True, False):
        with pytest.raises(ApiError, match="disruption budget") as refusal:
            await writes.evict(second, second_uid, dry_run=dry_run)
        assert (refusal.value.status, refusal.value.reason) == (429, "TooManyRequests")
        assert "DisruptionBudget" in refusal.value.causes
    assert "deletionTimestamp" not in (await read_pod(client, second))["metadata"]

    await write_budget_status(client, namespace, allowed=1)
    await writes.evict(second, second_uid)
    assert "deletionTimestamp" in (await read_pod(client, second))["metadata"]


async def write_budget_status(client: ApiClient, namespace: str, *, allowed: int) -> None:
    status = {"disruptionsAllowed": allowed, "currentHealthy": 2, "desiredHealthy": 1, "expectedPods": 2}
    body = {"status": {**status, "observedGeneration": 1, "disruptedPods": None}}
    path = BUDGETS.path(namespace, "web", "status")
    await send(client, "PATCH", path, body, content_type=MERGE_PATCH)


async def test_a_delete_keeps_the_grace_period_of_the_pod(client: ApiClient, namespace: str) -> None:
    pod, uid = await running_pod(client, namespace, "a", app="web")
    await PodWrites(client).delete(pod, uid)
    metadata = (await read_pod(client, pod))["metadata"]
    assert metadata["deletionGracePeriodSeconds"] == 30
