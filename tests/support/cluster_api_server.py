"""An API server that has the objects of a document: discovery and lists in pages, for commands that read a cluster.

It runs in a thread, so that commands can run in the test's own thread or in another process. Objects are served as an
API server serves them: items of a list have no kind. `served` also writes a kubeconfig for it.
"""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from aiohttp import web

from tutti.kube.objects import KINDS

Document = dict[str, Any]
Answer = Callable[[], web.Response]
CUSTOM = {kind for kind in KINDS if "." in kind} | {"Workload", "CompositePodGroup"}
"""Kinds that a server has only if there are objects of them."""


def plural(kind: str) -> str:
    """Return the name of a kind in paths."""
    name = kind.lower()
    return f"{name}es" if name.endswith("s") else f"{name[:-1]}ies" if name.endswith("y") else f"{name}s"


def forbidden(what: str) -> web.Response:
    """Return the answer to a request without permission."""
    message = f'{what} is forbidden: User "dev" cannot list resource "{what}" at the cluster scope'
    return failure(403, "Forbidden", message)


def failure(status: int, reason: str, message: str) -> web.Response:
    """Return an error as the API has it."""
    body = {"kind": "Status", "status": "Failure", "message": message, "reason": reason, "code": status}
    return web.json_response(body, status=status)


class ClusterApiServer:
    """See the module's docstring."""

    def __init__(self, objects: Iterable[Document], *, page: int = 500) -> None:
        self.url = ""
        self.paths: list[str] = []
        """The paths of all requests, in order."""
        self.queries: list[dict[str, str]] = []
        self.answers: dict[str, list[Answer]] = {}
        """By path, answers that come first, instead of the list."""
        self.stale: set[str] = set()
        """Groups whose extension server is down."""
        self.page = page
        """The largest page, whatever a client asks for."""
        self.lists: dict[str, list[Document]] = {}
        """By path, the objects of each kind."""
        self._groups: dict[str, dict[str, list[Document]]] = {}
        kinds: dict[tuple[str, str], list[Document]] = {}
        for kind, cls in KINDS.items():
            if kind not in CUSTOM:
                kinds[cls.API_VERSION, cls.WIRE_KIND] = []
        for each in objects:
            kinds.setdefault((each["apiVersion"], each["kind"]), []).append(each)
        for (api_version, kind), listed in kinds.items():
            self._add_kind(api_version, kind, listed)

    def _add_kind(self, api_version: str, kind: str, objects: list[Document]) -> None:
        group, _, version = api_version.rpartition("/")
        self.lists[f"/apis/{api_version}/{plural(kind)}" if group else f"/api/{version}/{plural(kind)}"] = [
            {field: value for field, value in each.items() if field not in ("kind", "apiVersion")} for each in objects
        ]
        known = [cls.NAMESPACED for cls in KINDS.values() if (api_version, kind) == (cls.API_VERSION, cls.WIRE_KIND)]
        described = {
            "resource": plural(kind),
            "responseKind": {"kind": kind, "group": group, "version": version},
            "scope": "Namespaced" if not known or known[0] else "Cluster",
            "verbs": ["get", "list", "watch"],
        }
        self._groups.setdefault(group, {}).setdefault(version, []).append(described)

    # Requests ---------------------------------------------------------------------------------------------------------

    async def _answer(self, request: web.Request) -> web.Response:
        self.paths.append(request.path)
        self.queries.append(dict(request.query))
        if first := self.answers.get(request.path):
            return first.pop(0)()
        if request.path in ("/api", "/apis"):
            return self._discovery(is_core=request.path == "/api")
        if request.path not in self.lists:
            return failure(404, "NotFound", "the server could not find the requested resource")
        return self._list(request)

    def _discovery(self, *, is_core: bool) -> web.Response:
        items = [
            {
                "metadata": {"name": group} if group else {},
                "versions": [
                    {"version": version, "resources": resources, "freshness": "Current"}
                    for version, resources in versions.items()
                ],
            }
            for group, versions in self._groups.items()
            if (group == "") is is_core and group not in self.stale
        ]
        if not is_core:
            stale = [{"version": "v1", "freshness": "Stale"}]
            items += [{"metadata": {"name": group}, "versions": stale} for group in sorted(self.stale)]
        return web.json_response({"kind": "APIGroupDiscoveryList", "items": items})

    def _list(self, request: web.Request) -> web.Response:
        objects = self.lists[request.path]
        start, end = int(request.query.get("continue", "0")), None
        if "limit" in request.query:
            end = start + min(int(request.query["limit"]), self.page)
        metadata: Document = {"resourceVersion": "77"}
        if end is not None and end < len(objects):
            metadata |= {"continue": str(end), "remainingItemCount": len(objects) - end}
        return web.json_response({"kind": "List", "metadata": metadata, "items": objects[start:end]})

    # The thread -------------------------------------------------------------------------------------------------------

    @contextmanager
    def running(self) -> Iterator[ClusterApiServer]:
        """Serve until the end of the block."""
        ready, stop = threading.Event(), threading.Event()
        thread = threading.Thread(target=lambda: asyncio.run(self._serve(ready, stop)), daemon=True)
        thread.start()
        ready.wait()
        try:
            yield self
        finally:
            stop.set()
            thread.join()

    async def _serve(self, ready: threading.Event, stop: threading.Event) -> None:
        app = web.Application()
        app.router.add_route("*", "/{path:.*}", self._answer)
        runner = web.AppRunner(app, shutdown_timeout=0.1)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        assert site._server is not None
        self.url = f"http://127.0.0.1:{site._server.sockets[0].getsockname()[1]}"  # type: ignore[attr-defined]
        ready.set()
        await asyncio.to_thread(stop.wait)
        await asyncio.sleep(0.01)  # asyncio cannot close a connection that it is just accepting
        await runner.cleanup()


def kubeconfig(folder: Path, server: str, *, namespace: str = "", contexts: Sequence[str] = ("test",)) -> Path:
    """Write a kubeconfig with contexts for a server; the first context is the current one."""
    path = folder / "kubeconfig"
    place = {"namespace": namespace} if namespace else {}
    config = {
        "current-context": contexts[0],
        "clusters": [{"name": "c", "cluster": {"server": server}}],
        "users": [{"name": "u", "user": {"token": "secret-token"}}],
        "contexts": [{"name": name, "context": {"cluster": "c", "user": "u", **place}} for name in contexts],
    }
    path.write_text(json.dumps(config), "utf-8")
    return path


def objects_of(path: Path) -> list[Document]:
    """Return the objects of a dump."""
    items: list[Document] = json.loads(path.read_text("utf-8"))["items"]
    return items
