"""From a prepared snapshot, pools and prices to a request.

Contract: pure; the caller reads the files. `parse_snapshot` gives the objects that a scheduler looks at, `assemble` the
request for a catalogue, `build_request` the request for the texts of pools and prices.
"""

from __future__ import annotations

from collections.abc import Iterable

from tutti.kube.objects import KINDS, DaemonSet, KarpenterPool, Object, Pod
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


def parse_snapshot(snapshot: Snapshot) -> tuple[Object, ...]:
    """What a scheduler looks at, in an order in which nothing refers to what comes later."""
    kinds = [kind for kind in KINDS if kind != KarpenterPool.KIND]
    return tuple(obj for kind in kinds for obj in snapshot.objects.get(kind, ()))


def is_pending(pod: Pod) -> bool:
    """Whether a pod waits for a node."""
    return not pod.spec.node_name and is_active(pod)


def price_book(prices: Source | None = None) -> PriceBook:
    """The packaged price book, with a user's table before it."""
    return PriceBook(read_price_table(prices) if prices is not None else ())


def build_request(
    snapshot: Snapshot,
    *,
    pools: Source | None = None,
    prices: Source | None = None,
    region: str = "",
    options: RecommendOptions = _DEFAULT,
) -> Request:
    """Everything that a recommendation for a prepared snapshot is made from."""
    market = PoolContext(price_book(prices), region=region, nodes=snapshot.nodes)
    return assemble(snapshot, catalogue_of(snapshot, market, source=pools), options=options)


def assemble(
    snapshot: Snapshot, catalogue: Catalogue, *, options: RecommendOptions = _DEFAULT, notes: Iterable[str] = ()
) -> Request:
    """The request for a prepared snapshot and what can be bought for it."""
    daemons = daemon_sets_of(snapshot)
    given = {each.key for each in snapshot.objects_of(DaemonSet)}
    guessed = [each.key for each in daemons if each.key not in given]
    told = list(notes)
    if guessed:
        names = ", ".join(guessed[:5]) + (" ..." if len(guessed) > 5 else "")
        are = "daemon is" if len(guessed) == 1 else "daemons are"
        told.append(f"{len(guessed)} {are} known by pods alone, and expected where these run: {names}")
    return Request(
        objects=parse_snapshot(snapshot),
        daemon_sets=daemons,
        catalogue=catalogue,
        options=options,
        notes=tuple(told),
    )
