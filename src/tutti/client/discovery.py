"""Discovery: which of the kinds that Tutti reads does the server have, and under which paths?

Contract: a kind is served in the version that Tutti knows if the server has that, else in the server's preferred one.
Kinds that the server does not have are absent from the result. Groups that cannot be read, because an extension server
is down, are left out and named.
"""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from tutti.client.api_client import ApiClient
from tutti.client.resources import Resource
from tutti.exceptions import ApiError
from tutti.kube.objects import KINDS

_AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"


class _Kind(msgspec.Struct, frozen=True):
    kind: str = ""


class _Found(msgspec.Struct, frozen=True, rename="camel"):
    resource: str = ""
    response_kind: _Kind | None = None
    scope: str = ""
    verbs: list[str] | None = None


class _Version(msgspec.Struct, frozen=True):
    version: str = ""
    resources: list[_Found] | None = None
    freshness: str = "Current"


class _Meta(msgspec.Struct, frozen=True):
    name: str = ""


class _Group(msgspec.Struct, frozen=True):
    metadata: _Meta = _Meta()
    versions: list[_Version] | None = None


class _Groups(msgspec.Struct, frozen=True):
    items: list[_Group] | None = None


class Discovered(NamedTuple):
    """The kinds that a server has."""

    resources: dict[str, Resource]
    """By the key in `KINDS`."""
    stale_groups: frozenset[str]
    """Groups whose extension server does not answer."""


async def discover(client: ApiClient) -> Discovered:
    """Ask the server which kinds it has."""
    resources: dict[str, Resource] = {}
    stale: set[str] = set()
    for path in ("/api", "/apis"):
        data = await client.request("GET", path, accept=_AGGREGATED, timeout=30)
        try:
            groups = msgspec.json.decode(data, type=_Groups).items
        except msgspec.DecodeError:
            groups = None
        if groups is None:
            raise ApiError(f"GET {path}: the server has no aggregated discovery: Kubernetes 1.27 or newer is needed")
        for group in groups:
            _add_group(group, resources, stale)
    return Discovered(resources, frozenset(stale))


def _add_group(group: _Group, resources: dict[str, Resource], stale: set[str]) -> None:
    name = group.metadata.name
    for version in group.versions or ():  # the preferred version first
        if version.freshness == "Stale":
            stale.add(name)
        for found in version.resources or ():
            if found.response_kind is None or not {"list", "watch"} <= set(found.verbs or ()):
                continue
            kind = _known_kind(found.response_kind.kind, name)
            if kind is None:
                continue
            resource = Resource(name, version.version, found.resource, found.scope == "Namespaced", kind)
            if kind not in resources or resource.api_version == KINDS[kind].API_VERSION:
                resources[kind] = resource


def _known_kind(wire_kind: str, group: str) -> str | None:
    for kind, cls in KINDS.items():
        if wire_kind == cls.WIRE_KIND and cls.API_VERSION.rpartition("/")[0] == group:
            return kind
    return None
