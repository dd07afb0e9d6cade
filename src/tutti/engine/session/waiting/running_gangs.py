"""Running gangs: which gangs with running pods have changed, so that other pods may be evicted for a waiting turn."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from tutti.cluster.cluster import Cluster
from tutti.cluster.columns import Rows
from tutti.engine.gangs.cluster_gangs import Gangs
from tutti.kube.gangs.gang import Gang


class RunningGangs:
    """Gangs with running pods as they were noted last."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._known: dict[str, tuple[Gang, dict[int, tuple[int, bool]]]] = {}
        """By gang: its record, and the node row of each running pod, and whether it is terminating, by pod row."""

    def changed_node_rows(self, gangs: Iterable[str]) -> Rows | None:
        """Note how some gangs run now; return the node rows of those that run otherwise than before.

        None if no gang does; no rows if gangs have only left. A trial that was rolled back also reports its gangs: only
        gangs that differ from the last time count.
        """
        all_gangs, pods, nodes, has_changed = Gangs.of(self._cluster), self._cluster.pods, set[int](), False
        for key in gangs:
            members = ((pods.node.item(row), row) for row in all_gangs.rows(key))
            running = {row: (node, bool(pods.terminating[row])) for node, row in members if node >= 0}
            now = (all_gangs.gang(key), running) if running else None
            if now != self._known.get(key):
                has_changed = True
                nodes.update(node for node, _ in running.values())
                if now is not None:
                    self._known[key] = now
                else:
                    del self._known[key]
        return np.array(sorted(nodes), dtype=np.intp) if has_changed else None
