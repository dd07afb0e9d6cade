"""Pod equivalence groups: pending pods of one owner that cannot be told apart."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from tutti.cluster.cluster import Cluster
from tutti.engine.plugins.base import controller


class PodEquivalenceGroup(NamedTuple):
    """See the module's line."""

    pods: tuple[str, ...]
    priority: int
    requests: dict[str, int]
    """What each asks for: cpu in millicores, everything else in whole units."""


def build_pod_groups(cluster: Cluster, pods: Iterable[str]) -> tuple[PodEquivalenceGroup, ...]:
    """Sort pods into pod groups: the important ones first, then in the order in which they come.

    Pods without an owner are one group if they look alike. Cluster Autoscaler looks at each of them alone, with the
    same result in far more time.
    """
    table, rows = cluster.pods, [(pod, cluster.pod_row(pod)) for pod in pods]
    for number in {int(table.spec[row]) for _, row in rows}:  # labels that any of them looks at are told apart
        cluster.pod_counters.watch(cluster.specs.classes[number].watched_keys)
    found: dict[tuple[object, ...], list[str]] = {}
    for pod, row in rows:
        obj = cluster.pod(pod)
        key = (
            int(table.spec[row]),
            cluster.pod_counters.label_class_of(row).number,
            obj.metadata.namespace,
            controller(obj),
        )
        found.setdefault(key, []).append(pod)
    pod_groups = []
    for members in found.values():
        row = cluster.pod_row(members[0])
        pod_groups.append(PodEquivalenceGroup(tuple(members), int(table.priority[row]), cluster.spec_of(row).requests))
    return tuple(sorted(pod_groups, key=lambda pod_group: -pod_group.priority))
