"""Answers without a plan: their status, and their body in the format of the route.

Contract: an error that keeps a request from getting a plan is a `RefusedError` with an HTTP status, in the server and
in its workers. `refusal_body` encodes it in the format of the route.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from tutti.exceptions import InputError, PoolError, TuttiError
from tutti.serve.workers.messages import Route
from tutti.wire.gardener.response import gardener_error
from tutti.wire.scaling_advisor.response import advisor_error
from tutti.wire.scaling_advisor.schema import PlannerText
from tutti.wire.tutti_api.response import ApiProblem

BAD_REQUEST, UNAUTHORIZED, REQUEST_TIMEOUT, TOO_LARGE, UNSUPPORTED, UNPROCESSABLE = 400, 401, 408, 413, 415, 422
INTERNAL, UNAVAILABLE, TIMED_OUT = 500, 503, 504
CLIENT_CLOSED = 499
"""The client closed its connection: this status appears in the log and the metrics only."""
_ROUTES = {"/recommend": Route.GARDENER, "/v1/plans": Route.ADVISOR}


class RefusedError(TuttiError):
    """A request that gets an answer without a plan."""

    def __init__(
        self, status: int, problem: str, *, obj: str = "", field: str = "", headers: Mapping[str, str] | None = None
    ) -> None:
        self.status, self.problem, self.obj, self.field, self.headers = status, problem, obj, field, dict(headers or {})
        super().__init__(problem)


def too_large(limit: int) -> RefusedError:
    """Return the refusal of a body that is larger than the limit."""
    return RefusedError(TOO_LARGE, f"the body is larger than {limit:,} bytes (--max-body)")


def unavailable(problem: str, seconds: int) -> RefusedError:
    """Return the refusal of a request that the client may repeat after `seconds`."""
    return RefusedError(UNAVAILABLE, problem, headers={"Retry-After": str(seconds)})


def internal_error(request_id: str) -> str:
    """Return the message for an error in Tutti itself; the traceback is in the server log only."""
    return f"internal error; see request {request_id} in the server log"


def refusal_of(error: TuttiError) -> RefusedError:
    """Return the refusal for an error in the request."""
    if isinstance(error, RefusedError):
        return error
    status = UNPROCESSABLE if isinstance(error, PoolError) else BAD_REQUEST
    if isinstance(error, InputError):
        return RefusedError(status, error.problem, obj=error.obj, field=error.field)
    return RefusedError(status, str(error))


def route_of(path: str) -> Route:
    """Return the route whose format the answer to a path has."""
    return _ROUTES.get(path.removesuffix("/"), Route.TUTTI)


def refusal_body(
    route: Route, refusal: RefusedError, *, request_id: str, millis: int, planner: PlannerText | None = None
) -> bytes:
    """Return the encoded body of an answer without a plan; `planner` is the planner request, if it can be read."""
    line = ": ".join(part for part in (refusal.obj, refusal.field, refusal.problem) if part)
    body: msgspec.Struct
    if route is Route.GARDENER:
        body = gardener_error(line, millis=millis)
    elif route is Route.ADVISOR:
        body = advisor_error(line, planner=planner)
    else:
        body = ApiProblem(error=refusal.problem, object=refusal.obj, field=refusal.field, request_id=request_id)
    return msgspec.json.encode(body)
