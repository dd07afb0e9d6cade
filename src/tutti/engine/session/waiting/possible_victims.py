"""Possible victims: whether any pod on a node could be evicted for a pod of some priority, without looking at all pods.

Contract: `exist_below` returns False only if no pod on a node has a lower priority, or is terminating, and no gang
states a lower priority. The answer costs the pods that have changed since the last question, except when there seem to
be victims: then all pods are read once.
"""

from __future__ import annotations

import numpy as np

from tutti.cluster.cluster import Cluster
from tutti.engine.gangs.cluster_gangs import Gangs
from tutti.engine.plugins.attached_cache import AttachedCache

_NONE = 2**62
"""A priority above all others."""


class PossibleVictims:
    """See the module's docstring."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._log_position = self._read_at = -1
        self._lowest = -_NONE
        """At most the lowest priority of a pod on a node; lower than all priorities if a pod may be terminating."""

    @staticmethod
    def of(cluster: Cluster) -> PossibleVictims:
        """Return the possible victims in a cluster, with what is already known."""
        return _POSSIBLE_VICTIMS.of(cluster)

    def exist_below(self, priority: int) -> bool:
        """Return whether a pod could be evicted for a pod of a priority."""
        stated = Gangs.of(self._cluster).lowest_stated_priority()
        if stated is not None and stated < priority:
            return True
        self._follow()
        if self._lowest < priority and self._read_at != self._log_position:
            self._read_all()
        return self._lowest < priority

    def _follow(self) -> None:
        """Take changed pods into account; pods that have left do not raise the lowest priority."""
        pods = self._cluster.pods
        if self._log_position < 0 or not pods.touched.has_all_since(self._log_position):
            self._lowest = -_NONE
        elif self._log_position != pods.touched.length:
            for row in pods.touched.since(self._log_position).tolist():
                if pods.node[row] >= 0:
                    self._lowest = -_NONE if pods.terminating[row] else min(self._lowest, int(pods.priority[row]))
        self._log_position = pods.touched.length

    def _read_all(self) -> None:
        self._read_at = self._log_position
        pods, length = self._cluster.pods, self._cluster.pods.length
        on_node = pods.node[:length] >= 0
        if bool(np.any(on_node & pods.terminating[:length])):
            self._lowest = -_NONE
        else:
            self._lowest = int(pods.priority[:length][on_node].min(initial=_NONE))


_POSSIBLE_VICTIMS: AttachedCache[Cluster, PossibleVictims] = AttachedCache(PossibleVictims)
