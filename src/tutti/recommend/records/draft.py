"""Drafts: purchases with the pods that would go there, before the binder has had its say."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from tutti.market.offerings import Offering


class DraftNode(NamedTuple):
    """One new node: the number of its offering, and the pods that it is bought for."""

    offering: int
    pods: tuple[str, ...]


class Draft(NamedTuple):
    """A plan as some strategy would have it."""

    maker: str
    """Which strategy or peer made it."""
    bought: tuple[DraftNode, ...] = ()
    on_existing: tuple[tuple[str, str], ...] = ()
    """Pods that go to nodes that are there."""
    left: tuple[str, ...] = ()

    def price(self, offerings: Sequence[Offering]) -> int:
        """What it costs an hour, as far as prices are known."""
        return sum(offerings[each.offering].price or 0 for each in self.bought)
