"""What all attempts of one session share: engine, placer, plan builder, work budget, and known failures."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Generic, NamedTuple, TypeVar

from msgspec import structs
from msgspec.structs import replace

from tutti.cluster.edits import Release
from tutti.cluster.events import Event
from tutti.cluster.work.work_budget import WorkBudget
from tutti.engine.gangs.cluster_gangs import Gangs
from tutti.engine.gangs.gang_state import Need
from tutti.engine.gangs.placer import GangPlacer
from tutti.engine.placement.engine import Decision, Engine
from tutti.engine.plugins.base import Area
from tutti.engine.preemption.gang_preemption import Evictions, GangPreemption
from tutti.engine.preemption.victim_rules import SparingRules
from tutti.engine.reasons.visible_names import visible_pods
from tutti.engine.session.eviction import Evictor
from tutti.engine.session.plan import WaitsFor
from tutti.engine.session.plan_builder import PlanBuilder
from tutti.engine.session.policy import Policy
from tutti.engine.session.waiting.failure_kind import FailureKind
from tutti.engine.session.waiting.possible_victims import PossibleVictims
from tutti.engine.session.waiting.retry_hints import RoomClass
from tutti.kube.times import micros

T = TypeVar("T")

_CURES_OF_NOMINATED = frozenset((
    Event.NODE_ADDED, Event.NODE_ALLOCATABLE, Event.NODE_LABELS, Event.NODE_TAINTS, Event.NODE_FEATURES,
    Event.POD_REMOVED,
))  # fmt: skip
"""A turn that waits for its victims starts at once where a node gets room before they have left."""


EVICTS_NOBODY = "earlier evictions for it were in vain: nobody is evicted until nodes have changed."
"""Why a turn that has evicted pods in vain evicts no more."""


class FailedAttempt(NamedTuple):
    """Why a turn failed, and which events may cure the failure."""

    message: str
    cures: frozenset[Event]
    events: tuple[int, ...]
    """The cluster's event counters at the time of the attempt."""
    needs_room: bool = False
    """Whether more free resources would help."""
    plugins: frozenset[str] = frozenset()
    """The plugins that refused nodes."""
    leaving: tuple[str, ...] = ()
    """Nodes where victims are leaving for the turn."""
    has_evicted: bool = False
    """Whether the attempt evicted pods for which the turn now waits."""
    retry_at: int | None = None
    """When the first pod that the turn waits for should have left, in microseconds."""

    def may_be_cured(self, events: Sequence[int]) -> bool:
        """Return whether an event that may cure the failure has happened since the attempt."""
        return any(events[cure] != self.events[cure] for cure in self.cures)


class OutOfBudgetError(Exception):
    """The session's budget ended a search, so that finding nothing says nothing about the turn."""


class SessionContext:
    """See the module's docstring."""

    def __init__(self, engine: Engine, policy: Policy, now: int | None) -> None:
        self.engine, self.cluster, self.policy = engine, engine.cluster, policy
        self.placer, self.gangs = GangPlacer.of(engine), Gangs.of(engine.cluster)
        self.plan = PlanBuilder(engine.cluster, now)
        self.stuck_before: int | None = None
        """Pods that should have left before this time, in microseconds, are not expected to leave."""
        self._leaves_within = 0
        terminating_since: int | None = None
        hold_until: int | None = None
        if policy.victims == "terminate":
            if now is None:
                raise ValueError("victims that terminate need a clock")
            terminating_since = now
            if policy.patience is not None:
                hold_until, self.stuck_before = now + policy.patience.reserved_for, now - policy.patience.leaves_within
                self._leaves_within = policy.patience.leaves_within
        self.evictor = Evictor(
            engine,
            self.gangs,
            self.plan,
            terminating_since=terminating_since,
            hold_until=hold_until,
            hard_budgets=policy.victims_allowed.hard_budgets,
        )
        self.is_eviction_insufficient = False
        """Whether the last `find_evictions` had candidates of lower priority, and evicting them was not enough."""
        self.is_blocked_by_budgets = False
        """Whether only hard disruption budgets kept the last `find_evictions` from finding victims."""
        self.victim_rules = policy.victims_allowed
        """Which pods the turn that is taken may evict."""
        self.spared: frozenset[tuple[str, str | None]] = frozenset()
        """Pods that this turn does not evict because their eviction was refused, by key and uid."""
        self.budget = WorkBudget(policy.budget)
        """The work that the session's attempts may still do."""
        self.area_for: Callable[[Sequence[str]], Area | None] = lambda _pods: None
        """Returns the nodes to which some pods are limited for now; None for all nodes."""
        self.eviction_area: Area | None = None
        """The nodes where the turn that is taken may evict pods; None for all nodes."""
        self.may_defer_turn = False
        """Whether a turn whose search the budget ended is left to the next session. The first turn of a session is
        always decided, so that every session makes progress."""

    @property
    def turn_budget(self) -> WorkBudget:
        """The budget of the next search: that of the session, or one without a limit for the first turn."""
        return self.budget if self.may_defer_turn else WorkBudget(meter=self.budget.meter)

    def find_evictions(self, need: Need, priority: int, gang: str | None, area: Area | None) -> Evictions | None:
        """Return pods that are terminating, or can be moved, or can be evicted, so that a need fits; None if none do.

        Pods that are terminating already are preferred, then moves (with consolidation), then evictions. With an area,
        the need must fit there.
        """
        self.is_eviction_insufficient = self.is_blocked_by_budgets = False
        if not self.policy.consolidation and not PossibleVictims.of(self.cluster).exist_below(priority):
            return None
        placer, gangs = self.placer, self.gangs
        rules = self.victim_rules
        search = partial(GangPreemption, placer, gangs, need, priority=priority, gang=gang, area=area, rules=rules)
        preemption = search(stuck_before=self.stuck_before, budget=self.turn_budget)
        evictions = preemption.run_without_victims()
        if evictions is None and self.policy.consolidation:
            evictions = search(move=True, budget=self.turn_budget).run()
        if evictions is None and self.eviction_area is not None:
            area = self.limited_area(area)
            if not len(area.rows):
                return None
            preemption = search(stuck_before=self.stuck_before, budget=self.turn_budget, area=area)
        if evictions is None:
            evictions = preemption.run()
        if evictions is None:
            self.raise_if_out_of_budget()
            if rules.hard_budgets and preemption.candidate_count:
                search = partial(search, rules=replace(rules, hard_budgets=False), area=area)
                unlimited = search(stuck_before=self.stuck_before, budget=self.turn_budget).run()
                self.is_blocked_by_budgets = unlimited is not None
            self.is_eviction_insufficient = preemption.candidate_count > 0 and not self.is_blocked_by_budgets
        return evictions

    def spare_victims(self, pods: Iterable[tuple[str, str | None]]) -> None:
        """Let the turn that is taken not evict some pods, by key and uid."""
        self.spared = frozenset(pods)
        self.victim_rules = rules = self.policy.victims_allowed
        if self.spared:
            self.victim_rules = SparingRules(**structs.asdict(rules), spared=self.spared)

    def limited_area(self, area: Area | None) -> Area:
        """Return the part of an area where the turn that is taken may evict pods, if that is limited."""
        assert self.eviction_area is not None
        return self.eviction_area if area is None else area & self.eviction_area.mask

    def raise_if_out_of_budget(self) -> None:
        """Raise `OutOfBudgetError` if the budget may have ended a search that found nothing."""
        if self.may_defer_turn and self.budget.is_exhausted():
            raise OutOfBudgetError

    def waiting_for_victims(self, evictions: Evictions) -> FailedAttempt:
        """Return the failure of a turn that waits until its victims have terminated, or another node has room."""
        reader = next((decision.pod for decision in evictions.decisions), "")
        text = f"waits for {visible_pods((*evictions.victims, *evictions.leaving), reader=reader)} to leave"
        nodes = tuple(dict.fromkeys(decision.node or "" for decision in evictions.decisions))
        return FailedAttempt(
            text,
            _CURES_OF_NOMINATED,
            tuple(self.cluster.events),
            leaving=nodes,
            has_evicted=bool(evictions.victims),
            retry_at=self.stuck_at((*evictions.victims, *evictions.leaving)),
        )

    def stuck_at(self, pods: Iterable[str]) -> int | None:
        """Return when the first of some pods, as far as they are terminating, counts as stuck; None if none will."""
        if self.stuck_before is None:
            return None
        found = (self.cluster.pods.objects[row] for row in map(self.cluster.pods.row_of.get, pods) if row is not None)
        deleted = (pod.metadata.deletion_timestamp for pod in found if pod is not None)
        times = (micros(time) for time in deleted if time is not None)
        first = min((time for time in times if time >= self.stuck_before), default=None)
        return None if first is None else first + self._leaves_within + 1

    def record_binds(self, decisions: Iterable[Decision], gang: str | None = None) -> None:
        """Record in the plan that pods are bound."""
        for decision in decisions:
            self.plan.bind(decision, gang=gang)

    def release_holds(self, pods: Iterable[str]) -> None:
        """Release the holds of pods that do not fit on their nodes, so that other pods may use the room."""
        for pod in pods:
            if pod in self.cluster.holds:
                self.cluster.apply(Release(pod))

    def with_refusals(self, pods: Sequence[str], message: str, waits_for: WaitsFor) -> tuple[str, WaitsFor]:
        """Return why pods of a turn wait: after refused bindings or evictions the turn may not lack room."""
        if waits_for != "room":
            return message, waits_for
        area, refusals = self.area_for(pods), []
        if area is not None:
            avoided = self.cluster.nodes.count - len(area.rows)
            refusals.append(f"Nodes avoided for a while because a binding was refused: {avoided}.")
        if self.spared:
            refusals.append(f"Pods spared for a while because their eviction was refused: {len(self.spared)}.")
        return (" ".join((message, *refusals)), "correction") if refusals else (message, waits_for)

    def room_kind(
        self,
        key: tuple[object, ...],
        rows: Iterable[int],
        failure: FailedAttempt,
        *,
        priority: int | None,
        needed: int = 1,
    ) -> FailureKind:
        """Return the kind of failed turns with pods in some rows, of which `needed` must fit at once.

        If only nodes and free resources keep the pods pending, a change of other nodes than those with room for one of
        the pods cannot cure them. `priority` is that of the turn, None if the turn may not evict pods.
        """
        evaluator, table = self.engine.evaluator, self.cluster.pods
        rows = list(rows)
        row_of_spec = {int(table.spec[row]): row for row in rows}
        holds = (self.cluster.holds.get(table.keys[row]) for row in rows) if self.cluster.holds else ()
        nodes = (*failure.leaving, *(hold.node for hold in holds if hold is not None))
        watched = frozenset(row for row in map(self.cluster.nodes.row_of.get, nodes) if row is not None)
        waits_for_room = bool(failure.leaving) or (
            bool(failure.plugins) and failure.plugins <= evaluator.row_plugin_names and not self.policy.consolidation
        )
        classes: frozenset[RoomClass] = frozenset()
        if self.eviction_area is not None:
            waits_for_room = False  # when nodes change, the turn may evict pods again, on other nodes too
        if waits_for_room and not any(any(evaluator.incoming_pod(r).applicable_plugins) for r in row_of_spec.values()):
            may_preempt = priority is not None and not failure.leaving
            classes = frozenset(RoomClass(spec, priority or 0, may_preempt) for spec in row_of_spec)
        cures = failure.cures
        if priority is not None and self.policy.victims_allowed.hard_budgets:
            cures |= {Event.OBJECTS}  # a disruption budget may allow more evictions than before
        return FailureKind(
            key, cures, failure.events, classes=classes, watched_rows=watched, needed=needed, retry_at=failure.retry_at
        )

    def pod_kind(self, row: int) -> tuple[int, int]:
        """Return the pod's spec number and label class: pods with the same kind differ at most in their owners."""
        labels = self.cluster.pod_counters.label_class_of(row)
        return int(self.cluster.pods.spec[row]), labels.number


class FailureCache(Generic[T]):
    """Failures by kind of pod or gang; the cache is emptied when pods, nodes or holds change."""

    def __init__(self, context: SessionContext) -> None:
        self._cluster = context.cluster
        self._version = (-1, -1, -1)
        self._failures: dict[tuple[object, ...], T] = {}

    def get(self, kind: tuple[object, ...]) -> T | None:
        """Return the known failure of a kind, if any."""
        self._drop_outdated()
        return self._failures.get(kind)

    def put(self, kind: tuple[object, ...], failure: T) -> T:
        """Store the failure of a kind, and return that failure."""
        self._drop_outdated()
        self._failures[kind] = failure
        return failure

    def _drop_outdated(self) -> None:
        version = self._cluster.room_version
        if self._version != version:
            self._version = version
            self._failures.clear()
