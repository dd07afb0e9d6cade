"""Batches: where many pods of one class go, found at once.

Contract: the rows are those that deciding pod by pod would give. That holds for pods that do not look at each other
and whose node scores do not depend on other nodes: then each node has a sequence of keys, its key after 0, 1, 2 ...
copies, and deciding pod by pod always takes the largest head. A node that was just taken is taken again at once while
its next key is not smaller, so the order of all picks is that of each sequence's running minimum.
"""

from __future__ import annotations

import numpy as np

from tutti.cluster.cluster import Cluster
from tutti.cluster.columns import Ints, Rows
from tutti.cluster.node_table import RANK_BITS
from tutti.cluster.spec_classes import SpecClass
from tutti.engine.placement.row_plugin_cache import RowPluginCache
from tutti.engine.plugins.base import NodeRows, SpecColumns

_MOST_CELLS = 400_000
"""Keys looked at in one go: bounds the memory that a batch takes."""


class FilledRows(NodeRows):
    """Rows as they would be with copies of a pod on them."""

    __slots__ = ()

    def __init__(self, cluster: Cluster, rows: Rows, usage: Ints, copies: int) -> None:
        super().__init__(cluster, rows)
        self._used = cluster.nodes.used.take(rows, axis=1) + copies * usage[:, np.newaxis]


def pick(
    cluster: Cluster, table: RowPluginCache, spec: SpecClass, keys: Ints, usage: Ints, count: int
) -> list[tuple[int, int]]:
    """Give the rows that the next pods of a class go to, in order, with their scores.

    There are fewer than asked for when no more is known yet, and none when nothing fits.
    """
    rows = np.flatnonzero(keys >= 0)
    if not len(rows):
        return []
    specs = SpecColumns(spec)
    levels = min(2 + 2 * -(-count // len(rows)), max(2, _MOST_CELLS // len(rows)))
    sequences = np.empty((levels, len(rows)), dtype=np.int64)
    sequences[0] = keys[rows]
    # Scores of the nodes alone stay what they are.
    steady = keys[rows] - table.keys_in(NodeRows(cluster, rows), specs)[:, 0]
    for copies in range(1, levels):
        crowded = table.keys_in(FilledRows(cluster, rows, usage, copies), specs)[:, 0]
        sequences[copies] = np.where(crowded >= 0, crowded + steady, crowded)
        if not (crowded >= 0).any():  # nor will any more fit
            levels = copies + 1
            sequences = sequences[:levels]
            break
    falling = np.minimum.accumulate(sequences, axis=0).ravel()
    # Level by level in memory, so that a stable sort takes the copies of one node in their order.
    order = np.argsort(-falling, kind="stable")[:count]
    level, place = np.divmod(order, len(rows))
    fits = falling[order] >= 0
    known = len(order) if fits.all() else int(fits.argmin())
    # Behind the last level of a node that has been taken up, the order is not known.
    ends = np.flatnonzero(level[:known] == levels - 1)
    if len(ends):
        known = int(ends[0]) + 1
    scores = sequences.ravel()[order[:known]] >> RANK_BITS
    return list(zip(rows[place[:known]].tolist(), scores.tolist(), strict=True))
