"""The client's requests to a real API server: refusals that name who may not do what, and a server that is too busy."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from urllib.parse import urlsplit

import aiohttp
import pytest

from tests.controlplane.audit_log import read_audit_log
from tests.controlplane.cluster_setup import create, eventually, make_service_account, open_client, send
from tests.controlplane.control_plane import ControlPlane
from tests.controlplane.server_files import copy_kubeconfig
from tests.support.documents import Document
from tutti.client.access.tls import tls_context
from tutti.client.api_client import ApiClient
from tutti.client.resources import LEASES, PODS, Resource
from tutti.exceptions import ApiError

FLOW = "flowcontrol.apiserver.k8s.io"
LEVELS = Resource(FLOW, "v1", "prioritylevelconfigurations", False, "PriorityLevelConfiguration")
SCHEMAS = Resource(FLOW, "v1", "flowschemas", False, "FlowSchema")
LISTS_PODS: Document = {"apiGroups": [""], "resources": ["pods"], "verbs": ["list"]}


async def test_a_missing_permission_names_user_verb_and_kind(
    control_plane: ControlPlane, client: ApiClient, namespace: str, tmp_path: Path
) -> None:
    path = await make_service_account(
        client,
        "reader",
        kubeconfig=control_plane.kubeconfig,
        path=tmp_path / "reader",
        rules=[LISTS_PODS],
        namespace=namespace,
    )
    async with open_client(path) as reader:
        assert (await send(reader, "GET", PODS.path(namespace)))["items"] == []
        with pytest.raises(ApiError) as refusal:
            await reader.read(LEASES.path("kube-system"))
    assert (refusal.value.status, refusal.value.reason) == (403, "Forbidden")
    user = f"system:serviceaccount:{namespace}:reader"
    assert f'User "{user}" cannot list resource "leases" in API group "coordination.k8s.io"' in str(refusal.value)
    refused = [e for e in read_audit_log(control_plane.audit_log) if e.user.username == user and e.verb == "list"]
    assert [e.response_status.code for e in refused] == [200, 403], "a refused read is not repeated"


async def test_an_unknown_token_is_refused(control_plane: ControlPlane, client: ApiClient, tmp_path: Path) -> None:
    path = copy_kubeconfig(control_plane.kubeconfig, tmp_path / "stranger", token="unknown")
    async with open_client(path) as stranger:
        with pytest.raises(ApiError) as refusal:
            await stranger.read(PODS.path())
    assert (refusal.value.status, refusal.value.reason) == (401, "Unauthorized")


async def test_waits_as_long_as_a_busy_server_asks(
    control_plane: ControlPlane, client: ApiClient, namespace: str, tmp_path: Path
) -> None:
    """A service account has a priority level of its own, which one unfinished request fills."""
    path = await make_service_account(
        client,
        "busy",
        kubeconfig=control_plane.kubeconfig,
        path=tmp_path / "busy",
        rules=[{**LISTS_PODS, "verbs": ["list", "create"]}],
        namespace=namespace,
    )
    await create(client, LEVELS, smallest_priority_level("busy"))
    schema = await create(client, SCHEMAS, flow_of_service_account("busy", namespace))
    async with open_client(path) as busy:
        await eventually(lambda: is_in_flow(busy, schema["metadata"]["uid"]), "the flow schema is in force")
        async with unfinished_request(busy, PODS.path(namespace)):
            refusal = await eventually(lambda: refusal_of(busy, namespace), "the priority level is full")
            assert (refusal.status, refusal.retry_after) == (429, 1.0)
            offset, start = control_plane.audit_log.stat().st_size, time.monotonic()
            reading = asyncio.create_task(busy.read(PODS.path(namespace)))

            async def is_refused() -> bool:
                entries = read_audit_log(control_plane.audit_log, offset=offset)
                return any(e.response_status.code == 429 for e in entries)

            await eventually(is_refused, "the read is refused")
        assert json.loads(await reading)["items"] == []
        assert time.monotonic() - start >= 1, "the server asked for a second"


@asynccontextmanager
async def unfinished_request(client: ApiClient, path: str) -> AsyncIterator[None]:
    """Keep a POST under way whose body does not end."""
    address = urlsplit(client.access.server)
    context = tls_context(client.access)
    _, writer = await asyncio.open_connection(address.hostname, address.port, ssl=context)
    headers = f"Authorization: Bearer {client.access.user.token}\r\nContent-Type: application/json"
    writer.write(f"POST {path} HTTP/1.1\r\nHost: test\r\n{headers}\r\nContent-Length: 100\r\n\r\n{{".encode())
    await writer.drain()
    try:
        yield
    finally:
        writer.transport.abort()


async def is_in_flow(client: ApiClient, schema: str) -> bool:
    """Return whether the server assigns the requests of a client to the flow schema of this uid."""
    headers = {"Authorization": f"Bearer {client.access.user.token}"}
    async with (
        aiohttp.ClientSession(headers=headers) as session,
        session.get(client.access.server + PODS.path(), ssl=tls_context(client.access)) as answer,
    ):
        return answer.headers.get("X-Kubernetes-PF-FlowSchema-UID") == schema


async def refusal_of(client: ApiClient, namespace: str) -> ApiError | None:
    """Return how the server refuses a request, None if it does not."""
    try:
        await client.request("GET", PODS.path(namespace))
    except ApiError as error:
        return error
    return None


def smallest_priority_level(name: str) -> Document:
    limited = {
        "nominalConcurrencyShares": 0,
        "lendablePercent": 0,
        "borrowingLimitPercent": 0,
        "limitResponse": {"type": "Reject"},
    }
    return {"metadata": {"name": name}, "spec": {"type": "Limited", "limited": limited}}


def flow_of_service_account(name: str, namespace: str) -> Document:
    account = {"kind": "ServiceAccount", "serviceAccount": {"name": name, "namespace": namespace}}
    everything = {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"], "clusterScope": True, "namespaces": ["*"]}
    spec = {
        "priorityLevelConfiguration": {"name": name},
        "matchingPrecedence": 2,
        "rules": [{"subjects": [account], "resourceRules": [everything]}],
    }
    return {"metadata": {"name": name}, "spec": spec}
