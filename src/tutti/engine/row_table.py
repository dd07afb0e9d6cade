"""What the row plugins say of every node, for many spec classes at once.

Contract: after `sync()` the keys of every member are what the row plugins would say now. A key that is not negative
belongs to a feasible node; it holds the weighted sum of the scores that do not depend on the other feasible nodes, above
the node's place by name, so that the largest key is the best node, and the first by name among equals.

Placing a pod touches one row, and that row is judged again for all members in one go: numpy costs about the same for one
spec as for hundreds. Members are specs that ask the same of nodes and want the same kinds of resources.
"""

from __future__ import annotations

import numpy as np

from tutti.cluster.classes import SpecClass
from tutti.cluster.cluster import Cluster
from tutti.cluster.columns import Ints, Rows
from tutti.cluster.nodes import RANK_BITS
from tutti.engine.node_tier import NEVER, NodeTier
from tutti.engine.plugins.base import Specs, Window
from tutti.engine.row_rules import RowRules

_MOST_CELLS = 16_000_000
"""Keys kept at most (128 MB): bounds the number of members."""


class RowTable:
    """See the module's contract."""

    def __init__(self, cluster: Cluster, tier: NodeTier, rules: RowRules) -> None:
        self._cluster, self._rules = cluster, rules
        self.tier = tier
        self._generation = -1
        self._pods_read = self._nodes_read = 0
        self._specs = Specs()
        self._place: dict[int, int] = {}
        self._keys: Ints = np.zeros((0, 0), dtype=np.int64)
        self._own: Ints | None = None
        """Scores of nodes alone that differ between members, shifted like keys; None while all are 0."""
        self._versions: list[list[int]] = []

    def keys(self, spec: SpecClass) -> Ints:
        """Give the keys of a spec, up to date; the spec becomes a member if it is none."""
        self._sync(spec)
        place = self._place.get(spec.number)
        if place is None:
            place = self._add(spec)
        elif self._rules.node_scores and self._versions[place] != self._now(spec):
            self._score_nodes(place, spec)
        keys: Ints = self._keys[place]
        return keys

    def scores(self, keys: Ints) -> Ints:
        """Give the sums of scores that keys of feasible nodes hold."""
        return (keys >> RANK_BITS) + self.tier.constant

    # Keeping up -------------------------------------------------------------------------------------------------------

    def _sync(self, spec: SpecClass) -> None:
        cluster, nodes = self._cluster, self._cluster.nodes
        if self._nodes_read == nodes.touched.length and self._pods_read == cluster.touched.length and self._generation >= 0:
            return
        self.tier.sync()
        rows = cluster.touched.since(self._pods_read)
        if self._nodes_read != nodes.touched.length:
            rows = np.concatenate((rows, nodes.touched.since(self._nodes_read)))
        self._pods_read, self._nodes_read = cluster.touched.length, nodes.touched.length
        if self._generation != self.tier.generation or 2 * len(rows) > nodes.size:
            # Cheaper to ask anew, about each member when it is asked for.
            self._generation = self.tier.generation
            self._forget()
        elif len(rows) and self._place:
            self._judge(rows)

    def _forget(self) -> None:
        self._specs, self._place, self._own, self._versions = Specs(), {}, None, []

    def _judge(self, rows: Rows) -> None:
        members = len(self._place)
        keys = self.keys_in(Window(self._cluster, rows), self._specs)
        if self._own is not None:
            # What cannot take the pod must stay so: scores are added to the others only.
            keys = np.where(keys >= 0, keys + self._own[:members, rows], keys)
        self._keys[:members, rows] = keys

    def keys_in(self, window: Window, specs: Specs) -> Ints:
        """Give the keys of some rows, as the window shows them: a line per spec, without scores of nodes alone."""
        score: Ints | None = None
        for plugin, weight in self._rules.pod_scores:
            scored = plugin.score(window, specs)
            if scored is not None:
                if weight != 1:
                    scored = scored * weight
                score = scored if score is None else np.add(score, scored, out=score)
        base = self.tier.base[window.rows]
        if score is None:
            keys = np.repeat(base[np.newaxis], len(specs.members), axis=0)
        else:
            score <<= RANK_BITS
            keys = np.add(score, base, out=score)
        for plugin in self._rules.pod_filters:
            answers = plugin.filter(window, specs)
            if answers is not None:
                np.putmask(keys, answers, NEVER)
        return keys

    # Members ----------------------------------------------------------------------------------------------------------

    def _add(self, spec: SpecClass) -> int:
        size = self._cluster.nodes.size
        if self._keys.shape[1] != size:
            self._keys = np.zeros((4, size), dtype=np.int64)
        if len(self._place) == len(self._keys):
            if 2 * self._keys.size > _MOST_CELLS:
                self._forget()
            else:
                self._keys = np.vstack((self._keys, np.zeros_like(self._keys)))
                if self._own is not None:
                    self._own = np.vstack((self._own, np.zeros_like(self._own)))
        place = self._place[spec.number] = len(self._place)
        self._specs = self._specs.with_member(spec)
        self._versions.append([])
        self._score_nodes(place, spec)
        return place

    def _now(self, spec: SpecClass) -> list[int]:
        return [plugin.version(self._cluster, spec) for plugin, _ in self._rules.node_scores]

    def _score_nodes(self, place: int, spec: SpecClass) -> None:
        """Ask all that there is to ask about one member."""
        self._versions[place] = self._now(spec)
        window = Window(self._cluster, slice(None))
        keys = self.keys_in(window, Specs((spec,)))[0]
        own = np.zeros(self._cluster.nodes.size, dtype=np.int64)
        for plugin, weight in self._rules.node_scores:
            scored = plugin.score(window, spec)
            if scored is not None:
                own += scored * weight
        if own.any() or self._own is not None:
            own <<= RANK_BITS
            if self._own is None:
                self._own = np.zeros_like(self._keys)
            self._own[place] = own
            keys = np.where(keys >= 0, keys + own, keys)
        self._keys[place] = keys

