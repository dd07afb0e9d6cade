"""What a scale-down of Cluster Autoscaler is made from, and its result.

Contract: frozen records, in Cluster Autoscaler's own words; made by `planner`, and by the readers of recorded runs.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec


class ScaleDownOptions(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """How Cluster Autoscaler runs."""

    threshold: float = 0.5
    """Up to this utilization a node is underused, unless its group says otherwise."""
    ignore_daemons: bool = False
    """Whether the utilization leaves DaemonSet pods out."""


class ScaleDownNodeGroup(msgspec.Struct, frozen=True, kw_only=True):
    """A node group with the nodes that it has."""

    name: str
    minimum: int = 0
    members: tuple[str, ...]
    threshold: float | None = None
    """Of its own, instead of that of all."""


class UnremovableNode(msgspec.Struct, frozen=True):
    """Why a node is kept, in Cluster Autoscaler's words."""

    reason: str
    pod: str = ""
    """The first pod that blocks it."""
    pod_reason: str = ""
    prefiltered: bool = False
    """Whether the node was not even looked at."""


class NodesToDelete(msgspec.Struct, frozen=True, kw_only=True):
    """What is deleted once nodes have been unneeded for long enough."""

    empty: tuple[str, ...] = ()
    drain: tuple[str, ...] = ()
    """Nodes with pods that must move, those whose budgets allow all evictions at once first."""
    held: Mapping[str, str] = {}
    """Nodes that were unneeded and stay all the same, with the reason."""
    first_empty: tuple[str, ...] = ()
    """What goes at once."""
    first_drain: tuple[str, ...] = ()


class ScaleDownDecision(msgspec.Struct, frozen=True, kw_only=True):
    """What a scale-down comes to."""

    removable: tuple[str, ...]
    """The nodes that are unneeded together, in the order in which that was found."""
    kept: Mapping[str, UnremovableNode]
    utilization: Mapping[str, float]
    deleted: NodesToDelete
    places: Mapping[str, str] = {}
    """Where pods went that had to move, whatever became of their nodes; not part of what is recorded."""
