"""Temporary edits: a model changes a cluster, and every change is rolled back at the end."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from tutti.cluster.cluster import Cluster
from tutti.cluster.work.meter import Meter


@contextmanager
def temporary_edits(cluster: Cluster) -> Iterator[None]:
    """Roll back all edits of the block at its end, also after an exception.

    The node table may list nodes that the block removed in another order afterwards. The meter does not count the
    rollback: the rates of the models' own work include it.
    """
    mark = cluster.mark()
    try:
        yield
    finally:
        meter, cluster.meter = cluster.meter, Meter()
        cluster.rollback(mark)
        cluster.meter = meter
