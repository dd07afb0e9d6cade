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
    gang: str | None = None


class Eviction(_Part, frozen=True, gc=False):
    """A pod that has to go, and for whom: a pod or a gang; `to` is where it runs then, if it is only moved."""

    node: str
    by: str
    priority: int = 0
    gang: str | None = None
    to: str | None = None


class Nominated(_Part, frozen=True, gc=False):
    """A pod for which room is held on a node until other pods have left it; `gang` is whom it belongs to."""

    node: str
    priority: int = 0
    gang: str | None = None


class Unschedulable(_Part, frozen=True, gc=False):
    """A pod that fits nowhere; `reasons` counts the nodes that refuse it with each message."""

    message: str
    priority: int = 0
    nodes: int = 0
    reasons: dict[str, int] = {}
    gang: str | None = None


class NotConsidered(_Part, frozen=True, gc=False):
    """A pending pod that the scheduler does not try."""

    cause: str
    message: str


class GangPlan(msgspec.Struct, frozen=True, rename="camel", gc=False):
    """What becomes of a gang."""

    gang: str
    dialect: str
    minimum: int
    pods: int
    """How many pods it has."""
    running: int
    """How many ran before."""
    placed: int = 0
    nominated: int = 0
    """For how many room is held until others have left."""
    priority: int = 0
    domain: dict[str, str] = {}
    """The labels that its pods share, of those that it is bound to or prefers."""
    evicts: tuple[str, ...] = ()
    budgets_broken: int = 0
    message: str = ""
    """Why the rest of it waits, in one sentence."""
    reasons: dict[str, int] = {}

    @property
    def starts(self) -> bool:
        """Whether it runs when the plan is carried out."""
        return self.running + self.placed >= self.minimum and self.running + self.placed > 0


class Plan(msgspec.Struct, frozen=True, rename="camel"):
    """What is to be done, and why the rest cannot be; each list in the order of the queue."""

    counts: dict[str, int]
    binds: tuple[Bound, ...] = ()
    evictions: tuple[Eviction, ...] = ()
    unschedulable: tuple[Unschedulable, ...] = ()
    not_considered: tuple[NotConsidered, ...] = ()
    nominated: tuple[Nominated, ...] = ()
    gangs: tuple[GangPlan, ...] = ()

    @staticmethod
    def of(
        binds: Iterable[Bound],
        evictions: Iterable[Eviction],
        unschedulable: Iterable[Unschedulable],
        not_considered: Iterable[NotConsidered],
        nominated: Iterable[Nominated] = (),
        gangs: Iterable[GangPlan] = (),
    ) -> Plan:
        """Make a plan of its lists, and count them."""
        parts = tuple(binds), tuple(evictions), tuple(unschedulable), tuple(not_considered), tuple(nominated)
        placed, evicted, refused, others, held = map(len, parts)
        moved = sum(eviction.to is not None for eviction in parts[1])
        counts = {"pending": placed + refused + others + held, "binds": placed, "evictions": evicted - moved}
        counts |= {"unschedulable": refused, "notConsidered": others}
        if moved:
            counts["moves"] = moved
        if held:
            counts["nominated"] = held
        return Plan(counts, *parts, tuple(gangs))

    @property
    def causes(self) -> Counter[str]:
        """How many pods were not considered for each cause."""
        return Counter(each.cause for each in self.not_considered)
