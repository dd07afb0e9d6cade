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


class FilledRows(NodeRows):
    """Rows as they would be with a number of copies of a pod on each."""

    __slots__ = ()

    def __init__(self, cluster: Cluster, rows: Rows, usage: Ints, copies: int) -> None:
        super().__init__(cluster, rows)
        self._used = cluster.nodes.used.take(rows, axis=1) + copies * usage[:, np.newaxis]


def pick_rows(
    cluster: Cluster, row_cache: RowPluginCache, spec: SpecClass, keys: Ints, usage: Ints, count: int
) -> list[tuple[int, int]]:
    """Return the rows for the next `count` pods of a class, in order, each with the node's score.

    Returns fewer rows when the order beyond them is not known yet, and none when no pod fits.
    """
    rows = np.flatnonzero(keys >= 0)
    if not len(rows):
        return []
    specs = SpecColumns(spec)
    levels = min(2 + 2 * -(-count // len(rows)), max(2, _MAX_CELLS // len(rows)))
    sequences = np.empty((levels, len(rows)), dtype=np.int64)
    sequences[0] = keys[rows]
    # Scores of node plugins do not change as a node fills.
    node_scores = keys[rows] - row_cache.keys_in(NodeRows(cluster, rows), specs)[:, 0]
    for copies in range(1, levels):
        filled_keys = row_cache.keys_in(FilledRows(cluster, rows, usage, copies), specs)[:, 0]
        sequences[copies] = np.where(filled_keys >= 0, filled_keys + node_scores, filled_keys)
        if not (filled_keys >= 0).any():  # no node takes this many copies, so none takes more
            levels = copies + 1
            sequences = sequences[:levels]
            break
    running_minimum = np.minimum.accumulate(sequences, axis=0).ravel()
    # Keys lie level by level in memory, so a stable sort keeps the copies of one node in order.
    order = np.argsort(-running_minimum, kind="stable")[:count]
    level, column = np.divmod(order, len(rows))
    fits = running_minimum[order] >= 0
    certain = len(order) if fits.all() else int(fits.argmin())
    # After a pick from the last computed level of a node, the node's next key and thus the order is unknown.
    last_levels = np.flatnonzero(level[:certain] == levels - 1)
    if len(last_levels):
        certain = int(last_levels[0]) + 1
    scores = sequences.ravel()[order[:certain]] >> RANK_BITS
    return list(zip(rows[column[:certain]].tolist(), scores.tolist(), strict=True))
