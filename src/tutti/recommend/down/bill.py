"""The bill: the price of nodes, the one-time cost of a change, and whether the change pays.

Contract: pure; money in nano-dollars. A change costs something for every pod that moves, and new nodes run beside the
old ones while pods move. A change pays if its saving covers this cost within the hours of the options, and is at least
a given share of the price of the removed nodes: small savings and small price changes move no pod. Without prices
nothing can be compared: then only underused nodes are removed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec

from tutti.market.offerings import Catalogue, PoolMember
from tutti.recommend.records.request import DownOptions

OVERLAP = 12
"""New nodes run beside the old ones for a twelfth of an hour: until they are ready and pods have moved."""


class BillChange(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """The saving and the cost of a change."""

    removed: int
    """The price of the removed nodes an hour."""
    saving: int
    """The saving an hour."""
    churn: int
    """The one-time cost."""

    @property
    def payback(self) -> float | None:
        """The number of hours after which the saving covers the cost; None if it never does."""
        return self.churn / self.saving if self.saving > 0 else None

    def pays_off(self, down: DownOptions) -> bool:
        """Return whether the saving is large enough and covers the cost soon enough."""
        enough = self.saving >= self.removed * down.least
        return enough and self.payback is not None and self.payback <= down.payback


def bill_change(*, removed: Iterable[int], bought: Iterable[int], moves: int, down: DownOptions) -> BillChange:
    """Return the saving and the cost of removing and buying nodes of these prices, with this number of moves."""
    removed_price, bought_price = sum(removed), sum(bought)
    return BillChange(
        removed=removed_price,
        saving=removed_price - bought_price,
        churn=moves * down.move_cost + bought_price // OVERLAP,
    )


def bill_of(catalogue: Catalogue) -> int:
    """Return the price of all nodes an hour, including nodes of no pool; unknown prices count as 0."""
    return sum(member.price or 0 for member in _members(catalogue))


def count_unpriced(catalogue: Catalogue) -> int:
    """Return the number of nodes without a known price."""
    return sum(member.price is None for member in _members(catalogue))


def _members(catalogue: Catalogue) -> Iterator[PoolMember]:
    for pool in catalogue.pools:
        yield from pool.members
    yield from catalogue.others
