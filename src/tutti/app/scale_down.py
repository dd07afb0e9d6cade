"""The use case `--down`: which nodes the cluster can give back once a recommendation has been followed.

Contract: pure; the present is an argument, and the deadline's clock is the caller's. Nothing happens unless the options
of the request ask for a scale-down.
"""

from __future__ import annotations

from msgspec.structs import replace

from tutti.cluster.work_budget import Deadline
from tutti.recommend.down.scale_down import give_back
from tutti.recommend.down.snapshot_time import dated
from tutti.recommend.problem.search_context import Tell
from tutti.recommend.records.recommendation import Recommendation
from tutti.recommend.records.request import Down, Request


def with_scale_down(
    answer: Recommendation, request: Request, deadline: Deadline, *, tell: Tell | None = None
) -> Recommendation:
    """The recommendation with the nodes that can go, if the request asks for them."""
    down = request.options.down
    if down is None:
        return answer
    if tell is not None:
        tell("looking for nodes that can go")
    return replace(answer, down=give_back(request, answer, deadline, down=down))


def with_snapshot_time(request: Request, *, asked: Down | None) -> Request:
    """The request with ages counted to the moment of an old dump, unless the input names a moment itself.

    `asked` is what the caller asked for, with the present as its `now`; the input may have changed it.
    """
    return request if asked is None or asked.now is None else dated(request, present=asked.now)
