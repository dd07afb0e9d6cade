"""Unneeded nodes, and which of them are deleted once they have been unneeded for long enough.

Contract: pure. Of the nodes that both passes found unneeded, empty ones go first, then the others by name. A group
keeps its minimum; a node with a pod that is to finish first is held. At most `PARALLEL` nodes go at once, and at most
`DRAINS` of them have pods that must move.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from tutti.autoscalers.cluster_autoscaler.scaledown_records import NodesToDelete, ScaleDownNodeGroup, UnremovableNode

PARALLEL = 10
"""How many nodes are deleted at once."""
DRAINS = 1
"""How many of them may have pods that must move."""


class UnneededNode(msgspec.Struct, frozen=True):
    """A node that may go."""

    moving: int
    """How many pods must move."""
    waits: bool
    """Whether a pod on it is to finish first."""
    risky: bool
    """Whether some eviction has to wait for another."""


def nodes_to_delete(
    before: Mapping[str, UnneededNode],
    now: Mapping[str, UnneededNode],
    *,
    kept: Mapping[str, UnremovableNode],
    groups: Mapping[str, ScaleDownNodeGroup],
) -> NodesToDelete:
    """Choose among the nodes that were unneeded before and are now; `groups` has the group of each node."""
    held = {name: kept[name].reason for name in before if name not in now}
    long_enough = sorted(name for name in now if name in before)
    long_enough.sort(key=lambda name: bool(now[name].moving))
    sizes = {group.name: len(group.members) for group in groups.values()}
    chosen = []
    for name in long_enough:
        group = groups[name]
        if sizes[group.name] <= group.minimum:
            held[name] = "NodeGroupMinSizeReached"
            continue
        sizes[group.name] -= 1  # also for a node that then waits
        if now[name].waits:
            held[name] = "BlockedByOnCompletionPod"
        else:
            chosen.append(name)
    empty = tuple(name for name in chosen if not now[name].moving)
    drain = sorted((name for name in chosen if name not in empty), key=lambda name: now[name].risky)
    first_empty = _by_group(empty, groups)[:PARALLEL]
    return NodesToDelete(
        empty=empty,
        drain=tuple(drain),
        held=held,
        first_empty=first_empty,
        first_drain=_by_group(drain, groups)[: min(DRAINS, PARALLEL - len(first_empty))],
    )


def _by_group(names: Sequence[str], groups: Mapping[str, ScaleDownNodeGroup]) -> tuple[str, ...]:
    """The same nodes, group by group, as they are deleted."""
    order = list(dict.fromkeys(groups[name].name for name in names))
    return tuple(sorted(names, key=lambda name: order.index(groups[name].name)))
