"""What every request passes first: it gets an id, is held to the token, counted, and written to the log.

Contract: an ASGI application around the real one. One line a request goes to the log, those of probes aside: method,
path without its query, status, milliseconds, pods, id; never bodies, headers or tokens. An id that the client brings is
kept if it is harmless.
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

from tutti.serve.http.refusals import UNAUTHORIZED, RefusedError, envelope, route_of
from tutti.serve.metrics import Metrics

OPEN = ("/healthz", "/readyz")
"""What needs no token: a kubelet has none."""
NOTES = "tutti"
"""Where the scope keeps the `Notes` on a request."""
_LOG = logging.getLogger("tutti.serve")
_HARMLESS = re.compile(rb"[A-Za-z0-9._-]{1,64}")
_LONGEST_PATH = 200


class Notes(msgspec.Struct):
    """What is found out about a request on its way."""

    id: str
    started: float
    status: int = 0
    pods: int | None = None

    @property
    def seconds(self) -> float:
        """For how long it has been here."""
        return time.monotonic() - self.started

    @property
    def millis(self) -> int:
        """The same in whole milliseconds."""
        return round(self.seconds * 1000)


class Front:
    """See the module's contract."""

    def __init__(self, app: ASGIApp, metrics: Metrics, *, token: str = "") -> None:
        self._app, self._metrics, self._token = app, metrics, token.encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, and its answer back."""
        if scope["type"] != ScopeType.HTTP:
            await self._app(scope, receive, send)
            return
        headers = dict(scope["headers"])
        notes = Notes(_id_of(headers), time.monotonic())
        scope[NOTES] = notes  # type: ignore[literal-required]

        async def noted(message: Message) -> None:
            if message["type"] == "http.response.start":
                notes.status = message["status"]
                message["headers"] = [*message["headers"], (b"x-request-id", notes.id.encode())]
            await send(message)

        try:
            if self._is_allowed(scope["path"], headers):
                await self._app(scope, receive, noted)
            else:
                await _refuse(noted, notes, scope["path"])
        finally:
            self._tell(scope, notes)

    def _is_allowed(self, path: str, headers: Mapping[bytes, bytes]) -> bool:
        if not self._token or path.rstrip("/") in OPEN:
            return True
        kind, _, given = headers.get(b"authorization", b"").partition(b" ")
        return hmac.compare_digest(given.strip(), self._token) and kind.lower() == b"bearer"

    def _tell(self, scope: Any, notes: Notes) -> None:
        path, method, seconds = scope["path"], scope["method"], notes.seconds
        self._metrics.request(path, method, status=notes.status, seconds=seconds)
        shown = scope["raw_path"][:_LONGEST_PATH].decode("ascii", "replace")
        pods = "-" if notes.pods is None else notes.pods
        level = logging.DEBUG if path in OPEN else logging.INFO  # probes come every few seconds
        _LOG.log(level, "%s %s %d %d ms, pods %s, id %s", method, shown, notes.status, seconds * 1000, pods, notes.id)


def _id_of(headers: Mapping[bytes, bytes]) -> str:
    given = headers.get(b"x-request-id", b"")
    return given.decode() if _HARMLESS.fullmatch(given) else secrets.token_hex(6)


async def _refuse(send: Send, notes: Notes, path: str) -> None:
    refusal = RefusedError(UNAUTHORIZED, "a bearer token is needed, and it must be the right one")
    body = envelope(route_of(path), refusal, request_id=notes.id, millis=notes.millis)
    headers = [
        (b"content-type", b"application/json"),
        (b"content-length", str(len(body)).encode()),
        (b"www-authenticate", b'Bearer realm="tutti"'),
    ]
    await send({"type": "http.response.start", "status": UNAUTHORIZED, "headers": headers})
    await send({"type": "http.response.body", "body": body, "more_body": False})
