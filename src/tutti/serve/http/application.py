"""The application: routes, the OpenAPI document, and every refusal as JSON.

Contract: nothing is served but the routes and ``/openapi.json``; there are no pages that load scripts from elsewhere.
What is not found, not allowed or not valid is answered in the envelope of its path.
"""

from __future__ import annotations

import logging
from typing import Any

from litestar import Litestar, Request, Response
from litestar.datastructures import State
from litestar.enums import MediaType
from litestar.exceptions import HTTPException

from tutti.serve.http.middleware import NOTES, Front, Notes
from tutti.serve.http.plan_requests import Desk
from tutti.serve.http.refusals import INTERNAL, RefusedError, envelope, route_of
from tutti.serve.http.routes import HANDLERS
from tutti.serve.openapi.document import openapi_config

_LOG = logging.getLogger("tutti.serve")
_Any = Request[Any, Any, State]


def application(desk: Desk) -> Front:
    """The whole application; its desk is open between startup and shutdown."""

    async def close() -> None:
        await desk.pool.stop()

    app = Litestar(
        route_handlers=HANDLERS,
        openapi_config=openapi_config(desk.settings.max_time_limit, with_token=bool(desk.settings.token)),
        exception_handlers={RefusedError: _refused, HTTPException: _http, Exception: _fault},
        on_startup=[desk.pool.start],
        on_shutdown=[close],
        state=State({"desk": desk}),
        logging_config=None,
    )
    app.openapi_schema.to_schema()  # made now: the first client who asks for it must not hold up the others
    return Front(app, desk.metrics, token=desk.settings.token)


def _answer(request: _Any, refusal: RefusedError) -> Response[bytes]:
    notes: Notes = request.scope[NOTES]  # type: ignore[literal-required]
    body = envelope(route_of(request.scope["path"]), refusal, request_id=notes.id, millis=notes.millis)
    return Response(body, status_code=refusal.status, media_type=MediaType.JSON, headers=refusal.headers)


def _refused(request: _Any, error: RefusedError) -> Response[bytes]:
    return _answer(request, error)


def _http(request: _Any, error: HTTPException) -> Response[bytes]:
    """Litestar's own: no such route, no such method."""
    return _answer(request, RefusedError(error.status_code, error.detail, headers=error.headers))


def _fault(request: _Any, error: Exception) -> Response[bytes]:
    notes: Notes = request.scope[NOTES]  # type: ignore[literal-required]
    _LOG.error("request %s", notes.id, exc_info=error)
    return _answer(request, RefusedError(INTERNAL, f"a fault of Tutti's own; the server's log has it as {notes.id}"))
