"""What can be bought for a cluster of Kubernetes objects: what a file with pools says, else what the objects tell.

Contract: pure. A file with a ScalingConstraint of gardener/scaling-advisor is read as that, every other one by the
readers in `recommend.pools`.
"""

from __future__ import annotations

from tutti.kube.reading.snapshot import Snapshot
from tutti.kube.reading.sources import Source
from tutti.market.offerings import Catalogue
from tutti.market.pool_context import Market, region_of_node
from tutti.market.pools.reader import catalogue_of
from tutti.market.price_book import PriceBook, check_region
from tutti.wire.document import plain
from tutti.wire.scaling_advisor.request import read_constraint


def catalogue_for(
    snapshot: Snapshot, book: PriceBook, *, pools: Source | None, region: str = "", called: str = "region"
) -> Catalogue:
    """What can be bought for a prepared snapshot; `region` is for pools that do not name one.

    A region in which there are neither prices nor nodes is refused, by the name that the user `called` it by.
    """
    check_region(region, book, there={region_of_node(node) for node in snapshot.nodes}, called=called)
    source = plain(pools) if pools is not None else None
    constraint = read_constraint(source, snapshot, book) if source is not None else None
    if constraint is not None:
        return constraint
    return catalogue_of(snapshot, Market(book, region=region, nodes=snapshot.nodes), source=source)
