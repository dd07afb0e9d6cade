"""A reflector on a real server, and what it reported about the objects of one namespace.

All tests share the server, so reports about other namespaces are left out.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

from tests.controlplane.cluster_setup import eventually
from tutti.client.api_client import ApiClient
from tutti.client.backoff import Backoff
from tutti.client.reflector import Change, Reflector
from tutti.client.resources import PODS, Resource
from tutti.cluster.edits import Put, Remove


class FollowedKind:
    """See the module's docstring; made by `follow`."""

    def __init__(self, client: ApiClient, resource: Resource, namespace: str, *, streams_lists: bool) -> None:
        draw = random.Random(1)
        self._namespace = namespace
        self.changes: list[Change] = []
        self.on_change: Callable[[], None] | None = None
        """Called with each report."""
        self.reflector = Reflector(
            client,
            resource,
            self._add,
            monotonic=time.monotonic,
            draw=draw,
            streams_lists=streams_lists,
            backoff=Backoff(draw, first=0.1, longest=0.5),
        )

    def _add(self, changes: list[Change]) -> None:
        self.changes += [change for change in changes if self._name(change) is not None]
        if self.on_change is not None:
            self.on_change()

    def _name(self, change: Change) -> str | None:
        key = change.obj.key if isinstance(change, Put) else change.key
        namespace, _, name = key.rpartition("/")
        return name if namespace == self._namespace else None

    @property
    def reports(self) -> list[str]:
        """The changes as short texts: +put, -removed, ?unreadable."""
        signs: dict[type[Any], str] = {Put: "+", Remove: "-"}
        return [f"{signs.get(type(change), '?')}{self._name(change)}" for change in self.changes]

    @property
    def objects(self) -> dict[str, tuple[str | None, str | None]]:
        """The uid and version of each object that was put and not removed, by name."""
        found: dict[str, tuple[str | None, str | None]] = {}
        for change in self.changes:
            name = self._name(change) or ""
            if isinstance(change, Put):
                found[name] = change.obj.metadata.uid, change.obj.metadata.resource_version
            else:
                found.pop(name, None)
        return found

    async def until(self, condition: Callable[[], bool], what: str) -> None:
        """Wait for a condition; the error says what was reported meanwhile."""

        async def holds() -> bool:
            return condition()

        try:
            await eventually(holds, what)
        except AssertionError as error:
            raise AssertionError(f"{error}; reported: {self.reports}; problem: {self.reflector.problem}") from None

    async def until_listed(self) -> None:
        """Wait for the first complete list."""
        await self.until(self.reflector.synced.is_set, "a complete list")


@asynccontextmanager
async def follow(
    client: ApiClient, namespace: str, resource: Resource = PODS, *, streams_lists: bool = True
) -> AsyncIterator[FollowedKind]:
    """Run a reflector, and stop it."""
    followed = FollowedKind(client, resource, namespace, streams_lists=streams_lists)
    task = asyncio.create_task(followed.reflector.run())
    try:
        yield followed
        assert not task.done(), "the reflector has ended"
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
