"""Discovery on a real API server: kinds of Kubernetes, and custom kinds that come and go."""

from __future__ import annotations

import pytest

from tests.controlplane.cluster_setup import CRDS, create, eventually, install_crds, send
from tests.controlplane.followed_kind import follow
from tests.controlplane.manifests import coscheduling_pod_group_crd, volcano_pod_group_crd
from tests.support.documents import Document
from tutti.client.api_client import ApiClient
from tutti.client.discovery import discover
from tutti.client.resources import PODS, Resource
from tutti.cluster.edits import Put
from tutti.exceptions import ApiError
from tutti.kube.objects import CoschedulingPodGroup, VolcanoPodGroup

POD_GROUP = "PodGroup.scheduling.x-k8s.io"


async def discovered(client: ApiClient, kind: str) -> Resource | None:
    return (await discover(client)).resources.get(kind)


async def test_finds_the_kinds_that_the_scheduler_reads(client: ApiClient) -> None:
    found = await discover(client)
    assert found.resources["Pod"] == PODS
    assert found.resources["Node"].path() == "/api/v1/nodes"
    assert found.resources["PodDisruptionBudget"].path("x") == "/apis/policy/v1/namespaces/x/poddisruptionbudgets"
    assert found.resources["PriorityClass"].api_version == "scheduling.k8s.io/v1"
    assert not found.stale_groups
    for resource in found.resources.values():
        await client.request("GET", resource.path(), query={"limit": "1"})


@pytest.mark.parametrize(
    "crd", [coscheduling_pod_group_crd(), volcano_pod_group_crd()], ids=["coscheduling", "volcano"]
)
async def test_finds_a_custom_kind_while_it_exists(client: ApiClient, namespace: str, crd: Document) -> None:
    kind = f"PodGroup.{crd['spec']['group']}"
    assert await discovered(client, kind) is None
    (expected,) = await install_crds(client, crd)
    found = await eventually(lambda: discovered(client, kind), "the kind is discovered")
    assert found == expected

    group = {"apiVersion": found.api_version, "kind": "PodGroup", "metadata": {"name": "g", "namespace": namespace}}
    await create(client, found, {**group, "spec": {"minMember": 3, "unknown": {"stays": True}}})
    stored = await send(client, "GET", found.path(namespace, "g"))
    assert stored["spec"]["unknown"] == {"stays": True}
    async with follow(client, namespace, found) as followed:
        await followed.until(lambda: bool(followed.changes), "the group is reported")
    (change,) = followed.changes
    assert isinstance(change, Put)
    assert isinstance(change.obj, CoschedulingPodGroup | VolcanoPodGroup)
    assert change.obj.spec.min_member == 3
    with pytest.raises(ApiError, match="minMember"):
        await create(
            client, found, {**group, "metadata": {"name": "h", "namespace": namespace}, "spec": {"minMember": 0}}
        )

    await client.request("DELETE", CRDS.path(name=crd["metadata"]["name"]))

    async def is_gone() -> bool:
        return await discovered(client, kind) is None

    await eventually(is_gone, "the kind is no longer discovered")
