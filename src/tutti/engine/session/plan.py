"""The plan: all decisions of a session.

Contract: frozen data. A plan can be carried out, shown and recorded without the cluster. It contains the bindings in
order with all data that a binder needs, the evictions with the pod or gang that caused each, nominations to set, holds
to release, the turns in the order in which they were taken, and why the other pods wait. `edits` returns the plan as
changes of the cluster from before the session; applying them gives the cluster that the session left.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Literal, NamedTuple

import msgspec

from tutti.cluster.edits import Bind, Edit, Hold, Put, Release, Unbind
from tutti.kube.objects import PodDisruptionBudget

Order = tuple[int, bool, int, str]
"""The sort key of a turn in the queue: negated priority, whether the turn is surplus, creation time, name."""


WaitsFor = Literal["room", "members", "victims", "budgets", "correction"]
"""What a pod waits for: a node that takes it, further pods of its gang, pods that are leaving, disruption budgets that
forbid every sufficient eviction, or a correction: of invalid objects, or of what made the API server refuse its
binding."""


def surplus_name(gang: str) -> str:
    """Return the name of the turn of a gang's pods above its minimum."""
    return f"gang/{gang} above its minimum"


class Turn(NamedTuple):
    """Pods that are tried together: a single pod, a gang's minimum, or a gang's surplus (pods above the minimum).

    Both turns of a gang list all its pending pods; the attempt decides how many of them to place.
    """

    order: Order
    pods: tuple[str, ...]
    gang: str | None = None

    @property
    def key(self) -> str:
        """The key of the gang, or of the single pod."""
        return self.gang if self.gang is not None else self.pods[0]

    @property
    def name(self) -> str:
        """A unique name: the key alone is not unique, because a gang has two turns and may have the key of a pod."""
        if self.gang is None:
            return self.pods[0]
        return surplus_name(self.gang) if self.surplus else f"gang/{self.gang}"

    @property
    def priority(self) -> int:
        """The priority of the pod or the gang."""
        return -self.order[0]

    @property
    def surplus(self) -> bool:
        """Whether the turn is for pods above a gang's minimum."""
        return self.order[1]


class _PodRecord(msgspec.Struct, frozen=True, rename="camel", gc=False):
    pod: str


class Bound(_PodRecord, frozen=True, gc=False):
    """A pod and the node that it is bound to; `score` is the node's total score, `evicts` names the pod's victims."""

    node: str
    priority: int = 0
    score: int | None = None
    evicts: tuple[str, ...] = ()
    budgets_broken: int = 0
    gang: str | None = None
    uid: str | None = None
    """The uid of the pod's object, so that a binder does not bind a new pod of the same name."""
    start: int | None = None
    """The start time that the session assumes, in microseconds; None without a clock."""
    volumes: tuple[Edit, ...] = ()
    """Volumes to bind to claims, and claims to provision on the node (`AssumeVolume`), before the pod is bound."""


class Eviction(_PodRecord, frozen=True, gc=False):
    """A pod that leaves its node; `by` is the pod or gang that needs the room, `to` the new node of a moved pod."""

    node: str
    by: str
    priority: int = 0
    gang: str | None = None
    to: str | None = None
    uid: str | None = None
    reason: str = ""
    """Why the pod leaves, if it does not make room for `by`."""
    change: Edit | None = None
    """The change of the pod's object: removed, or beginning to terminate; None for a move."""
    volumes: tuple[Edit, ...] = ()
    """Volumes and claims that a moved pod takes on its new node, as in `Bound`."""


class Nominated(_PodRecord, frozen=True, gc=False):
    """A pod for which room is held on a node until other pods have left; `gang` is the pod's gang."""

    node: str
    priority: int = 0
    gang: str | None = None


class Unschedulable(_PodRecord, frozen=True, gc=False):
    """A pod that fits on no node; `reasons` counts the nodes by the message with which they refuse the pod."""

    message: str
    priority: int = 0
    nodes: int = 0
    reasons: dict[str, int] = {}
    gang: str | None = None
    waits_for: WaitsFor = "room"


class NotConsidered(_PodRecord, frozen=True, gc=False):
    """A pending pod that the scheduler does not try."""

    cause: str
    message: str


class GangPlan(msgspec.Struct, frozen=True, rename="camel", gc=False):
    """What the plan does with a gang."""

    gang: str
    dialect: str
    minimum: int
    pods: int
    """The number of its pods."""
    running: int
    """The number of pods that ran before the session."""
    missing: int = 0
    """The number of pods that it needed to start, before the session."""
    placed: int = 0
    nominated: int = 0
    """The number of pods for which room is held until other pods have left."""
    priority: int = 0
    domain: dict[str, str] = {}
    """The required or preferred topology labels whose value all its pods share, with that value."""
    evicts: tuple[str, ...] = ()
    budgets_broken: int = 0
    message: str = ""
    """Why its other pods wait, in one sentence."""
    reasons: dict[str, int] = {}

    @property
    def starts(self) -> bool:
        """Whether the gang runs once the plan is carried out."""
        return self.placed >= self.missing and self.running + self.placed > 0


class PartialGang(msgspec.Struct, frozen=True, rename="camel", gc=False):
    """A gang with some, but fewer than its minimum of running pods, which never ran whole."""

    gang: str
    running: int
    minimum: int
    since: int
    """When the gang was first seen in part, in microseconds."""
    evicted: tuple[str, ...] = ()
    """Its running pods that this plan evicts, because the gang was not completed in time."""
    left: tuple[str, ...] = ()
    """Its running pods that stay: they have started, or no controller would create them again."""


class Plan(msgspec.Struct, frozen=True, rename="camel"):
    """See the module's docstring. Lists of pods are in queue order."""

    counts: dict[str, int]
    binds: tuple[Bound, ...] = ()
    evictions: tuple[Eviction, ...] = ()
    unschedulable: tuple[Unschedulable, ...] = ()
    not_considered: tuple[NotConsidered, ...] = ()
    nominated: tuple[Nominated, ...] = ()
    gangs: tuple[GangPlan, ...] = ()
    turns: tuple[Turn, ...] = ()
    """The turns in the order in which they were taken, one entry for every attempt."""
    holds: tuple[Hold, ...] = ()
    """New holds: for the nominated pods, and for a starving turn."""
    released: tuple[str, ...] = ()
    """Pods that stay pending and lose their holds, or are nominated without one; a binder clears their nominations."""
    budgets: tuple[PodDisruptionBudget, ...] = ()
    """Disruption budgets as the evictions leave them."""
    partial_gangs: tuple[PartialGang, ...] = ()
    """Gangs that run in part and never ran whole, when that is new or has changed."""

    @staticmethod
    def of(
        binds: Iterable[Bound],
        evictions: Iterable[Eviction],
        unschedulable: Iterable[Unschedulable],
        not_considered: Iterable[NotConsidered],
        nominated: Iterable[Nominated] = (),
        gangs: Iterable[GangPlan] = (),
    ) -> Plan:
        """Make a plan from its lists, with the counts of their entries."""
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
        """The number of pods that were not considered, by cause."""
        return Counter(each.cause for each in self.not_considered)

    def edits(self) -> Iterator[Edit]:
        """Yield the plan as edits: holds released, victims removed or moved, pods bound with volumes, new holds."""
        yield from map(Release, self.released)
        yield from map(Put, self.budgets)
        for eviction in self.evictions:
            yield eviction.change if eviction.change is not None else Unbind(eviction.pod)
        for bound in self.binds:
            yield Bind(bound.pod, bound.node, bound.start)
            yield from bound.volumes
        for eviction in self.evictions:
            if eviction.to is not None:
                yield Bind(eviction.pod, eviction.to)
                yield from eviction.volumes
        yield from self.holds
