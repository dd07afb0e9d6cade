"""The OpenAPI document: Litestar's description of the handlers, with schemas of bodies, queries and refusals added.

Contract: schemas of answers are made from the types that are encoded (`tutti.wire.*.response`). The document is served
at ``/openapi.json`` only; no page loads scripts from the network.
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
from tutti.serve.http.middleware import UNAUTHENTICATED
from tutti.serve.http.query import query_parameters
from tutti.serve.openapi.request_schemas import BODIES, COMPONENTS, body_components
from tutti.wire.gardener.response import RecommendationResponse
from tutti.wire.scaling_advisor.response import PlannerResponse
from tutti.wire.tutti_api.response import ApiProblem, RecommendationAnswer

Tree = dict[str, Any]

GARDENER_TEXT = (
    "The body is a ClusterSnapshot as Gardener's scaling recommender takes it: Go's names, in any case. The pods are "
    "those of the body. The answer has nodes that can be removed unless `down=false`."
)
TUTTI_TEXT = (
    "The body is a cluster in any form that Tutti reads, told apart by its first level: `cluster` with optional "
    "`pools`, `prices`, `region` and `options`; a List as kubectl prints it; a Gardener ClusterSnapshot; a planner "
    "request of scaling-advisor; a scenario file. Options of the body come before those of the query."
)
PLANS_TEXT = (
    "The body is a planner request of gardener/scaling-advisor, or Kubernetes objects with a ScalingConstraint among "
    "them. `AdviceGenerationTimeout` is the time limit of the search. The answer has nodes that can be removed if "
    "`down=true`; the scale-out plan then also has the nodes that replace some of them."
)
_REFUSALS = {
    400: "The body or the query cannot be read; object and field say where.",
    401: "The bearer token is missing or wrong.",
    408: "The body came too slowly.",
    413: "The body is larger than the server allows.",
    415: "The Content-Encoding is neither gzip nor identity.",
    422: "The node pools are well-formed, but nothing can be bought from them, or they contradict themselves.",
    500: "An internal error; see the request's id in the server log.",
    503: "All workers are busy and the queue is full, or the server is shutting down: see Retry-After.",
    504: "There was no plan in time.",
}


def _response(container: type[Any], description: str) -> ResponseSpec:
    return ResponseSpec(container, generate_examples=False, description=description)


GARDENER_RESPONSES = {
    200: _response(RecommendationResponse, "A plan."),
    **{status: _response(RecommendationResponse, text) for status, text in _REFUSALS.items()},
}
TUTTI_RESPONSES = {
    200: _response(RecommendationAnswer, "A plan."),
    **{status: _response(ApiProblem, text) for status, text in _REFUSALS.items()},
}
PLANS_RESPONSES = {
    200: _response(PlannerResponse, "A plan."),
    **{status: _response(PlannerResponse, text) for status, text in _REFUSALS.items()},
}
NEEDS_TOKEN = {401: _response(ApiProblem, _REFUSALS[401])}
READY_RESPONSES = {
    503: ResponseSpec(
        str,
        generate_examples=False,
        media_type="text/plain",
        description="No worker is ready, or the server is shutting down.",
    )
}


def probe_id(handler: HTTPRouteHandler, method: Method, _: object) -> str:
    """Return the operation id of a handler for GET and HEAD."""
    return handler.handler_name if method == HttpMethod.GET else f"{handler.handler_name}{method.title()}"


class DocumentPlugin(JsonRenderPlugin):
    """Adds bodies, parameters and security to Litestar's document, and renders the document once."""

    def __init__(self, max_time_limit: float) -> None:
        super().__init__(path="/", media_type=MediaType.JSON)
        self._parameters = [
            {"name": name, "in": "query", "required": False, "schema": each.schema, "description": each.description}
            for name, each in query_parameters(max_time_limit).items()
        ]
        self._text = b""

    def render(self, request: Request[Any, Any, Any], openapi_schema: Tree) -> bytes:
        """Return the document as JSON."""
        self._text = self._text or super().render(request, self._completed(openapi_schema))
        return self._text

    def _completed(self, document: Tree) -> Tree:
        paths = document["paths"]
        for path, body in BODIES.items():
            paths[path]["post"] |= {"requestBody": body, "parameters": self._parameters}
        for path in UNAUTHENTICATED:
            for method in ("get", "head"):
                paths[path][method]["security"] = []
            for response in paths[path]["head"]["responses"].values():
                response.pop("content", None)
        schemas = {_component_name(name): schema for name, schema in document["components"]["schemas"].items()}
        answers = {name: schemas[name] | {"title": name} for name in sorted(schemas)}
        document["components"]["schemas"] = answers | body_components()
        renamed: Tree = _with_component_names(document)
        return renamed


def _component_name(type_name: str) -> str:
    """Return the name of a type in the document."""
    return type_name.removeprefix("Api")


def _with_component_names(tree: Any) -> Any:
    """Return the tree with references to components by their names in the document."""
    if isinstance(tree, dict):
        return {name: _with_component_names(each) for name, each in tree.items()}
    if isinstance(tree, list):
        return [_with_component_names(each) for each in tree]
    if isinstance(tree, str) and tree.startswith(COMPONENTS):
        return COMPONENTS + _component_name(tree.removeprefix(COMPONENTS))
    return tree


def openapi_config(max_time_limit: float, *, with_token: bool) -> OpenAPIConfig:
    """Return the settings of the document; `max_time_limit` is the largest `timeLimit` of a query, in seconds."""
    scheme = SecurityScheme(type="http", scheme="bearer")
    return OpenAPIConfig(
        title="Tutti recommender",
        version=__version__,
        description="Which nodes to buy for pods that wait, and which nodes to remove.",
        components=Components(security_schemes={"token": scheme}) if with_token else Components(),
        security=[{"token": []}] if with_token else None,
        path="/openapi.json",
        render_plugins=[DocumentPlugin(max_time_limit)],
        use_handler_docstrings=False,
    )
