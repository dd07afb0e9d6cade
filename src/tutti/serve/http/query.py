"""What the query of a request asks for.

Contract: every parameter is read strictly: one that is not known, comes twice or has another value than the OpenAPI
document allows is refused with its name. What the query does not say is None, and left to the body or the server.
"""

from __future__ import annotations

import math
import re
from enum import StrEnum
from typing import TypeVar
from urllib.parse import parse_qsl

from tutti.recommend.records.request import Binder, Objective, Strategy, Weights
from tutti.serve.http.refusals import BAD_REQUEST, RefusedError
from tutti.serve.workers.messages import Asked

WEIGHTS = r"^(cpu|memory|gpu)=[0-9]{1,4}(,(cpu|memory|gpu)=[0-9]{1,4}){0,2}$"
PARAMETERS = ("objective", "strategy", "binder", "weights", "timeLimit", "down")
_MOST_WEIGHT = 1000
_NUMBER = re.compile(r"\+?[0-9]+(\.[0-9]*)?([eE][+-]?[0-9]+)?")
_Word = TypeVar("_Word", bound=StrEnum)


def asked_of(query: bytes, longest: float) -> Asked:
    """What a query asks for; `longest` is the most seconds that it may."""
    found: dict[str, str] = {}
    for name, value in parse_qsl(query.decode("latin-1"), keep_blank_values=True):
        if name not in PARAMETERS:
            raise RefusedError(BAD_REQUEST, f"no such parameter (want {', '.join(PARAMETERS)})", field=name[:64])
        if name in found:
            raise RefusedError(BAD_REQUEST, "it is there twice", field=name)
        found[name] = value
    return Asked(
        objective=_word(found, "objective", Objective),
        strategy=_word(found, "strategy", Strategy),
        binder=_word(found, "binder", Binder),
        weights=_weights(found["weights"]) if "weights" in found else None,
        time_limit=_seconds(found["timeLimit"], longest) if "timeLimit" in found else None,
        down=_bool(found["down"]) if "down" in found else None,
    )


def _word(found: dict[str, str], name: str, kind: type[_Word]) -> _Word | None:
    if name not in found:
        return None
    try:
        return kind(found[name])
    except ValueError:
        raise RefusedError(BAD_REQUEST, f"want one of {', '.join(kind)}", field=name) from None


def _seconds(text: str, longest: float) -> float:
    seconds = float(text) if _NUMBER.fullmatch(text) else math.nan
    if not 0 < seconds <= longest:
        raise RefusedError(BAD_REQUEST, f"want seconds above 0 and up to {longest:g}", field="timeLimit")
    return seconds


def _bool(text: str) -> bool:
    if text not in ("true", "false"):
        raise RefusedError(BAD_REQUEST, "want true or false", field="down")
    return text == "true"


def _weights(text: str) -> Weights:
    """``cpu=6,gpu=20``; what is not named keeps its default."""
    if re.fullmatch(WEIGHTS, text) is None:
        raise RefusedError(BAD_REQUEST, "want cpu=6,memory=1,gpu=20, or some of these", field="weights")
    pairs = [part.split("=") for part in text.split(",")]
    found = {name: int(number) for name, number in pairs}
    if len(found) < len(pairs):
        raise RefusedError(BAD_REQUEST, "one of them is there twice", field="weights")
    if max(found.values()) > _MOST_WEIGHT:
        raise RefusedError(BAD_REQUEST, f"want at most {_MOST_WEIGHT:,}", field="weights")
    weights = Weights(**found)
    if not (weights.cpu or weights.memory or weights.gpu):
        raise RefusedError(BAD_REQUEST, "one of them must be above 0", field="weights")
    return weights
