"""Candidates for removal, and the reason of every node that must stay.

Contract: pure. Each node is checked by itself: its pool, its annotations, the rules of its pool, and whether its pods
may be evicted. Whether these pods have room elsewhere is checked later, in the planning cluster (`down.drain`). Reasons
are Cluster Autoscaler's words where it has one.
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
from tutti.recommend.down.node_pods import DO_NOT_DISRUPT, blocking_reason, pods_to_move
from tutti.recommend.records.down_plan import StayingNode
from tutti.recommend.records.request import DownOptions

_DISABLED_ANNOTATIONS = ("cluster-autoscaler.kubernetes.io/scale-down-disabled", DO_NOT_DISRUPT)
_CANDIDATE_TAINT = "DeletionCandidateOfClusterAutoscaler"


class RemovalCandidate(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A node that may be removed if its pods find room elsewhere."""

    member: PoolMember
    pool: str
    utilization: float
    limit: float
    """The highest utilization at which the node counts as underused."""
    pods: tuple[str, ...]
    """The pods that would have to move, by name."""
    underused: bool
    """Whether the node may be removed for its low utilization alone; an empty node always may."""
    replaceable: bool
    """Whether the node may be replaced by cheaper nodes, whatever its utilization."""
    wait: int
    """The number of seconds that the node must stay unneeded."""

    @property
    def node(self) -> str:
        """The name of the node."""
        return self.member.node

    @property
    def price(self) -> int:
        """The price of the node; 0 if unknown."""
        return self.member.price or 0


class CandidateNodes(NamedTuple):
    """All nodes: candidates for removal, and nodes that must stay."""

    candidates: list[RemovalCandidate]
    staying_nodes: list[StayingNode]


def utilizations(cluster: Cluster) -> dict[str, float]:
    """Return the utilization of every node: the larger of its cpu and memory shares, or the GPU share on GPU nodes."""
    nodes, names = cluster.nodes, cluster.resources.names
    shares = np.divide(nodes.used, nodes.alloc, out=np.zeros(nodes.alloc.shape), where=nodes.alloc > 0)
    result = np.maximum(shares[CPU], shares[MEMORY])
    for place in reversed([number for number, name in enumerate(names) if is_gpu(name)]):
        result = np.where(nodes.alloc[place] > 0, shares[place], result)
    return {name: float(result[row]) for name, row in nodes.row_of.items()}


def find_candidates(
    cluster: Cluster, catalogue: Catalogue, rules: DrainabilityRules, *, down: DownOptions, new: set[str]
) -> CandidateNodes:
    """Return the candidates and the nodes that must stay, without nodes in `new`, which are only being bought."""
    pool_of_node = {member.node: (pool, member) for pool in catalogue.pools for member in pool.members}
    utilizations_by_node = utilizations(cluster)
    result = CandidateNodes([], [])
    for name in sorted(cluster.nodes.row_of):
        node = cluster.nodes.objects[cluster.nodes.row_of[name]]
        if node is None or name in new:
            continue
        checked = _check_node(
            node, cluster, rules=rules, down=down, pool_of_node=pool_of_node, utilization=utilizations_by_node[name]
        )
        if isinstance(checked, StayingNode):
            result.staying_nodes.append(checked)
        else:
            result.candidates.append(checked)
    return result


def _check_node(
    node: Node,
    cluster: Cluster,
    *,
    rules: DrainabilityRules,
    down: DownOptions,
    pool_of_node: Mapping[str, tuple[NodePool, PoolMember]],
    utilization: float,
) -> RemovalCandidate | StayingNode:
    name, annotations = node.metadata.name, node.metadata.annotations or {}
    if name not in pool_of_node:
        message = "it runs the control plane" if is_control_plane(node) else "it belongs to no known pool"
        return StayingNode(node=name, pool="", reason="NotAutoscaled", message=message, utilization=utilization)
    pool, member = pool_of_node[name]

    def staying(reason: str, message: str, pod: str = "") -> StayingNode:
        return StayingNode(node=name, pool=pool.name, reason=reason, message=message, pod=pod, utilization=utilization)

    if pool.down_rules.disabled:
        return staying("ScaleDownDisabled", f"pool {pool.name} gives no node back")
    for annotation in _DISABLED_ANNOTATIONS:
        if annotations.get(annotation) == "true":
            return staying("ScaleDownDisabledAnnotation", f"it is annotated with {annotation}")
    replaceable = down.consolidate and not pool.down_rules.empty_only and bool(member.price)
    pods = pods_to_move(cluster, name, rules)
    for pod in pods:
        if (blocking := blocking_reason(pod, rules)) is not None:
            return staying(blocking[0], f"pod {pod.key} {blocking[1]}", pod.key)
    limit = pool.down_rules.threshold if pool.down_rules.threshold is not None else down.threshold
    underused = not pods or (utilization <= limit and not pool.down_rules.empty_only)
    if not underused and not replaceable:
        message = f"{utilization:.0%} of it is requested, more than {limit:.0%}"
        if pool.down_rules.empty_only:
            message = f"pool {pool.name} gives only empty nodes back"
        return staying("NotUnderutilized", message)
    return RemovalCandidate(
        member=member,
        pool=pool.name,
        utilization=utilization,
        limit=limit,
        pods=tuple(pod.key for pod in pods),
        underused=underused,
        replaceable=replaceable,
        wait=wait_of(node, pool, down=down),
    )


def wait_of(node: Node, pool: NodePool, *, down: DownOptions) -> int:
    """Return how many seconds a node must still be unneeded; Cluster Autoscaler's taint tells since when it is."""
    unneeded = pool.down_rules.unneeded
    if unneeded is None:
        has_gpu = any(is_gpu(name) and str(amount) != "0" for name, amount in _capacity(node).items())
        unneeded = down.unneeded_gpu if has_gpu else down.unneeded
    since = next((taint.value for taint in node.spec.taints or () if taint.key == _CANDIDATE_TAINT), None)
    if down.now is None or since is None or not since.isdecimal():
        return unneeded
    return max(unneeded - max(down.now // 1_000_000 - int(since), 0), 0)


def _capacity(node: Node) -> Mapping[str, object]:
    return node.status.capacity or node.status.allocatable or {}
