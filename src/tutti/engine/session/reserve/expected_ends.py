"""Expected ends: in which order running pods are expected to end, and when.

Terminating pods end first, then pods with a known end (start plus stated duration) in the order of their ends, then all
other running pods, the oldest first. A pod that has outlived its stated duration counts as ending now; a bound pod that
has not started yet starts now.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tutti.cluster.cluster import Cluster
from tutti.cluster.columns import Ints, Rows
from tutti.cluster.indexes.groups import NO_GROUP
from tutti.cluster.pod_table import NO_DURATION, NOT_STARTED
from tutti.engine.gangs.cluster_gangs import Gangs


class ExpectedEnds(NamedTuple):
    """Running pods, the earliest expected end first."""

    pods: Rows
    ends: Ints
    """In microseconds; `NO_DURATION` for an unknown end."""


def duration_of(cluster: Cluster, gangs: Gangs, row: int) -> int | None:
    """Return how long the pod in a row runs, in microseconds, if its gang or its annotation states a duration."""
    key = gangs.key_of(row)
    if key is not None:
        return gangs.gang(key).duration
    duration = int(cluster.pods.duration[row])
    return None if duration == NO_DURATION else duration


def expected_ends(cluster: Cluster, gangs: Gangs, *, now: int) -> ExpectedEnds:
    """Return the running pods in the order of their expected ends."""
    pods, length = cluster.pods, cluster.pods.length
    rows = np.flatnonzero(pods.node[:length] >= 0)
    start = pods.start[rows]
    duration = _durations(cluster, gangs, rows)
    is_known = duration != NO_DURATION
    end = np.where(is_known, np.maximum(np.where(start == NOT_STARTED, now, start) + duration, now), NO_DURATION)
    terminating = pods.terminating[rows]
    group = np.where(terminating, 0, np.where(is_known, 1, 2))
    time = np.where(terminating, 0, np.where(is_known, end, start))
    order = np.lexsort((pods.order[rows], time, group))
    return ExpectedEnds(rows[order], np.where(terminating, NO_DURATION, end)[order])


def _durations(cluster: Cluster, gangs: Gangs, rows: Rows) -> Ints:
    """Return the stated durations of pods; a gang's duration is that of each member."""
    groups = cluster.pods.group[rows]
    duration: Ints = cluster.pods.duration[rows]
    is_member = groups != NO_GROUP
    if not is_member.any():
        return duration
    places = gangs.roots_of(groups[is_member])
    running = np.flatnonzero(np.bincount(places))  # much faster than np.unique
    stated = (record.duration for record in gangs.records(running.tolist()))
    by_place = np.full(len(gangs.root_keys), NO_DURATION, dtype=np.int64)
    by_place[running] = [NO_DURATION if each is None else each for each in stated]
    duration[is_member] = by_place[places]
    return duration
