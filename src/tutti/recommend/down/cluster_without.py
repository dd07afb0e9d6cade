"""A copy of a cluster without some nodes, whose pods are pending.

Contract: the cluster itself is only read. Pods are where the cluster has them, whatever their objects say. The copy has
no other pending pods, because nodes for them are already bought.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from msgspec.structs import replace

from tutti.cluster.cluster import Cluster
from tutti.cluster.edits import Edit, Put, Remove, Unbind
from tutti.kube.objects import Node, Pod
from tutti.recommend.request_cluster import copy_cluster


def cluster_without(cluster: Cluster, removed_nodes: Collection[str], moving_pods: Collection[str]) -> Cluster:
    """Return a copy without some nodes: their `moving_pods` are pending, all their other pods are gone."""
    return copy_cluster(cluster, _edits(cluster, removed_nodes, moving_pods))


def _edits(cluster: Cluster, removed_nodes: Collection[str], moving_pods: Collection[str]) -> Iterator[Edit]:
    pods = cluster.pods
    for key, row in pods.row_of.items():
        pod, node = pods.objects[row], pods.node_names[row]
        if pod is None:
            continue
        if node is None or (node in removed_nodes and key not in moving_pods):
            yield Remove(Pod.KIND, key)
        elif node in removed_nodes:
            status = replace(pod.status, nominated_node_name=None) if pod.spec.node_name else pod.status
            yield Unbind(key)
            yield Put(replace(pod, spec=replace(pod.spec, node_name=None), status=status))
    for name in removed_nodes:
        yield Remove(Node.KIND, name)
