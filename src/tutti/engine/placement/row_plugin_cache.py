"""What the row plugins say of every node, for many spec classes at once.

Contract: the keys that `keys()` gives are what the row plugins would say now. A key that is not negative belongs to a
feasible node; it holds the weighted sum of the scores that do not depend on the other feasible nodes, above the
node's place by name, so that the largest key is the best node, and the first by name among equals.

Members are specs that ask the same of nodes and want the same kinds of resources. A member that is a few rows behind
catches up in plain numbers; when one is further behind, all members catch up in one go, since numpy costs about the
same for one spec as for hundreds.
"""

from __future__ import annotations

import numpy as np

from tutti.cluster.cluster import Cluster
from tutti.cluster.columns import Floats, Ints, Rows
from tutti.cluster.node_table import RANK_BITS
from tutti.cluster.spec_classes import SpecClass
from tutti.cluster.work.meter import PLUGIN_PASS, PLUGIN_PASS_CELL
from tutti.engine.placement.node_plugin_cache import NEVER, NodePluginCache
from tutti.engine.placement.row_plugins import RowPlugins
from tutti.engine.plugins.base import NodeRow, NodeRows, SpecColumns

_MOST_CELLS = 16_000_000
"""Keys kept at most (128 MB): bounds the number of members."""
_FEW = 6
"""Rows up to which plain numbers are faster than columns."""


class RecentNodes:
    """Nodes as plain numbers and as floats, for as long as nobody touches them; one for all tables of a cluster."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._known: dict[int, NodeRow] = {}
        self._read = self._every_read = 0
        self._floats: tuple[Floats, Floats] | None = None

    def node(self, row: int) -> NodeRow:
        """Give one node."""
        touched = self._cluster.touched
        if self._read != touched.length:
            if touched.length - self._read > _FEW:
                self._known.clear()
            else:
                for changed in touched.since(self._read).tolist():
                    self._known.pop(changed, None)
            self._read = touched.length
        known = self._known.get(row)
        if known is None:
            known = self._known[row] = NodeRow(self._cluster, row)
        return known

    def every(self) -> NodeRows:
        """Give all nodes; what they are as floats is kept up row by row."""
        touched, nodes = self._cluster.touched, self._cluster.nodes
        window = NodeRows(self._cluster, slice(0, nodes.length))
        rows = touched.since(self._every_read)
        self._every_read = touched.length
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
    """See the module's contract."""

    def __init__(self, tier: NodePluginCache, rules: RowPlugins, recent: RecentNodes, spec: SpecClass) -> None:
        self._cluster, self._rules, self._recent = tier.cluster, rules, recent
        # Plugins that have nothing to say to one member have nothing to say to any.
        self._filters = [plugin for plugin in rules.pod_filters if not plugin.skips_filter(spec)]
        self._fits = [plugin.fits for plugin in self._filters]
        self._points = [(plugin.score_row, weight) for plugin, weight in rules.pod_scores]
        self.tier = tier
        self._generation = -1
        self._nodes_read = 0
        self._read: list[int] = []
        """How far in the log of touched rows each member is."""
        self._all_read = 0
        """How far all members are at least."""
        self._specs = SpecColumns()
        self._place: dict[int, int] = {}
        self._keys: Ints = np.zeros((0, 0), dtype=np.int64)
        self._own: Ints | None = None
        """Scores of nodes alone that differ between members, shifted like keys; None while all are 0."""
        self._versions: list[list[int]] = []
        self._checked: list[int] = []
        """Up to which change of nodes each member's versions were looked at."""

    def keys(self, spec: SpecClass) -> Ints:
        """Give the keys of a spec; it becomes a member if it is none."""
        cluster = self._cluster
        if self._nodes_read != cluster.nodes.touched.length or self._generation < 0:
            self._sync_nodes()
        place = self._place.get(spec.number)
        if place is None:
            place = self._add(spec)
        else:
            if self._checked[place] != self._nodes_read:
                self._check(place, spec)
            behind = cluster.touched.length - self._read[place]
            if behind:
                place = self._catch_up(place, spec, behind)
        keys: Ints = self._keys[place]
        return keys

    # Keeping up -------------------------------------------------------------------------------------------------------

    def _catch_up(self, place: int, spec: SpecClass, behind: int) -> int:
        """Follow the pods that came and went; give the member's place, which may be a new one."""
        touched = self._cluster.touched
        if behind <= _FEW:
            keys = self._keys[place]
            for row in set(touched.since(self._read[place]).tolist()):
                keys[row] = self._one_key(place, spec, row)
            self._read[place] = touched.length
            return place
        rows = touched.since(self._all_read)
        if 2 * len(rows) > self._cluster.nodes.size:
            # Cheaper to ask anew, about each member when it is asked for.
            self._forget()
            return self._add(spec)
        self._evaluator(rows)
        self._all_read = touched.length
        self._read = [touched.length] * len(self._read)
        return place

    def _sync_nodes(self) -> None:
        """Follow changes of nodes themselves; their rows stand in the log of touched rows as well."""
        self._nodes_read = self._cluster.nodes.touched.length
        self.tier.sync()
        if self._generation != self.tier.generation:
            self._generation = self.tier.generation
            self._forget()

    def _check(self, place: int, spec: SpecClass) -> None:
        """Ask anew about a member if changes of some nodes have moved its scores of others."""
        self._checked[place] = self._nodes_read
        if self._versions[place] != self._now(spec):
            self._ask(place, spec)

    def _forget(self) -> None:
        self._specs, self._place, self._own = SpecColumns(), {}, None
        self._versions, self._checked, self._read = [], [], []
        self._all_read = self._cluster.touched.length

    def _evaluator(self, rows: Rows) -> None:
        members = len(self._place)
        keys = self.keys_in(NodeRows(self._cluster, rows), self._specs)
        if self._own is not None:
            # What cannot take the pod must stay so: scores are added to the others only.
            keys = np.where(keys >= 0, keys + self._own[:members, rows].T, keys)
        self._keys[:members, rows] = keys.T

    def keys_in(self, window: NodeRows, specs: SpecColumns) -> Ints:
        """Give the keys of some rows, as the window shows them: a column per spec, without scores of nodes alone."""
        self._cluster.meter.count += PLUGIN_PASS + PLUGIN_PASS_CELL * len(window) * len(specs)
        score: Ints | None = None
        for plugin, weight in self._rules.pod_scores:
            scored = plugin.score(window, specs)
            if scored is not None:
                if weight != 1:
                    scored = scored * weight
                score = scored if score is None else np.add(score, scored, out=score)
        base = self.tier.base[window.rows][:, np.newaxis]
        if score is None:
            keys = np.repeat(base, len(specs), axis=1)
        else:
            score <<= RANK_BITS
            keys = np.add(score, base, out=score)
        for plugin in self._filters:
            answers = plugin.filter(window, specs)
            if answers is not None:
                np.putmask(keys, answers.view(bool), NEVER)
        return keys

    def _one_key(self, place: int, spec: SpecClass, row: int) -> int:
        """Give the key of one row for one member."""
        base = int(self.tier.base[row])
        if base < 0:
            return NEVER
        node = self._recent.node(row)
        for fits in self._fits:
            if not fits(node, spec):
                return NEVER
        score = 0
        for points, weight in self._points:
            score += weight * points(node, spec)
        key = base + (score << RANK_BITS)
        return key if self._own is None else key + int(self._own[place, row])

    # Members ----------------------------------------------------------------------------------------------------------

    def _add(self, spec: SpecClass) -> int:
        size = self._cluster.nodes.size
        if self._keys.shape[1] != size:
            self._keys = np.full((4, size), NEVER, dtype=np.int64)
        if len(self._place) == len(self._keys):
            if 2 * self._keys.size > _MOST_CELLS:
                self._forget()
            else:
                self._keys = np.vstack((self._keys, np.full_like(self._keys, NEVER)))
                if self._own is not None:
                    self._own = np.vstack((self._own, np.zeros_like(self._own)))
        place = self._place[spec.number] = len(self._place)
        self._specs.members.append(spec)
        self._versions.append([])
        self._checked.append(self._nodes_read)
        self._read.append(0)
        self._ask(place, spec)
        return place

    def _now(self, spec: SpecClass) -> list[int]:
        return [plugin.score_version(self._cluster, spec) for plugin, _ in self._rules.node_scores]

    def _ask(self, place: int, spec: SpecClass) -> None:
        """Ask about all nodes for one member."""
        self._versions[place] = self._now(spec)
        self._read[place] = self._cluster.touched.length
        window = self._recent.every()
        keys = self.keys_in(window, self._specs.only(place))[:, 0]
        own = np.zeros(len(window), dtype=np.int64)
        for plugin, weight in self._rules.node_scores:
            scored = plugin.score(window, spec)
            if scored is not None:
                own += scored * weight
        if own.any() or self._own is not None:
            own <<= RANK_BITS
            if self._own is None:
                self._own = np.zeros_like(self._keys)
            self._own[place, : len(own)] = own
            keys = np.where(keys >= 0, keys + own, keys)
        self._keys[place, : len(keys)] = keys
