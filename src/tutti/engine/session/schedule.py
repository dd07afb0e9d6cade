"""Scheduling without a clock: one session that decides every pending pod.

Contract: the cluster is left as the plan changes it; for a what-if, mark the cluster before and roll it back after.
Victims are removed at once, their disruption budgets shrink, and the pods that evicted them are bound. Victims do not
come back as pending pods, because their controllers create them. Messages about single pods are those of
kube-scheduler, to the letter.
"""

from __future__ import annotations

from collections.abc import Collection

from msgspec.structs import replace

from tutti.cluster.cluster import Cluster
from tutti.engine.placement.engine import Engine
from tutti.engine.placement.profile import Profile
from tutti.engine.session.plan import Order, Plan
from tutti.engine.session.policy import OFFLINE
from tutti.engine.session.session import session


def schedule(
    cluster: Cluster,
    pods: Collection[str] | None = None,
    profile: Profile | None = None,
    *,
    preemption: bool = True,
    consolidation: bool = False,
    before: Order | None = None,
) -> Plan:
    """Place the pending pods with these keys, or all of them; the plan says why the rest cannot be placed.

    With `before`, only the turns before this place in the queue order are taken: of a gang that comes earlier perhaps
    its minimum, and not its surplus.
    """
    policy = replace(OFFLINE, preemption=preemption, consolidation=consolidation)
    return session(Engine(cluster, profile), None, None, policy, only=pods, before=before)
