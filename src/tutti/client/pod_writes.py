"""Writes to pods: bind, evict, delete, and patch the status.

Contract: every write names the pod's uid, so that a new pod of the same name is never touched: the server answers 409,
or 422 to a patch. An `ApiError` without a status means that the server may have carried out the write. Nothing is
repeated here.
"""

from __future__ import annotations

from typing import Any

import msgspec

from tutti.client.api_client import STRATEGIC_MERGE_PATCH, ApiClient
from tutti.client.resources import PODS


class PodWrites:
    """See the module's docstring; pods are named by key, namespace/name."""

    def __init__(self, client: ApiClient) -> None:
        self._client = client

    async def bind(self, pod: str, uid: str, *, node: str, timeout: float) -> None:
        """Bind a pending pod to a node."""
        namespace, _, name = pod.partition("/")
        body = {
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": {"name": name, "namespace": namespace, "uid": uid},
            "target": {"apiVersion": "v1", "kind": "Node", "name": node},
        }
        await self._send("POST", PODS.path(namespace, name, "binding"), body, timeout=timeout)

    async def evict(self, pod: str, uid: str, *, dry_run: bool = False, timeout: float = 30.0) -> None:
        """Evict a pod if its disruption budgets allow it; with `dry_run` only ask.

        A refusal has status 429 and the cause DisruptionBudget.
        """
        namespace, _, name = pod.partition("/")
        options: dict[str, Any] = {"preconditions": {"uid": uid}}
        if dry_run:
            options["dryRun"] = ["All"]
        body = {
            "apiVersion": "policy/v1",
            "kind": "Eviction",
            "metadata": {"name": name, "namespace": namespace},
            "deleteOptions": options,
        }
        query = {"dryRun": "All"} if dry_run else None
        await self._send("POST", PODS.path(namespace, name, "eviction"), body, query=query, timeout=timeout)

    async def delete(self, pod: str, uid: str, *, timeout: float = 30.0) -> None:
        """Delete a pod with its own grace period."""
        namespace, _, name = pod.partition("/")
        body = {"apiVersion": "v1", "kind": "DeleteOptions", "preconditions": {"uid": uid}}
        await self._send("DELETE", PODS.path(namespace, name), body, timeout=timeout)

    async def patch_status(self, pod: str, uid: str, status: dict[str, Any], *, timeout: float = 30.0) -> None:
        """Change fields of a pod's status; conditions are merged by type, and None deletes a field."""
        namespace, _, name = pod.partition("/")
        body = {"metadata": {"uid": uid}, "status": status}
        path = PODS.path(namespace, name, "status")
        await self._send("PATCH", path, body, content_type=STRATEGIC_MERGE_PATCH, timeout=timeout)

    async def _send(self, method: str, path: str, body: dict[str, Any], **options: Any) -> None:
        await self._client.request(method, path, msgspec.json.encode(body), **options)
