"""The bill: what nodes cost, what the way to fewer of them costs, and whether that pays.

Contract: pure; money in nano-dollars. The way costs something for every pod that moves, and new nodes run beside the
old ones while pods move. A change is worth it when what it saves has paid for the way within the hours of the options,
and is a fair share of what the nodes cost that go: nobody moves for cents, or because a price has moved a little.
Where prices are not known nothing can be weighed: then only nodes go that are underused.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec

from tutti.market.offerings import Catalogue, PoolMember
from tutti.recommend.records.request import DownOptions

OVERLAP = 12
"""New nodes run beside the old ones for a twelfth of an hour: until they are ready, and pods have moved."""


class BillChange(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """What a change is worth."""

    removed: int
    """What the nodes that go cost an hour."""
    saving: int
    """An hour."""
    churn: int
    """Once."""

    @property
    def payback(self) -> float | None:
        """After how many hours it has paid for itself; None if it never does."""
        return self.churn / self.saving if self.saving > 0 else None

    def is_worth(self, down: DownOptions) -> bool:
        """Whether it saves enough, and soon enough."""
        enough = self.saving >= self.removed * down.least
        return enough and self.payback is not None and self.payback <= down.payback


def change(*, removed: Iterable[int], bought: Iterable[int], moves: int, down: DownOptions) -> BillChange:
    """What it is worth to remove and to buy nodes of these prices, with so many moves."""
    old, new = sum(removed), sum(bought)
    return BillChange(removed=old, saving=old - new, churn=moves * down.move_cost + new // OVERLAP)


def bill_of(catalogue: Catalogue) -> int:
    """What all nodes cost an hour, those of no pool too, as far as prices are known."""
    return sum(member.price or 0 for member in _members(catalogue))


def unpriced(catalogue: Catalogue) -> int:
    """How many nodes have no known price."""
    return sum(member.price is None for member in _members(catalogue))


def _members(catalogue: Catalogue) -> Iterator[PoolMember]:
    for pool in catalogue.pools:
        yield from pool.members
    yield from catalogue.others
