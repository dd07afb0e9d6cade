"""What the row plugins say of every node to one spec class, kept from pod to pod.

Contract: after `sync()` the columns are what the row plugins would answer now for every row. Only rows that were
touched since the last time are asked again. `key` orders the feasible nodes: higher scores first, then the first name;
-1 where a node cannot take the pod. Rows of nodes that are switched off are judged too (a template is asked like a
node) but never chosen.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tutti.cluster.classes import SpecClass
from tutti.cluster.cluster import Cluster
from tutti.cluster.columns import Ints
from tutti.cluster.nodes import RANK_BITS
from tutti.engine.plugins.base import MAX_SCORE, RowPlugin, Selection, Window
from tutti.engine.profile import Profile
from tutti.engine.verdict import PASS, Verdicts, encode

_RANK_TOP = (1 << RANK_BITS) - 1
_EVERY = slice(None)


class RowRules:
    """The row plugins of a profile, sorted by what they look at."""

    def __init__(self, profile: Profile) -> None:
        numbered = [(i, e) for i, e in enumerate(profile.plugins) if isinstance(e.plugin, RowPlugin)]
        plugins = [(i, e.plugin, e) for i, e in numbered if isinstance(e.plugin, RowPlugin)]
        self.node_filters = [(i, p) for i, p, e in plugins if e.filters and not p.sees_pods]
        self.pod_filters = [(i, p) for i, p, e in plugins if e.filters and p.sees_pods]
        self.node_scores = [(p, e.weight) for _, p, e in plugins if e.weight and not p.sees_pods and not p.normalised]
        self.pod_scores = [(p, e.weight) for _, p, e in plugins if e.weight and p.sees_pods]
        self.scaled_scores = [(p, e.weight) for _, p, e in plugins if e.weight and p.normalised]


class RowCache:
    """See the module's contract."""

    def __init__(self, cluster: Cluster, spec: SpecClass, rules: RowRules) -> None:
        self._cluster, self._spec, self._rules = cluster, spec, rules
        self._size = -1
        self._pods_read = self._nodes_read = self._rank_shape = 0
        self._versions: list[int] = []
        self._node_verdict: Verdicts = np.zeros(0, dtype=np.int16)
        self._node_score: Ints = np.zeros(0, dtype=np.int64)
        self.verdict: Verdicts = self._node_verdict
        self.score: Ints = self._node_score
        """The weighted sum of the scores that are not scaled to the feasible nodes."""
        self.key: Ints = self._node_score
        self.raw: dict[RowPlugin, Ints] = {}
        """The raw scores of the scaled plugins that tell nodes apart; without any, the order in `key` is final."""
        self.constant = 0
        """What the scaled plugins that do not tell nodes apart give every node."""

    def sync(self) -> None:
        """Ask again about what has changed."""
        cluster = self._cluster
        nodes = cluster.nodes
        if (
            self._size != nodes.size
            or self._rank_shape != nodes.rank_shape
            or self._nodes_read != nodes.touched.length
            or (self._rules.node_scores and self._versions != self._now())
        ):
            self._sync_nodes()
        elif self._pods_read != cluster.touched.length:
            rows = cluster.touched.since(self._pods_read)
            if 2 * len(rows) > nodes.size:
                self._judge_pods(_EVERY)
            else:
                self._judge_pods(rows)
        self._pods_read = cluster.touched.length

    def _now(self) -> list[int]:
        return [plugin.version(self._cluster, self._spec) for plugin, _ in self._rules.node_scores]

    def _sync_nodes(self) -> None:
        """Ask again about nodes that changed themselves, or about all when scores of untouched nodes moved."""
        cluster, nodes = self._cluster, self._cluster.nodes
        rows: Selection = np.concatenate(
            (nodes.touched.since(self._nodes_read), cluster.touched.since(self._pods_read))
        )
        versions = self._now()
        if (
            self._size != nodes.size
            or self._rank_shape != nodes.rank_shape
            or versions != self._versions
            or 2 * len(rows) > nodes.size
        ):
            rows = _EVERY
            self._size, self._rank_shape = nodes.size, nodes.rank_shape
            for name in ("_node_score", "score", "key"):
                setattr(self, name, np.zeros(nodes.size, dtype=np.int64))
            self._node_verdict = np.zeros(nodes.size, dtype=np.int16)
            self.verdict = np.zeros(nodes.size, dtype=np.int16)
            self.raw = {}
        self._versions = versions
        self._nodes_read = nodes.touched.length
        if not self._judge_nodes(rows):
            self._size = -1
            self._sync_nodes()
            return
        self._judge_pods(rows)

    def _judge_nodes(self, rows: Selection) -> bool:
        window, rules, spec = Window(self._cluster, rows), self._rules, self._spec
        verdict = np.full(len(window), PASS, dtype=np.int16)
        for place, plugin in rules.node_filters:
            answers = plugin.filter(window, spec)
            if answers is not None and answers.any():
                np.minimum(verdict, encode(place, answers), out=verdict)
        self._node_verdict[rows] = verdict
        score = np.zeros(len(window), dtype=np.int64)
        for plugin, weight in rules.node_scores:
            scored = plugin.score(window, spec)
            if scored is not None:
                score += scored * weight
        self._node_score[rows] = score
        return self._judge_scaled(window)

    def _judge_scaled(self, window: Window) -> bool:
        """Keep raw scores that tell nodes apart; say whether all nodes must be asked because some now do."""
        everything = isinstance(window.rows, slice)
        self.constant = 0
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
            elif plugin.normalised == "down":
                self.constant += MAX_SCORE * weight
        return True

    def _judge_pods(self, rows: Selection) -> None:
        window, rules, spec = Window(self._cluster, rows), self._rules, self._spec
        nodes = self._cluster.nodes
        verdict: NDArray[np.int16] = self._node_verdict[rows]
        for place, plugin in rules.pod_filters:
            answers = plugin.filter(window, spec)
            if answers is not None and answers.any():
                verdict = np.minimum(verdict, encode(place, answers))
        score = self._node_score[rows]
        for plugin, weight in rules.pod_scores:
            scored = plugin.score(window, spec)
            if scored is not None:
                score = score + (scored if weight == 1 else scored * weight)
        self.verdict[rows], self.score[rows] = verdict, score
        key = (score << RANK_BITS) + (_RANK_TOP - nodes.rank[rows])
        key[(verdict != PASS) | ~nodes.on[rows]] = -1
        self.key[rows] = key
