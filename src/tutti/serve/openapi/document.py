"""The OpenAPI document: what Litestar sees in the handlers, with bodies, queries and refusals added.

Contract: served at ``/openapi.json`` and nowhere else; there is no page that loads scripts from the network.
"""

from __future__ import annotations

from typing import Any

from litestar import HttpMethod, Request
from litestar.enums import MediaType
from litestar.handlers import HTTPRouteHandler
from litestar.openapi import OpenAPIConfig, ResponseSpec
from litestar.openapi.plugins import JsonRenderPlugin
from litestar.openapi.spec import Components, SecurityScheme
from litestar.types import Method

from tutti import __version__
from tutti.serve.http.middleware import OPEN
from tutti.serve.http.refusals import Problem
from tutti.serve.openapi import request_schemas as bodies
from tutti.serve.openapi.plan_schemas import PlannerResponse
from tutti.serve.openapi.recommendation_schemas import RecommendationAnswer, RecommendationResponse

Tree = dict[str, Any]

GARDENER_TEXT = (
    "The body is a ClusterSnapshot as Gardener's scaling recommender takes it: Go's names, in any case. The pods are "
    "those of the body. Nodes that can go are looked for unless `down=false`."
)
OURS_TEXT = (
    "The body is a cluster in any form that Tutti reads, told apart by its first level: `cluster` with optional "
    "`pools`, `prices`, `region` and `options`; a List as kubectl prints it; a Gardener ClusterSnapshot; a planner "
    "request of scaling-advisor; a scenario file. Options of the body come before those of the query."
)
PLANS_TEXT = (
    "The body is a planner request of gardener/scaling-advisor, or Kubernetes objects with a ScalingConstraint among "
    "them. `AdviceGenerationTimeout` is the most time that the search takes. Nodes that can go are looked for if "
    "`down=true`; the scale-out plan then has also the nodes that replace some of them."
)
_REFUSALS = {
    400: "The body or the query cannot be read; object and field say where.",
    401: "The bearer token is missing or wrong.",
    408: "The body came too slowly.",
    413: "The body is larger than the server allows.",
    415: "The Content-Encoding is neither gzip nor identity.",
    422: "The node pools can be read, and nothing can be bought from them, or they contradict themselves.",
    500: "A fault of the server's own; its log has it under the request's id.",
    503: "All workers are busy and the queue is full, or the server is about to end: see Retry-After.",
    504: "There was no plan in time.",
}


def _said(container: type[Any], description: str) -> ResponseSpec:
    return ResponseSpec(container, generate_examples=False, description=description)


GARDENER_RESPONSES = {
    200: _said(RecommendationResponse, "A plan."),
    **{status: _said(RecommendationResponse, text) for status, text in _REFUSALS.items()},
}
OURS_RESPONSES = {
    200: _said(RecommendationAnswer, "A plan."),
    **{status: _said(Problem, text) for status, text in _REFUSALS.items()},
}
PLANS_RESPONSES = {
    200: _said(PlannerResponse, "A plan."),
    **{status: _said(PlannerResponse, text) for status, text in _REFUSALS.items()},
}
NEEDS_TOKEN = {401: _said(Problem, _REFUSALS[401])}
READY_RESPONSES = {
    503: ResponseSpec(str, generate_examples=False, media_type="text/plain", description="Not yet, or no more.")
}


def probe_id(handler: HTTPRouteHandler, method: Method, _: object) -> str:
    """The operation's id of a handler that takes GET and HEAD."""
    return handler.handler_name if method == HttpMethod.GET else f"{handler.handler_name}{method.title()}"


class Document(JsonRenderPlugin):
    """The document as JSON, with what Litestar cannot see in the handlers: bodies and queries."""

    def __init__(self, longest: float) -> None:
        super().__init__(path="/", media_type=MediaType.JSON)
        self._parameters = bodies.parameters(longest)

    def render(self, request: Request[Any, Any, Any], openapi_schema: Tree) -> bytes:
        """The document."""
        paths = openapi_schema["paths"]
        for path, body in bodies.BODIES.items():
            paths[path]["post"] |= {"requestBody": body, "parameters": self._parameters}
        for path in OPEN:
            for method in ("get", "head"):
                paths[path][method]["security"] = []
            for response in paths[path]["head"]["responses"].values():
                response.pop("content", None)
        openapi_schema["components"]["schemas"] |= bodies.schemas()
        return super().render(request, openapi_schema)


def document(longest: float, *, with_token: bool) -> OpenAPIConfig:
    """How the document is made, and where it is found; `longest` is the most seconds that a query may ask for."""
    scheme = SecurityScheme(type="http", scheme="bearer")
    return OpenAPIConfig(
        title="Tutti recommender",
        version=__version__,
        description="Which nodes to buy for pods that wait, and which can go.",
        components=Components(security_schemes={"token": scheme}) if with_token else Components(),
        security=[{"token": []}] if with_token else None,
        path="/openapi.json",
        render_plugins=[Document(longest)],
        use_handler_docstrings=False,
    )
