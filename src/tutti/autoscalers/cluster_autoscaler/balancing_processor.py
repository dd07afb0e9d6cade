"""Cluster Autoscaler's balancing processor: split one scale-up between similar node groups.

Contract: pure. Groups are similar if their nodes have the same labels (except labels of location and identity), the
same capacity (memory within 1.5 %) and nearly the same allocatable amounts (within 5 %).
"""

from __future__ import annotations

from collections.abc import Sequence

from tutti.autoscalers.shared.limit_counter import capacity
from tutti.kube.objects import Node
from tutti.kube.resources import allocatable
from tutti.market.offerings import Offering

_MEMORY_TOLERANCE, _ALLOCATABLE_TOLERANCE = 0.015, 0.05
_IGNORED_LABELS = frozenset((
    "kubernetes.io/hostname", "topology.kubernetes.io/zone", "topology.kubernetes.io/region",
    "failure-domain.beta.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/region",
    "beta.kubernetes.io/fluentd-ds-ready", "kops.k8s.io/instancegroup", "topology.ebs.csi.aws.com/zone",
    "alpha.eksctl.io/instance-id", "alpha.eksctl.io/nodegroup-name", "eks.amazonaws.com/nodegroup",
    "k8s.amazonaws.com/eniConfig", "lifecycle", "topology.gke.io/zone",
))  # fmt: skip


def are_similar(one: Offering, other: Offering) -> bool:
    """Return whether two node groups are similar."""
    first, second = capacity(one), capacity(other)
    if first.keys() != second.keys() or _labels(one.node) != _labels(other.node):
        return False
    if any(first[name] != second[name] for name in first if name != "memory"):
        return False
    if not _are_close(first.get("memory", 0), second.get("memory", 0), _MEMORY_TOLERANCE):
        return False
    first, second = allocatable(one.node), allocatable(other.node)
    return first.keys() == second.keys() and all(
        _are_close(first[name], second[name], _ALLOCATABLE_TOLERANCE) for name in first
    )


def split(count: int, sizes: Sequence[int], room: Sequence[int]) -> list[int]:
    """Return how many of `count` new nodes each group gets: one by one, each to the smallest group with room.

    Among groups of equal size, the first one gets the node.
    """
    added = [0] * len(sizes)
    for _ in range(count):
        with_room = [group for group in range(len(sizes)) if added[group] < room[group]]
        if not with_room:
            break
        added[min(with_room, key=lambda group: sizes[group] + added[group])] += 1
    return added


def _labels(node: Node) -> dict[str, str]:
    return {name: text for name, text in (node.metadata.labels or {}).items() if name not in _IGNORED_LABELS}


def _are_close(one: int, other: int, tolerance: float) -> bool:
    return abs(one - other) <= tolerance * max(one, other)
