"""One attempt to place a gang, or to add pods to a gang that runs.

Contract: the cluster changes as the plan builder notes, and not otherwise. A gang gets what it needs or nothing; pods
beyond its minimum join it one by one. A failure is remembered for gangs of the same kind until the cluster changes.
`single_pod_attempts` has the attempts for pods without a gang.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby

from msgspec.structs import replace

from tutti.cluster.work.meter import POD_TRIED
from tutti.engine.gangs.gang_state import GangState, Need
from tutti.engine.gangs.placer import GANG_SEARCH
from tutti.engine.plugins.base import Area
from tutti.engine.preemption.gang_preemption import Evictions
from tutti.engine.reasons.gang_shortage import GangShortage, why
from tutti.engine.session.context import FailedAttempt, FailureCache, SessionContext
from tutti.engine.session.plan import GangPlan, Turn, Unschedulable

_NOT_ENOUGH = " Evicting weaker pods would not be enough."


class GangAttempts:
    """See the module's docstring."""

    def __init__(self, context: SessionContext) -> None:
        self._context, self._engine, self._cluster = context, context.engine, context.cluster
        self._gangs, self._placer, self._plan = context.gangs, context.placer, context.plan
        self._lacks: FailureCache[GangShortage] = FailureCache(context)

    def attempt(self, turn: Turn) -> FailedAttempt | None:
        """Take the turn of a gang; return why it failed."""
        return self._add_surplus(turn) if turn.surplus else self._start(turn)

    def _start(self, turn: Turn) -> FailedAttempt | None:
        """Place what a gang needs to start, or nothing."""
        standing = self._standing(turn)
        need = standing.need()
        self._note(turn, standing)
        stopped = self._stopped(standing, need)
        if stopped is not None:
            return self._gang_refused(turn, standing, GangShortage(stopped))
        if not need.least:
            return None
        kind = self._kind(turn, standing)
        known = self._lacks.get(kind) if kind is not None else None
        if known is not None:
            return self._gang_refused(turn, standing, known)
        placed = self._place(turn, standing, need)
        if placed is None:
            return None
        if isinstance(placed, GangShortage):
            if kind is not None:
                self._lacks.put(kind, placed)
            return self._gang_refused(turn, standing, placed)
        self._refuse_rest(turn, standing.waiting, f"its gang {placed.message}")
        return placed

    def _stopped(self, standing: GangState, need: Need) -> str | None:
        """Return why a gang cannot start, however much room there is."""
        gang, there = standing.gang, len(standing.waiting)
        if gang.problem is not None:
            return gang.problem
        if need.least and gang.key in self._plan.broken_gangs:
            by, minimum = self._plan.broken_gangs[gang.key]
            if len(standing.running) + there < minimum:
                return f"it made way for {by}: its pods have to come back first"
        if there < need.least:
            have = len(standing.running) + there
            return f"{have} of {gang.minimum} pods are there: it waits for {need.least - there} more"
        return None if need.has_enough_pods else "a part of it has too few pods: it waits for them"

    def _place(self, turn: Turn, standing: GangState, need: Need) -> FailedAttempt | GangShortage | None:
        """Bind what a gang needs, evicting others if necessary; otherwise return what it waits for or lacks."""
        context = self._context
        decisions = self._placer.place(need, context.budget.limited_to(GANG_SEARCH))
        context.budget.spend(POD_TRIED * need.least)
        if decisions is not None:
            context.note_bound(decisions, gang=turn.gang)
            context.release(self._cluster.pods.keys[row] for row in standing.waiting)
            self._note_success(turn, standing)
            return None
        context.check_budget()
        not_enough = False
        if self._may_preempt(standing):
            found = context.find_room(need, turn.priority, turn.gang)
            if found is not None:
                bound = context.evictor.carry_out(found, by=turn.key, gang=turn.gang, priority=turn.priority)
                waits = None if bound else context.waits_for(found)
                self._note_success(turn, standing, found, waits)
                return waits
            not_enough = context.evicting_was_not_enough
        context.budget.spend(POD_TRIED * len(standing.waiting))
        lack = why(self._placer, need)
        return replace(lack, message=f"{lack.message}{_NOT_ENOUGH}") if not_enough else lack

    def _standing(self, turn: Turn) -> GangState:
        assert turn.gang is not None
        pods = self._cluster.pods
        waiting = [row for row in map(self._cluster.pod_row, turn.pods) if pods.node_names[row] is None]
        return self._gangs.state(turn.gang, waiting)

    def _may_preempt(self, standing: GangState) -> bool:
        if not self._context.policy.preemption or not self._engine.profile.preempts or standing.gang.preempts is False:
            return False
        pods = [self._cluster.pods.objects[row] for row in standing.waiting]
        return all(pod is not None and pod.spec.preemption_policy != "Never" for pod in pods)

    def _kind(self, turn: Turn, standing: GangState) -> tuple[object, ...] | None:
        """Return what tells a gang that has not started from others; None if its failure says nothing about others."""
        if standing.running or any(pod in self._cluster.holds for pod in turn.pods):
            return None
        gang, preempts = standing.gang, self._may_preempt(standing)
        kinds = tuple((*self._context.pod_kind(row), standing.part_of[row]) for row in standing.waiting)
        return kinds, gang.minimum, gang.topology, gang.parts, gang.parts_needed, turn.priority, preempts

    # Beyond the minimum -----------------------------------------------------------------------------------------------

    def _add_surplus(self, turn: Turn) -> FailedAttempt | None:
        """Let pods beyond the minimum of a gang that runs join it, one by one."""
        pods = self._cluster.pods
        if all(pods.node_names[pods.row_of[pod]] is not None for pod in turn.pods):
            return None
        standing = self._standing(turn)
        if standing.gang.problem is not None or standing.need().least:
            return None
        refused: FailedAttempt | None = None
        parts = standing.part_of
        for _, alike in groupby(standing.waiting, lambda row: (self._context.pod_kind(row), parts[row])):
            standing, why_not = self._join(turn, standing, list(alike))
            refused = why_not or refused
        return refused

    def _join(self, turn: Turn, standing: GangState, rows: list[int]) -> tuple[GangState, FailedAttempt | None]:
        """Let pods of one kind join: when one finds no room, neither do the others. Return the gang as it is then."""
        refused: FailedAttempt | None = None
        while rows:
            if standing.surplus <= 0:
                self._refuse_rest(turn, rows, f"the gang has its {standing.gang.maximum} pods")
                break
            row, need = rows[0], standing.need_of_one_more(rows[0])
            kind = (self._context.pod_kind(row), standing.part_of[row], turn.gang)
            placed = self._lacks.get(kind) or self._place(turn, standing, need)
            if isinstance(placed, GangShortage):
                self._lacks.put(kind, placed)
                self._context.release(self._cluster.pods.keys[each] for each in rows)
                self._refuse_rest(turn, rows, placed.message, placed.reasons)
                cures = placed.cures(self._engine.evaluator)
                return standing, FailedAttempt(placed.message, cures, tuple(self._cluster.events), placed.room)
            refused = placed or refused
            joined = [row]
            if placed is None and not need.has_preferences:
                joined += self._follow(turn, need, rows[1 : standing.surplus])
            rows = rows[len(joined) :]
            if placed is None:
                standing = replace(standing, running=(*standing.running, *joined))
        return standing, refused

    def _follow(self, turn: Turn, need: Need, rows: Sequence[int]) -> list[int]:
        """Place further pods of the kind that has just joined, in the same domains, until one finds no room there."""
        keys = [self._cluster.pods.keys[row] for row in rows]
        area: Area | None = None
        inner: Need | None = need
        while inner is not None:
            area = self._placer.current_area(inner, area)
            inner = inner.parts[0] if inner.parts else None
        decisions = self._engine.place(keys, area, give_up=True) if keys else []
        bound = [decision for decision in decisions if decision.node is not None]
        self._context.budget.spend(POD_TRIED * len(decisions))
        self._context.note_bound(bound, gang=turn.gang)
        return list(rows[: len(bound)])

    # The plan ---------------------------------------------------------------------------------------------------------

    def _note(self, turn: Turn, standing: GangState) -> None:
        gang = standing.gang
        if gang.key not in self._plan.gangs:
            running = len(standing.running)
            self._plan.gangs[gang.key] = GangPlan(
                gang.key, gang.dialect, gang.minimum, running + len(standing.waiting), running, priority=turn.priority
            )

    def _note_success(
        self, turn: Turn, standing: GangState, found: Evictions | None = None, waits: FailedAttempt | None = None
    ) -> None:
        before = self._plan.gangs[turn.key]
        self._plan.gangs[turn.key] = replace(
            before,
            evicts=(*before.evicts, *(found.victims if found else ())),
            budgets_broken=before.budgets_broken + (found.violations if found else 0),
            domain=self._shared_domain(standing),
            message=waits.message if waits is not None else "",
            reasons={},
        )

    def _shared_domain(self, standing: GangState) -> dict[str, str]:
        """Return the topology labels that all running pods of a gang share, with their values."""
        pods, topology = self._cluster.pods, standing.gang.topology
        keys = [key for key in (topology.required, *topology.preferred) if key is not None]
        running = [row for row in (*standing.running, *standing.waiting) if pods.node[row] >= 0] if keys else []
        found = {}
        for key in keys:
            values = self._placer.areas.domains_of(running, key)
            if len(values) == 1 and 0 not in values:
                found[key] = self._placer.areas.domain_name(key, values.pop())
        return found

    def _gang_refused(self, turn: Turn, standing: GangState, lack: GangShortage) -> FailedAttempt:
        self._plan.gangs[turn.key] = replace(self._plan.gangs[turn.key], message=lack.message, reasons=lack.reasons)
        self._context.release(self._cluster.pods.keys[row] for row in standing.waiting)
        self._refuse_rest(turn, standing.waiting, lack.message, lack.reasons)
        return FailedAttempt(lack.message, lack.cures(self._engine.evaluator), tuple(self._cluster.events), lack.room)

    def _refuse_rest(
        self, turn: Turn, rows: Iterable[int], message: str, reasons: dict[str, int] | None = None
    ) -> None:
        """Note why pods wait, for those that are neither bound nor nominated."""
        pods, nodes = self._cluster.pods, self._cluster.nodes.count
        for row in rows:
            key = pods.keys[row]
            if pods.node_names[row] is None and key not in self._cluster.holds:
                priority = int(pods.priority[row])
                self._plan.refuse(Unschedulable(key, message, priority, nodes, reasons or {}, turn.gang))
