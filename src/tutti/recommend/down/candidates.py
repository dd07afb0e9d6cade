"""Candidates: the nodes that may go at all, and the reason of each that may not.

Contract: pure. What is asked here is asked of one node at a time, whatever becomes of the others: whose it is, what it
and its pool say, who is on it and whether they may leave. Whether there is room for them elsewhere is asked later, on
the picture (`down.drainage`). Words are Cluster Autoscaler's where it has one.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import msgspec
import numpy as np

from tutti.autoscalers.cluster_autoscaler.drainability import DrainabilityRules
from tutti.cluster.cluster import Cluster
from tutti.cluster.columns import CPU, MEMORY
from tutti.kube.objects import Node
from tutti.kube.resource_names import is_gpu
from tutti.market.offerings import Catalogue, NodePool, PoolMember
from tutti.market.pool_context import is_control_plane
from tutti.recommend.down.node_pods import DO_NOT_DISRUPT, blocking, leaving
from tutti.recommend.records.down_plan import StayingNode
from tutti.recommend.records.request import DownOptions

_DISABLED = ("cluster-autoscaler.kubernetes.io/scale-down-disabled", DO_NOT_DISRUPT)
_CANDIDATE = "DeletionCandidateOfClusterAutoscaler"


class RemovalCandidate(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A node that may go if its pods find room elsewhere."""

    member: PoolMember
    pool: str
    utilization: float
    limit: float
    """Up to which utilization_of it is underused."""
    pods: tuple[str, ...]
    """Those that would have to move, by name."""
    underused: bool
    """Whether it is used so little that it may go for that alone; an empty node always is."""
    replaceable: bool
    """Whether it may be replaced by cheaper nodes, however much it is used."""
    wait: int
    """For how many seconds it must stay unneeded."""

    @property
    def node(self) -> str:
        """Its name."""
        return self.member.node

    @property
    def price(self) -> int:
        """What it costs; nothing where that is not known."""
        return self.member.price or 0


class SortedNodes(NamedTuple):
    """All nodes, sorted."""

    candidates: list[RemovalCandidate]
    stays: list[StayingNode]


def utilizations(cluster: Cluster) -> dict[str, float]:
    """How much of each node its pods ask for: the larger share of cpu and memory, of GPUs alone where there are any."""
    nodes, names = cluster.nodes, cluster.resources.names
    shares = np.divide(nodes.used, nodes.alloc, out=np.zeros(nodes.alloc.shape), where=nodes.alloc > 0)
    chosen = np.maximum(shares[CPU], shares[MEMORY])
    for place in reversed([number for number, name in enumerate(names) if is_gpu(name)]):
        chosen = np.where(nodes.alloc[place] > 0, shares[place], chosen)
    return {name: float(chosen[row]) for name, row in nodes.row_of.items()}


def find_candidates(
    cluster: Cluster, catalogue: Catalogue, rules: DrainabilityRules, *, down: DownOptions, new: set[str]
) -> SortedNodes:
    """Sort the nodes; those in `new` are just being bought, and those that their pods wait for are spoken of apart."""
    homes = {member.node: (pool, member) for pool in catalogue.pools for member in pool.members}
    shares = utilizations(cluster)
    found = SortedNodes([], [])
    for name in sorted(cluster.nodes.row_of):
        node = cluster.nodes.objects[cluster.nodes.row_of[name]]
        if node is None or name in new:
            continue
        judged = _evaluator(node, cluster, rules=rules, down=down, homes=homes, share=shares[name])
        if isinstance(judged, StayingNode):
            found.stays.append(judged)
        else:
            found.candidates.append(judged)
    return found


def _evaluator(
    node: Node,
    cluster: Cluster,
    *,
    rules: DrainabilityRules,
    down: DownOptions,
    homes: Mapping[str, tuple[NodePool, PoolMember]],
    share: float,
) -> RemovalCandidate | StayingNode:
    name, marks = node.metadata.name, node.metadata.annotations or {}
    if name not in homes:
        why = "it runs the control plane" if is_control_plane(node) else "it belongs to no pool that is known"
        return StayingNode(node=name, pool="", reason="NotAutoscaled", message=why, utilization=share)
    pool, member = homes[name]

    def stay(reason: str, message: str, pod: str = "") -> StayingNode:
        return StayingNode(node=name, pool=pool.name, reason=reason, message=message, pod=pod, utilization=share)

    if pool.down_rules.disabled:
        return stay("ScaleDownDisabled", f"pool {pool.name} gives no node back")
    for mark in _DISABLED:
        if marks.get(mark) == "true":
            return stay("ScaleDownDisabledAnnotation", f"it is annotated with {mark}")
    replaceable = down.consolidate and not pool.down_rules.empty_only and bool(member.price)
    moving = leaving(cluster, name, rules)
    for pod in moving:
        if (blocked := blocking(pod, rules)) is not None:
            return stay(blocked[0], f"pod {pod.key} {blocked[1]}", pod.key)
    limit = pool.down_rules.threshold if pool.down_rules.threshold is not None else down.threshold
    underused = not moving or (share <= limit and not pool.down_rules.empty_only)
    if not underused and not replaceable:
        why = f"{share:.0%} of it is asked for, more than {limit:.0%}"
        if pool.down_rules.empty_only:
            why = f"pool {pool.name} gives only empty nodes back"
        return stay("NotUnderutilized", why)
    return RemovalCandidate(
        member=member,
        pool=pool.name,
        utilization=share,
        limit=limit,
        pods=tuple(pod.key for pod in moving),
        underused=underused,
        replaceable=replaceable,
        wait=wait_of(node, pool, down=down),
    )


def wait_of(node: Node, pool: NodePool, *, down: DownOptions) -> int:
    """How long a node must still be unneeded: Cluster Autoscaler's mark tells since when it has been."""
    unneeded = pool.down_rules.unneeded
    if unneeded is None:
        has_gpu = any(is_gpu(name) and str(amount) != "0" for name, amount in _capacity(node).items())
        unneeded = down.unneeded_gpu if has_gpu else down.unneeded
    since = next((taint.value for taint in node.spec.taints or () if taint.key == _CANDIDATE), None)
    if down.now is None or since is None or not since.isdecimal():
        return unneeded
    return max(unneeded - max(down.now // 1_000_000 - int(since), 0), 0)


def _capacity(node: Node) -> Mapping[str, object]:
    return node.status.capacity or node.status.allocatable or {}
