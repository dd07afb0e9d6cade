"""How many more nodes of each offering may be bought."""

from __future__ import annotations

from collections.abc import Sequence

from tutti.kube.quantity import milli, value
from tutti.market.offerings import NODES, Catalogue, Offering, PoolLimit, takes

PLENTY = 1 << 30


class LimitCounter:
    """The limits of a catalogue, and what was taken of them."""

    def __init__(self, catalogue: Catalogue, offerings: Sequence[Offering]) -> None:
        listed = [(pool.name, limit) for pool in catalogue.pools for limit in pool.limits]
        everywhere: list[tuple[str | None, PoolLimit]] = [*listed, *((None, limit) for limit in catalogue.limits)]
        self._left = [limit.left for _, limit in everywhere]
        self._counts_nodes = [limit.what == NODES for _, limit in everywhere]
        self._takes = [
            [
                (number, takes(limit, offering) if pool in (None, offering.pool) else 0)
                for number, (pool, limit) in enumerate(everywhere)
            ]
            for offering in offerings
        ]

    def nodes_left(self, *offerings: int) -> int:
        """How many more nodes of some offerings the limits on nodes allow, of all together."""
        before, total = list(self._left), 0
        for offering in offerings:
            count = self._least(offering, nodes_only=True)
            self.take(offering, count)
            total += count
        self._left = before
        return total

    def left(self, offering: int) -> int:
        """How many more nodes of an offering all limits allow."""
        return self._least(offering, nodes_only=False)

    def take(self, offering: int, count: int) -> None:
        """Buy some."""
        for number, amount in self._takes[offering]:
            self._left[number] -= amount * count

    def _least(self, offering: int, *, nodes_only: bool) -> int:
        most = PLENTY
        for number, amount in self._takes[offering]:
            if amount and (self._counts_nodes[number] or not nodes_only):
                most = min(most, max(self._left[number], 0) // amount)
        return most


def capacity(offering: Offering) -> dict[str, int]:
    """What a node has in all: cpu in millicores, everything else in whole units."""
    amounts = offering.node.status.capacity or offering.node.status.allocatable or {}
    return {name: milli(amount) if name == "cpu" else value(amount) for name, amount in amounts.items()}
