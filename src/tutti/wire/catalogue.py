"""The catalogue for a cluster of Kubernetes objects: the pools of a file, else the pools among the objects.

Contract: pure. A file with a ScalingConstraint of gardener/scaling-advisor is read as a constraint, every other file by
the readers in `market.pools`.
"""

from __future__ import annotations

from typing import NamedTuple

from tutti.kube.reading.snapshot import Snapshot
from tutti.kube.reading.sources import Source
from tutti.market.offerings import Catalogue
from tutti.market.pool_context import PoolContext, region_of_node
from tutti.market.pools.reader import catalogue_of
from tutti.market.price_book import PriceBook, check_region
from tutti.wire.scaling_advisor.request import constraint_catalogue
from tutti.wire.scaling_advisor.schema import ConstraintText, find_constraint, parse_constraint
from tutti.wire.wire_document import without_byte_order_mark


class PoolsRead(NamedTuple):
    """A catalogue, and the ScalingConstraint that it was read from, if any."""

    catalogue: Catalogue
    constraint: ConstraintText | None = None


def read_pools_for(
    snapshot: Snapshot, book: PriceBook, *, pools: Source | None, region: str = "", option: str = "region"
) -> PoolsRead:
    """Return the catalogue for a prepared snapshot; `region` is for pools without a region.

    A region without prices and nodes is an error; `option` is the name of the region option in that error.
    """
    check_region(region, book, there={region_of_node(node) for node in snapshot.nodes}, called=option)
    source = without_byte_order_mark(pools) if pools is not None else None
    tree = find_constraint(source).constraint if source is not None else None
    if source is not None and tree is not None:
        constraint = parse_constraint(tree, source)
        return PoolsRead(constraint_catalogue(constraint, snapshot, book, file=source.name), constraint)
    return PoolsRead(catalogue_of(snapshot, PoolContext(book, region=region, nodes=snapshot.nodes), source=source))
