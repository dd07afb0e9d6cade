"""From what a user gives to a request: the first steps of a recommendation, by name.

Contract: pure; files are read by whoever calls. `parse_snapshot` gives what a scheduler looks at, `parse_priorities`
the levels of the pods that wait, `build_request` everything together: cluster, daemons, what can be bought, options.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from tutti.kube.objects import KINDS, DaemonSet, KarpenterPool, Object, Pod, PriorityClass
from tutti.kube.reading.snapshot import Snapshot
from tutti.kube.reading.sources import Source
from tutti.kube.workloads.owners import is_active
from tutti.market.node_daemons import daemon_sets_of
from tutti.market.offerings import Catalogue
from tutti.market.pool_context import Market
from tutti.market.pools.reader import catalogue_of
from tutti.market.price_book import PriceBook
from tutti.market.price_csv import read_price_table
from tutti.recommend.records.request import Options, Request

_DEFAULT = Options()


class PriorityLevel(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Pending pods of equal importance."""

    value: int
    names: tuple[str, ...] = ()
    """The priority classes of this value, by name; none where priorities are given without classes."""
    pods: tuple[str, ...] = ()


def parse_snapshot(snapshot: Snapshot) -> tuple[Object, ...]:
    """What a scheduler looks at, in an order in which nothing refers to what comes later."""
    kinds = [kind for kind in KINDS if kind != KarpenterPool.KIND]
    return tuple(obj for kind in kinds for obj in snapshot.objects.get(kind, ()))


def parse_priorities(objects: Iterable[Object]) -> tuple[PriorityLevel, ...]:
    """The levels of the pods that wait, the highest first; a single one where there are no priorities."""
    pods: dict[int, list[str]] = {}
    names: dict[int, list[str]] = {}
    for obj in objects:
        if isinstance(obj, Pod) and is_pending(obj):
            pods.setdefault(obj.spec.priority or 0, []).append(obj.key)
        elif isinstance(obj, PriorityClass):
            names.setdefault(obj.value, []).append(obj.metadata.name)
    return tuple(
        PriorityLevel(value=value, names=tuple(sorted(names.get(value, ()))), pods=tuple(sorted(pods[value])))
        for value in sorted(pods or {0: []}, reverse=True)
        if value in pods
    ) or (PriorityLevel(value=0),)


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
    options: Options = _DEFAULT,
) -> Request:
    """Everything that a recommendation for a prepared snapshot is made from."""
    market = Market(price_book(prices), region=region, nodes=snapshot.nodes)
    return assemble(snapshot, catalogue_of(snapshot, market, source=pools), options=options)


def assemble(
    snapshot: Snapshot, catalogue: Catalogue, *, options: Options = _DEFAULT, notes: Iterable[str] = ()
) -> Request:
    """The request for a prepared snapshot and what can be bought for it."""
    daemons = daemon_sets_of(snapshot)
    given = {each.key for each in snapshot.of(DaemonSet)}
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
