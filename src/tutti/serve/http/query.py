"""The query of a plan request: its parameters, how they are read, and what the OpenAPI document says about them.

Contract: a parameter that does not exist, occurs twice or has a value that its schema does not allow is refused with
its name. An option that the query does not have is None: the body or the server decides.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from enum import StrEnum
from functools import partial
from typing import Any, NamedTuple
from urllib.parse import parse_qsl

from tutti.recommend.records.request import Binder, Objective, ResourceWeights, Strategy
from tutti.serve.http.refusals import BAD_REQUEST, RefusedError
from tutti.serve.workers.messages import QueryOptions

_WEIGHTS = r"^(cpu|memory|gpu)=[0-9]{1,4}(,(cpu|memory|gpu)=[0-9]{1,4}){0,2}$"
_MAX_WEIGHT = 1000
_NUMBER = re.compile(r"\+?[0-9]+(\.[0-9]*)?([eE][+-]?[0-9]+)?")


class QueryParameter(NamedTuple):
    """A parameter of the query."""

    read: Callable[[str], Any]
    """Returns the value of a text, or raises a ValueError that says which values are allowed."""
    schema: dict[str, Any]
    description: str


def query_parameters(max_time_limit: float) -> dict[str, QueryParameter]:
    """Return all parameters by name; `max_time_limit` is the largest `timeLimit` in seconds."""
    return {
        "objective": _choice(Objective, "What the plan minimises, after it has placed as many pods as possible."),
        "strategy": _choice(Strategy, "How nodes are chosen: all at once, or one by one by a score."),
        "binder": _choice(Binder, "Which scheduler binds pods to the new nodes."),
        "weights": QueryParameter(
            _weights,
            {"type": "string", "pattern": _WEIGHTS},
            "Weight of a core, a GiB and a GPU in the scores.",
        ),
        "timeLimit": QueryParameter(
            partial(_seconds, max_time_limit),
            {"type": "number", "exclusiveMinimum": 0, "maximum": max_time_limit},
            "Seconds for the search, measured by counted work.",
        ),
        "down": QueryParameter(_boolean, {"type": "boolean"}, "Whether to look for nodes that can be removed."),
    }


def query_options(query: bytes, max_time_limit: float) -> QueryOptions:
    """Return the options of a query."""
    parameters = query_parameters(max_time_limit)
    texts: dict[str, str] = {}
    for name, text in parse_qsl(query.decode("latin-1"), keep_blank_values=True):
        if name not in parameters:
            raise RefusedError(BAD_REQUEST, f"no such parameter (want {', '.join(parameters)})", field=name[:64])
        if name in texts:
            raise RefusedError(BAD_REQUEST, "it is there twice", field=name)
        texts[name] = text

    def value(name: str) -> Any:
        try:
            return parameters[name].read(texts[name]) if name in texts else None
        except ValueError as error:
            raise RefusedError(BAD_REQUEST, str(error), field=name) from None

    return QueryOptions(
        objective=value("objective"),
        strategy=value("strategy"),
        binder=value("binder"),
        weights=value("weights"),
        time_limit=value("timeLimit"),
        down=value("down"),
    )


def _choice(kind: type[StrEnum], description: str) -> QueryParameter:
    def read(text: str) -> StrEnum:
        if text not in list(kind):
            raise ValueError(f"want one of {', '.join(kind)}")
        return kind(text)

    return QueryParameter(read, {"type": "string", "enum": list(kind)}, description)


def _seconds(maximum: float, text: str) -> float:
    seconds = float(text) if _NUMBER.fullmatch(text) else math.nan
    if not 0 < seconds <= maximum:
        raise ValueError(f"want seconds above 0 and up to {maximum:g}")
    return seconds


def _boolean(text: str) -> bool:
    if text not in ("true", "false"):
        raise ValueError("want true or false")
    return text == "true"


def _weights(text: str) -> ResourceWeights:
    """Return the weights of ``cpu=6,gpu=20``; a weight that the text does not name keeps its default."""
    if re.fullmatch(_WEIGHTS, text) is None:
        raise ValueError("want cpu=6,memory=1,gpu=20, or some of these")
    pairs = [part.split("=") for part in text.split(",")]
    given = {name: int(number) for name, number in pairs}
    if len(given) < len(pairs):
        raise ValueError("a weight is given twice")
    if max(given.values()) > _MAX_WEIGHT:
        raise ValueError(f"want at most {_MAX_WEIGHT:,}")
    weights = ResourceWeights(**given)
    if not (weights.cpu or weights.memory or weights.gpu):
        raise ValueError("one of them must be above 0")
    return weights
