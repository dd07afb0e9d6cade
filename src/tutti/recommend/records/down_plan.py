"""The plan of a scale-down: nodes to remove, new nodes, nodes that stay with the reason, and the steps.

Contract: frozen records in a stable order; money in nano-dollars an hour, times in seconds.
"""

from __future__ import annotations

from enum import StrEnum

import msgspec

from tutti.recommend.records.new_nodes import NewNode, ScaleUp


class RemovalReason(StrEnum):
    """Why a node can be removed."""

    EMPTY = "empty"
    """Only pods that belong to the node run on it."""
    UNDERUSED = "underused"
    """Its utilisation is low, and its pods fit on other nodes."""
    CONSOLIDATED = "consolidated"
    """Its pods cost less on other nodes, including new ones."""


class Move(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A pod that moves to another node."""

    pod: str
    source: str
    target: str
    """The node that the pod moves to; strictly, the node of the pod that its controller creates instead."""


class Removal(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A node that can be removed."""

    node: str
    pool: str
    zone: str
    instance_type: str
    capacity_type: str
    price: int | None = None
    why: RemovalReason
    utilization: float
    """The larger share of cpu and memory requests in the allocatable amounts; on a node with GPUs the share of GPUs."""
    moves: int = 0
    """The number of pods that have to move."""
    wait: int = 0
    """The number of seconds that the node must stay unneeded before it may be removed."""


class StayingNode(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A node that must stay."""

    node: str
    pool: str
    reason: str
    """One word, Cluster Autoscaler's own if it has one: ``NotUnderutilized``, ``BlockedByPod``, ..."""
    message: str
    """The reason as a sentence for users."""
    pod: str = ""
    """The pod that blocks the removal, if one does."""
    utilization: float | None = None


class ScaleDownStep(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One step: nodes join, pods move to other nodes, nodes are removed."""

    adds: tuple[str, ...] = ()
    moves: tuple[Move, ...] = ()
    removes: tuple[str, ...] = ()
    grace: int = 0
    """The longest termination grace period of the pods that move, in seconds."""


class DownPlan(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """The whole plan; see the module's contract."""

    removals: tuple[Removal, ...] = ()
    scale_up: tuple[ScaleUp, ...] = ()
    """New nodes that replace more expensive nodes, merged."""
    nodes: tuple[NewNode, ...] = ()
    """The same new nodes one by one, with the pods that move there."""
    staying_nodes: tuple[StayingNode, ...] = ()
    steps: tuple[ScaleDownStep, ...] = ()
    """In order. All nodes to remove are cordoned before the first step."""
    moves: int = 0
    """The number of moves."""
    purchase: int = 0
    """The price of the nodes bought for pending pods before the first step, in nano-dollars an hour."""
    before: int | None = None
    """The price of all nodes before the first step, including the purchase; None if no removed node has a known price.
    """
    after: int | None = None
    saving: int | None = None
    """`before` less `after`."""
    churn: int | None = None
    """The one-time cost of the change in nano-dollars: moves, and new nodes that run beside the old ones."""
    payback: float | None = None
    """The number of hours after which the saving has paid for the churn; None without a saving or without prices."""
    notes: tuple[str, ...] = ()

    @property
    def grace(self) -> int:
        """The longest time that the steps wait for pods to terminate, in seconds."""
        return sum(step.grace for step in self.steps)
