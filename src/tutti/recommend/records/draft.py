"""Drafts: purchases that a strategy proposes, with the pods of each node, before a binder places any pod."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from tutti.market.offerings import Offering


class DraftNode(NamedTuple):
    """One new node: the number of its offering in the problem, and the pods that it is bought for."""

    offering: int
    pods: tuple[str, ...]


class Draft(NamedTuple):
    """A purchase that a strategy or a model of another autoscaler proposes."""

    maker: str
    """The name of the strategy or peer that made the draft."""
    nodes: tuple[DraftNode, ...] = ()
    on_existing: tuple[tuple[str, str], ...] = ()
    """Pods that go to existing nodes: pod and node name."""
    left: tuple[str, ...] = ()

    def price(self, offerings: Sequence[Offering]) -> int:
        """Return the price of the new nodes an hour; unknown prices count as 0."""
        return sum(offerings[each.offering].price or 0 for each in self.nodes)
