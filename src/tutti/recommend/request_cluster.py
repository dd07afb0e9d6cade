"""Copies of clusters to plan on.

Contract: a cluster is built from objects once (`Request.cluster`); every planner gets a copy, counts its work on the
given meter, and may edit the copy. A copy costs about a hundredth of building a cluster, and is not counted.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from tutti.cluster.cluster import Cluster
from tutti.cluster.edits import Bind, Edit
from tutti.cluster.work.meter import Meter
from tutti.engine.placement.profile import Profile
from tutti.market.planning_cluster import PlanningCluster
from tutti.recommend.records.request import Request


def copy_cluster(cluster: Cluster, edits: Iterable[Edit] = (), *, meter: Meter | None = None) -> Cluster:
    """Return a copy of a cluster with some edits applied; `meter` counts only later work on the copy."""
    copy = cluster.copy()
    copy.meter = Meter()
    for edit in edits:
        copy.apply(edit)
    copy.meter = meter or copy.meter
    return copy


def bind_edits(node_of_pod: Mapping[str, str]) -> Iterable[Edit]:
    """Return the edits that bind pods to nodes."""
    return (Bind(pod, node) for pod, node in node_of_pod.items())


def planning_cluster(
    request: Request, profile: Profile | None = None, *, meter: Meter | None = None
) -> PlanningCluster:
    """Return a planning cluster on a copy of the request's cluster."""
    return PlanningCluster(copy_cluster(request.cluster, meter=meter), request.daemon_sets, profile)
