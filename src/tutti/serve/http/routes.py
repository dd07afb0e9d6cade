"""The routes: what each takes from a request, and what it gives back.

Contract: handlers do no work of their own; bodies go to a worker as they came (`desk`), and its bytes go to the client
as they come. Content-Type is not looked at, as in the server that clients of ``/recommend`` know: the body is JSON.
"""

from __future__ import annotations

import logging
from typing import Any

from litestar import HttpMethod, Request, Response, get, post, route
from litestar.datastructures import State
from litestar.enums import MediaType

from tutti.serve.http.middleware import NOTES, Notes
from tutti.serve.http.plan_requests import Desk, Incoming
from tutti.serve.http.query import asked_of
from tutti.serve.metrics import CONTENT_TYPE
from tutti.serve.openapi import document as openapi
from tutti.serve.workers.messages import Route

_LOG = logging.getLogger("tutti.serve")
_Any = Request[Any, Any, State]
_PROBES = [HttpMethod.GET, HttpMethod.HEAD]
"""Of what answers HEAD like GET; uvicorn leaves the body out."""


async def _answered(request: _Any, route: Route) -> Response[bytes]:
    desk: Desk = request.app.state.desk
    notes: Notes = request.scope[NOTES]  # type: ignore[literal-required]
    incoming = Incoming(notes.id, request.scope["path"], request.headers, request.receive)
    asked = asked_of(request.scope["query_string"], desk.settings.max_time_limit)
    reply, text = await desk.answer(incoming, route, asked)
    notes.pods = reply.pods
    if reply.fault:
        _LOG.error("request %s: %s", notes.id, reply.fault)
    return Response(text, status_code=reply.status, media_type=MediaType.JSON)


@post(
    "/recommend",
    status_code=200,
    request_max_body_size=None,
    operation_id="recommend",
    responses=openapi.GARDENER_RESPONSES,
    summary="A plan for a Gardener ClusterSnapshot",
    description=openapi.GARDENER_TEXT,
)
async def gardener(request: _Any) -> Response[bytes]:
    """Answer as Gardener's scaling recommender does."""
    return await _answered(request, Route.GARDENER)


@post(
    "/v1/recommendations",
    status_code=200,
    request_max_body_size=None,
    operation_id="recommendations",
    responses=openapi.OURS_RESPONSES,
    summary="A plan for a cluster in any known form",
    description=openapi.OURS_TEXT,
)
async def ours(request: _Any) -> Response[bytes]:
    """Answer with everything that is known about the plan."""
    return await _answered(request, Route.OURS)


@post(
    "/v1/plans",
    status_code=200,
    request_max_body_size=None,
    operation_id="plans",
    responses=openapi.PLANS_RESPONSES,
    summary="A plan for a planner request of gardener/scaling-advisor",
    description=openapi.PLANS_TEXT,
)
async def plans(request: _Any) -> Response[bytes]:
    """Answer as scaling-advisor's planner does."""
    return await _answered(request, Route.ADVISOR)


@route(
    "/healthz",
    http_method=_PROBES,
    operation_id=openapi.probe_id,
    summary="Whether the server is alive",
    media_type=MediaType.TEXT,
)
async def healthz() -> str:
    """Whether the loop turns; workers do not matter."""
    return "ok\n"


@route(
    "/readyz",
    http_method=_PROBES,
    operation_id=openapi.probe_id,
    summary="Whether plans can be made",
    media_type=MediaType.TEXT,
    responses=openapi.READY_RESPONSES,
)
async def readyz(request: _Any) -> Response[str]:
    """Whether some worker is there and the server does not end."""
    desk: Desk = request.app.state.desk
    text, status = ("ok\n", 200) if desk.is_ready else ("not ready\n", 503)
    return Response(text, status_code=status, media_type=MediaType.TEXT)


@get(
    "/metrics",
    operation_id="metrics",
    summary="Counters in Prometheus' text format",
    media_type=CONTENT_TYPE,
    responses=openapi.NEEDS_TOKEN,
)
async def metrics(request: _Any) -> str:
    """What has been counted, and how things stand."""
    desk: Desk = request.app.state.desk
    pool = desk.pool
    gauges = {
        "tutti_plans_running": pool.running,
        "tutti_plans_waiting": pool.waiting,
        "tutti_uploads": desk.uploads.count,
        "tutti_upload_bytes": desk.uploads.held,
        "tutti_workers_ready": pool.ready,
    }
    workers = {slot: worker.memory for slot, worker in pool.workers.items()}
    return desk.metrics.text(gauges=gauges, workers=workers)


HANDLERS = [gardener, ours, plans, healthz, readyz, metrics]
