"""Reservations: where and when a starving turn will be able to start.

Terminating pods are expected to end first, then pods with a known end (start plus duration) in the order of their ends,
then all other running pods, the oldest first. `plan_reservation` finds the shortest prefix of that order without which
the turn fits: the placement says where room is held, and the last end on those nodes says when the room is free, if
all those ends are known.
"""

from __future__ import annotations

import numpy as np

from tutti.cluster.cluster import Cluster
from tutti.cluster.edits import Hold, Unbind
from tutti.cluster.pod_table import NOT_STARTED
from tutti.cluster.trial import Trial
from tutti.engine.gangs.gang_state import Gangs, Need
from tutti.engine.gangs.placer import GangPlacer
from tutti.exceptions import InputError
from tutti.kube.durations import parse_duration
from tutti.kube.gangs.tutti_annotations import DURATION

ExpectedEnds = dict[int, int | None]
"""The ends of running pods by row, in microseconds, the earliest expected first; None for an unknown end."""


def duration_of(cluster: Cluster, gangs: Gangs, row: int) -> int | None:
    """Return how long the pod in a row runs, in microseconds, if its gang or its annotation states a duration."""
    key = gangs.key_of(row)
    if key is not None:
        return gangs.gang(key).duration
    pod = cluster.pods.objects[row]
    text = (pod.metadata.annotations or {}).get(DURATION) if pod is not None else None
    try:
        return parse_duration(text) if text else None
    except InputError:
        return None


def expected_ends(cluster: Cluster, gangs: Gangs, *, now: int) -> ExpectedEnds:
    """Return the running pods in the order of their expected ends; bound pods that have not started start now."""
    pods, length = cluster.pods, cluster.pods.length
    order: list[tuple[int, int, str, int, int | None]] = []
    for row in np.flatnonzero(pods.node[:length] >= 0).tolist():
        start = int(pods.start[row])
        run_time = duration_of(cluster, gangs, row)
        end = None if run_time is None else (now if start == NOT_STARTED else start) + run_time
        if pods.terminating[row]:
            order.append((0, 0, pods.keys[row], row, None))
        elif end is not None:
            order.append((1, end, pods.keys[row], row, end))
        else:
            order.append((2, start, pods.keys[row], row, None))
    return {row: end for _, _, _, row, end in sorted(order)}


def plan_reservation(
    placer: GangPlacer, need: Need, ends: ExpectedEnds, *, now: int
) -> tuple[list[Hold], int | None] | None:
    """Return the holds for a need, and when their room will be free (None: unknown); None if the need never fits.

    Binary search over the number of pods that end: each step is a placement on the cluster without those pods.
    """
    rows = list(ends)
    fewest, most = 1, len(rows)
    if not rows or _holds_without(placer, need, rows) is None:
        return None
    while fewest < most:
        middle = (fewest + most) // 2
        if _holds_without(placer, need, rows[:middle]) is None:
            fewest = middle + 1
        else:
            most = middle
    holds = _holds_without(placer, need, rows[:most])
    if holds is None:
        return None
    nodes = {hold.node for hold in holds}
    names = placer.engine.cluster.pods.node_names
    free_at: int | None = now
    for row in rows[:most]:
        if names[row] in nodes and free_at is not None and not placer.engine.cluster.pods.terminating[row]:
            end = ends[row]
            free_at = max(free_at, end) if end is not None else None
    return holds, free_at


def _holds_without(placer: GangPlacer, need: Need, rows: list[int]) -> list[Hold] | None:
    """Return where a need would be placed if the pods in these rows had ended; None if the need does not fit."""
    cluster = placer.engine.cluster
    with Trial(cluster):
        for row in rows:
            cluster.apply(Unbind(cluster.pods.keys[row]))
        decisions = placer.place(need)
        return None if decisions is None else [Hold(d.pod, d.node or "") for d in decisions]
