"""How many nodes pools have, and how many they must keep: over all, and in single zones."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from tutti.recommend.bought import NewNode
from tutti.recommend.down.candidates import Candidate
from tutti.recommend.offerings import NodePool, Offering

_Place = tuple[str, str | None]
"""A pool, and a zone of it or None for all of them."""


class PoolSizes:
    """See the module's line; `copy` costs next to nothing."""

    def __init__(self, pools: Iterable[NodePool] = ()) -> None:
        self._least: dict[_Place, int] = {}
        self._there: Counter[_Place] = Counter()
        for pool in pools:
            self._least[pool.name, None] = pool.minimum
            self._there[pool.name, None] = pool.current
            for zone, least in pool.zone_minimums.items():
                self._least[pool.name, zone] = least
                self._there[pool.name, zone] = sum(member.zone == zone for member in pool.members)

    def copy(self) -> PoolSizes:
        """The same sizes, to be changed apart."""
        twin = PoolSizes()
        twin._least, twin._there = self._least, self._there.copy()
        return twin

    def change(self, gone: Iterable[Candidate] = (), bought: Iterable[NewNode | Offering] = ()) -> None:
        """Count nodes that have gone and nodes that have come."""
        for each in gone:
            self._there.subtract(((each.pool, None), (each.pool, each.member.zone)))
        for node in bought:
            self._there.update(((node.pool, None), (node.pool, node.zone)))

    def refusal(self, gone: Iterable[Candidate], bought: Iterable[NewNode] = ()) -> str:
        """Why pools cannot do without these nodes, even with what is bought instead; empty if they can."""
        after = self.copy()
        after.change(gone, bought)
        for place, least in self._least.items():
            if after._there[place] < min(least, self._there[place]):
                pool, zone = place
                where = f" in {zone}" if zone is not None else ""
                return f"pool {pool} comes to its minimum of {least} node{'s' if least != 1 else ''}{where}"
        return ""
