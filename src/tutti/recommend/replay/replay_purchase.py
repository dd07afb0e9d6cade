"""Replays: what a scheduler makes of a purchase, whoever made it."""

from __future__ import annotations

from collections.abc import Sequence

from tutti.cluster.trial import Trial
from tutti.engine.session.schedule import schedule
from tutti.market.offerings import Offering
from tutti.market.planning_cluster import PlanningCluster


def replay_purchase(planning: PlanningCluster, bought: Sequence[tuple[Offering, int]]) -> int:
    """How many of the pending pods get a node when kube-scheduler binds, now and once these nodes have joined.

    Pods that fit now stay bound in the planning cluster.
    """
    waited = len(planning.pending)
    planning.schedule_now()
    now = waited - len(planning.pending)
    cluster = planning.cluster
    with Trial(cluster):
        planning.join_all([offering for offering, count in bought for _ in range(count)])
        plan = schedule(cluster, planning.pending, planning.profile, preemption=False)
    return now + len(plan.binds)
