"""Puts objects into a real cluster: namespaces, ready nodes, pods, CRDs, service accounts with a kubeconfig.

Contract: `client` is one of an administrator. Each function returns when the server has accepted everything and serves
it; a refusal is the server's `ApiError`. Objects in bulk are sent by `width` requests at once: about 1,200 pods a
second on two cores. Waiting ends only by a success or after `PATIENCE`.
"""

from __future__ import annotations

import asyncio
import json
import random
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from tests.controlplane.server_files import copy_kubeconfig
from tests.support.documents import Document
from tutti.client.access.kubeconfig import load_kubeconfig
from tutti.client.api_client import MERGE_PATCH, ApiClient
from tutti.client.resources import PODS, Resource
from tutti.exceptions import ApiError

PATIENCE = 60.0
"""Seconds; only something that hangs takes so long."""
NODES = Resource("", "v1", "nodes", False, "Node")
NAMESPACES = Resource("", "v1", "namespaces", False, "Namespace")
SERVICE_ACCOUNTS = Resource("", "v1", "serviceaccounts", True, "ServiceAccount")
BUDGETS = Resource("policy", "v1", "poddisruptionbudgets", True, "PodDisruptionBudget")
JOBS = Resource("batch", "v1", "jobs", True, "Job")
CRDS = Resource("apiextensions.k8s.io", "v1", "customresourcedefinitions", False, "CustomResourceDefinition")
CLUSTER_ROLES = Resource("rbac.authorization.k8s.io", "v1", "clusterroles", False, "ClusterRole")
ROLE_BINDINGS = Resource("rbac.authorization.k8s.io", "v1", "clusterrolebindings", False, "ClusterRoleBinding")
ACCESS_REVIEWS = Resource("authorization.k8s.io", "v1", "subjectaccessreviews", False, "SubjectAccessReview")

T = TypeVar("T")


@asynccontextmanager
async def open_client(kubeconfig: Path, *, connections: int = 100) -> AsyncIterator[ApiClient]:
    """Give a client for a kubeconfig, and close it."""
    client = ApiClient(
        load_kubeconfig([kubeconfig]),
        user_agent="tutti-tests",
        monotonic=time.monotonic,
        wall=lambda: time.time_ns() // 1_000,
        draw=random.Random(1),
        connections=connections,
    )
    try:
        yield client
    finally:
        await client.close()


async def send(client: ApiClient, method: str, path: str, body: Any = None, **options: Any) -> Document:
    """Send a request with a JSON body; return the decoded answer."""
    data = json.dumps(body).encode() if body is not None else None
    answer: Document = json.loads(await client.request(method, path, data, **options))
    return answer


async def create(client: ApiClient, resource: Resource, document: Document) -> Document:
    """Create an object; return it as the server has stored it."""
    return await send(client, "POST", resource.path(document["metadata"].get("namespace", "")), document)


async def create_all(
    client: ApiClient, resource: Resource, documents: Sequence[Document], *, width: int = 32
) -> list[Document]:
    """Create objects of one kind; return them in the same order as the server has stored them."""
    return await at_once((create(client, resource, document) for document in documents), width)


async def create_if_absent(client: ApiClient, resource: Resource, document: Document) -> None:
    """Create an object unless one of its name exists."""
    try:
        await create(client, resource, document)
    except ApiError as error:
        if error.status != 409:
            raise


async def make_namespace(client: ApiClient, name: str) -> str:
    """Create a namespace with its default service account, without which no pod can be created."""
    await create(client, NAMESPACES, {"metadata": {"name": name}})
    await create_if_absent(client, SERVICE_ACCOUNTS, {"metadata": {"name": "default", "namespace": name}})
    return name


async def make_pods(client: ApiClient, pods: Sequence[Document], *, width: int = 32) -> list[Document]:
    """Create pods; return them as the server has stored them."""
    return await create_all(client, PODS, pods, width=width)


async def make_nodes(client: ApiClient, nodes: Sequence[Document], *, width: int = 32) -> list[Document]:
    """Create nodes that are ready: with their status, and without the taint that admission adds to new nodes."""

    async def make(node: Document) -> Document:
        await create(client, NODES, node)  # with its status: only updates ignore that
        taints = {"spec": {"taints": node["spec"].get("taints")}}
        path = NODES.path(name=node["metadata"]["name"])
        return await send(client, "PATCH", path, taints, content_type=MERGE_PATCH)

    return await at_once((make(node) for node in nodes), width)


async def install_crds(client: ApiClient, *crds: Document) -> list[Resource]:
    """Create custom kinds unless they exist; return their resources when the server serves them."""
    resources = []
    for crd in crds:
        await create_if_absent(client, CRDS, crd)
        spec, names = crd["spec"], crd["spec"]["names"]
        version = spec["versions"][0]["name"]
        kind = f"{names['kind']}.{spec['group']}"
        resource = Resource(spec["group"], version, names["plural"], spec["scope"] == "Namespaced", kind)
        await eventually(partial(_is_served, client, resource), f"{resource.name} is served")
        resources.append(resource)
    return resources


async def make_service_account(
    client: ApiClient,
    name: str,
    *,
    kubeconfig: Path,
    path: Path,
    rules: Sequence[Document] = (),
    namespace: str = "default",
) -> Path:
    """Make a service account with a ClusterRole of these rules; write a kubeconfig with its token to `path`.

    `kubeconfig` is the administrator's. The rules are in force when the function returns.
    """
    await create_if_absent(client, SERVICE_ACCOUNTS, {"metadata": {"name": name, "namespace": namespace}})
    full_name = f"{namespace}-{name}"
    await create(client, CLUSTER_ROLES, {"metadata": {"name": full_name}, "rules": list(rules)})
    group = CLUSTER_ROLES.group
    binding = {
        "metadata": {"name": full_name},
        "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": full_name},
        "subjects": [{"kind": "ServiceAccount", "name": name, "namespace": namespace}],
    }
    await create(client, ROLE_BINDINGS, binding)
    await wait_for_rights(client, f"system:serviceaccount:{namespace}:{name}", rules)
    return await write_account_kubeconfig(client, name, kubeconfig=kubeconfig, path=path, namespace=namespace)


async def wait_for_rights(client: ApiClient, user: str, rules: Sequence[Document], *, namespace: str = "") -> None:
    """Return when the first right of each rule is in force: in a namespace, or in all of them."""
    for rule in rules:
        await eventually(partial(_is_allowed, client, user, rule, namespace), f"{user} is allowed {rule}")


async def write_account_kubeconfig(
    client: ApiClient, name: str, *, kubeconfig: Path, path: Path, namespace: str = "default"
) -> Path:
    """Write a kubeconfig with a new token of a service account to `path`."""
    request = {"spec": {"expirationSeconds": 24 * 3600}}
    answer = await send(client, "POST", SERVICE_ACCOUNTS.path(namespace, name, "token"), request)
    return copy_kubeconfig(kubeconfig, path, token=answer["status"]["token"], namespace=namespace)


async def eventually(question: Callable[[], Awaitable[T | None]], what: str, *, patience: float = PATIENCE) -> T:
    """Ask until the answer is true; return it. `what` names the expectation in the error."""
    end = time.monotonic() + patience
    while True:
        answer = await question()
        if answer:
            return answer
        if time.monotonic() > end:
            raise AssertionError(f"not within {patience:g} s: {what}")
        await asyncio.sleep(0.05)


async def at_once(calls: Iterable[Awaitable[T]], width: int) -> list[T]:
    """Await all, at most `width` at a time; return the results in order."""
    room = asyncio.Semaphore(width)

    async def limited(call: Awaitable[T]) -> T:
        async with room:
            return await call

    return list(await asyncio.gather(*(limited(call) for call in calls)))


async def _is_served(client: ApiClient, resource: Resource) -> bool:
    try:
        await client.request("GET", resource.path(), query={"limit": "1"})
    except ApiError as error:
        if error.status == 404:
            return False
        raise
    return True


async def _is_allowed(client: ApiClient, user: str, rule: Document, namespace: str) -> bool:
    if "nonResourceURLs" in rule:
        asked = {"nonResourceAttributes": {"path": rule["nonResourceURLs"][0], "verb": rule["verbs"][0]}}
    else:
        plural, _, subresource = rule["resources"][0].partition("/")
        attributes = {
            "group": rule["apiGroups"][0],
            "resource": plural,
            "subresource": subresource,
            "namespace": namespace,
        }
        name = (rule.get("resourceNames") or [""])[0]
        asked = {"resourceAttributes": {**attributes, "verb": rule["verbs"][0], "name": name}}
    answer = await send(client, "POST", ACCESS_REVIEWS.path(), {"spec": {"user": user, **asked}})
    return bool(answer["status"]["allowed"])
