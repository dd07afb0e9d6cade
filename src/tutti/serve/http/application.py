"""The ASGI application: routes, the OpenAPI document, and every refusal as JSON.

Contract: serves the routes and ``/openapi.json`` and nothing else; no page loads scripts from the network. A path that
does not exist, a method that is not allowed and an internal error get an answer in the format of their route.
"""

from __future__ import annotations

import logging
from typing import Any

from litestar import Litestar, Request, Response
from litestar.datastructures import State
from litestar.enums import MediaType
from litestar.exceptions import HTTPException

from tutti.serve.http.middleware import RequestMiddleware, log_of
from tutti.serve.http.plan_requests import PlanRequests
from tutti.serve.http.refusals import INTERNAL, RefusedError, internal_error, refusal_body, route_of
from tutti.serve.http.routes import HANDLERS, PLAN_REQUESTS
from tutti.serve.openapi.openapi_document import openapi_config

_LOG = logging.getLogger("tutti.serve")
_Request = Request[Any, Any, State]


def application(plan_requests: PlanRequests) -> RequestMiddleware:
    """Return the application; it starts the workers at startup and ends them at shutdown."""
    settings = plan_requests.settings

    async def stop_workers() -> None:
        await plan_requests.pool.stop()

    app = Litestar(
        route_handlers=HANDLERS,
        openapi_config=openapi_config(settings.max_time_limit, with_token=bool(settings.token)),
        exception_handlers={RefusedError: _refused, HTTPException: _http_error, Exception: _internal_error},
        on_startup=[plan_requests.pool.start],
        on_shutdown=[stop_workers],
        state=State({PLAN_REQUESTS: plan_requests}),
        logging_config=None,
    )
    app.openapi_schema.to_schema()  # at startup: making it for the first client would block the event loop
    return RequestMiddleware(app, plan_requests.metrics, token=settings.token)


def _refused(request: _Request, refusal: RefusedError) -> Response[bytes]:
    log = log_of(request.scope)
    body = refusal_body(route_of(request.scope["path"]), refusal, request_id=log.id, millis=log.millis)
    return Response(body, status_code=refusal.status, media_type=MediaType.JSON, headers=refusal.headers)


def _http_error(request: _Request, error: HTTPException) -> Response[bytes]:
    """Return the refusal for an error of Litestar itself: no such route, no such method.

    Litestar lists the allowed methods in no fixed order.
    """
    headers = dict(error.headers or {})
    if "allow" in headers:
        headers["allow"] = ", ".join(sorted(headers["allow"].split(", ")))
    return _refused(request, RefusedError(error.status_code, error.detail, headers=headers))


def _internal_error(request: _Request, error: Exception) -> Response[bytes]:
    request_id = log_of(request.scope).id
    _LOG.error("request %s", request_id, exc_info=error)
    return _refused(request, RefusedError(INTERNAL, internal_error(request_id)))
