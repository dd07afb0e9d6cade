"""Gardener's ClusterSnapshot, as the scaling recommender's clients post it, as a request.

Contract: pure. The pods are those of the body. `gardener_text` has the fields, `gardener_cluster` the objects that they
become, `gardener_pools` what can be bought. What cannot be read raises `InputError` with the field, a pool that cannot
be `PoolError`.
"""

from __future__ import annotations

from tutti.exceptions import InputError
from tutti.kube.reading.sources import Source
from tutti.market.price_book import PriceBook
from tutti.recommend.build_request import assemble
from tutti.recommend.records.request import Options, Request
from tutti.wire.document import are_objects, first_level, is_planner
from tutti.wire.gardener.cluster import read_cluster
from tutti.wire.gardener.text import parse_gardener
from tutti.wire.gardener.worker_pools import read_catalogue

_DEFAULT = Options()
_FIELDS = {"autoscalerconfig", "workerpools", "priorityclasses", "pods", "nodes"}
"""What a snapshot has one of at least, in lower case."""


def read_gardener(source: Source, book: PriceBook, *, options: Options = _DEFAULT) -> Request:
    """The request that a snapshot stands for."""
    _check(source)
    text = parse_gardener(source)
    snapshot = read_cluster(text, file=source.name)
    catalogue = read_catalogue(text, snapshot.nodes, book, file=source.name)
    return assemble(snapshot, catalogue, options=options, notes=snapshot.notes)


def _check(source: Source) -> None:
    """Refuse what is none: read as an empty snapshot, it would say that nobody waits."""
    names = first_level(source)
    if names is None:
        return  # malformed: the decoder says where
    if are_objects(names) or is_planner(names) or not _FIELDS & {name.lower() for name in names}:
        wanted = "a Gardener ClusterSnapshot (AutoscalerConfig, WorkerPools, Pods, Nodes)"
        other = "; other forms are read at /v1/recommendations" if names else ""
        raise InputError(f"want {wanted}{other}", file=source.name)
