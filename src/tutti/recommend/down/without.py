"""The same cluster without some nodes: their pods wait, and what may be bought is as before.

Contract: pure. Pods are where the picture has them, whatever their objects say; pods that wait there are left out,
because nobody buys for them a second time.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from msgspec.structs import replace

from tutti.cluster.cluster import Cluster
from tutti.kube.objects import Object
from tutti.recommend.offerings import Catalogue, Limit, Offering, takes


def objects_without(cluster: Cluster, going: Collection[str], moving: Collection[str]) -> tuple[Object, ...]:
    """The objects of a cluster without these nodes: `moving` waits, all else that is on them goes with them."""
    found: list[Object] = [each for objects in cluster.objects.values() for each in objects.values()]
    nodes, pods = cluster.nodes, cluster.pods
    for name, row in nodes.row_of.items():
        node = nodes.objects[row]
        if node is not None and name not in going:
            found.append(node)
    for key, row in pods.row_of.items():
        pod, where = pods.objects[row], pods.node_names[row]
        if pod is None or where is None or (where in going and key not in moving):
            continue
        home = None if where in going else where
        if pod.spec.node_name != home:
            status = replace(pod.status, nominated_node_name=None) if home is None else pod.status
            pod = replace(pod, spec=replace(pod.spec, node_name=home), status=status)
        found.append(pod)
    return tuple(found)


def spent(catalogue: Catalogue, bought: Iterable[Offering]) -> Catalogue:
    """What may still be bought after this."""
    listed = list(bought)
    if not listed:
        return catalogue
    pools = tuple(
        replace(pool, limits=_less(pool.limits, [each for each in listed if each.pool == pool.name]))
        for pool in catalogue.pools
    )
    return replace(catalogue, pools=pools, limits=_less(catalogue.limits, listed))


def _less(limits: Sequence[Limit], bought: Sequence[Offering]) -> tuple[Limit, ...]:
    return tuple(
        replace(limit, left=max(limit.left - sum(takes(limit, each) for each in bought), 0)) for limit in limits
    )
