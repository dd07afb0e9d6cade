"""The planning cluster of a request."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec.structs import replace

from tutti.cluster.meter import Meter
from tutti.engine.placement.profile import Profile
from tutti.kube.objects import Pod
from tutti.market.planning_cluster import PlanningCluster, build_cluster
from tutti.recommend.records.request import Request


def initialise(request: Request, profile: Profile | None = None, *, meter: Meter | None = None) -> PlanningCluster:
    """Build the planning cluster of a request; the meter counts the work on it."""
    return PlanningCluster(build_cluster(request.objects, meter=meter), request.daemon_sets, profile)


def with_places(request: Request, where: Mapping[str, str]) -> Request:
    """The request with pods on the nodes that they were promised."""
    if not where:
        return request
    objects = [
        replace(obj, spec=replace(obj.spec, node_name=where[obj.key]))
        if isinstance(obj, Pod) and obj.key in where
        else obj
        for obj in request.objects
    ]
    return replace(request, objects=tuple(objects))
