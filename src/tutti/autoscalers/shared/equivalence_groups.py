"""Pod equivalence groups: pending pods of one owner that the scheduler cannot tell apart."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from tutti.cluster.cluster import Cluster
from tutti.engine.plugins.base import controller


class PodEquivalenceGroup(NamedTuple):
    """Pending pods with the same owner, namespace, spec and relevant labels."""

    pods: tuple[str, ...]
    priority: int
    requests: dict[str, int]
    """The requests of each pod: cpu in millicores, other resources in whole units."""


def build_pod_groups(cluster: Cluster, pods: Iterable[str]) -> tuple[PodEquivalenceGroup, ...]:
    """Sort pods into groups: by decreasing priority, then in the order of their first pods.

    Pods without an owner share a group if they are alike. Cluster Autoscaler makes a group of each such pod, with the
    same result in far more time.
    """
    table, rows = cluster.pods, [(pod, cluster.pod_row(pod)) for pod in pods]
    for number in {int(table.spec[row]) for _, row in rows}:  # label classes must tell these labels apart
        cluster.pod_counters.watch(cluster.specs.classes[number].watched_keys)
    pods_by_key: dict[tuple[object, ...], list[str]] = {}
    for pod, row in rows:
        obj = cluster.pod(pod)
        key = (
            int(table.spec[row]),
            cluster.pod_counters.label_class_of(row).number,
            obj.metadata.namespace,
            controller(obj),
        )
        pods_by_key.setdefault(key, []).append(pod)
    pod_groups = []
    for members in pods_by_key.values():
        row = cluster.pod_row(members[0])
        pod_groups.append(PodEquivalenceGroup(tuple(members), int(table.priority[row]), cluster.spec_of(row).requests))
    return tuple(sorted(pod_groups, key=lambda pod_group: -pod_group.priority))
