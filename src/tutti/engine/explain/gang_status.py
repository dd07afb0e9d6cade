"""The status of every gang of a cluster: its minimum, and how many of its pods run and wait.

Contract: no pod is scheduled and the cluster stays unchanged. Gangs are in the order of `Gangs.keys`.
"""

from __future__ import annotations

import msgspec

from tutti.cluster.cluster import Cluster
from tutti.engine.gangs.cluster_gangs import Gangs
from tutti.engine.gangs.gang_state import GangPhase

_STATUSES = {GangPhase.PROBLEM: "Refused", GangPhase.WHOLE: "Running"}


class GangStatus(msgspec.Struct, frozen=True):
    """The status of one gang."""

    namespace: str
    name: str
    dialect: str
    minimum: int
    running: int
    pending: int
    status: str
    """Running, Pending, or Refused if the gang's description is invalid."""


def gang_statuses(cluster: Cluster, namespace: str | None = None) -> list[GangStatus]:
    """Return the status of the gangs in a namespace, or in all namespaces."""
    gangs, pods = Gangs(cluster), cluster.pods
    statuses, keys = [], gangs.keys()
    for key in keys:
        gang_namespace, _, name = key.partition("/")
        if namespace not in (None, gang_namespace):
            continue
        state = gangs.state(key, [row for row in gangs.rows(key) if pods.node_names[row] is None])
        gang, status = state.gang, _STATUSES.get(state.phase, "Pending")
        counts = len(state.running), len(state.waiting)
        statuses.append(GangStatus(gang_namespace, name, gang.dialect, gang.minimum, *counts, status))
    return statuses
