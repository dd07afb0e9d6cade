"""Every version of the pods of a namespace, as a watch reports them.

Contract: `async with PodHistory(client, namespace)` has a watch open from before the block until after it. Versions are
in the order of the server. The versions of deleted pods stay.
"""

from __future__ import annotations

import asyncio
import json
from contextlib import suppress

from tests.controlplane.cluster_setup import send
from tests.support.documents import Document
from tutti.client.api_client import ApiClient
from tutti.client.resources import PODS
from tutti.client.watch_events import split_lines

_LONGEST = 600.0
"""Seconds of the watch; no test takes so long."""


class PodHistory:
    """See the module's docstring."""

    def __init__(self, client: ApiClient, namespace: str) -> None:
        self._client, self._path = client, PODS.path(namespace)
        self.versions: list[Document] = []

    async def __aenter__(self) -> PodHistory:
        listed = await send(self._client, "GET", self._path)
        self._task = asyncio.create_task(self._watch(listed["metadata"]["resourceVersion"]))
        return self

    async def __aexit__(self, *_error: object) -> None:
        self._task.cancel()
        with suppress(asyncio.CancelledError):
            await self._task

    def with_condition(self, kind: str) -> dict[str, Document]:
        """Return the condition of this type, by name, of all pods that ever had it."""
        return {
            pod["metadata"]["name"]: condition
            for pod in self.versions
            for condition in pod["status"].get("conditions", ())
            if condition["type"] == kind
        }

    async def _watch(self, version: str) -> None:
        query = {"watch": "1", "resourceVersion": version}
        async with self._client.stream(self._path, query=query, timeout=_LONGEST, silence=_LONGEST) as pieces:
            async for lines in split_lines(pieces):
                self.versions += [json.loads(line)["object"] for line in lines]
