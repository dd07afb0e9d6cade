"""The same cluster without some nodes: their pods wait.

Contract: pure. Pods are where the picture has them, whatever their objects say; pods that wait there are left out,
because nobody buys for them a second time.
"""

from __future__ import annotations

from collections.abc import Collection

from msgspec.structs import replace

from tutti.cluster.cluster import Cluster
from tutti.kube.objects import Object


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
