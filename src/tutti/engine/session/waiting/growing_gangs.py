"""Growing gangs: gangs whose size is only counted from their pods, while more pods may still be coming."""

from __future__ import annotations

from tutti.cluster.cluster import Cluster
from tutti.engine.gangs.cluster_gangs import Gangs
from tutti.engine.session.plan import Turn
from tutti.engine.session.queue_order import NO_CREATION_TIME, creation_time


def grows_until(cluster: Cluster, turn: Turn, *, quiet_for: int) -> int | None:
    """Return when a turn's gang is complete if no further pod comes; None if its size is stated, or it is a pod."""
    if turn.gang is None or not Gangs.of(cluster).gang(turn.gang).is_counted:
        return None
    times = [creation_time(cluster.pod(pod)) for pod in turn.pods]
    newest = max((time for time in times if time != NO_CREATION_TIME), default=None)
    return None if newest is None else newest + quiet_for
