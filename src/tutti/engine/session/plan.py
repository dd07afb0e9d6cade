"""The plan: what a session decided, complete.

Contract: frozen data. A plan can be carried out, shown and recorded without asking the cluster again: it has the binds
in order with all that a binder needs, the evictions with the reason, nominations to set and holds to give up, the turns
in the order in which they were taken, and why the rest waits. `edits` are the plan as changes of the cluster that the
session started from; applied there, they give the cluster that the session left.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import NamedTuple

import msgspec

from tutti.cluster.edits import Bind, Edit, Hold, Put, Release, Unbind
from tutti.kube.objects import PodDisruptionBudget

Order = tuple[int, bool, int, str]
"""A place in the queue: priority (negated), whether it is surplus, creation time, name."""


class Turn(NamedTuple):
    """What is tried together: a single pod, or what a gang needs to start, or the pods that a gang has beyond that."""

    order: Order
    pods: tuple[str, ...]
    gang: str | None = None

    @property
    def key(self) -> str:
        """The key of the gang, or of the single pod."""
        return self.gang if self.gang is not None else self.pods[0]

    @property
    def name(self) -> str:
        """A name that no other turn has: a gang may have the key of a pod, and has two turns."""
        if self.gang is None:
            return self.pods[0]
        return f"gang/{self.gang} above its minimum" if self.surplus else f"gang/{self.gang}"

    @property
    def priority(self) -> int:
        """The priority of the pod or the gang."""
        return -self.order[0]

    @property
    def surplus(self) -> bool:
        """Whether these are pods beyond a gang's minimum."""
        return self.order[1]


class _Part(msgspec.Struct, frozen=True, rename="camel", gc=False):
    pod: str


class Bound(_Part, frozen=True, gc=False):
    """A pod with the node it goes to; the score is that of the node, `evicts` names its victims there."""

    node: str
    priority: int = 0
    score: int | None = None
    evicts: tuple[str, ...] = ()
    budgets_broken: int = 0
    gang: str | None = None
    uid: str | None = None
    """The uid of the pod's object, so that nobody binds another pod of the same name."""
    volumes: tuple[Edit, ...] = ()
    """Volumes to bind to claims, and claims to provision on the node, before the pod is bound."""


class Eviction(_Part, frozen=True, gc=False):
    """A pod that has to leave its node, and the pod or gang that it leaves for; `to` is its new node if it is moved."""

    node: str
    by: str
    priority: int = 0
    gang: str | None = None
    to: str | None = None
    uid: str | None = None
    change: Edit | None = None
    """What the eviction does to the pod's object: it is gone, or it begins to terminate; None for a move."""


class Nominated(_Part, frozen=True, gc=False):
    """A pod for which room is held on a node until other pods have left; `gang` is the gang that it belongs to."""

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
    """For how many pods room is held until others have left."""
    priority: int = 0
    domain: dict[str, str] = {}
    """The topology labels that its pods share, of those that it requires or prefers."""
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
    """See the module's docstring. Lists of pods are in the order of the queue."""

    counts: dict[str, int]
    binds: tuple[Bound, ...] = ()
    evictions: tuple[Eviction, ...] = ()
    unschedulable: tuple[Unschedulable, ...] = ()
    not_considered: tuple[NotConsidered, ...] = ()
    nominated: tuple[Nominated, ...] = ()
    gangs: tuple[GangPlan, ...] = ()
    turns: tuple[Turn, ...] = ()
    """The turns in the order in which they were taken, once for every attempt."""
    holds: tuple[Hold, ...] = ()
    """Room to hold from now on: for the nominated pods, and for a turn that starves."""
    released: tuple[str, ...] = ()
    """Pods that stay pending and lose what was held for them: their nominations are to be cleared."""
    budgets: tuple[PodDisruptionBudget, ...] = ()
    """Disruption budgets as the evictions leave them."""

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

    def edits(self) -> Iterator[Edit]:
        """Yield the plan as edits: holds given up, victims gone or moved, pods bound with their volumes, new holds."""
        yield from map(Release, self.released)
        yield from map(Put, self.budgets)
        for eviction in self.evictions:
            yield eviction.change if eviction.change is not None else Unbind(eviction.pod)
        for bound in self.binds:
            yield Bind(bound.pod, bound.node)
            yield from bound.volumes
        for eviction in self.evictions:
            if eviction.to is not None:
                yield Bind(eviction.pod, eviction.to)
        yield from self.holds
