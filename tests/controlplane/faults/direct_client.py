"""A small client of the API server for the harness itself: the workload and the recorder, never through the proxy.

It shares no code with Tutti's client, so that a fault of that client cannot hide itself.

Contract: `send` returns the decoded answer, or None for 404 and 409; any other refusal raises `RefusedError`. Lost
connections are tried again, because a create or delete by name may be repeated.
"""

from __future__ import annotations

import asyncio
import base64
import json
import ssl
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple

import aiohttp
import yaml

_ATTEMPTS = 5


class RefusedError(Exception):
    """The API server refuses a request of the harness."""


class DirectAccess(NamedTuple):
    """The address of the API server, a token, and whom to trust (False: plain HTTP)."""

    server: str
    token: str
    tls: ssl.SSLContext | bool


def direct_access(kubeconfig: Path) -> DirectAccess:
    """Read the kubeconfig of the control plane: one cluster, one user with a token."""
    config = yaml.safe_load(kubeconfig.read_text("utf-8"))
    cluster, user = config["clusters"][0]["cluster"], config["users"][0]["user"]
    authority = base64.b64decode(cluster["certificate-authority-data"]).decode()
    return DirectAccess(cluster["server"], user["token"], ssl.create_default_context(cadata=authority))


def proxied_kubeconfig(path: Path, *, port: int, namespace: str = "default") -> Path:
    """Write a kubeconfig for a port of the proxy, which adds the token."""
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "proxy",
        "clusters": [{"name": "proxy", "cluster": {"server": f"http://127.0.0.1:{port}"}}],
        "users": [{"name": "proxy", "user": {}}],
        "contexts": [{"name": "proxy", "context": {"cluster": "proxy", "user": "proxy", "namespace": namespace}}],
    }
    path.write_text(json.dumps(config), "utf-8")
    return path


class DirectClient:
    """See the module's docstring; `async with` opens and closes its connections."""

    def __init__(self, access: DirectAccess) -> None:
        self._access = access

    async def __aenter__(self) -> DirectClient:
        self._session = aiohttp.ClientSession(
            self._access.server,
            headers={"Authorization": f"Bearer {self._access.token}", "User-Agent": "soak-harness"},
            connector=aiohttp.TCPConnector(ssl=self._access.tls, limit=32),
            read_bufsize=1 << 20,
        )
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._session.close()

    async def send(
        self, method: str, path: str, body: Any = None, *, content_type: str = "application/json"
    ) -> dict[str, Any] | None:
        """Send a request and return the answer."""
        data = None if body is None else json.dumps(body)
        for attempt in range(_ATTEMPTS):
            try:
                async with self._session.request(
                    method, path, data=data, headers={"Content-Type": content_type}
                ) as answer:
                    content = await answer.read()
                    if answer.status in (404, 409):
                        return None
                    if answer.status >= 300:
                        raise RefusedError(f"{method} {path}: {answer.status} {content[:300]!r}")
                    found: dict[str, Any] = json.loads(content)
                    return found
            except aiohttp.ClientConnectionError:
                if attempt == _ATTEMPTS - 1:
                    raise
                await asyncio.sleep(0.2)
        raise AssertionError("the last attempt returns or raises")

    async def follow(self, path: str, version: str) -> AsyncIterator[dict[str, Any]]:
        """Yield the events of one watch until the server ends it."""
        query: Mapping[str, str] = {
            "watch": "1",
            "resourceVersion": version,
            "allowWatchBookmarks": "true",
            "timeoutSeconds": "3600",
        }
        unlimited = aiohttp.ClientTimeout(total=None)
        async with self._session.get(path, params=query, timeout=unlimited) as answer:
            if answer.status != 200:
                raise RefusedError(f"watch of {path}: {answer.status}")
            while line := await answer.content.readline():
                yield json.loads(line)
