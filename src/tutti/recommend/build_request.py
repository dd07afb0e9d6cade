"""Build a request from a prepared snapshot, node pools and prices.

Contract: pure; the caller reads the files. `build_request` takes the texts of pools and prices, `assemble` takes a
catalogue, and `scheduler_objects` returns the objects that a recommendation reads.
"""

from __future__ import annotations

from collections.abc import Iterable

from tutti.cluster.cluster import Cluster
from tutti.kube.objects import KINDS, CronJob, DaemonSet, Deployment, KarpenterPool, Object, Pod
from tutti.kube.reading.snapshot import Snapshot
from tutti.kube.reading.sources import Source
from tutti.kube.workloads.owners import is_active
from tutti.market.node_daemons import daemon_sets_of
from tutti.market.offerings import Catalogue
from tutti.market.pool_context import PoolContext
from tutti.market.pools.reader import catalogue_of
from tutti.market.price_book import PriceBook
from tutti.market.price_csv import read_price_table
from tutti.recommend.records.request import RecommendOptions, Request

_DEFAULT = RecommendOptions()
_UNREAD = frozenset((KarpenterPool.KIND, Deployment.KIND, CronJob.KIND))
"""Kinds whose objects change no recommendation; the catalogue has the pools."""


def scheduler_objects(snapshot: Snapshot) -> tuple[Object, ...]:
    """Return the objects that a recommendation reads, ordered so that no object refers to a later one."""
    return tuple(obj for kind in KINDS if kind not in _UNREAD for obj in snapshot.objects.get(kind, ()))


def is_pending(pod: Pod) -> bool:
    """Return whether a pod is active and has no node."""
    return not pod.spec.node_name and is_active(pod)


def price_book(prices: Source | None = None) -> PriceBook:
    """Return the packaged price book; rows of the user's table take precedence."""
    return PriceBook(read_price_table(prices) if prices is not None else ())


def build_request(
    snapshot: Snapshot,
    *,
    pools: Source | None = None,
    prices: Source | None = None,
    region: str = "",
    options: RecommendOptions = _DEFAULT,
) -> Request:
    """Return the request for a prepared snapshot, with the texts of pools and prices."""
    market = PoolContext(price_book(prices), region=region, nodes=snapshot.nodes)
    return assemble(snapshot, catalogue_of(snapshot, market, source=pools), options=options)


def assemble(
    snapshot: Snapshot,
    catalogue: Catalogue,
    *,
    options: RecommendOptions = _DEFAULT,
    notes: Iterable[str] = (),
    cluster: Cluster | None = None,
) -> Request:
    """Return the request for a prepared snapshot and a catalogue; `cluster` is that of the snapshot, if it exists."""
    daemons = daemon_sets_of(snapshot)
    daemon_set_keys = {each.key for each in snapshot.objects_of(DaemonSet)}
    inferred = [each.key for each in daemons if each.key not in daemon_set_keys]
    all_notes = list(notes)
    if inferred:
        names = ", ".join(inferred[:5]) + (" ..." if len(inferred) > 5 else "")
        subject = "daemon has" if len(inferred) == 1 else "daemons have"
        note = "pods but no DaemonSet object; expected on new nodes like those of the pods"
        all_notes.append(f"{len(inferred)} {subject} {note}: {names}")
    return Request(
        objects=scheduler_objects(snapshot),
        daemon_sets=daemons,
        catalogue=catalogue,
        options=options,
        notes=tuple(all_notes),
        built_cluster=cluster,
    )
