"""The routes and their handlers.

Contract: handlers neither decode nor encode; a body goes to a worker as the client sent it (`plan_requests`), and the
bytes of the worker go to the client. The handlers ignore Content-Type, because Gardener's recommender, whose
clients use ``/recommend``, ignores it: the body is JSON.
"""

from __future__ import annotations

import logging
from typing import Any

from litestar import HttpMethod, Request, Response, get, post, route
from litestar.datastructures import State
from litestar.enums import MediaType

from tutti.present.prometheus_text import CONTENT_TYPE
from tutti.serve.http.middleware import log_of
from tutti.serve.http.plan_requests import IncomingRequest, PlanRequests
from tutti.serve.http.query import query_options
from tutti.serve.openapi import openapi_document as openapi
from tutti.serve.workers.messages import Route

_LOG = logging.getLogger("tutti.serve")
_Request = Request[Any, Any, State]
_GET_AND_HEAD = [HttpMethod.GET, HttpMethod.HEAD]
"""Methods of probes; uvicorn leaves out the body of an answer to HEAD."""
PLAN_REQUESTS = "plan_requests"
"""The key of the application's `PlanRequests` in its state."""


def _plan_requests(request: _Request) -> PlanRequests:
    plan_requests: PlanRequests = request.app.state[PLAN_REQUESTS]
    return plan_requests


async def _plan(request: _Request, route: Route) -> Response[bytes]:
    plan_requests, log = _plan_requests(request), log_of(request.scope)
    incoming = IncomingRequest(log.id, request.scope["path"], request.headers, request.receive)
    options = query_options(request.scope["query_string"], plan_requests.settings.max_time_limit)
    reply, text = await plan_requests.answer(incoming, route, options)
    log.pods = reply.pods
    if reply.fault:
        _LOG.error("request %s: %s", log.id, reply.fault)
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
async def gardener(request: _Request) -> Response[bytes]:
    """Answer as Gardener's scaling recommender does."""
    return await _plan(request, Route.GARDENER)


@post(
    "/v1/recommendations",
    status_code=200,
    request_max_body_size=None,
    operation_id="recommendations",
    responses=openapi.TUTTI_RESPONSES,
    summary="A plan for a cluster in any known form",
    description=openapi.TUTTI_TEXT,
)
async def recommendations(request: _Request) -> Response[bytes]:
    """Answer with the whole plan."""
    return await _plan(request, Route.TUTTI)


@post(
    "/v1/plans",
    status_code=200,
    request_max_body_size=None,
    operation_id="plans",
    responses=openapi.PLANS_RESPONSES,
    summary="A plan for a planner request of gardener/scaling-advisor",
    description=openapi.PLANS_TEXT,
)
async def plans(request: _Request) -> Response[bytes]:
    """Answer as scaling-advisor's planner does."""
    return await _plan(request, Route.ADVISOR)


@route(
    "/healthz",
    http_method=_GET_AND_HEAD,
    operation_id=openapi.probe_id,
    summary="Whether the server is alive",
    media_type=MediaType.TEXT,
)
async def healthz() -> str:
    """Answer if the event loop runs; do not check workers."""
    return "ok\n"


@route(
    "/readyz",
    http_method=_GET_AND_HEAD,
    operation_id=openapi.probe_id,
    summary="Whether plans can be made",
    media_type=MediaType.TEXT,
    responses=openapi.READY_RESPONSES,
)
async def readyz(request: _Request) -> Response[str]:
    """Answer whether the server has a worker and is not shutting down."""
    text, status = ("ok\n", 200) if _plan_requests(request).is_ready else ("not ready\n", 503)
    return Response(text, status_code=status, media_type=MediaType.TEXT)


@get(
    "/metrics",
    operation_id="metrics",
    summary="Counters in Prometheus' text format",
    media_type=CONTENT_TYPE,
    responses=openapi.NEEDS_TOKEN,
)
async def metrics(request: _Request) -> str:
    """Answer with counters and current gauges."""
    plan_requests = _plan_requests(request)
    pool = plan_requests.pool
    gauges = {
        "tutti_plans_running": pool.running,
        "tutti_plans_waiting": pool.waiting,
        "tutti_uploads": plan_requests.uploads.count,
        "tutti_upload_bytes": plan_requests.uploads.held,
        "tutti_workers_ready": pool.ready,
    }
    workers = {slot: worker.memory for slot, worker in pool.workers.items()}
    return plan_requests.metrics.text(gauges=gauges, workers=workers)


HANDLERS = [gardener, recommendations, plans, healthz, readyz, metrics]
