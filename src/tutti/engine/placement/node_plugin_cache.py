"""What the node plugins say of every node to all specs that ask the same of nodes.

Contract: after `sync()`, `base` holds each node's place by name where the node may take such pods, and `NEVER` where
it may not or is switched off. `raw` has the scores that are scaled to the feasible nodes, of the plugins by which
nodes differ; those by which they do not differ add `constant` to every node. `generation` moves when all rows were
asked anew.
"""

from __future__ import annotations

import numpy as np

from tutti.cluster.cluster import Cluster
from tutti.cluster.columns import Bools, Ints
from tutti.cluster.node_table import RANK_BITS
from tutti.cluster.spec_classes import SpecClass
from tutti.engine.placement.row_plugins import RowPlugins
from tutti.engine.plugins.base import MAX_SCORE, NodePlugin, NodeRows, Selection
from tutti.engine.plugins.node_affinity import named_nodes
from tutti.engine.plugins.verdict import Reason

RANK_TOP = (1 << RANK_BITS) - 1
NEVER = -(1 << 61)
"""The key of a node that cannot take the pod: no sum of scores makes it positive."""


class NodePluginCache:
    """See the module's contract."""

    def __init__(self, cluster: Cluster, spec: SpecClass, rules: RowPlugins) -> None:
        self.cluster, self._spec, self._rules = cluster, spec, rules
        self._size = -1
        self._read = self._rank_version = 0
        self.base: Ints = np.zeros(0, dtype=np.int64)
        self.raw: dict[NodePlugin, Ints] = {}
        self.constant = 0
        self.generation = 0
        self.narrowed: frozenset[str] | Reason | None = named_nodes(spec) if rules.narrows else None
        """The only nodes that the node affinity names, if it names nodes."""

    def sync(self) -> None:
        """Ask again about nodes that changed."""
        nodes = self.cluster.nodes
        fresh = self._size != nodes.size or self._rank_version != nodes.rank_version
        if not fresh and self._read == nodes.touched.length:
            return
        rows = nodes.touched.since(self._read)
        self._size, self._rank_version, self._read = nodes.size, nodes.rank_version, nodes.touched.length
        if not fresh and 2 * len(rows) < nodes.size and self._evaluator(rows):
            return
        self.base, self.raw = np.zeros(nodes.size, dtype=np.int64), {}
        self._evaluator(slice(None))
        self.generation += 1

    def _evaluator(self, rows: Selection) -> bool:
        """Ask about some rows; no when all must be asked, because nodes now differ in a score where they did not."""
        window, nodes = NodeRows(self.cluster, rows), self.cluster.nodes
        refused: Bools = ~nodes.on[rows]
        for plugin in self._rules.node_filters:
            answers = plugin.filter(window, self._spec)
            if answers is not None:
                refused |= answers != 0
        self.base[rows] = np.where(refused, NEVER, RANK_TOP - nodes.rank[rows])
        return self._judge_scaled(window)

    def _judge_scaled(self, window: NodeRows) -> bool:
        everything = isinstance(window.rows, slice)
        constant = 0
        for plugin, weight in self._rules.scaled_scores:
            scored = plugin.score(window, self._spec)
            if scored is None:
                continue
            known = self.raw.get(plugin)
            if known is not None:
                known[window.rows] = scored
            elif scored.any():
                if not everything:
                    return False
                self.raw[plugin] = scored
            elif plugin.normalization == "down":
                constant += MAX_SCORE * weight
        self.constant = constant
        return True
