"""Borrowing a cluster: a model edits it, and it is as it was afterwards."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from tutti.cluster.cluster import Cluster
from tutti.cluster.work.meter import Meter


@contextmanager
def borrowed(cluster: Cluster) -> Iterator[None]:
    """Undo all edits at the end, after an exception too.

    The node table may list nodes that were removed meanwhile in another order afterwards. The meter does not count the
    undoing: the rates of the models' own work include it.
    """
    mark = cluster.mark()
    try:
        yield
    finally:
        meter, cluster.meter = cluster.meter, Meter()
        cluster.rollback(mark)
        cluster.meter = meter
