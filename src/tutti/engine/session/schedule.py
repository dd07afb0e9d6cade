"""Scheduling without a clock: a session that settles every pending pod into one plan.

Contract: the cluster stands as the plan leaves it (mark it before and roll it back after for a what-if). Victims are
gone at once, their budgets shrink, and the newcomer takes its place; victims do not come back as pending pods, which is
their controllers' work. Messages about single pods are those of kube-scheduler, to the letter.
"""

from __future__ import annotations

from collections.abc import Collection

from msgspec.structs import replace

from tutti.cluster.cluster import Cluster
from tutti.engine.placement.engine import Engine
from tutti.engine.placement.profile import Profile
from tutti.engine.session.plan import Plan
from tutti.engine.session.policy import OFFLINE
from tutti.engine.session.session import session


def schedule(
    cluster: Cluster,
    pods: Collection[str] | None = None,
    profile: Profile | None = None,
    *,
    preemption: bool = True,
    consolidation: bool = False,
) -> Plan:
    """Place the pending pods (all of them if none are named), and say why the rest cannot be placed."""
    policy = replace(OFFLINE, preemption=preemption, consolidation=consolidation)
    return session(Engine(cluster, profile), None, None, policy, only=pods)
