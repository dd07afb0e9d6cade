"""The options, node groups and decision of a Cluster Autoscaler scale-down.

Contract: frozen records, with Cluster Autoscaler's own names of reasons; `planner` builds decisions from a cluster, and
the readers in `conformance` build them from recorded runs.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec


class ScaleDownOptions(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Options of Cluster Autoscaler."""

    threshold: float = 0.5
    """Nodes up to this utilization are underused, unless their group has its own threshold."""
    ignore_daemons: bool = False
    """Whether the utilization ignores DaemonSet pods."""


class ScaleDownNodeGroup(msgspec.Struct, frozen=True, kw_only=True):
    """A node group with its nodes."""

    name: str
    minimum: int = 0
    members: tuple[str, ...]
    threshold: float | None = None
    """The group's own threshold; None for the threshold of the options."""


class UnremovableNode(msgspec.Struct, frozen=True):
    """Why a node is kept, with Cluster Autoscaler's names of reasons."""

    reason: str
    pod: str = ""
    """The first pod that blocks the drain."""
    pod_reason: str = ""
    prefiltered: bool = False
    """Whether the pass skipped the node without checking it."""


class NodesToDelete(msgspec.Struct, frozen=True, kw_only=True):
    """The nodes that are deleted after they have been unneeded for long enough."""

    empty: tuple[str, ...] = ()
    drain: tuple[str, ...] = ()
    """Nodes with pods that must move; first the nodes whose disruption budgets allow all evictions at once."""
    held: Mapping[str, str] = {}
    """Nodes that were unneeded and are kept, with the reason."""
    first_empty: tuple[str, ...] = ()
    """The empty nodes of the first batch of deletions."""
    first_drain: tuple[str, ...] = ()
    """The nodes to drain of the first batch of deletions."""


class ScaleDownDecision(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a scale-down."""

    removable: tuple[str, ...]
    """The unneeded nodes of the first pass, which can all be removed together, in the order of their removal."""
    kept: Mapping[str, UnremovableNode]
    utilization: Mapping[str, float]
    deleted: NodesToDelete
    places: Mapping[str, str] = {}
    """By pod: the node to which the last pass moved it, even if the removal failed; not recorded in cases."""
