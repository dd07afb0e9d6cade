"""How many more nodes of each offering the limits of a catalogue allow."""

from __future__ import annotations

from collections.abc import Sequence

from tutti.kube.quantity import milli, value
from tutti.market.offerings import NODES, Catalogue, Offering, PoolLimit, takes

NO_LIMIT = 1 << 30


class LimitCounter:
    """The limits of a catalogue and its pools, and the amount that remains of each. Offerings are given by number."""

    def __init__(self, catalogue: Catalogue, offerings: Sequence[Offering]) -> None:
        of_pools = [(pool.name, limit) for pool in catalogue.pools for limit in pool.limits]
        limits: list[tuple[str | None, PoolLimit]] = [*of_pools, *((None, limit) for limit in catalogue.limits)]
        self._remaining = [limit.left for _, limit in limits]
        self._counts_nodes = [limit.what == NODES for _, limit in limits]
        self._takes = [
            [
                (number, takes(limit, offering) if pool in (None, offering.pool) else 0)
                for number, (pool, limit) in enumerate(limits)
            ]
            for offering in offerings
        ]

    def max_nodes_of_all(self, *offerings: int) -> int:
        """Return how many more nodes of some offerings together are allowed by the limits that count nodes."""
        before, total = list(self._remaining), 0
        for offering in offerings:
            count = self._max_nodes(offering, nodes_only=True)
            self.buy(offering, count)
            total += count
        self._remaining = before
        return total

    def max_nodes(self, offering: int) -> int:
        """Return how many more nodes of an offering all limits allow."""
        return self._max_nodes(offering, nodes_only=False)

    def buy(self, offering: int, count: int) -> None:
        """Subtract bought nodes from the limits."""
        for number, amount in self._takes[offering]:
            self._remaining[number] -= amount * count

    def _max_nodes(self, offering: int, *, nodes_only: bool) -> int:
        most = NO_LIMIT
        for number, amount in self._takes[offering]:
            if amount and (self._counts_nodes[number] or not nodes_only):
                most = min(most, max(self._remaining[number], 0) // amount)
        return most


def capacity(offering: Offering) -> dict[str, int]:
    """Return the capacity of a node: cpu in millicores, other resources in whole units."""
    amounts = offering.node.status.capacity or offering.node.status.allocatable or {}
    return {name: milli(amount) if name == "cpu" else value(amount) for name, amount in amounts.items()}
