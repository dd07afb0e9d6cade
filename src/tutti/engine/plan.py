"""Plans: what is to be done with the pending pods of a cluster, as data."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import msgspec


class _Part(msgspec.Struct, frozen=True, rename="camel", gc=False):
    pod: str


class Bound(_Part, frozen=True, gc=False):
    """A pod with the node it goes to; the score is that of the node, `evicts` whom the pod pushes away there."""

    node: str
    priority: int = 0
    score: int | None = None
    evicts: tuple[str, ...] = ()
    budgets_broken: int = 0


class Eviction(_Part, frozen=True, gc=False):
    """A pod that has to go, and for whom."""

    node: str
    by: str
    priority: int = 0


class Unschedulable(_Part, frozen=True, gc=False):
    """A pod that fits nowhere; `reasons` counts the nodes that refuse it with each message."""

    message: str
    priority: int = 0
    nodes: int = 0
    reasons: dict[str, int] = {}


class NotConsidered(_Part, frozen=True, gc=False):
    """A pending pod that the scheduler does not try."""

    cause: str
    message: str


class Plan(msgspec.Struct, frozen=True, rename="camel"):
    """What is to be done, and why the rest cannot be; each list in the order of the queue."""

    counts: dict[str, int]
    binds: tuple[Bound, ...] = ()
    evictions: tuple[Eviction, ...] = ()
    unschedulable: tuple[Unschedulable, ...] = ()
    not_considered: tuple[NotConsidered, ...] = ()

    @staticmethod
    def of(
        binds: Iterable[Bound],
        evictions: Iterable[Eviction],
        unschedulable: Iterable[Unschedulable],
        not_considered: Iterable[NotConsidered],
    ) -> Plan:
        """Make a plan of its lists, and count them."""
        parts = tuple(binds), tuple(evictions), tuple(unschedulable), tuple(not_considered)
        placed, evicted, refused, others = map(len, parts)
        counts = {"pending": placed + refused + others, "binds": placed, "evictions": evicted}
        return Plan({**counts, "unschedulable": refused, "notConsidered": others}, *parts)

    @property
    def causes(self) -> Counter[str]:
        """How many pods were not considered for each cause."""
        return Counter(each.cause for each in self.not_considered)
