"""Replay a purchase of any program: how many pods kube-scheduler places after it."""

from __future__ import annotations

from collections.abc import Sequence

from tutti.cluster.trial import Trial
from tutti.engine.session.schedule import schedule
from tutti.market.offerings import Offering
from tutti.market.planning_cluster import PlanningCluster


def replay_purchase(planning: PlanningCluster, bought: Sequence[tuple[Offering, int]]) -> int:
    """Return how many pending pods kube-scheduler binds, before and after these nodes have joined.

    Pods that fit an existing node stay bound in the planning cluster; the nodes are rolled back.
    """
    pending_before = len(planning.pending)
    planning.schedule_now()
    bound_now = pending_before - len(planning.pending)
    cluster = planning.cluster
    with Trial(cluster):
        planning.join_all([offering for offering, count in bought for _ in range(count)])
        plan = schedule(cluster, planning.pending, planning.profile, preemption=False)
    return bound_now + len(plan.binds)
