"""The request for a recommendation on a loaded cluster: what can be bought for it, how to choose, and when it is.

Contract: pure; the present is an argument.
"""

from __future__ import annotations

from tutti.app.loaded_cluster import LoadedCluster
from tutti.kube.admission.unknown_volumes import drop_unknown_volumes
from tutti.kube.reading.sources import Source
from tutti.recommend.build_request import assemble, price_book
from tutti.recommend.down.snapshot_time import set_snapshot_time
from tutti.recommend.records.request import DownOptions, RecommendOptions, Request
from tutti.wire.catalogue import read_pools_for


def recommendation_request(
    loaded: LoadedCluster, *, pools: Source | None, prices: Source | None, region: str, options: RecommendOptions
) -> Request:
    """The request for a cluster, with its what-ifs; pools are inferred from its nodes if none are given."""
    snapshot = drop_unknown_volumes(loaded.snapshot)
    read = read_pools_for(snapshot, price_book(prices), pools=pools, region=region, option="region")
    return assemble(snapshot, read.catalogue, options=options)


def with_snapshot_time(request: Request, *, asked: DownOptions | None) -> Request:
    """The request with ages counted to the moment of an old dump, unless the input names a moment itself.

    `asked` is the scale-down that the caller asked for, with the present as its `now`; the input may have changed it.
    """
    return request if asked is None or asked.now is None else set_snapshot_time(request, present=asked.now)
