"""The answers of the scheduler's HTTP server: /healthz, /readyz, /metrics and /debug/state.

Contract: GET and HEAD only. /healthz and /readyz answer 200 or 503 with a line for each problem, and wait for nothing.
/metrics is open to everybody who reaches the address, as in kube-scheduler's peers: numbers only, no names of objects.
/debug/state needs a token and rights (`debug_access`), and TLS or a loopback address.
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Awaitable, Callable
from typing import Protocol

import msgspec
from aiohttp import web

from tutti.live.introspection.debug_access import STATE_PATH, DebugAccess, Refused
from tutti.live.introspection.http_server import is_private
from tutti.live.introspection.state_query import DEFAULT_LIMIT, LARGEST_LIMIT, StateQuery
from tutti.present.prometheus_text import CONTENT_TYPE
from tutti.wire.scheduler_state import SchedulerState

_LOG = logging.getLogger("tutti.live")
_NAME = re.compile(r"[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?")
_LONGEST_GANG = 1_000
"""Names of gangs are values of annotations, which may have any characters."""
_STATE_TIMEOUT = 15.0
_MOST_WAITING = 8
"""How many requests may wait for the state; it is read for one after the other."""


class StateSource(Protocol):
    """What the routes show."""

    def health_problems(self) -> list[str]: ...
    def readiness_problems(self) -> list[str]: ...
    def notes(self) -> list[str]: ...
    async def metrics_text(self) -> str: ...
    async def state(self, query: StateQuery) -> SchedulerState: ...


class HttpRoutes:
    """See the module's docstring."""

    def __init__(self, source: StateSource, access: DebugAccess) -> None:
        self._source, self._access = source, access
        self._reading, self._waiting = asyncio.Lock(), 0
        self._routes: dict[str, Callable[[web.BaseRequest], Awaitable[web.Response]]] = {
            "/healthz": self._healthz,
            "/livez": self._healthz,
            "/readyz": self._readyz,
            "/metrics": self._metrics,
            STATE_PATH: self._state,
        }

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        """Answer a request."""
        answer = await self._answer(request)
        answer.force_close()
        answer.headers["X-Content-Type-Options"] = "nosniff"
        answer.headers["Cache-Control"] = "no-store"
        return answer

    async def _answer(self, request: web.BaseRequest) -> web.Response:
        route = self._routes.get(request.path)
        if route is None:
            return _line(f"there is no {request.path[:100]!r}: use {', '.join(sorted(self._routes))}", 404)
        if request.method not in ("GET", "HEAD"):
            return _line("use GET", 405, Allow="GET, HEAD")
        try:
            return await route(request)
        except Refused as refused:
            headers = {401: {"WWW-Authenticate": "Bearer"}, 429: {"Retry-After": "2"}}.get(refused.status, {})
            return _line(str(refused), refused.status, **headers)
        except Exception:
            _LOG.exception("%s cannot be answered", request.path)
            return _line("internal error: see the scheduler's log", 500)

    async def _healthz(self, _request: web.BaseRequest) -> web.Response:
        problems = self._source.health_problems()
        return _line("\n".join(problems), 503) if problems else _line("ok")

    async def _readyz(self, _request: web.BaseRequest) -> web.Response:
        problems, notes = self._source.readiness_problems(), self._source.notes()
        lines = [*problems, *(f"note: {note}" for note in notes)]
        return _line("\n".join(lines), 503) if problems else _line("\n".join(["ok", *lines]))

    async def _metrics(self, _request: web.BaseRequest) -> web.Response:
        body = (await self._source.metrics_text()).encode()
        return web.Response(body=body, headers={"Content-Type": f"{CONTENT_TYPE}; charset=utf-8"})

    async def _state(self, request: web.BaseRequest) -> web.Response:
        if not is_private(request):
            problem = "the state is not sent over plain HTTP to other machines, because your token would be readable"
            raise Refused(403, f"{problem}: use tutti inspect (a port-forward), or give the scheduler --tls-cert")
        query = _query(request)
        scheme, _, token = request.headers.get("Authorization", "").partition(" ")
        token = token.strip() if scheme.lower() == "bearer" else ""
        sees_everything = await self._access.sees_everything(token, query.namespace)
        if self._waiting >= _MOST_WAITING:
            raise Refused(429, "many others read the state now: try again in some seconds")
        self._waiting += 1
        try:
            async with asyncio.timeout(_STATE_TIMEOUT), self._reading:
                state = await self._source.state(query._replace(hides_others=not sees_everything))
        except TimeoutError:
            raise Refused(503, "the scheduler is busy with a session: try again in some seconds") from None
        finally:
            self._waiting -= 1
        return web.Response(body=msgspec.json.encode(state), content_type="application/json")


def _query(request: web.BaseRequest) -> StateQuery:
    given = request.query
    unknown = set(given) - {"namespace", "pod", "gang", "limit"}
    if unknown:
        raise Refused(400, f"unknown parameters: {', '.join(sorted(unknown))[:100]}")
    namespace, pod, gang = (given.get(name, "") for name in ("namespace", "pod", "gang"))
    for value in filter(None, (namespace, pod)):
        if not _NAME.fullmatch(value):
            raise Refused(400, f"{value[:100]!r} is not the name of an object")
    if len(gang) > _LONGEST_GANG:
        raise Refused(400, f"the name of the gang has more than {_LONGEST_GANG} characters")
    if (pod or gang) and not namespace:
        raise Refused(400, "a pod or a gang needs its namespace")
    if pod and gang:
        raise Refused(400, "ask for a pod or for a gang")
    limit = given.get("limit", str(DEFAULT_LIMIT))
    if not re.fullmatch("[0-9]{1,6}", limit) or not 1 <= int(limit) <= LARGEST_LIMIT:
        raise Refused(400, f"limit must be a number from 1 to {LARGEST_LIMIT}")
    return StateQuery(namespace, pod, gang, int(limit))


def _line(text: str, status: int = 200, **headers: str) -> web.Response:
    return web.Response(text=f"{text}\n", status=status, headers=headers)
