"""The middleware of every request: request id, bearer token, metrics, and the line in the log.

Contract: an ASGI application around the real one. Every request has one line in the log, except probes: method, path
without query, status, milliseconds, pods, id; never bodies, headers or tokens. A request id from the client is kept if
it has harmless characters only.
"""

from __future__ import annotations

import hmac
import logging
import re
import secrets
import time
from collections.abc import Mapping
from typing import Any

import msgspec
from litestar.enums import ScopeType
from litestar.types import ASGIApp, Message, Receive, Scope, Send

from tutti.serve.http.refusals import UNAUTHORIZED, RefusedError, refusal_body, route_of
from tutti.serve.metrics import Metrics

UNAUTHENTICATED = ("/healthz", "/readyz")
"""Paths that need no token: a kubelet has none."""
_SCOPE_KEY = "tutti"
_LOG = logging.getLogger("tutti.serve")
_HARMLESS = re.compile(rb"[A-Za-z0-9._-]{1,64}")
_LONGEST_PATH = 200


class RequestLog(msgspec.Struct):
    """The data of a request's line in the log."""

    id: str
    started: float
    status: int = 0
    pods: int | None = None

    @property
    def seconds(self) -> float:
        """Seconds since the request came in."""
        return time.monotonic() - self.started

    @property
    def millis(self) -> int:
        """Whole milliseconds since the request came in."""
        return round(self.seconds * 1000)


def log_of(scope: Any) -> RequestLog:
    """Return the log entry of the request with this ASGI scope."""
    log: RequestLog = scope[_SCOPE_KEY]
    return log


class RequestMiddleware:
    """The ASGI application around the real one."""

    def __init__(self, app: ASGIApp, metrics: Metrics, *, token: str = "") -> None:
        self._app, self._metrics, self._token = app, metrics, token.encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle a request."""
        if scope["type"] != ScopeType.HTTP:
            await self._app(scope, receive, send)
            return
        headers = dict(scope["headers"])
        log = RequestLog(_request_id(headers), time.monotonic())
        scope[_SCOPE_KEY] = log  # type: ignore[literal-required]

        async def send_with_id(message: Message) -> None:
            if message["type"] == "http.response.start":
                log.status = message["status"]
                message["headers"] = [*message["headers"], (b"x-request-id", log.id.encode())]
            await send(message)

        try:
            if self._is_allowed(scope["path"], headers):
                await self._app(scope, receive, send_with_id)
            else:
                await _refuse(send_with_id, log, scope["path"])
        finally:
            self._record(scope, log)

    def _is_allowed(self, path: str, headers: Mapping[bytes, bytes]) -> bool:
        if not self._token or path.rstrip("/") in UNAUTHENTICATED:
            return True
        kind, _, given = headers.get(b"authorization", b"").partition(b" ")
        return hmac.compare_digest(given.strip(), self._token) and kind.lower() == b"bearer"

    def _record(self, scope: Any, log: RequestLog) -> None:
        path, method, seconds = scope["path"], scope["method"], log.seconds
        self._metrics.request(path, method, status=log.status, seconds=seconds)
        shown = scope["raw_path"][:_LONGEST_PATH].decode("ascii", "replace")
        pods = "-" if log.pods is None else log.pods
        level = logging.DEBUG if path in UNAUTHENTICATED else logging.INFO  # probes come every few seconds
        _LOG.log(level, "%s %s %d %d ms, pods %s, id %s", method, shown, log.status, seconds * 1000, pods, log.id)


def _request_id(headers: Mapping[bytes, bytes]) -> str:
    given = headers.get(b"x-request-id", b"")
    return given.decode() if _HARMLESS.fullmatch(given) else secrets.token_hex(6)


async def _refuse(send: Send, log: RequestLog, path: str) -> None:
    refusal = RefusedError(UNAUTHORIZED, "the bearer token is missing or wrong")
    body = refusal_body(route_of(path), refusal, request_id=log.id, millis=log.millis)
    headers = [
        (b"content-type", b"application/json"),
        (b"content-length", str(len(body)).encode()),
        (b"www-authenticate", b'Bearer realm="tutti"'),
    ]
    await send({"type": "http.response.start", "status": UNAUTHORIZED, "headers": headers})
    await send({"type": "http.response.body", "body": body, "more_body": False})
