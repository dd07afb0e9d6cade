"""Stuck pods: they should have left their node by now, so nobody waits for them, and evicting them again is in vain.

The deletionTimestamp of a pod includes its grace period. A kubelet that is gone, or a finalizer, may keep a pod for
longer than that.

Contract: pure; times are microseconds.
"""

from __future__ import annotations

from tutti.cluster.cluster import Cluster
from tutti.kube.times import micros


def is_stuck(cluster: Cluster, row: int, stuck_before: int | None) -> bool:
    """Return whether a pod should have left before a time; never without a time."""
    if stuck_before is None or not cluster.pods.terminating[row]:
        return False
    pod = cluster.pods.objects[row]
    deleted = pod.metadata.deletion_timestamp if pod is not None else None
    return deleted is not None and micros(deleted) < stuck_before
