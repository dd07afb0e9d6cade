"""Reads the cluster of a kubeconfig context for a command that has no `-f`.

Contract: `read_context` requests the given kinds and no others, and raises a `TuttiError` of one line if the
kubeconfig, the server or a permission is missing. A kind that cannot be read, and without which there is still an
answer, gives a note. Nothing in the cluster changes. Imports aiohttp, so commands import this module only when they
need it.
"""

from __future__ import annotations

import asyncio
import os
import random
import time
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from tutti import __version__
from tutti.cli.options import ClusterInput
from tutti.client.access.cluster_access import ClusterAccess
from tutti.client.access.current_access import current_access
from tutti.client.api_client import ApiClient
from tutti.client.cluster_reader import ListedCluster, ListedKind, read_cluster
from tutti.client.needed_kinds import CONSEQUENCES, REQUIRED
from tutti.kube.reading.decode import DecodedFile


class ContextObjects(NamedTuple):
    """The objects of the cluster of a context."""

    name: str
    """The context, for messages."""
    kinds: list[ListedKind]
    notes: list[str]
    """A line for each kind that could not be read."""

    def decoded(self) -> Iterator[DecodedFile]:
        """Yield the objects, kind by kind, as if each kind were a file."""
        for listed in self.kinds:
            decoded = DecodedFile(self.name)
            decoded.objects = listed.objects
            decoded.present_kinds.add(listed.resource.kind)
            yield decoded


def read_context(given: ClusterInput, kinds: Sequence[str], tell: Callable[[str], None]) -> ContextObjects:
    """Read all objects of some kinds; `tell` receives progress messages."""
    access = _access(given)
    listed = asyncio.run(_read(access, kinds, tell))
    notes = [f"{problem}: {CONSEQUENCES[kind]}" for kind, problem in listed.left_out.items()]
    return ContextObjects(f"context {access.name}", listed.kinds, notes)


def context_namespace(given: ClusterInput) -> str:
    """Return the namespace of the context."""
    return _access(given).namespace


def _access(given: ClusterInput) -> ClusterAccess:
    return current_access(os.environ, kubeconfig=given.kubeconfig, context=given.context)


async def _read(access: ClusterAccess, kinds: Sequence[str], tell: Callable[[str], None]) -> ListedCluster:
    client = ApiClient(
        access,
        user_agent=f"tutti/{__version__}",
        monotonic=time.monotonic,
        wall=lambda: time.time_ns() // 1000,
        draw=random.Random(),
    )
    try:
        return await read_cluster(client, kinds, required=REQUIRED, tell=tell)
    finally:
        await client.close()
