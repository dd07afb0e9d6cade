"""Batches: find the nodes for many pods of one class at once.

Contract: the rows equal those of deciding pod by pod. This holds for pods without inter-pod rules whose scores on a
node do not depend on other nodes. Then each node has a sequence of keys: its key with 0, 1, 2 ... copies of the pod.
Deciding pod by pod always takes the node with the largest next key. A node that was just taken is taken again while its
next key is not smaller, so the order of all picks is the order of each sequence's running minimum.
"""

from __future__ import annotations

import numpy as np

from tutti.cluster.cluster import Cluster
from tutti.cluster.columns import Ints, Rows
from tutti.cluster.node_table import RANK_BITS
from tutti.cluster.spec_classes import SpecClass
from tutti.engine.placement.row_plugin_cache import RowPluginCache
from tutti.engine.plugins.base import NodeRows, SpecColumns

_MAX_CELLS = 400_000
"""Largest number of keys computed in one batch: bounds the memory."""
_PASS_CELLS = 4_096
"""Keys computed in one pass of the plugins; fewer cost about as much."""


class FilledRows(NodeRows):
    """Rows as they would be with some numbers of copies of a pod on each: all rows for the first number, and so on."""

    __slots__ = ()

    def __init__(self, cluster: Cluster, rows: Rows, usage: Ints, copies: Ints) -> None:
        repeated = np.tile(rows, len(copies))
        super().__init__(cluster, repeated)
        self._used = cluster.nodes.used.take(repeated, axis=1) + np.repeat(copies, len(rows)) * usage[:, np.newaxis]


def pick_rows(
    cluster: Cluster, row_cache: RowPluginCache, spec: SpecClass, keys: Ints, usage: Ints, count: int
) -> list[tuple[int, int]]:
    """Return the rows for the next `count` pods of a class, in order, each with the node's score.

    Returns fewer rows when the order beyond them is not known yet, and none when no pod fits.
    """
    rows = np.flatnonzero(keys >= 0)
    if not len(rows):
        return []
    if len(rows) > count:
        # Nodes get their first copies in the order of their keys, so that only the best `count` nodes can get one.
        rows = rows[np.argpartition(-keys[rows], count - 1)[:count]]
    sequences = _sequences(cluster, row_cache, spec, keys, rows, usage=usage, count=count)
    levels = len(sequences)
    running_minimum = np.minimum.accumulate(sequences, axis=0).ravel()
    order = _largest(running_minimum, count)
    level, column = np.divmod(order, len(rows))
    fits = running_minimum[order] >= 0
    certain = len(order) if fits.all() else int(fits.argmin())
    # After a pick from the last computed level of a node, the node's next key and thus the order is unknown.
    last_levels = np.flatnonzero(level[:certain] == levels - 1)
    if len(last_levels):
        certain = int(last_levels[0]) + 1
    scores = sequences.ravel()[order[:certain]] >> RANK_BITS
    return list(zip(rows[column[:certain]].tolist(), scores.tolist(), strict=True))


def _sequences(
    cluster: Cluster, row_cache: RowPluginCache, spec: SpecClass, keys: Ints, rows: Rows, *, usage: Ints, count: int
) -> Ints:
    """Return the keys of each row (a column) with 0, 1, 2 ... copies of the pod (the levels)."""
    specs, width = SpecColumns(spec), len(rows)
    # Small pods often leave a node's score as it was, so that one node gets many of them in a row.
    levels = max(2 + 2 * -(-count // width), _PASS_CELLS // width)
    levels = min(levels, count + 1, max(2, _MAX_CELLS // width))
    at_once = max(1, _PASS_CELLS // width)
    node_scores: Ints | None = None
    parts = []
    for first in range(0, levels, at_once):
        copies = np.arange(first, min(first + at_once, levels))
        filled = row_cache.keys_in(FilledRows(cluster, rows, usage, copies), specs)[:, 0].reshape(-1, width)
        if node_scores is None:
            node_scores = keys[rows] - filled[0]  # scores of node plugins do not change as a node fills
        parts.append(np.where(filled >= 0, filled + node_scores, filled))
        if not (filled[-1] >= 0).any():  # no node takes this many copies, so none takes more
            break
    return np.concatenate(parts)


def _largest(values: Ints, count: int) -> Rows:
    """Return the places of the largest values in falling order; equal values keep their order.

    Keys lie level by level in memory, so that the copies of one node stay in order.
    """
    places = np.arange(len(values))
    if len(values) > 2 * count:
        places = np.flatnonzero(values >= np.partition(values, -count)[-count])
    return places[np.argsort(-values[places], kind="stable")[:count]]
