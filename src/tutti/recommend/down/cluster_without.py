"""A copy of a cluster without some nodes, whose pods are pending.

Contract: the cluster itself is only read. Pods are where the cluster has them, whatever their objects say. The copy has
no other pending pods, because nothing is bought for them a second time.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from msgspec.structs import replace

from tutti.cluster.cluster import Cluster
from tutti.cluster.edits import Edit, Put, Remove
from tutti.kube.objects import Node, Pod
from tutti.recommend.request_cluster import copied


def cluster_without(cluster: Cluster, going: Collection[str], moving: Collection[str]) -> Cluster:
    """A copy without the nodes `going`: the pods `moving` are pending, all other pods of these nodes are gone."""
    return copied(cluster, _edits(cluster, going, moving))


def _edits(cluster: Cluster, going: Collection[str], moving: Collection[str]) -> Iterator[Edit]:
    pods = cluster.pods
    for key, row in pods.row_of.items():
        pod, where = pods.objects[row], pods.node_names[row]
        if pod is None:
            continue
        if where is None or (where in going and key not in moving):
            yield Remove(Pod.KIND, key)
        elif where in going:
            status = replace(pod.status, nominated_node_name=None) if pod.spec.node_name else pod.status
            yield Put(replace(pod, spec=replace(pod.spec, node_name=None), status=status))
    for name in going:
        yield Remove(Node.KIND, name)
