"""Reads all objects of some kinds once: what a command without `-f` works on, and what a dump contains.

Contract: `read_cluster` lists several kinds at a time, each in pages. The objects of one kind are those of one moment;
the kinds are read within the seconds that the lists take. Every page is decoded once and then freed, private fields are
dropped (`kube.private_fields`), and Secrets and ConfigMaps are never requested. A kind that the server does not have is
absent from the result. A kind that this user may not list, or whose extension server does not answer, is left out with
the problem. For a required kind, and for every other problem, `ClusterReadError` names the context, the server and the
missing permission.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Sequence
from functools import cache
from typing import Any, NamedTuple

import msgspec

from tutti.client.access.cluster_access import ClusterAccess
from tutti.client.api_client import ApiClient
from tutti.client.discovery import Discovered, discover
from tutti.client.resources import Resource
from tutti.exceptions import ApiError, ClusterReadError
from tutti.kube.objects import KINDS, Object, Pod
from tutti.kube.private_fields import without_private_fields
from tutti.kube.reading.decode import decode_object
from tutti.kube.reading.sources import Source

PAGE_SIZE = 500
_AT_ONCE = 6
"""How many kinds are listed at a time."""
_UNAVAILABLE = (503, 504)
"""Answers of an API server whose extension server is down."""


class _ListMeta(msgspec.Struct, rename="camel", frozen=True):
    continue_token: str = msgspec.field(default="", name="continue")
    remaining_item_count: int | None = None


class _UndecodedPage(msgspec.Struct, frozen=True):
    metadata: _ListMeta = _ListMeta()
    items: list[msgspec.Raw] | None = None


_UNDECODED = msgspec.json.Decoder(_UndecodedPage)


class ListedKind(NamedTuple):
    """All objects of one kind."""

    resource: Resource
    objects: list[Object]


class ListedCluster(NamedTuple):
    """All objects of the kinds that were requested."""

    kinds: list[ListedKind]
    """In the order of the request; kinds that the server does not have are absent."""
    left_out: dict[str, str]
    """By kind, why its objects could not be listed; in the order of the request."""


async def read_cluster(
    client: ApiClient,
    kinds: Sequence[str],
    *,
    required: Collection[str] = (),
    tell: Callable[[str], None] = lambda _: None,
) -> ListedCluster:
    """List all objects of some kinds, keys of `KINDS`; `tell` receives progress messages."""
    try:
        discovered = await discover(client)
    except ApiError as error:
        raise _read_error(error, client.access) from None
    reader = _Reader(client, required, tell)
    # The longest list starts first.
    found = [kind for kind in sorted(kinds, key=lambda kind: kind != Pod.KIND) if kind in discovered.resources]
    try:
        async with asyncio.TaskGroup() as tasks:
            for kind in found:
                tasks.create_task(reader.list_kind(discovered.resources[kind]))
    except ExceptionGroup as errors:
        raise errors.exceptions[0] from None
    problems = reader.problems | _stale_kinds(kinds, discovered)
    left_out = {kind: problems[kind] for kind in kinds if kind in problems}
    for kind in required:
        if kind not in reader.listed:
            problem = left_out.get(kind, f"the server has no {KINDS[kind].WIRE_KIND}s")
            raise ClusterReadError(f"{cluster_name(client.access)}: {problem}")
    return ListedCluster([reader.listed[kind] for kind in kinds if kind in reader.listed], left_out)


def cluster_name(access: ClusterAccess) -> str:
    """Return the name of a cluster for messages: its context and its server."""
    return f"context {access.name} ({access.server})" if access.name else access.server


def _stale_kinds(kinds: Sequence[str], discovered: Discovered) -> dict[str, str]:
    groups = {kind: KINDS[kind].API_VERSION.rpartition("/")[0] for kind in kinds if kind not in discovered.resources}
    return {
        kind: f"the extension server of {group} does not answer"
        for kind, group in groups.items()
        if group in discovered.stale_groups
    }


class _Reader:
    """Lists kinds and collects the results."""

    def __init__(self, client: ApiClient, required: Collection[str], tell: Callable[[str], None]) -> None:
        self.listed: dict[str, ListedKind] = {}
        self.problems: dict[str, str] = {}
        """By kind, why its objects could not be listed."""
        self._client, self._required, self._tell = client, required, tell
        self._source = Source(cluster_name(client.access), b"")
        self._at_once = asyncio.Semaphore(_AT_ONCE)
        self._counts: dict[str, tuple[int, int]] = {}
        """By kind, how many objects were read, and how many follow."""

    async def list_kind(self, resource: Resource) -> None:
        """List all objects of a kind."""
        try:
            async with self._at_once:
                self.listed[resource.kind] = ListedKind(resource, await self._pages(resource))
        except ApiError as error:
            if error.status == 404:  # the kind was deleted after the discovery
                return
            problem = _problem(error, resource)
            if not problem:
                raise _read_error(error, self._client.access) from None
            self.problems[resource.kind] = problem
            if resource.kind in self._required:
                raise ClusterReadError(f"{cluster_name(self._client.access)}: {problem}") from None

    async def _pages(self, resource: Resource) -> list[Object]:
        objects: list[Object] = []
        token, limit = "", PAGE_SIZE
        while True:
            query = {"limit": str(limit)} if limit else {}
            if token:
                query["continue"] = token
            try:
                data = await self._client.read(resource.path(), query=query)
            except ApiError as error:
                if error.status != 410 or not token:
                    raise
                token, limit, objects = "", 0, []  # the pages took too long: read all at once
                continue
            items, metadata = self._decode(data, resource)
            del data
            objects += map(without_private_fields, items)
            self._count(resource.kind, len(objects), metadata.remaining_item_count or 0)
            token = metadata.continue_token
            if not token:
                return objects

    def _decode(self, data: bytes, resource: Resource) -> tuple[Sequence[Object], _ListMeta]:
        try:
            page = _page_decoder(resource.kind).decode(data)
            return page.items, page.metadata
        except msgspec.ValidationError:  # nulls, or an invalid object: decode each object alone
            pass
        except msgspec.DecodeError as error:
            raise ApiError(f"GET {resource.path()}: not a list: {error}") from None
        try:
            undecoded = _UNDECODED.decode(data)
        except msgspec.DecodeError as error:
            raise ApiError(f"GET {resource.path()}: not a list: {error}") from None
        items = [decode_object(item, resource.kind, source=self._source) for item in undecoded.items or ()]
        return items, undecoded.metadata

    def _count(self, kind: str, count: int, remaining: int) -> None:
        self._counts[kind] = count, remaining
        total, follow = (sum(numbers) for numbers in zip(*self._counts.values(), strict=True))
        self._tell(f"{total:,} of {total + follow:,} objects" if follow else f"{total:,} objects")


@cache
def _page_decoder(kind: str) -> msgspec.json.Decoder[Any]:
    """Return the decoder of a page of one kind, which decodes the objects at once."""
    fields = [("metadata", _ListMeta, _ListMeta()), ("items", list[KINDS[kind]], [])]  # type: ignore[valid-type]
    return msgspec.json.Decoder(msgspec.defstruct("Page", fields, frozen=True))


def _problem(error: ApiError, resource: Resource) -> str:
    """Return why a kind is left out; empty for an error that ends the reading."""
    if error.status == 403:
        everywhere = " in all namespaces" if resource.namespaced else ""
        return f"no permission to list {resource.name}{everywhere}"
    return f"{resource.name}: the server does not answer ({error})" if error.status in _UNAVAILABLE else ""


def _read_error(error: ApiError, access: ClusterAccess) -> ClusterReadError:
    problem = str(error)
    if error.status == 401:
        problem = "the server does not accept the credentials: log in again, or check the user of the context"
    return ClusterReadError(f"{cluster_name(access)}: {problem}")
