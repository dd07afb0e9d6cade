"""Where and when a starving turn will be able to start.

Running pods are expected to end in a known order (`expected_ends`). Arithmetic finds the shortest prefix of that order
without which the turn has enough room; a placement on the nodes that then have room, without the pods of the prefix
there, says which nodes to hold. The last end on those nodes says when the room is free, if all those ends are known.
The cost does not depend on the number of running pods, except for the arithmetic on columns.
"""

from __future__ import annotations

import numpy as np

from tutti.cluster.columns import Rows
from tutti.cluster.edits import Hold, Unbind
from tutti.cluster.pod_table import NO_DURATION
from tutti.cluster.trial import Trial
from tutti.cluster.work.meter import EXPECTED_END
from tutti.cluster.work.work_budget import WorkBudget
from tutti.engine.gangs.domain_room import DomainRoom
from tutti.engine.gangs.gang_state import Need
from tutti.engine.gangs.placer import GANG_SEARCH, GangPlacer
from tutti.engine.plugins.base import Area
from tutti.engine.session.reserve.expected_ends import ExpectedEnds

_FEW_ENDS = 512
"""Most turns need few ends: so many are looked at before all are."""
_FIRST_PREFIX, _PREFIX_GROWTH = 32, 8
"""Prefixes are tried from short to long, because most turns need few ends, and a short prefix costs less."""
_MAX_TRIES = 4
"""How many prefixes are tried, each twice as long as the last, if arithmetic alone counted too much room."""


def plan_reservation(
    placer: GangPlacer, need: Need, ends: ExpectedEnds, *, now: int, budget: WorkBudget
) -> tuple[list[Hold], int | None] | None:
    """Return the holds for a need, and when their room will be free (None: unknown); None if the need never fits."""
    room = DomainRoom(placer, need)
    budget.spend(EXPECTED_END * len(ends.pods))
    count = _shortest_prefix(room, ends.pods)
    if count is None:
        return None
    for _ in range(_MAX_TRIES):
        holds = _holds_without(placer, need, room, ends.pods[:count], budget)
        if holds is not None:
            return holds, _free_at(placer, ends, count, {hold.node for hold in holds}, now)
        if count == len(ends.pods) or budget.is_exhausted():
            return None
        count = min(max(2 * count, 1), len(ends.pods))
    return None


def _shortest_prefix(room: DomainRoom, pods: Rows) -> int | None:
    """Return how many pods must end until there is enough room by arithmetic; None if even all of them are too few."""
    if room.is_simple:
        few = room.first_enough(pods[:_FEW_ENDS])
        if few is not None:
            return few
    if not room.has_enough(room.free_when_empty()):
        return None
    if room.is_simple:
        return room.first_enough(pods)
    fewest, most = 0, min(_FIRST_PREFIX, len(pods))
    while most < len(pods) and not _is_enough(room, pods[:most]):
        fewest, most = most + 1, min(_PREFIX_GROWTH * most, len(pods))
    while fewest < most:
        middle = (fewest + most) // 2
        if _is_enough(room, pods[:middle]):
            most = middle
        else:
            fewest = middle + 1
    return most


def _is_enough(room: DomainRoom, pods: Rows) -> bool:
    return room.has_enough(room.free_without(pods))


def _holds_without(
    placer: GangPlacer, need: Need, room: DomainRoom, ended: Rows, budget: WorkBudget
) -> list[Hold] | None:
    """Return where a need would be placed if some pods had ended; None if the need does not fit."""
    cluster = placer.engine.cluster
    area = Area(room.rows_with_room(room.free_without(ended)))
    in_the_way = ended[area.mask[cluster.pods.node[ended]]]
    with Trial(cluster):
        for row in in_the_way.tolist():
            cluster.apply(Unbind(cluster.pods.keys[row], keep_volumes=True))
        decisions = placer.place(need, budget.limited_to(GANG_SEARCH), area)
        return None if decisions is None else [Hold(d.pod, d.node or "") for d in decisions]


def _free_at(placer: GangPlacer, ends: ExpectedEnds, count: int, nodes: set[str], now: int) -> int | None:
    """Return when the last of the first pods on some nodes ends; None if the end of one of them is unknown."""
    cluster = placer.engine.cluster
    is_chosen = np.zeros(cluster.nodes.size, dtype=bool)
    is_chosen[[cluster.nodes.row_of[name] for name in nodes]] = True
    on_nodes = is_chosen[cluster.pods.node[ends.pods[:count]]]
    pods, last = ends.pods[:count][on_nodes], ends.ends[:count][on_nodes]
    known = last[~cluster.pods.terminating[pods]]
    if (known == NO_DURATION).any():
        return None
    return max(now, int(known.max(initial=now)))
