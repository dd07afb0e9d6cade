"""The plan of a scale-down: what goes, what comes instead, what stays and why, and the steps.

Contract: frozen records in a stable order; money in nano-dollars an hour, times in seconds.
"""

from __future__ import annotations

from enum import StrEnum

import msgspec

from tutti.recommend.records.new_nodes import NewNode, ScaleUp


class RemovalReason(StrEnum):
    """Why a node can go."""

    EMPTY = "empty"
    """Nothing runs there but what belongs to the node."""
    UNDERUSED = "underused"
    """Little runs there, and finds room on other nodes."""
    CONSOLIDATED = "consolidated"
    """What runs there costs less on other nodes, new ones included."""


class Move(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A pod that leaves its node."""

    pod: str
    source: str
    target: str
    """The node that it gets in its place: of its controller's next pod, to be exact."""


class Removal(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A node that can go."""

    node: str
    pool: str
    zone: str
    instance_type: str
    capacity_type: str
    price: int | None = None
    why: RemovalReason
    utilization: float
    """The larger of its cpu and memory requests over what pods can have; of GPUs alone on a node with GPUs."""
    moves: int = 0
    """How many pods have to move."""
    wait: int = 0
    """For how many seconds it must stay like this before it may go."""


class StayingNode(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A node that must stay."""

    node: str
    pool: str
    reason: str
    """One word, as Cluster Autoscaler's where it has one: ``NotUnderutilized``, ``BlockedByPod``, ..."""
    message: str
    """The same as a user would say it."""
    pod: str = ""
    """The pod that is in the way, if one is."""
    utilization: float | None = None


class ScaleDownStep(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """What is done at once: nodes join, pods leave their nodes and find others, nodes go."""

    adds: tuple[str, ...] = ()
    moves: tuple[Move, ...] = ()
    removes: tuple[str, ...] = ()
    grace: int = 0
    """For how many seconds the pods that leave may go on at most."""


class DownPlan(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """See the module's contract."""

    removals: tuple[Removal, ...] = ()
    scale_up: tuple[ScaleUp, ...] = ()
    """What is bought to replace dearer nodes."""
    nodes: tuple[NewNode, ...] = ()
    """The same, node by node, with the pods that move there."""
    stays: tuple[StayingNode, ...] = ()
    steps: tuple[ScaleDownStep, ...] = ()
    """In order. All nodes that will go are cordoned before the first."""
    moves: int = 0
    """How many times a pod moves."""
    purchase: int = 0
    """What is bought for waiting pods before the first step, in nano-dollars an hour."""
    before: int | None = None
    """What all nodes cost before the first step, the purchase included; None when a price is not known."""
    after: int | None = None
    saving: int | None = None
    """`before` less `after`."""
    churn: int | None = None
    """What the way there costs once: moves, and new nodes that run beside the old ones. In nano-dollars."""
    payback: float | None = None
    """After how many hours the saving has paid for the churn; None when nothing is saved, or prices are not known."""
    notes: tuple[str, ...] = ()

    @property
    def grace(self) -> int:
        """For how many seconds the steps wait for pods to end, at most."""
        return sum(step.grace for step in self.steps)
