"""Results of the node plugins for every node, shared by all specs with the same demands on nodes.

Contract: after `sync()`, `base_keys` holds each node's rank by name (reversed: the first name has the largest value)
where the node plugins accept such pods, and `INFEASIBLE` where they refuse or the row is unused. `verdicts` holds the
verdict of the first node plugin that refuses a row, and PASS for all other rows. `raw_scores` holds scores that are
normalised over the feasible nodes, of plugins whose scores differ between nodes; the other such plugins add
`constant_score` to every node. `generation` changes when all rows were evaluated again.
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
from tutti.engine.plugins.verdict import PASS, Reason, Verdicts, encode

RANK_TOP = (1 << RANK_BITS) - 1
INFEASIBLE = -(1 << 61)
"""The key of a node that cannot take the pod: no sum of scores makes the key positive."""


class NodePluginCache:
    """Node plugin results for one set of demands on nodes (see the module's contract)."""

    def __init__(self, cluster: Cluster, spec: SpecClass, row_plugins: RowPlugins) -> None:
        self.cluster, self._spec, self._row_plugins = cluster, spec, row_plugins
        self._table_size = -1
        self._log_position = self._rank_version = 0
        self.base_keys: Ints = np.zeros(0, dtype=np.int64)
        self.verdicts: Verdicts = np.zeros(0, dtype=np.int16)
        self.raw_scores: dict[NodePlugin, Ints] = {}
        self.constant_score = 0
        self.generation = 0
        self.only_nodes: frozenset[str] | Reason | None = (
            named_nodes(spec) if row_plugins.filters_node_affinity else None
        )
        """The only nodes that the required node affinity names; None if the affinity names no nodes."""

    def sync(self) -> None:
        """Evaluate the nodes that changed since the last call."""
        nodes = self.cluster.nodes
        is_resized = self._table_size != nodes.size or self._rank_version != nodes.rank_version
        if not is_resized and self._log_position == nodes.touched.length:
            return
        rows = nodes.touched.since(self._log_position)
        self._table_size, self._rank_version, self._log_position = nodes.size, nodes.rank_version, nodes.touched.length
        if not is_resized and 2 * len(rows) < nodes.size and self._evaluate(rows):
            return
        self.base_keys, self.raw_scores = np.zeros(nodes.size, dtype=np.int64), {}
        self.verdicts = np.zeros(nodes.size, dtype=np.int16)
        self._evaluate(slice(None))
        self.generation += 1

    def _evaluate(self, rows: Selection) -> bool:
        """Evaluate some rows; return False if all rows must be evaluated: nodes now differ in a score."""
        window, nodes = NodeRows(self.cluster, rows), self.cluster.nodes
        verdicts: Verdicts = np.full(len(window), PASS, dtype=np.int16)
        for position, plugin in self._row_plugins.node_filters:
            variants = plugin.filter(window, self._spec)
            if variants is not None:
                np.minimum(verdicts, encode(position, variants), out=verdicts)
        self.verdicts[rows] = verdicts
        accepted: Bools = nodes.on[rows] & (verdicts == PASS)
        self.base_keys[rows] = np.where(accepted, RANK_TOP - nodes.rank[rows], INFEASIBLE)
        return self._evaluate_raw_scores(window)

    def _evaluate_raw_scores(self, window: NodeRows) -> bool:
        all_rows = isinstance(window.rows, slice)
        constant_score = 0
        for plugin, weight in self._row_plugins.scaled_scores:
            scored = plugin.score(window, self._spec)
            if scored is None:
                continue
            kept = self.raw_scores.get(plugin)
            if kept is not None:
                kept[window.rows] = scored
            elif scored.any():
                if not all_rows:
                    return False
                self.raw_scores[plugin] = scored
            elif plugin.normalization == "down":
                constant_score += MAX_SCORE * weight
        self.constant_score = constant_score
        return True
