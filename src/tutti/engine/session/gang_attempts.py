"""Attempts to start a gang, or to add surplus pods to a running gang.

Contract: the plan builder records every change of the cluster. A gang gets room for its minimum or nothing; pods above
the minimum are added one by one. A failure is cached for gangs of the same kind until the cluster changes.
`single_pod_attempts` has the attempts for pods without a gang.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from itertools import groupby

from msgspec.structs import replace

from tutti.cluster.work.meter import POD_TRIED
from tutti.engine.gangs.gang_state import GangState, Need
from tutti.engine.gangs.placer import GANG_SEARCH
from tutti.engine.preemption.gang_preemption import Evictions
from tutti.engine.reasons.gang_shortage import GangShortage, gang_shortage
from tutti.engine.reasons.visible_names import visible_preemptor
from tutti.engine.session.context import EVICTS_NOBODY, FailedAttempt, FailureCache, SessionContext
from tutti.engine.session.plan import GangPlan, Turn, Unschedulable, WaitsFor
from tutti.engine.session.waiting.failure_kind import FailureKind

_EVICTION_INSUFFICIENT = " Evicting pods of lower priority would not be enough."
_BLOCKED_BY_BUDGETS = " Disruption budgets do not allow to evict enough pods of lower priority."


class GangAttempts:
    """See the module's docstring."""

    def __init__(self, context: SessionContext) -> None:
        self._context, self._engine, self._cluster = context, context.engine, context.cluster
        self._gangs, self._placer, self._plan = context.gangs, context.placer, context.plan
        self._known_shortages: FailureCache[GangShortage] = FailureCache(context)

    def attempt(self, turn: Turn) -> FailedAttempt | None:
        """Take the turn of a gang; return why the turn failed, None if it succeeded."""
        return self._add_surplus(turn) if turn.surplus else self._start_gang(turn)

    def _start_gang(self, turn: Turn) -> FailedAttempt | None:
        """Place the pods that a gang needs to start, or none."""
        state = self._gang_state(turn)
        need = state.need()
        self._record_gang(turn, state)
        problem = self._blocking_problem(state, need)
        if problem is not None:
            return self._refuse_gang(turn, state, GangShortage(problem), waits_for="members")
        if not need.least:
            return None
        kind = self._kind(turn, state)
        known = self._known_shortages.get(kind) if kind is not None else None
        if known is not None:
            return self._refuse_gang(turn, state, known)
        outcome = self._place(turn, state, need)
        if outcome is None:
            return None
        if isinstance(outcome, GangShortage):
            if kind is not None:
                self._known_shortages.put(kind, outcome)
            return self._refuse_gang(turn, state, outcome)
        self._refuse_pods(turn, state.waiting, f"its gang {outcome.message}", waits_for="victims")
        return outcome

    def _blocking_problem(self, state: GangState, need: Need) -> str | None:
        """Return why a gang cannot start regardless of free resources; None if it can."""
        gang, waiting_count = state.gang, len(state.waiting)
        if gang.refusal is not None:
            return gang.refusal
        if need.least and gang.key in self._plan.broken_gangs:
            preemptor, minimum = self._plan.broken_gangs[gang.key]
            if state.present + waiting_count < minimum:
                preemptor = visible_preemptor(preemptor, reader=gang.key)
                return f"it was evicted for {preemptor}: its pods must be created again first"
        if waiting_count < need.least:
            have, more = state.present + waiting_count, need.least - waiting_count
            return f"{have} of {have + more} pods exist: the gang waits for {more} more"
        return None if need.has_enough_pods else "a part of the gang has too few pods: the gang waits for more"

    def _place(self, turn: Turn, state: GangState, need: Need) -> FailedAttempt | GangShortage | None:
        """Bind the pods that a gang needs, with evictions if necessary, and return None.

        Otherwise return what the gang waits for (`FailedAttempt`) or lacks (`GangShortage`).
        """
        context = self._context
        area = context.area_for(turn.pods)
        decisions = self._placer.place(need, context.turn_budget.limited_to(GANG_SEARCH), area)
        context.budget.spend(POD_TRIED * need.least)
        if decisions is not None:
            context.record_binds(decisions, gang=turn.gang)
            self._release_surplus_holds(turn, state)
            self._record_placement(turn, state)
            return None
        context.raise_if_out_of_budget()
        is_insufficient = is_blocked = False
        if self._may_preempt(state):
            evictions = context.find_evictions(need, turn.priority, turn.gang, area)
            if evictions is not None:
                priority = turn.priority
                self._release_surplus_holds(turn, state, needed={decision.pod for decision in evictions.decisions})
                is_bound = context.evictor.carry_out(evictions, preemptor=turn.key, gang=turn.gang, priority=priority)
                failure = None if is_bound else context.waiting_for_victims(evictions)
                self._record_placement(turn, state, evictions, failure)
                return failure
            is_insufficient, is_blocked = context.is_eviction_insufficient, context.is_blocked_by_budgets
            if context.eviction_area is not None:
                shortage = gang_shortage(self._placer, need)
                return replace(shortage, message=f"{shortage.message} Preemption: {EVICTS_NOBODY}")
        context.budget.spend(POD_TRIED * len(state.waiting))
        shortage = gang_shortage(self._placer, need)
        if is_insufficient:
            return replace(shortage, message=f"{shortage.message}{_EVICTION_INSUFFICIENT}")
        if is_blocked:
            return replace(shortage, message=f"{shortage.message}{_BLOCKED_BY_BUDGETS}", is_blocked_by_budgets=True)
        return shortage

    def _release_surplus_holds(self, turn: Turn, state: GangState, needed: Collection[str] = ()) -> None:
        """Release the holds of the pods above the minimum when a gang starts, or gets room with pods that are needed.

        Other minimums come before the surplus, and the gang's own pods must not keep each other out. In a turn for
        surplus, each pod keeps its hold until its own attempt, because others were evicted for it.
        """
        if not turn.surplus:
            waiting = (self._cluster.pods.keys[row] for row in state.waiting)
            self._context.release_holds(pod for pod in waiting if pod not in needed)

    def _gang_state(self, turn: Turn) -> GangState:
        assert turn.gang is not None
        pods = self._cluster.pods
        waiting = [row for row in map(self._cluster.pod_row, turn.pods) if pods.node_names[row] is None]
        return self._gangs.state(turn.gang, waiting)

    def _may_preempt(self, state: GangState) -> bool:
        if not self._context.policy.preemption or not self._engine.profile.preempts or state.gang.preempts is False:
            return False
        pods = [self._cluster.pods.objects[row] for row in state.waiting]
        return all(pod is not None and pod.spec.preemption_policy != "Never" for pod in pods)

    def _kind(self, turn: Turn, state: GangState) -> tuple[object, ...] | None:
        """Return what decides the attempt of a gang that has not started: gangs of the same kind fail alike.

        None: the gang has running or nominated pods, so its failure says nothing about other gangs.
        """
        context = self._context
        if state.running or any(pod in self._cluster.holds for pod in turn.pods) or context.area_for(turn.pods):
            return None
        if context.eviction_area is not None or context.spared:
            return None
        gang, preempts = state.gang, self._may_preempt(state)
        kinds = tuple((*self._context.pod_kind(row), state.part_of[row]) for row in state.waiting)
        return kinds, gang.minimum, gang.topology, gang.parts, gang.parts_needed, turn.priority, preempts

    def failure_kind(self, turn: Turn, failure: FailedAttempt) -> FailureKind:
        """Return the kind of a gang that failed; a gang with running or nominated pods is a kind of its own."""
        state = self._gang_state(turn)
        kind = None if turn.surplus else self._kind(turn, state)
        key = ("turn", turn.name) if kind is None else ("gang", *kind, state.gang.duration)
        priority = turn.priority if self._may_preempt(state) else None
        needed = 1 if turn.surplus else state.need().least
        return self._context.room_kind(key, state.waiting, failure, priority=priority, needed=needed)

    # Surplus ----------------------------------------------------------------------------------------------------------

    def _add_surplus(self, turn: Turn) -> FailedAttempt | None:
        """Add pods above the minimum to a running gang, one by one.

        While a pod waits for its victims, no further pod with rules between pods is tried: filters do not see a
        nominated pod on other nodes, so that more pods could be evicted in vain.
        """
        pods = self._cluster.pods
        if all(pods.node_names[pods.row_of[pod]] is not None for pod in turn.pods):
            return None
        state = self._gang_state(turn)
        if state.gang.problem is not None or state.is_short:
            return None
        self._record_gang(turn, state)
        if state.gang.refusal is not None:
            self._refuse_pods(turn, state.waiting, state.gang.refusal, waits_for="members")
            return None
        refused: FailedAttempt | None = None
        is_nominated, parts = False, state.part_of
        for _, same_kind in groupby(state.waiting, lambda row: (self._context.pod_kind(row), parts[row])):
            rows = list(same_kind)
            if is_nominated and self._has_pod_rules(rows[0]):
                message = f"its gang {self._plan.gangs[turn.key].message}"
                self._refuse_pods(turn, rows, message, waits_for="victims")
                continue
            state, failure = self._add_pods_of_kind(turn, state, rows)
            is_nominated = is_nominated or (failure is not None and bool(failure.leaving))
            refused = failure or refused
        return refused

    def _add_pods_of_kind(
        self, turn: Turn, state: GangState, rows: list[int]
    ) -> tuple[GangState, FailedAttempt | None]:
        """Add pods of one kind: when one does not fit, the others do not fit either. Return the gang's new state."""
        refused: FailedAttempt | None = None
        while rows:
            if state.surplus <= 0:
                message = f"the gang already has its maximum of {state.gang.maximum} pods"
                self._refuse_pods(turn, rows, message, waits_for="members")
                break
            row, need = rows[0], state.need_of_one_more(rows[0])
            kind = (self._context.pod_kind(row), state.part_of[row], turn.gang)
            outcome = self._known_shortages.get(kind) or self._place(turn, state, need)
            if isinstance(outcome, GangShortage):
                self._known_shortages.put(kind, outcome)
                self._context.release_holds(self._cluster.pods.keys[each] for each in rows)
                waits_for = _waits_for(outcome)
                self._refuse_pods(turn, rows, outcome.message, outcome.reasons, waits_for=waits_for)
                return state, self._failed_attempt(outcome)
            refused = outcome or refused
            added = [row]
            if outcome is None and not need.has_preferences:
                added += self._place_same_kind(turn, need, rows[1 : state.surplus])
            rows = rows[len(added) :]
            if outcome is not None and rows and self._has_pod_rules(rows[0]):
                self._refuse_pods(turn, rows, f"its gang {outcome.message}", waits_for="victims")
                return replace(state, running=(*state.running, *added)), outcome
            # A pod that waits for its victims counts too: for the maximum, and for the domain of the pods after it.
            state = replace(state, running=(*state.running, *added))
        return state, refused

    def _has_pod_rules(self, row: int) -> bool:
        return any(self._engine.evaluator.incoming_pod(row).applicable_plugins)

    def _place_same_kind(self, turn: Turn, need: Need, rows: Sequence[int]) -> list[int]:
        """Place further pods of the kind just added, in the same domains, until one does not fit; return their rows."""
        keys = [self._cluster.pods.keys[row] for row in rows]
        area = self._context.area_for(turn.pods)
        innermost: Need | None = need
        while innermost is not None:
            area = self._placer.current_area(innermost, area)
            innermost = innermost.parts[0] if innermost.parts else None
        decisions = self._engine.place(keys, area, give_up=True) if keys else []
        bound = [decision for decision in decisions if decision.node is not None]
        self._context.budget.spend(POD_TRIED * len(decisions))
        self._context.record_binds(bound, gang=turn.gang)
        return list(rows[: len(bound)])

    # The plan ---------------------------------------------------------------------------------------------------------

    def _record_gang(self, turn: Turn, state: GangState) -> None:
        gang = state.gang
        if gang.key not in self._plan.gangs:
            running = len(state.running)
            self._plan.gangs[gang.key] = GangPlan(
                gang=gang.key,
                dialect=gang.dialect,
                minimum=gang.minimum,
                pods=running + len(state.waiting),
                running=running,
                missing=state.need().least,
                priority=turn.priority,
            )

    def _record_placement(
        self, turn: Turn, state: GangState, evictions: Evictions | None = None, failure: FailedAttempt | None = None
    ) -> None:
        previous = self._plan.gangs[turn.key]
        message = failure.message if failure is not None else ""
        if failure is None and turn.surplus:
            message = previous.message  # another surplus pod may wait for its victims
        self._plan.gangs[turn.key] = replace(
            previous,
            evicts=(*previous.evicts, *(evictions.victims if evictions else ())),
            budgets_broken=previous.budgets_broken + (evictions.violations if evictions else 0),
            domain=self._shared_domain(state),
            message=message,
            reasons={},
        )

    def _shared_domain(self, state: GangState) -> dict[str, str]:
        """Return the topology labels that all running pods of a gang share, with their values."""
        pods, topology = self._cluster.pods, state.gang.topology
        keys = [key for key in (topology.required, *topology.preferred) if key is not None]
        running = [row for row in (*state.running, *state.waiting) if pods.node[row] >= 0] if keys else []
        domain = {}
        for key in keys:
            values = self._placer.areas.domains_of(running, key)
            if len(values) == 1 and 0 not in values:
                domain[key] = self._placer.areas.domain_name(key, values.pop())
        return domain

    def _refuse_gang(
        self, turn: Turn, state: GangState, shortage: GangShortage, waits_for: WaitsFor | None = None
    ) -> FailedAttempt:
        message, reasons = shortage.message, shortage.reasons
        self._plan.gangs[turn.key] = replace(self._plan.gangs[turn.key], message=message, reasons=reasons)
        self._context.release_holds(self._cluster.pods.keys[row] for row in state.waiting)
        self._refuse_pods(turn, state.waiting, message, reasons, waits_for=waits_for or _waits_for(shortage))
        return self._failed_attempt(shortage)

    def _failed_attempt(self, shortage: GangShortage) -> FailedAttempt:
        """Return the failed attempt of a gang's turn, with the events that may cure the failure."""
        cures, events = shortage.cures(self._engine.evaluator), tuple(self._cluster.events)
        return FailedAttempt(shortage.message, cures, events, shortage.needs_room, shortage.plugins)

    def _refuse_pods(
        self,
        turn: Turn,
        rows: Iterable[int],
        message: str,
        reasons: dict[str, int] | None = None,
        *,
        waits_for: WaitsFor = "room",
    ) -> None:
        """Record why pods wait, for the pods that are neither bound nor nominated."""
        message, waits_for = self._context.with_refusals(turn.pods, message, waits_for)
        pods, nodes = self._cluster.pods, self._cluster.nodes.count
        for row in rows:
            key = pods.keys[row]
            if pods.node_names[row] is None and key not in self._cluster.holds:
                priority = int(pods.priority[row])
                self._plan.refuse(Unschedulable(key, message, priority, nodes, reasons or {}, turn.gang, waits_for))


def _waits_for(shortage: GangShortage) -> WaitsFor:
    return "budgets" if shortage.is_blocked_by_budgets else "room"
