"""An API server in memory: HTTP on the loopback interface, objects in `MemoryObjects`, faults as a test likes.

Discovery, lists in pages, watches with bookmarks and initial events, and writes with the checks of kube-apiserver.
Every request is logged. `find_fault` is asked for each request and may return a `Fault`; `watches` can be held back and
cut; `silence` drops all requests of a process, as if it had been killed.

Contract: belongs to one event loop. What a test changes through `objects` is seen by watches as what clients change.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from email.utils import formatdate
from typing import Any

import msgspec
from aiohttp import web

from tests.support import memory_pod_requests
from tests.support.api_faults import ApiRequest, Fault, status_object
from tests.support.memory_objects import Document, MemoryObjects, RefusedError
from tests.support.memory_watches import MemoryWatches
from tutti.client.access.cluster_access import ClusterAccess
from tutti.kube import objects as k

_VERBS = ["create", "delete", "get", "list", "patch", "update", "watch"]
_STRATEGIC = "application/strategic-merge-patch+json"


class MemoryApiServer:
    """See the module's docstring; `async with` starts and stops it."""

    def __init__(self, *, without: tuple[str, ...] = ()) -> None:
        self.objects = MemoryObjects(without)
        self.watches = MemoryWatches(self.objects)
        self.requests: list[ApiRequest] = []
        self.find_fault: Callable[[ApiRequest], Fault | None] = lambda request: None
        self.forbidden: set[str] = set()
        """Kinds that nobody may use: 403."""
        self.url = ""
        self._silent: set[str] = set()
        self._pages: dict[str, tuple[int, list[Document]]] = {}

    async def __aenter__(self) -> MemoryApiServer:
        app = web.Application()
        app.router.add_route("*", "/{path:.*}", self._answer)
        self._runner = web.AppRunner(app, shutdown_timeout=0.1)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        self.url = f"http://127.0.0.1:{self._runner.addresses[0][1]}"
        return self

    async def __aexit__(self, *_error: object) -> None:
        self.watches.cut()
        await self._runner.cleanup()

    @property
    def access(self) -> ClusterAccess:
        """How clients reach the server."""
        return ClusterAccess(server=self.url)

    # What a test can do -----------------------------------------------------------------------------------------------

    def sent(self, kind: str = "", part: str = "", *, method: str = "", agent: str = "") -> list[ApiRequest]:
        """Return the logged requests of a kind, a subresource, a method and a client."""
        return [
            each
            for each in self.requests
            if kind in ("", each.kind)
            and part in ("", each.part)
            and method in ("", each.method)
            and agent in each.user_agent
        ]

    def silence(self, agent: str) -> None:
        """Drop all requests of a client from now on."""
        self._silent.add(agent)
        self.watches.cut(agent=agent)

    # Answers ----------------------------------------------------------------------------------------------------------

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        body = await request.read()
        asked = ApiRequest(
            request.method,
            request.path,
            dict(request.query),
            request.headers.get("User-Agent", ""),
            msgspec.json.decode(body) if body else None,
            time.monotonic(),
        )
        self.requests.append(asked)
        try:
            return await self._answer_or_refuse(request, asked)
        except RefusedError as refusal:
            asked.status = refusal.status
            return self._json(status_object(refusal), refusal.status, retry_after=refusal.retry_after)

    async def _answer_or_refuse(self, request: web.Request, asked: ApiRequest) -> web.StreamResponse:
        self._parse_path(asked)
        fault = self.find_fault(asked) or Fault()
        if any(agent in asked.user_agent for agent in self._silent):
            fault = Fault(drop="before")
        if fault.wait is not None:
            await fault.wait.wait()
        if fault.delay:
            await asyncio.sleep(fault.delay)
        if fault.refusal is not None:
            raise fault.refusal
        if fault.drop == "before":
            return _drop(request)
        if asked.kind in self.forbidden:
            raise RefusedError(403, "Forbidden", f'{asked.kind} is forbidden: User "test" cannot {asked.method} it')
        if asked.is_watch:
            return await self.watches.serve(request, asked, fault, date=self._date())
        answer = self._carry_out(asked, request.content_type)
        if fault.wait_after is not None:
            await fault.wait_after.wait()
        if fault.drop == "after":
            return _drop(request)
        asked.status = 201 if asked.method == "POST" else 200
        return self._json(answer, asked.status)

    def _json(self, body: Any, status: int, *, retry_after: int | None = None) -> web.Response:
        headers = {"Date": self._date()} | ({} if retry_after is None else {"Retry-After": str(retry_after)})
        return web.Response(
            body=msgspec.json.encode(body), status=status, headers=headers, content_type="application/json"
        )

    def _date(self) -> str:
        return formatdate(self.objects.now() / 1_000_000, usegmt=True)

    def _parse_path(self, asked: ApiRequest) -> None:
        parts = asked.path.strip("/").split("/")
        if parts in (["api"], ["apis"]):
            return
        api_version, rest = (parts[1], parts[2:]) if parts[0] == "api" else ("/".join(parts[1:3]), parts[3:])
        namespace = ""
        if rest[0] == "namespaces" and len(rest) > 2:
            namespace, rest = rest[1], rest[2:]
        for kind, resource in self.objects.resources.items():
            if (resource.api_version, resource.plural) == (api_version, rest[0]):
                asked.kind = kind
        if not asked.kind:
            raise RefusedError(404, "NotFound", "the server could not find the requested resource")
        name, asked.part = [*rest[1:], "", ""][:2]
        asked.key = f"{namespace}/{name}" if namespace else name

    def _carry_out(self, asked: ApiRequest, content_type: str) -> Document:
        objects, kind, key, body = self.objects, asked.kind, asked.key, asked.body
        match asked.method, asked.part:
            case "GET", "" if not kind:
                return self._discovery(asked.path)
            case "GET", "" if not key or key.endswith("/"):
                return self._list(asked)
            case "GET", _:
                return objects.get(kind, key)
            case "POST", "":
                return objects.create({**body, "metadata": {**body["metadata"]}}, kind)
            case "POST", "binding":
                memory_pod_requests.bind(objects, key, body)
            case "POST", "eviction":
                memory_pod_requests.evict(objects, key, body, is_dry_run="dryRun" in asked.query)
            case "PUT", _:
                return objects.update(kind, key, body)
            case "PATCH", _:
                if asked.part == "status" and not body.keys() <= {"metadata", "status", "apiVersion", "kind"}:
                    raise RefusedError(422, "Invalid", "only the status can be changed here")
                if "fieldManager" in asked.query:
                    body = self._with_manager(asked)
                return objects.patch(kind, key, body, merges_lists=content_type == _STRATEGIC)
            case "DELETE", _:
                return objects.delete(kind, key, body)
            case _:
                raise RefusedError(405, "MethodNotAllowed", f"{asked.method} {asked.path}")
        return {"kind": "Status", "apiVersion": "v1", "status": "Success"}

    def _with_manager(self, asked: ApiRequest) -> Document:
        """Return a patch that also notes who manages what, as far as tests look at that."""
        entry = {"manager": asked.query["fieldManager"], "operation": "Update", "subresource": asked.part}
        known = self.objects.get(asked.kind, asked.key)["metadata"].get("managedFields") or []
        managed = [*(each for each in known if each != entry), entry]
        return {**asked.body, "metadata": {**(asked.body.get("metadata") or {}), "managedFields": managed}}

    def _discovery(self, path: str) -> Document:
        groups: dict[str, dict[str, list[Document]]] = {}
        for kind, resource in self.objects.resources.items():
            if (path == "/api") == (not resource.group):
                found = groups.setdefault(resource.group, {}).setdefault(resource.version, [])
                wire_kind = k.KINDS[kind].WIRE_KIND if kind in k.KINDS else kind
                response = {"group": resource.group, "version": resource.version, "kind": wire_kind}
                scope = "Namespaced" if resource.namespaced else "Cluster"
                found.append({"resource": resource.plural, "responseKind": response, "scope": scope, "verbs": _VERBS})
        items = [
            {
                "metadata": {"name": group} if group else {},
                "versions": [{"version": version, "resources": found} for version, found in versions.items()],
            }
            for group, versions in groups.items()
        ]
        return {"kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "items": items}

    def _list(self, asked: ApiRequest) -> Document:
        token = asked.query.get("continue", "")
        if token:
            version, items = self._pages.pop(token, (-1, []))
            if version < self.objects.oldest:
                raise RefusedError(410, "Expired", "The provided continue parameter is too old")
        else:
            version, items = self.objects.version, self.objects.all(asked.kind, asked.key.removesuffix("/"))
        limit = int(asked.query.get("limit", 0)) or len(items)
        metadata = {"resourceVersion": str(version)}
        if len(items) > limit:
            metadata["continue"] = f"{version}-{len(self._pages)}-{limit}"
            self._pages[metadata["continue"]] = version, items[limit:]
        return {"kind": "List", "apiVersion": "v1", "metadata": metadata, "items": items[:limit]}


def _drop(request: web.Request) -> web.StreamResponse:
    assert request.transport is not None
    request.transport.abort()
    return web.Response()
