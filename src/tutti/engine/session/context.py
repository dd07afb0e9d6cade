"""The desk: what all attempts of one pass share: the tools, the notes, and what is known to fail."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Generic, NamedTuple, TypeVar

from tutti.cluster.edits import Release
from tutti.cluster.events import Event
from tutti.cluster.work_budget import WorkBudget
from tutti.engine.gangs.gang_state import Gangs, Need
from tutti.engine.gangs.placer import GangPlacer
from tutti.engine.placement.engine import Decision, Engine
from tutti.engine.preemption.gang_preemption import Evictions, GangPreemption
from tutti.engine.session.eviction import MakingWay
from tutti.engine.session.plan import Bound
from tutti.engine.session.plan_builder import Notes
from tutti.kube.times import timestamp

T = TypeVar("T")


class Options(NamedTuple):
    """How a pass is made."""

    preemption: bool = True
    consolidation: bool = False
    """Whether running pods may be moved to make room, before any are evicted."""
    now: int | None = None
    """The time, in microseconds, if victims leave as they do in a cluster: they terminate while room is held. Without
    it they are gone at once."""
    patience: int = 0
    """How long room is held for those who wait for others to leave, and how long leaving is believed."""


class Refused(NamedTuple):
    """Why a turn failed, and what may cure it."""

    message: str
    cures: frozenset[Event]
    events: tuple[int, ...]
    """How often each event had happened by then."""
    room: bool = False
    """Whether room would help."""

    def is_cured(self, events: Sequence[int]) -> bool:
        """Say whether something has happened since that may cure it."""
        return any(events[cure] != self.events[cure] for cure in self.cures)


class Desk:
    """The tools of one pass over one cluster."""

    def __init__(self, engine: Engine, options: Options) -> None:
        self.engine, self.cluster, self.options = engine, engine.cluster, options
        self.placer, self.gangs = GangPlacer.of(engine), Gangs.of(engine.cluster)
        self.notes = Notes(engine.cluster)
        now, patience = options.now, options.patience
        graceful, until = (None, None) if now is None else (timestamp(now), now + patience)
        self.making_way = MakingWay(engine, self.gangs, self.notes, graceful=graceful, until=until)
        self._stuck_before = None if now is None else now - patience
        self.in_vain = False
        """Whether there was somebody to evict when room was last looked for, and that would not have been enough."""
        self.budget = WorkBudget()
        """Counts the work of the pass; searches spend from it."""

    def make_room(self, need: Need, priority: int, gang: str | None) -> Evictions | None:
        """Find whom to wait for, to move or to evict."""
        placer, gangs, stuck = self.placer, self.gangs, self._stuck_before
        search = GangPreemption(
            placer, gangs, need, priority=priority, gang=gang, stuck_before=stuck, budget=self.budget
        )
        found = search.leaving()
        if found is None and self.options.consolidation:
            moving = GangPreemption(placer, gangs, need, priority=priority, gang=gang, move=True, budget=self.budget)
            found = moving.run()
        if found is None:
            found = search.run()
        self.in_vain = found is None and search.weaker > 0
        return found

    def waits(self, found: Evictions) -> Refused:
        """Say that a turn waits for others to leave."""
        text = f"waits for {_listed((*found.victims, *found.leaving))} to leave"
        return Refused(text, frozenset((Event.POD_GONE,)), tuple(self.cluster.events))

    def bind(self, decisions: Iterable[Decision], gang: str | None = None) -> None:
        """Note that pods are bound."""
        pods = self.cluster.pods
        for decision in decisions:
            priority = int(pods.priority[pods.row_of[decision.pod]])
            self.notes.bind(Bound(decision.pod, decision.node or "", priority, decision.score, gang=gang))

    def give_up_holds(self, pods: Iterable[str]) -> None:
        """Release room that was held for pods which turn out not to need it: others may have it."""
        for pod in pods:
            if self.options.preemption and pod in self.cluster.holds:
                self.cluster.apply(Release(pod))

    def looks(self, row: int) -> tuple[int, int]:
        """Give what tells the pod in a row from others, but for its owner."""
        labels = self.cluster.census.label_class_of(row)
        return int(self.cluster.pods.spec[row]), labels.number


class Known(Generic[T]):
    """What is known of things by what they look like, until pods, nodes or holds change."""

    def __init__(self, desk: Desk) -> None:
        self._cluster = desk.cluster
        self._version = (-1, -1)
        self._found: dict[tuple[object, ...], T] = {}

    def get(self, looks: tuple[object, ...]) -> T | None:
        """Give what is known."""
        self._follow()
        return self._found.get(looks)

    def put(self, looks: tuple[object, ...], found: T) -> T:
        """Keep what was found."""
        self._follow()
        self._found[looks] = found
        return found

    def _follow(self) -> None:
        version = (self._cluster.touched.length, self._cluster.held.version)
        if self._version != version:
            self._version = version
            self._found.clear()


def _listed(pods: Sequence[str]) -> str:
    return ", ".join(pods[:3]) + (f" and {len(pods) - 3} more" if len(pods) > 3 else "")
