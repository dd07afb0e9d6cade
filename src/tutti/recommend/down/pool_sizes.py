"""Sizes of pools: their current nodes, their minimums over all and in single zones, and their node budgets.

Contract: counts only; `refusal` says why nodes cannot be removed, `change` counts removed and new nodes. A node is
removed because it is empty or underutilized; the budget of its pool for that reason (`down.node_budgets`) limits all
removed nodes of the pool, whatever their reason.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from tutti.market.offerings import EMPTY, UNDERUTILIZED, NodePool, Offering
from tutti.recommend.down.node_budgets import AllowedDisruptions
from tutti.recommend.down.removal_candidates import RemovalCandidate
from tutti.recommend.records.new_nodes import NewNode

_Place = tuple[str, str | None]
"""A pool, and one of its zones or None for all zones."""

BUDGET = "DisruptionBudgetReached"


class RemovalRefusal(NamedTuple):
    """Why nodes cannot be removed, as one word and as text."""

    reason: str
    message: str


class PoolSizes:
    """The sizes of all pools; see the module's contract. A `copy` is cheap."""

    def __init__(
        self, pools: Iterable[NodePool] = (), allowed: Mapping[tuple[str, str], AllowedDisruptions] | None = None
    ) -> None:
        self._minimums: dict[_Place, int] = {}
        self._current: Counter[_Place] = Counter()
        self._allowed = allowed or {}
        self._removed: Counter[str] = Counter()
        for pool in pools:
            self._minimums[pool.name, None] = pool.minimum
            self._current[pool.name, None] = pool.current
            for zone, minimum in pool.zone_minimums.items():
                self._minimums[pool.name, zone] = minimum
                self._current[pool.name, zone] = sum(member.zone == zone for member in pool.members)

    def copy(self) -> PoolSizes:
        """Return a copy that can be changed independently."""
        copy = PoolSizes()
        copy._minimums, copy._current = self._minimums, self._current.copy()
        copy._allowed, copy._removed = self._allowed, self._removed.copy()
        return copy

    def change(self, gone: Iterable[RemovalCandidate] = (), bought: Iterable[NewNode | Offering] = ()) -> None:
        """Count removed and new nodes."""
        for each in gone:
            self._current.subtract(((each.pool, None), (each.pool, each.member.zone)))
            self._removed[each.pool] += 1
        for node in bought:
            self._current.update(((node.pool, None), (node.pool, node.zone)))

    def refusal(self, gone: Iterable[RemovalCandidate], bought: Iterable[NewNode] = ()) -> RemovalRefusal | None:
        """Return why these nodes cannot be removed, even with the new nodes; None if they can."""
        gone = list(gone)
        after = self.copy()
        after.change(gone, bought)
        for place, minimum in self._minimums.items():
            if after._current[place] < min(minimum, self._current[place]):
                pool, zone = place
                where = f" in {zone}" if zone is not None else ""
                message = (
                    f"pool {pool} would fall below its minimum of {minimum} node{'s' if minimum != 1 else ''}{where}"
                )
                return RemovalRefusal("NodeGroupMinSizeReached", message)
        for each in gone:
            allowed = self._budget_of(each)
            if allowed is not None and after._removed[each.pool] > allowed.number:
                return RemovalRefusal(BUDGET, allowed.message)
        return None

    def exhausted_budget(self, each: RemovalCandidate) -> str:
        """Return the message of the exhausted budget of a node's pool; empty if the budget allows one more removal."""
        allowed = self._budget_of(each)
        return allowed.message if allowed is not None and self._removed[each.pool] >= allowed.number else ""

    def within_budget(self, candidates: Sequence[RemovalCandidate]) -> list[RemovalCandidate]:
        """Return as many of these candidates, in order, as the budgets allow."""
        kept: list[RemovalCandidate] = []
        counts = self._removed.copy()
        for each in candidates:
            allowed = self._budget_of(each)
            if allowed is None or counts[each.pool] < allowed.number:
                kept.append(each)
                counts[each.pool] += 1
        return kept

    def _budget_of(self, each: RemovalCandidate) -> AllowedDisruptions | None:
        return self._allowed.get((each.pool, UNDERUTILIZED if each.pods else EMPTY))
