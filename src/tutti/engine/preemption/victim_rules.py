"""Which pods may be victims at all: rules of the user, on top of priorities and disruption budgets.

Contract: `may_evict` answers for some pod rows by a column that costs the pods that have changed since the last
question. The rules of `VictimRules()` are those of kube-scheduler: every pod may be a victim.
"""

from __future__ import annotations

import msgspec
import numpy as np

from tutti.cluster.cluster import Cluster
from tutti.cluster.columns import Bools, Rows
from tutti.engine.plugins.attached_cache import AttachedCache
from tutti.kube.objects import Pod

_MIRROR, _DAEMON = 1, 2
_MIRROR_ANNOTATION = "kubernetes.io/config.mirror"


class VictimRules(msgspec.Struct, frozen=True, kw_only=True):
    """See the module's docstring."""

    mirror_pods: bool = True
    """Whether mirror pods may be evicted; the kubelet starts their static pods again at once."""
    daemons: bool = True
    """Whether pods of DaemonSets may be evicted; their controller creates them again on the same node."""
    other_schedulers: bool = True
    """Whether pods of other schedulers may be evicted."""
    hard_budgets: bool = False
    """Whether no eviction may break a disruption budget; otherwise such victims are the last choice."""

    def may_evict(self, cluster: Cluster, rows: Rows, scheduler_name: str) -> Bools:
        """Return which pods these rules allow to evict, for a scheduler of a name."""
        allowed = np.ones(len(rows), dtype=bool)
        unwanted = (0 if self.mirror_pods else _MIRROR) | (0 if self.daemons else _DAEMON)
        if unwanted or not self.other_schedulers:
            traits = _TRAITS.of(cluster)
            traits.follow()
            allowed &= (traits.flags[rows] & unwanted) == 0
            if not self.other_schedulers:
                allowed &= traits.schedulers[rows] == traits.number_of(scheduler_name)
        return allowed


class SparingRules(VictimRules, frozen=True, kw_only=True):
    """Rules of one turn, which spares some pods besides."""

    spared: frozenset[tuple[str, str | None]]
    """Pods that are not evicted, by key and uid."""

    def may_evict(self, cluster: Cluster, rows: Rows, scheduler_name: str) -> Bools:
        """Return which pods these rules allow to evict, for a scheduler of a name."""
        allowed = VictimRules.may_evict(self, cluster, rows, scheduler_name)
        for key, uid in self.spared:
            row = cluster.pods.row_of.get(key)
            if row is not None and cluster.pod(key).metadata.uid == uid:
                allowed &= rows != row
        return allowed


class _PodTraits:
    """What the rules read of each pod, as columns."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._log_position = -1
        self.flags = np.zeros(0, dtype=np.uint8)
        self.schedulers = np.zeros(0, dtype=np.int32)
        self._numbers: dict[str, int] = {}

    def number_of(self, scheduler_name: str) -> int:
        return self._numbers.setdefault(scheduler_name, len(self._numbers))

    def follow(self) -> None:
        """Read the pods that have changed since the last call."""
        pods = self._cluster.pods
        if len(self.flags) < pods.size:
            more = pods.size - len(self.flags)
            self.flags = np.concatenate((self.flags, np.zeros(more, dtype=np.uint8)))
            self.schedulers = np.concatenate((self.schedulers, np.zeros(more, dtype=np.int32)))
        if self._log_position < 0 or not pods.touched.has_all_since(self._log_position):
            changed = list(pods.row_of.values())
        else:
            changed = list(set(pods.touched.since(self._log_position).tolist()))
        self._log_position = pods.touched.length
        for row in changed:
            pod = pods.objects[row]
            if pod is not None:
                self.flags[row] = _flags(pod)
                self.schedulers[row] = self.number_of(pod.spec.scheduler_name or "default-scheduler")


def _flags(pod: Pod) -> int:
    owners = pod.metadata.owner_references or ()
    is_daemon = any(owner.controller and owner.kind == "DaemonSet" for owner in owners)
    is_mirror = _MIRROR_ANNOTATION in (pod.metadata.annotations or {})
    return _DAEMON * is_daemon | _MIRROR * is_mirror


_TRAITS: AttachedCache[Cluster, _PodTraits] = AttachedCache(_PodTraits)
