"""Answers that are not a plan: which status, which words, in which envelope.

Contract: whatever keeps a plan from being made is a `RefusedError` with its status, on either side of the pipe;
`envelope` puts it into the words of the route that was asked.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from tutti.exceptions import InputError, PoolError, TuttiError
from tutti.serve.workers.messages import Route
from tutti.wire.gardener.response import gardener_error
from tutti.wire.scaling_advisor.response import advisor_error
from tutti.wire.scaling_advisor.text import PlannerText

BAD_REQUEST, UNAUTHORIZED, REQUEST_TIMEOUT, TOO_LARGE, UNSUPPORTED, UNPROCESSABLE = 400, 401, 408, 413, 415, 422
INTERNAL, UNAVAILABLE, TIMED_OUT = 500, 503, 504
GONE = 499
"""The client went away: nobody gets this status but the log."""
_ROUTES = {"/recommend": Route.GARDENER, "/v1/plans": Route.ADVISOR}


class Problem(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """Why there is no plan."""

    error: str
    """What is wrong."""
    object: str = ""
    """The object it is wrong with, if that is known."""
    field: str = ""
    """The field of the object, or of the request."""
    request_id: str = ""
    """What the server's log calls the request."""


class RefusedError(TuttiError):
    """A request that is answered without a plan."""

    def __init__(
        self, status: int, problem: str, *, obj: str = "", field: str = "", headers: Mapping[str, str] | None = None
    ) -> None:
        self.status, self.problem, self.obj, self.field, self.headers = status, problem, obj, field, dict(headers or {})
        super().__init__(problem)


def too_large(limit: int) -> RefusedError:
    """A body past the limit."""
    return RefusedError(TOO_LARGE, f"the body is larger than {limit:,} bytes (--max-body)")


def counted(number: int, noun: str) -> str:
    """``1 plan``, ``2 plans``."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def busy(problem: str, seconds: int) -> RefusedError:
    """No room now, perhaps later."""
    return RefusedError(UNAVAILABLE, problem, headers={"Retry-After": str(seconds)})


def refusal_of(error: TuttiError) -> RefusedError:
    """How an error of the user's is answered."""
    if isinstance(error, RefusedError):
        return error
    status = UNPROCESSABLE if isinstance(error, PoolError) else BAD_REQUEST
    if isinstance(error, InputError):
        return RefusedError(status, error.problem, obj=error.obj, field=error.field)
    return RefusedError(status, str(error))


def route_of(path: str) -> Route:
    """Whose envelope a path has."""
    return _ROUTES.get(path.removesuffix("/"), Route.OURS)


def envelope(
    route: Route, refusal: RefusedError, *, request_id: str, millis: int, planner: PlannerText | None = None
) -> bytes:
    """The body of an answer without a plan; `planner` is the planner request, where it can be read."""
    line = ": ".join(part for part in (refusal.obj, refusal.field, refusal.problem) if part)
    if route is Route.GARDENER:
        return msgspec.json.encode(gardener_error(line, millis=millis))
    if route is Route.ADVISOR:
        return msgspec.json.encode(advisor_error(line, planner=planner))
    told = Problem(error=refusal.problem, object=refusal.obj, field=refusal.field, request_id=request_id)
    return msgspec.json.encode(told)
