"""Copies of clusters to plan on.

Contract: a cluster is built from objects once (`Request.cluster`); whoever plans gets a copy, counts its work on the
given meter, and may edit the copy. Making a copy costs about a hundredth of building a cluster, and is not counted.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from tutti.cluster.cluster import Cluster
from tutti.cluster.edits import Bind, Edit
from tutti.cluster.work.meter import Meter
from tutti.engine.placement.profile import Profile
from tutti.market.planning_cluster import PlanningCluster
from tutti.recommend.records.request import Request


def copied(cluster: Cluster, edits: Iterable[Edit] = (), *, meter: Meter | None = None) -> Cluster:
    """A copy with some edits; `meter` counts only what is done to the copy afterwards."""
    twin = cluster.copy()
    twin.meter = Meter()
    for edit in edits:
        twin.apply(edit)
    twin.meter = meter or twin.meter
    return twin


def bindings(where: Mapping[str, str]) -> Iterable[Edit]:
    """The edits that bind pods to nodes."""
    return (Bind(pod, node) for pod, node in where.items())


def planning_cluster(
    request: Request, profile: Profile | None = None, *, meter: Meter | None = None
) -> PlanningCluster:
    """A planning cluster of a request, on a copy of its cluster."""
    return PlanningCluster(copied(request.cluster, meter=meter), request.daemon_sets, profile)
