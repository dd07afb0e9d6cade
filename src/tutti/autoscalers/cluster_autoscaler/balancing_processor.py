"""Cluster Autoscaler's balancing: one scale-up split between groups that are alike but for where they are.

Contract: pure. Groups are alike if their nodes have the same labels, but for those that say where or who a node is, the
same capacity (memory within 1.5 %) and about the same allocatable amounts (within 5 %).
"""

from __future__ import annotations

from collections.abc import Sequence

from tutti.autoscalers.shared.limit_counter import capacity
from tutti.kube.objects import Node
from tutti.kube.resources import allocatable
from tutti.market.offerings import Offering

_MEMORY, _ALLOCATABLE = 0.015, 0.05
_WHERE_OR_WHO = frozenset((
    "kubernetes.io/hostname", "topology.kubernetes.io/zone", "topology.kubernetes.io/region",
    "failure-domain.beta.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/region",
    "beta.kubernetes.io/fluentd-ds-ready", "kops.k8s.io/instancegroup", "topology.ebs.csi.aws.com/zone",
    "alpha.eksctl.io/instance-id", "alpha.eksctl.io/nodegroup-name", "eks.amazonaws.com/nodegroup",
    "k8s.amazonaws.com/eniConfig", "lifecycle", "topology.gke.io/zone",
))  # fmt: skip


def are_similar(one: Offering, other: Offering) -> bool:
    """Whether two groups are alike."""
    mine, theirs = capacity(one), capacity(other)
    if mine.keys() != theirs.keys() or _labels(one.node) != _labels(other.node):
        return False
    if any(mine[name] != theirs[name] for name in mine if name != "memory"):
        return False
    if not _near(mine.get("memory", 0), theirs.get("memory", 0), _MEMORY):
        return False
    offered, their = allocatable(one.node), allocatable(other.node)
    return offered.keys() == their.keys() and all(_near(offered[n], their[n], _ALLOCATABLE) for n in offered)


def split(count: int, sizes: Sequence[int], room: Sequence[int]) -> list[int]:
    """How many of some new nodes each group gets, the smallest first; no group more than it has room for.

    Among equals the first comes first, and again after each round.
    """
    given = [0] * len(sizes)
    for _ in range(count):
        open_groups = [place for place in range(len(sizes)) if given[place] < room[place]]
        if not open_groups:
            break
        given[min(open_groups, key=lambda place: sizes[place] + given[place])] += 1
    return given


def _labels(node: Node) -> dict[str, str]:
    return {name: text for name, text in (node.metadata.labels or {}).items() if name not in _WHERE_OR_WHO}


def _near(one: int, other: int, share: float) -> bool:
    return abs(one - other) <= share * max(one, other)
