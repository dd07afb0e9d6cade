"""What all attempts of one session share: tools, the plan so far, and failures that are known already."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Generic, NamedTuple, TypeVar

from tutti.cluster.edits import Release
from tutti.cluster.events import Event
from tutti.cluster.work.work_budget import WorkBudget
from tutti.engine.gangs.gang_state import Gangs, Need
from tutti.engine.gangs.placer import GangPlacer
from tutti.engine.placement.engine import Decision, Engine
from tutti.engine.preemption.gang_preemption import Evictions, GangPreemption
from tutti.engine.session.eviction import Evictor
from tutti.engine.session.plan_builder import PlanBuilder
from tutti.engine.session.policy import Policy
from tutti.kube.times import timestamp

T = TypeVar("T")


class FailedAttempt(NamedTuple):
    """Why a turn failed, and what may cure it."""

    message: str
    cures: frozenset[Event]
    events: tuple[int, ...]
    """How often each event had happened by then."""
    needs_room: bool = False
    """Whether more room would help."""

    def may_be_cured(self, events: Sequence[int]) -> bool:
        """Return whether an event that may cure it has happened since."""
        return any(events[cure] != self.events[cure] for cure in self.cures)


class OutOfBudgetError(Exception):
    """A search ended because the session's budget is spent: its "no" says nothing about the turn."""


class SessionContext:
    """The tools of one session on one cluster."""

    def __init__(self, engine: Engine, policy: Policy, now: int | None) -> None:
        self.engine, self.cluster, self.policy = engine, engine.cluster, policy
        self.placer, self.gangs = GangPlacer.of(engine), Gangs.of(engine.cluster)
        self.plan = PlanBuilder(engine.cluster)
        self._stuck_before: int | None = None
        terminating_since: str | None = None
        hold_until: int | None = None
        if policy.victims == "terminate":
            if now is None:
                raise ValueError("victims that terminate need a clock")
            terminating_since = timestamp(now)
            if policy.patience is not None:
                hold_until, self._stuck_before = now + policy.patience.reserved_for, now - policy.patience.reserved_for
        self.evictor = Evictor(
            engine, self.gangs, self.plan, terminating_since=terminating_since, hold_until=hold_until
        )
        self.evicting_was_not_enough = False
        """Whether there were pods to evict when room was last looked for, and evicting them was not enough."""
        self.budget = WorkBudget(policy.budget)
        """Counts the work of the session's attempts; searches spend from it."""
        self.may_be_cut = False
        """Whether a search that the budget has ended leaves its turn to the next session. The first turn of a session
        is decided with what the budget allows, so that every session gets on."""

    def find_room(self, need: Need, priority: int, gang: str | None) -> Evictions | None:
        """Find pods that leave already, that can be moved, or that can be evicted, so that a need fits."""
        placer, gangs = self.placer, self.gangs
        search = GangPreemption(
            placer, gangs, need, priority=priority, gang=gang, stuck_before=self._stuck_before, budget=self.budget
        )
        found = search.leaving()
        if found is None and self.policy.consolidation:
            moving = GangPreemption(placer, gangs, need, priority=priority, gang=gang, move=True, budget=self.budget)
            found = moving.run()
        if found is None:
            found = search.run()
        if found is None:
            self.check_budget()
        self.evicting_was_not_enough = found is None and search.weaker > 0
        return found

    def check_budget(self) -> None:
        """Raise `OutOfBudgetError` if a search that has found nothing may have been ended by the budget."""
        if self.may_be_cut and self.budget.is_exhausted():
            raise OutOfBudgetError

    def waits_for(self, found: Evictions) -> FailedAttempt:
        """Return the failure of a turn that waits for other pods to leave."""
        text = f"waits for {_listed((*found.victims, *found.leaving))} to leave"
        return FailedAttempt(text, frozenset((Event.POD_REMOVED,)), tuple(self.cluster.events))

    def note_bound(self, decisions: Iterable[Decision], gang: str | None = None) -> None:
        """Note that pods are bound."""
        for decision in decisions:
            self.plan.bind(decision, gang=gang)

    def release(self, pods: Iterable[str]) -> None:
        """Release room that is held for pods which turn out not to fit there: others may have it."""
        for pod in pods:
            if self.policy.preemption and pod in self.cluster.holds:
                self.cluster.apply(Release(pod))

    def pod_kind(self, row: int) -> tuple[int, int]:
        """Return what tells the pod in a row from others, except for its owner."""
        labels = self.cluster.pod_counters.label_class_of(row)
        return int(self.cluster.pods.spec[row]), labels.number


class FailureCache(Generic[T]):
    """Failures by the kind of pod or gang, until pods, nodes or holds change."""

    def __init__(self, context: SessionContext) -> None:
        self._cluster = context.cluster
        self._version = (-1, -1)
        self._found: dict[tuple[object, ...], T] = {}

    def get(self, kind: tuple[object, ...]) -> T | None:
        """Return the known failure of a kind."""
        self._drop_outdated()
        return self._found.get(kind)

    def put(self, kind: tuple[object, ...], failure: T) -> T:
        """Keep the failure of a kind, and return it."""
        self._drop_outdated()
        self._found[kind] = failure
        return failure

    def _drop_outdated(self) -> None:
        version = (self._cluster.touched.length, self._cluster.hold_index.version)
        if self._version != version:
            self._version = version
            self._found.clear()


def _listed(pods: Sequence[str]) -> str:
    return ", ".join(pods[:3]) + (f" and {len(pods) - 3} more" if len(pods) > 3 else "")
