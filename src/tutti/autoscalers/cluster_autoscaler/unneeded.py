"""Unneeded nodes, and which of them are deleted after they have been unneeded for long enough.

Contract: pure. Of the nodes that are unneeded in both passes, empty nodes come first, then other nodes, each by name. A
group keeps its minimum size; a node with a pod that must finish first is held. A batch of deletions has at most
`MAX_SCALE_DOWN_PARALLELISM` nodes, and at most `MAX_DRAIN_PARALLELISM` nodes with pods that must move.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from tutti.autoscalers.cluster_autoscaler.scaledown_records import NodesToDelete, ScaleDownNodeGroup, UnremovableNode

MAX_SCALE_DOWN_PARALLELISM = 10
"""How many nodes are deleted at once: Cluster Autoscaler's default for ``max-scale-down-parallelism``."""
MAX_DRAIN_PARALLELISM = 1
"""How many of them may have pods that must move: the default for ``max-drain-parallelism``."""


class UnneededNode(msgspec.Struct, frozen=True):
    """A node that can be removed."""

    moving: int
    """The number of pods that must move."""
    waits: bool
    """Whether a pod on the node must finish first."""
    is_risky: bool
    """Whether disruption budgets do not allow all evictions at once."""


def nodes_to_delete(
    before: Mapping[str, UnneededNode],
    now: Mapping[str, UnneededNode],
    *,
    kept: Mapping[str, UnremovableNode],
    groups: Mapping[str, ScaleDownNodeGroup],
) -> NodesToDelete:
    """Choose among the nodes that are unneeded in the first pass (`before`) and in the second pass (`now`).

    `kept` has the reasons of the second pass, and `groups` the group of each node.
    """
    held = {name: kept[name].reason for name in before if name not in now}
    unneeded_in_both = sorted(name for name in now if name in before)
    unneeded_in_both.sort(key=lambda name: bool(now[name].moving))
    sizes = {group.name: len(group.members) for group in groups.values()}
    deleted = []
    for name in unneeded_in_both:
        group = groups[name]
        if sizes[group.name] <= group.minimum:
            held[name] = "NodeGroupMinSizeReached"
            continue
        sizes[group.name] -= 1  # Cluster Autoscaler also counts a node that is held for a pod to finish
        if now[name].waits:
            held[name] = "BlockedByOnCompletionPod"
        else:
            deleted.append(name)
    empty = tuple(name for name in deleted if not now[name].moving)
    drain = sorted((name for name in deleted if name not in empty), key=lambda name: now[name].is_risky)
    first_empty = _by_group(empty, groups)[:MAX_SCALE_DOWN_PARALLELISM]
    max_drains = min(MAX_DRAIN_PARALLELISM, MAX_SCALE_DOWN_PARALLELISM - len(first_empty))
    return NodesToDelete(
        empty=empty,
        drain=tuple(drain),
        held=held,
        first_empty=first_empty,
        first_drain=_by_group(drain, groups)[:max_drains],
    )


def _by_group(names: Sequence[str], groups: Mapping[str, ScaleDownNodeGroup]) -> tuple[str, ...]:
    """Return the nodes group by group, the order in which they are deleted."""
    order = list(dict.fromkeys(groups[name].name for name in names))
    return tuple(sorted(names, key=lambda name: order.index(groups[name].name)))
