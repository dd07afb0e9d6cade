"""Results of the row plugins for every node, for many spec classes at once.

Contract: `keys()` returns what the row plugins would say now. A key that is not negative belongs to a feasible node.
The upper bits of a key hold the weighted sum of the scores that do not depend on other feasible nodes; the lower bits
hold the node's reversed rank by name. So the largest key is the best node, and the first by name among equals.

Members of a cache are specs with the same demands on nodes that request the same kinds of resources. A member that is a
few rows behind the log of touched rows is updated row by row in plain integers. If a member is further behind, all
members are updated in one numpy pass, since numpy costs about the same for one spec as for hundreds.
"""

from __future__ import annotations

from collections.abc import Container

import numpy as np

from tutti.cluster.cluster import Cluster
from tutti.cluster.columns import Floats, Ints, Rows
from tutti.cluster.node_table import RANK_BITS
from tutti.cluster.spec_classes import SpecClass
from tutti.cluster.work.meter import PLUGIN_PASS, PLUGIN_PASS_CELL
from tutti.engine.placement.node_plugin_cache import INFEASIBLE, NodePluginCache
from tutti.engine.placement.row_plugins import RowPlugins
from tutti.engine.plugins.base import NodeRow, NodeRows, SpecColumns

_MAX_CELLS = 16_000_000
"""Largest number of cached keys (128 MB): bounds the number of members."""
_MAX_SINGLE_ROWS = 6
"""Up to this many rows, plain integers are faster than columns."""
_MAX_FILTERED_ROWS = 256
"""Up to this many rows, it is worth a look whether the node plugins refuse most of them."""


class RecentNodes:
    """Node rows as plain integers and as floats, until a row is touched; shared by all row caches of a cluster."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._node_rows: dict[int, NodeRow] = {}
        self._log_position = self._floats_log_position = 0
        self._floats: tuple[Floats, Floats] | None = None

    def node(self, row: int) -> NodeRow:
        """Return one node."""
        touched = self._cluster.touched
        if self._log_position != touched.length:
            if touched.length - self._log_position > _MAX_SINGLE_ROWS:
                self._node_rows.clear()
            else:
                for changed in touched.since(self._log_position).tolist():
                    self._node_rows.pop(changed, None)
            self._log_position = touched.length
        node_row = self._node_rows.get(row)
        if node_row is None:
            node_row = self._node_rows[row] = NodeRow(self._cluster, row)
        return node_row

    def all_rows(self) -> NodeRows:
        """Return all nodes; their floats are updated row by row."""
        touched, nodes = self._cluster.touched, self._cluster.nodes
        window = NodeRows(self._cluster, slice(0, nodes.length))
        rows = touched.since(self._floats_log_position)
        self._floats_log_position = touched.length
        if not nodes.exact_in_floats:
            self._floats = None
        elif self._floats is None or self._floats[0].shape[1] != nodes.length or 2 * len(rows) > nodes.length:
            self._floats = window.floats
        elif len(rows):
            some = NodeRows(self._cluster, rows).floats
            if some is not None:
                self._floats[0][:, rows], self._floats[1][:, rows] = some
        window.set_floats(self._floats)
        return window


class RowPluginCache:
    """Row plugin results for the spec classes of one shape (see the module's contract)."""

    def __init__(
        self, node_cache: NodePluginCache, row_plugins: RowPlugins, recent: RecentNodes, spec: SpecClass
    ) -> None:
        self._cluster, self._row_plugins, self._recent = node_cache.cluster, row_plugins, recent
        # A plugin that is idle for one member is idle for all members.
        self._filters = [plugin for _, plugin in row_plugins.pod_filters if not plugin.skips_filter(spec)]
        self._fits = [plugin.fits for plugin in self._filters]
        self._points = [(plugin.score_row, weight) for plugin, weight in row_plugins.pod_scores]
        self.node_cache = node_cache
        self._generation = -1
        self._node_log_position = 0
        self._log_positions: list[int] = []
        """By member: the position in the log of touched rows up to which its keys are current."""
        self._common_log_position = 0
        """The log position up to which all members are current."""
        self._specs = SpecColumns()
        self._position_of: dict[int, int] = {}
        self._keys: Ints = np.zeros((0, 0), dtype=np.int64)
        self._node_scores: Ints | None = None
        """Scores of node plugins that differ between members, shifted like keys; None while all are 0."""
        self._versions: list[list[int]] = []
        self._versions_checked_at: list[int] = []
        """By member: the position in the node log at which its `_versions` were last compared."""

    def keys(self, spec: SpecClass) -> Ints:
        """Return the keys of a spec; add the spec as a member if needed."""
        cluster = self._cluster
        if self._node_log_position != cluster.nodes.touched.length or self._generation < 0:
            self._sync_nodes()
        position = self._position_of.get(spec.number)
        if position is None:
            position = self._add(spec)
        else:
            if self._versions_checked_at[position] != self._node_log_position:
                self._check(position, spec)
            behind = cluster.touched.length - self._log_positions[position]
            if behind:
                position = self._catch_up(position, spec, behind)
        keys: Ints = self._keys[position]
        return keys

    # Updates ----------------------------------------------------------------------------------------------------------

    def _catch_up(self, position: int, spec: SpecClass, behind: int) -> int:
        """Update a member for rows whose pods changed; return its position, which changes if the cache was cleared."""
        touched = self._cluster.touched
        if behind <= _MAX_FILTERED_ROWS:
            rows = touched.since(self._log_positions[position])
            if behind > _MAX_SINGLE_ROWS:
                # Of a pool's cache most rows belong to other pools: their keys are known without a look at their pods.
                accepted = self.node_cache.base_keys[rows] >= 0
                self._keys[position, rows[~accepted]] = INFEASIBLE
                rows = rows[accepted]
            if len(rows) <= _MAX_SINGLE_ROWS:
                keys = self._keys[position]
                for row in set(rows.tolist()):
                    keys[row] = self._one_key(position, spec, row)
                self._log_positions[position] = touched.length
                return position
        rows = touched.since(self._common_log_position)
        if 2 * len(rows) > self._cluster.nodes.size:
            # Evaluating each member again on its next use is cheaper than updating most rows of all members.
            self._clear()
            return self._add(spec)
        self._evaluate(rows)
        self._common_log_position = touched.length
        self._log_positions = [touched.length] * len(self._log_positions)
        return position

    def _sync_nodes(self) -> None:
        """Update the node cache; clear the members if all of its rows were evaluated again."""
        self._node_log_position = self._cluster.nodes.touched.length
        self.node_cache.sync()
        if self._generation != self.node_cache.generation:
            self._generation = self.node_cache.generation
            self._clear()

    def _check(self, position: int, spec: SpecClass) -> None:
        """Evaluate a member again if a node change affected its scores on other nodes."""
        self._versions_checked_at[position] = self._node_log_position
        if self._versions[position] != self._score_versions(spec):
            self._evaluate_member(position, spec)

    def _clear(self) -> None:
        self._specs, self._position_of, self._node_scores = SpecColumns(), {}, None
        self._versions, self._versions_checked_at, self._log_positions = [], [], []
        self._common_log_position = self._cluster.touched.length

    def _evaluate(self, rows: Rows) -> None:
        """Update some rows of all members."""
        members = len(self._position_of)
        keys = self.keys_in(NodeRows(self._cluster, rows), self._specs)
        if self._node_scores is not None:
            # Infeasible keys must stay infeasible: add scores to feasible keys only.
            keys = np.where(keys >= 0, keys + self._node_scores[:members, rows].T, keys)
        self._keys[:members, rows] = keys.T

    def keys_in(self, window: NodeRows, specs: SpecColumns) -> Ints:
        """Return the keys of the rows in a window, one column per spec, without the scores of node plugins."""
        self._cluster.meter.count += PLUGIN_PASS + PLUGIN_PASS_CELL * len(window) * len(specs)
        score: Ints | None = None
        for plugin, weight in self._row_plugins.pod_scores:
            scored = plugin.score(window, specs)
            if scored is not None:
                if weight != 1:
                    scored = scored * weight
                score = scored if score is None else np.add(score, scored, out=score)
        base_keys = self.node_cache.base_keys[window.rows][:, np.newaxis]
        if score is None:
            keys = np.repeat(base_keys, len(specs), axis=1)
        else:
            score <<= RANK_BITS
            keys = np.add(score, base_keys, out=score)
        for plugin in self._filters:
            variants = plugin.filter(window, specs)
            if variants is not None:
                np.putmask(keys, variants.view(bool), INFEASIBLE)
        return keys

    def _one_key(self, position: int, spec: SpecClass, row: int) -> int:
        """Return the key of one row for one member."""
        base_key = int(self.node_cache.base_keys[row])
        if base_key < 0:
            return INFEASIBLE
        node = self._recent.node(row)
        for fits in self._fits:
            if not fits(node, spec):
                return INFEASIBLE
        score = 0
        for points, weight in self._points:
            score += weight * points(node, spec)
        key = base_key + (score << RANK_BITS)
        return key if self._node_scores is None else key + int(self._node_scores[position, row])

    # Members ----------------------------------------------------------------------------------------------------------

    def keep(self, specs: Container[int]) -> None:
        """Drop the members whose spec numbers are not among some specs."""
        kept = [position for number, position in self._position_of.items() if number in specs]
        if len(kept) == len(self._position_of):
            return
        self._specs = SpecColumns(*(self._specs.members[position] for position in kept))
        self._position_of = {spec.number: position for position, spec in enumerate(self._specs.members)}
        spare = [0] * (4 - len(kept))  # `_add` doubles the rows, so that there must be some
        self._keys = self._keys[kept + spare]
        if self._node_scores is not None:
            self._node_scores = self._node_scores[kept + spare]
        self._versions = [self._versions[position] for position in kept]
        self._versions_checked_at = [self._versions_checked_at[position] for position in kept]
        self._log_positions = [self._log_positions[position] for position in kept]

    def _add(self, spec: SpecClass) -> int:
        """Add a member and return its position."""
        size = self._cluster.nodes.size
        if self._keys.shape[1] != size:
            self._keys = np.full((4, size), INFEASIBLE, dtype=np.int64)
        if len(self._position_of) == len(self._keys):
            if 2 * self._keys.size > _MAX_CELLS:
                self._clear()
            else:
                self._keys = np.vstack((self._keys, np.full_like(self._keys, INFEASIBLE)))
                if self._node_scores is not None:
                    self._node_scores = np.vstack((self._node_scores, np.zeros_like(self._node_scores)))
        position = self._position_of[spec.number] = len(self._position_of)
        self._specs.members.append(spec)
        self._versions.append([])
        self._versions_checked_at.append(self._node_log_position)
        self._log_positions.append(0)
        self._evaluate_member(position, spec)
        return position

    def _score_versions(self, spec: SpecClass) -> list[int]:
        return [plugin.score_version(self._cluster, spec) for plugin, _ in self._row_plugins.node_scores]

    def _evaluate_member(self, position: int, spec: SpecClass) -> None:
        """Evaluate all nodes for one member."""
        self._versions[position] = self._score_versions(spec)
        self._log_positions[position] = self._cluster.touched.length
        window = self._recent.all_rows()
        keys = self.keys_in(window, self._specs.only(position))[:, 0]
        node_scores = np.zeros(len(window), dtype=np.int64)
        for plugin, weight in self._row_plugins.node_scores:
            scored = plugin.score(window, spec)
            if scored is not None:
                node_scores += scored * weight
        if node_scores.any() or self._node_scores is not None:
            node_scores <<= RANK_BITS
            if self._node_scores is None:
                self._node_scores = np.zeros_like(self._keys)
            self._node_scores[position, : len(node_scores)] = node_scores
            keys = np.where(keys >= 0, keys + node_scores, keys)
        self._keys[position, : len(keys)] = keys
