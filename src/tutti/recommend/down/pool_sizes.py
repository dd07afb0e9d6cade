"""How many nodes pools have, how many they must keep, over all and in single zones, and how many may go at a time.

Contract: counts only; `refusal` says why nodes cannot go, `change` counts those that do. A node goes for being empty or
for being too little used, and what a pool allows for that reason (`down.pace`) is held against all nodes of the pool
that go, for whatever reason.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from tutti.market.offerings import EMPTY, UNDERUTILIZED, NodePool, Offering
from tutti.recommend.down.candidates import RemovalCandidate
from tutti.recommend.down.disruption_pace import AllowedDisruptions
from tutti.recommend.records.new_nodes import NewNode

_Place = tuple[str, str | None]
"""A pool, and a zone of it or None for all of them."""

BUDGET = "DisruptionBudgetReached"


class RemovalRefusal(NamedTuple):
    """Why nodes cannot go, as a word and in words."""

    reason: str
    message: str


class PoolSizes:
    """See the module's contract; `copy` costs next to nothing."""

    def __init__(
        self, pools: Iterable[NodePool] = (), allowed: Mapping[tuple[str, str], AllowedDisruptions] | None = None
    ) -> None:
        self._least: dict[_Place, int] = {}
        self._there: Counter[_Place] = Counter()
        self._allowed = allowed or {}
        self._gone: Counter[str] = Counter()
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
        twin._allowed, twin._gone = self._allowed, self._gone.copy()
        return twin

    def change(self, gone: Iterable[RemovalCandidate] = (), bought: Iterable[NewNode | Offering] = ()) -> None:
        """Count nodes that have gone and nodes that have come."""
        for each in gone:
            self._there.subtract(((each.pool, None), (each.pool, each.member.zone)))
            self._gone[each.pool] += 1
        for node in bought:
            self._there.update(((node.pool, None), (node.pool, node.zone)))

    def refusal(self, gone: Iterable[RemovalCandidate], bought: Iterable[NewNode] = ()) -> RemovalRefusal | None:
        """Why pools cannot do without these nodes, even with what is bought instead; None if they can."""
        gone = list(gone)
        after = self.copy()
        after.change(gone, bought)
        for place, least in self._least.items():
            if after._there[place] < min(least, self._there[place]):
                pool, zone = place
                where = f" in {zone}" if zone is not None else ""
                why = f"pool {pool} comes to its minimum of {least} node{'s' if least != 1 else ''}{where}"
                return RemovalRefusal("NodeGroupMinSizeReached", why)
        for each in gone:
            allowed = self._pace(each)
            if allowed is not None and after._gone[each.pool] > allowed.number:
                return RemovalRefusal(BUDGET, allowed.message)
        return None

    def is_spent(self, each: RemovalCandidate) -> str:
        """Why a node cannot go beside those that do, whatever comes instead; empty if it could."""
        allowed = self._pace(each)
        return allowed.message if allowed is not None and self._gone[each.pool] >= allowed.number else ""

    def within_pace(self, asked: Sequence[RemovalCandidate]) -> list[RemovalCandidate]:
        """As many of these, the first ones first, as may go at a time."""
        kept: list[RemovalCandidate] = []
        counts = self._gone.copy()
        for each in asked:
            allowed = self._pace(each)
            if allowed is None or counts[each.pool] < allowed.number:
                kept.append(each)
                counts[each.pool] += 1
        return kept

    def _pace(self, each: RemovalCandidate) -> AllowedDisruptions | None:
        return self._allowed.get((each.pool, UNDERUTILIZED if each.pods else EMPTY))
