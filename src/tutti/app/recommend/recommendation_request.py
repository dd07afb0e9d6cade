"""The request for a recommendation on a loaded cluster: its objects, its pools and prices, and the options.

Contract: pure; the current time is an argument.
"""

from __future__ import annotations

from tutti.app.loaded_cluster import LoadedCluster
from tutti.kube.admission.unknown_volumes import drop_unknown_volumes
from tutti.kube.reading.sources import Source
from tutti.recommend.build_request import assemble, price_book
from tutti.recommend.down.snapshot_time import set_snapshot_time
from tutti.recommend.records.request import DownOptions, RecommendOptions, Request
from tutti.recommend.request_cluster import copy_cluster
from tutti.wire.catalogue import read_pools_for


def recommendation_request(
    loaded: LoadedCluster, *, pools: Source | None, prices: Source | None, region: str, options: RecommendOptions
) -> Request:
    """Return the request for a cluster, after its what-ifs; without `pools`, pools are inferred from the cluster.

    The request has a copy of the loaded cluster. After a what-if it builds the cluster from objects instead, because
    edits leave nodes and pods in another order than a dump of the changed cluster has.
    """
    snapshot = drop_unknown_volumes(loaded.snapshot)
    pools_read = read_pools_for(snapshot, price_book(prices), pools=pools, region=region, option="region")
    cluster = copy_cluster(loaded.cluster) if loaded.snapshot is loaded.input else None
    return assemble(snapshot, pools_read.catalogue, options=options, cluster=cluster)


def with_snapshot_time(request: Request, *, down_options: DownOptions | None) -> Request:
    """Return the request with the time of an old dump as the current time, unless the input states a time.

    `down_options` are the scale-down options that the caller passed, with the real current time as `now`; those in the
    request may differ, because the input can change them.
    """
    return (
        request
        if down_options is None or down_options.now is None
        else set_snapshot_time(request, present=down_options.now)
    )
