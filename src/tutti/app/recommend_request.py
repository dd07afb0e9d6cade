"""The request for a recommendation on a loaded cluster: what can be bought for it, and how to choose."""

from __future__ import annotations

from tutti.app.loaded_cluster import LoadedCluster
from tutti.kube.admission.unknown_volumes import drop_unknown_volumes
from tutti.kube.reading.sources import Source
from tutti.recommend.build_request import assemble, price_book
from tutti.recommend.records.request import Options, Request
from tutti.wire.catalogue import read_pools_for


def recommend_request(
    loaded: LoadedCluster, *, pools: Source | None, prices: Source | None, region: str, options: Options
) -> Request:
    """The request for a cluster, with what-ifs as they are; pools are inferred from its nodes if none are given."""
    snapshot = drop_unknown_volumes(loaded.snapshot)
    read = read_pools_for(snapshot, price_book(prices), pools=pools, region=region, option="region")
    return assemble(snapshot, read.catalogue, options=options)
