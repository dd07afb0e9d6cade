"""How far each gang has come: its phase, and how many of its pods run and wait.

Contract: belongs to the worker thread. `sync` costs the gangs that have changed since the last call, not all gangs.
"""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

from tutti.cluster.cluster import Cluster
from tutti.engine.gangs.cluster_gangs import Gangs
from tutti.engine.gangs.gang_state import GangPhase


class GangNumbers(NamedTuple):
    """The numbers of one gang."""

    dialect: str
    phase: GangPhase
    minimum: int
    running: int
    waiting: int
    priority: int
    nodes: int
    problem: str


class GangSummaries:
    """See the module's docstring."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster, self._gangs = cluster, Gangs.of(cluster)
        self._changed = set(self._gangs.keys())
        self._gangs.watch(self._changed.add)
        self.by_key: dict[str, GangNumbers] = {}
        """The gangs that have pods, as of the last `sync`."""
        self.phases: Counter[GangPhase] = Counter()

    def sync(self) -> None:
        """Follow the cluster."""
        self._gangs.sync()
        while self._changed:
            key = self._changed.pop()
            before, now = self.by_key.pop(key, None), self._numbers(key)
            if before is not None:
                self.phases[before.phase] -= 1
            if now is not None:
                self.by_key[key] = now
                self.phases[now.phase] += 1

    def _numbers(self, key: str) -> GangNumbers | None:
        pods, rows = self._cluster.pods, self._gangs.rows(key)
        if not rows:
            return None
        state = self._gangs.state(key, [row for row in rows if pods.node_names[row] is None])
        return GangNumbers(
            state.gang.dialect,
            state.phase,
            state.gang.minimum,
            len(state.running),
            len(state.waiting),
            self._gangs.priority(key),
            len({pods.node_names[row] for row in state.running}),
            state.gang.problem or "",
        )
