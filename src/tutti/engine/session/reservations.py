"""Reservations: where and when a turn that starves will be able to start.

Running pods are expected to end in the order of their known ends (start plus duration), and after those the oldest
first. The shortest beginning of that order without which the turn fits says where it goes; the last end in it says
when, if all ends in it are known.
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

Ends = dict[int, int | None]
"""When running pods end, by row, in microseconds, the first expected first; None where the end is not known."""


def duration_of(cluster: Cluster, gangs: Gangs, row: int) -> int | None:
    """Return how long a pod runs, in microseconds, if its gang or its annotation says so."""
    key = gangs.key_of(row)
    if key is not None:
        return gangs.gang(key).duration
    pod = cluster.pods.objects[row]
    text = (pod.metadata.annotations or {}).get(DURATION) if pod is not None else None
    try:
        return parse_duration(text) if text else None
    except InputError:
        return None


def expected_ends(cluster: Cluster, gangs: Gangs, *, now: int) -> Ends:
    """Return the running pods in the order in which they are expected to end; those not started yet start now."""
    pods, length = cluster.pods, cluster.pods.length
    found: list[tuple[int, int, str, int, int | None]] = []
    for row in np.flatnonzero(pods.node[:length] >= 0).tolist():
        start = int(pods.start[row])
        lasts = duration_of(cluster, gangs, row)
        end = None if lasts is None else (now if start == NOT_STARTED else start) + lasts
        if pods.terminating[row]:
            found.append((0, 0, pods.keys[row], row, None))
        elif end is not None:
            found.append((1, end, pods.keys[row], row, end))
        else:
            found.append((2, start, pods.keys[row], row, None))
    return {row: end for _, _, _, row, end in sorted(found)}


def reserve(placer: GangPlacer, need: Need, ends: Ends, *, now: int) -> tuple[list[Hold], int | None] | None:
    """Return the room to hold for a need, and when it will be free; None when it never will be."""
    rows = list(ends)
    low, high = 1, len(rows)
    if not rows or _placed_without(placer, need, rows) is None:
        return None
    while low < high:
        middle = (low + high) // 2
        if _placed_without(placer, need, rows[:middle]) is None:
            low = middle + 1
        else:
            high = middle
    holds = _placed_without(placer, need, rows[:high])
    if holds is None:
        return None
    nodes = {hold.node for hold in holds}
    names = placer.engine.cluster.pods.node_names
    last: int | None = now
    for row in rows[:high]:
        if names[row] in nodes and last is not None and not placer.engine.cluster.pods.terminating[row]:
            end = ends[row]
            last = max(last, end) if end is not None else None
    return holds, last


def _placed_without(placer: GangPlacer, need: Need, rows: list[int]) -> list[Hold] | None:
    """Return where a need would go without some pods."""
    cluster = placer.engine.cluster
    with Trial(cluster):
        for row in rows:
            cluster.apply(Unbind(cluster.pods.keys[row]))
        found = placer.place(need)
        return None if found is None else [Hold(d.pod, d.node or "") for d in found]
