"""The request that a ClusterSnapshot of Gardener's scaling recommender describes.

Contract: pure. `parse_gardener` decodes a document once, and `read_gardener` builds the request. `schema` has the
fields, `cluster` the Kubernetes objects, and `worker_pools` the catalogue. A field that cannot be read raises
`InputError` with its path, and an impossible pool raises `PoolError`.
"""

from __future__ import annotations

from tutti.exceptions import InputError
from tutti.market.price_book import PriceBook
from tutti.recommend.build_request import assemble
from tutti.recommend.records.request import RecommendOptions, Request
from tutti.wire.gardener.cluster import read_cluster
from tutti.wire.gardener.schema import GardenerSnapshotText, parse_snapshot
from tutti.wire.gardener.worker_pools import read_catalogue
from tutti.wire.wire_document import WireDocument, has_kubernetes_fields, has_planner_fields

_DEFAULT = RecommendOptions()
_FIELDS = {"autoscalerconfig", "workerpools", "priorityclasses", "pods", "nodes"}
"""A snapshot has at least one of these fields, in any case."""


def parse_gardener(document: WireDocument) -> GardenerSnapshotText:
    """Return the records of a snapshot; a document of another format is an `InputError`.

    If another format were read as an empty snapshot, the answer would be that no pod is pending.
    """
    names = document.fields
    if names is not None and (
        has_kubernetes_fields(names) or has_planner_fields(names) or _FIELDS.isdisjoint(name.lower() for name in names)
    ):
        wanted = "a Gardener ClusterSnapshot (AutoscalerConfig, WorkerPools, Pods, Nodes)"
        other = "; other forms are read at /v1/recommendations" if names else ""
        raise InputError(f"want {wanted}{other}", file=document.source.name)
    return parse_snapshot(document)


def read_gardener(
    text: GardenerSnapshotText, book: PriceBook, *, file: str, options: RecommendOptions = _DEFAULT
) -> Request:
    """Return the request that a snapshot describes."""
    snapshot = read_cluster(text, file=file)
    catalogue = read_catalogue(text, snapshot.nodes, book, file=file)
    return assemble(snapshot, catalogue, options=options, notes=snapshot.notes)
