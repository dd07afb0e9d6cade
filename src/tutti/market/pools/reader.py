"""Read node pools from a file or from the cluster.

Contract: `read_pools` detects the dialect: Tutti's own text has ``pools``, Auto Scaling groups have
``AutoScalingGroups`` (or are a list of groups); any other file has Kubernetes objects, of which Karpenter NodePools
count. Without a file, Karpenter NodePools of the snapshot count, or else pools are inferred from the nodes. Errors are
`InputError` with the file.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from msgspec.structs import replace

from tutti.exceptions import InputError, PoolError
from tutti.kube.objects import KarpenterPool
from tutti.kube.reading.decode import decode_objects
from tutti.kube.reading.parsed_file import parse_file
from tutti.kube.reading.snapshot import Snapshot
from tutti.kube.reading.sources import Source
from tutti.kube.reading.validation import validate
from tutti.kube.reading.yaml_text import parse_yaml
from tutti.market.offerings import Catalogue
from tutti.market.pool_context import PoolContext
from tutti.market.pool_members import members_of
from tutti.market.pools.auto_scaling_groups import read_groups
from tutti.market.pools.inferred_pools import infer_pools
from tutti.market.pools.karpenter_nodepool import read_karpenter
from tutti.market.pools.tutti_pools import read_tutti_pools

_GROUPS = "AutoScalingGroups"
_GROUP = "AutoScalingGroupName"
_WANT = "want pools of Tutti, Karpenter NodePools, or Auto Scaling groups as describe-auto-scaling-groups prints them"


def catalogue_of(snapshot: Snapshot, market: PoolContext, *, source: Source | None = None) -> Catalogue:
    """Return the catalogue: from the file, from Karpenter pools of the snapshot, or inferred from the nodes."""
    return with_unpooled_nodes(_catalogue(snapshot, market, source), market)


def with_unpooled_nodes(catalogue: Catalogue, market: PoolContext) -> Catalogue:
    """Return the catalogue with the nodes that belong to none of its pools."""
    pool_nodes = {member.node for pool in catalogue.pools for member in pool.members}
    unpooled = [node for node in market.nodes if node.metadata.name not in pool_nodes]
    return replace(catalogue, others=members_of(unpooled, (), market))


def _catalogue(snapshot: Snapshot, market: PoolContext, source: Source | None) -> Catalogue:
    if source is not None:
        return read_pools(source, market)
    if karpenter_pools := snapshot.objects_of(KarpenterPool):
        pools, notes = read_karpenter(karpenter_pools, market)
        number = f"{len(pools)} Karpenter node pool{'s' if len(pools) > 1 else ''}"
        return Catalogue(pools=tuple(pools), notes=(f"{number} of the cluster can be bought from", *notes))
    pools, notes = infer_pools(market)
    return Catalogue(pools=tuple(pools), notes=tuple(notes))


def read_pools(source: Source, market: PoolContext) -> Catalogue:
    """Return the catalogue that a file describes."""
    try:
        trees = [tree for tree in parse_yaml(source) if tree is not None]
    except InputError as error:
        raise InputError(f"{error.problem}: {_WANT}", file=source.name, obj=error.obj, field=error.field) from None
    if not trees:
        raise InputError(f"there is no pool in it: {_WANT}", file=source.name)
    first = trees[0]
    if isinstance(first, dict) and "pools" in first and "kind" not in first:
        if len(trees) > 1:
            raise InputError("want one document with all pools", file=source.name)
        return read_tutti_pools(first, source, market=market)
    try:
        groups = _groups(first)
        if groups is not None:
            pools, notes = read_groups(groups, market)
        else:
            pools, notes = read_karpenter(_karpenter_pools(source, trees), market)
    except InputError as error:  # keep the class of the error: PoolError means well-formed but impossible
        kind = PoolError if isinstance(error, PoolError) else InputError
        raise kind(error.problem, file=source.name, obj=error.obj, field=error.field) from None
    if not pools:
        raise InputError(f"there is no pool in it: {_WANT}", file=source.name)
    return Catalogue(pools=tuple(pools), notes=tuple(notes))


def _groups(tree: Any) -> list[Any] | None:
    """Return the Auto Scaling groups of a tree; None if it has another content."""
    if isinstance(tree, dict) and _GROUPS in tree:
        listed = tree[_GROUPS]
        if not isinstance(listed, list):
            raise InputError("want a list of groups", field=_GROUPS)
        return listed
    if isinstance(tree, list) and any(isinstance(each, dict) and _GROUP in each for each in tree):
        return tree
    return None


def _karpenter_pools(source: Source, trees: Sequence[Any]) -> list[KarpenterPool]:
    listed = [each for tree in trees for each in (tree if isinstance(tree, list) else [tree])]
    if not all(isinstance(each, dict) and "kind" in each for each in listed):
        raise InputError(_WANT)
    decoded = decode_objects(parse_file(source))
    pools = [obj for obj in decoded.objects if isinstance(obj, KarpenterPool)]
    for pool in pools:
        try:
            validate(pool)
        except InputError as error:
            raise InputError(error.problem, obj=f"nodepool {pool.metadata.name}", field=error.field) from None
    return pools
