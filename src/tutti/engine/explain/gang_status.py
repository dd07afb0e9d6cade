"""The state of every gang of a cluster in one line each: its minimum, how many of its pods run, and how many wait.

Contract: nothing is scheduled and nothing changes. Gangs are listed in the order of `Gangs.keys`.
"""

from __future__ import annotations

import msgspec

from tutti.cluster.cluster import Cluster
from tutti.engine.gangs.gang_state import Gangs


class GangStatus(msgspec.Struct, frozen=True):
    """One gang."""

    namespace: str
    name: str
    dialect: str
    minimum: int
    running: int
    pending: int
    status: str
    """Running, Pending, or Refused when its description is wrong."""


def gang_statuses(cluster: Cluster, namespace: str | None = None) -> list[GangStatus]:
    """The gangs of a namespace, or of all."""
    gangs, pods = Gangs(cluster), cluster.pods
    found, every = [], gangs.keys()
    for key in every:
        place, _, name = key.partition("/")
        if namespace not in (None, place):
            continue
        standing = gangs.state(key, [row for row in gangs.rows(key) if pods.node_names[row] is None])
        gang, lacks = standing.gang, standing.need().least
        status = "Refused" if gang.problem is not None else "Pending" if lacks else "Running"
        counts = len(standing.running), len(standing.waiting)
        found.append(GangStatus(place, name, gang.dialect, gang.minimum, *counts, status))
    return found
