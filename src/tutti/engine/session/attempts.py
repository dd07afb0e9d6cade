"""Attempts: placing what has its turn.

Contract: `Attempts` changes its cluster as its notes say, and nothing else. Pods on their own are for `solos.py`. A
gang gets what it needs or nothing; pods above its minimum join it one by one. What fails is not tried again for others
that look the same until the cluster changes.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby

from msgspec.structs import replace

from tutti.cluster.meter import POD_TRIED
from tutti.engine.gangs.gang_state import Need, Standing
from tutti.engine.gangs.placer import GANG_SEARCH
from tutti.engine.placement.engine import Engine
from tutti.engine.plugins.base import Area
from tutti.engine.preemption.gang_preemption import Evictions
from tutti.engine.reasons.gang_shortage import Lack, why
from tutti.engine.session.context import Desk, Known, Options, Refused
from tutti.engine.session.plan import GangPlan, Unschedulable
from tutti.engine.session.single_pods import Solos
from tutti.engine.session.turns import Turn

_IN_VAIN = " Evicting weaker pods would not be enough."


class Attempts:
    """See the module's contract."""

    def __init__(self, engine: Engine, options: Options) -> None:
        self.desk = desk = Desk(engine, options)
        self.engine, self.cluster, self.gangs = engine, engine.cluster, desk.gangs
        self.placer, self.notes = desk.placer, desk.notes
        self._solos = Solos(desk)
        self._lacks: Known[Lack] = Known(desk)

    def solos(self, pods: Sequence[str]) -> dict[str, Refused]:
        """Try pods on their own in this order; give those that were refused."""
        return self._solos.run(pods)

    # Gangs ------------------------------------------------------------------------------------------------------------

    def gang(self, turn: Turn) -> Refused | None:
        """Give a gang what it needs to start, or nothing."""
        standing = self._standing(turn)
        need = standing.need()
        self._note(turn, standing)
        stopped = self._stopped(standing, need)
        if stopped is not None:
            return self._gang_refused(turn, standing, Lack(stopped))
        if not need.least:
            return None
        looks = self._looks(turn, standing)
        known = self._lacks.get(looks) if looks is not None else None
        if known is not None:
            return self._gang_refused(turn, standing, known)
        placed = self._place(turn, standing, need)
        if placed is None:
            return None
        if isinstance(placed, Lack):
            if looks is not None:
                self._lacks.put(looks, placed)
            return self._gang_refused(turn, standing, placed)
        self._rest_waits(turn, standing.waiting, f"its gang {placed.message}")
        return placed

    def _stopped(self, standing: Standing, need: Need) -> str | None:
        """Say why a gang cannot start, whatever the room."""
        gang, there = standing.gang, len(standing.waiting)
        if gang.problem is not None:
            return gang.problem
        if need.least and gang.key in self.notes.made_way:
            by, minimum = self.notes.made_way[gang.key]
            if len(standing.running) + there < minimum:
                return f"it made way for {by}: its pods have to come back first"
        if there < need.least:
            have = len(standing.running) + there
            return f"{have} of {gang.minimum} pods are there: it waits for {need.least - there} more"
        return None if need.has_pods else "a part of it has too few pods: it waits for them"

    def _place(self, turn: Turn, standing: Standing, need: Need) -> Refused | Lack | None:
        """Bind what a gang needs, if need be by making room; otherwise say what it waits for, or what it lacks."""
        desk = self.desk
        decisions = self.placer.place(need, desk.budget.limited_to(GANG_SEARCH))
        desk.budget.spend(POD_TRIED * need.least)
        if decisions is not None:
            desk.bind(decisions, gang=turn.gang)
            desk.give_up_holds(self.cluster.pods.keys[row] for row in standing.waiting)
            self._note_success(turn, standing)
            return None
        in_vain = False
        if self._may_preempt(standing):
            found = desk.make_room(need, turn.priority, turn.gang)
            if found is not None:
                bound = desk.making_way.carry_out(found, by=turn.key, gang=turn.gang, priority=turn.priority)
                waits = None if bound else desk.waits(found)
                self._note_success(turn, standing, found, waits)
                return waits
            in_vain = desk.in_vain
        desk.budget.spend(POD_TRIED * len(standing.waiting))
        lack = why(self.placer, need)
        return replace(lack, message=f"{lack.message}{_IN_VAIN}") if in_vain else lack

    def _standing(self, turn: Turn) -> Standing:
        assert turn.gang is not None
        pods = self.cluster.pods
        waiting = [row for row in map(self.cluster.pod_row, turn.pods) if pods.node_names[row] is None]
        return self.gangs.standing(turn.gang, waiting)

    def _may_preempt(self, standing: Standing) -> bool:
        if not self.desk.options.preemption or not self.engine.profile.preempts or standing.gang.preempts is False:
            return False
        pods = [self.cluster.pods.objects[row] for row in standing.waiting]
        return all(pod is not None and pod.spec.preemption_policy != "Never" for pod in pods)

    def _looks(self, turn: Turn, standing: Standing) -> tuple[object, ...] | None:
        """Give what tells a gang from others of which no pod runs yet; None for one that is like no other."""
        if standing.running or any(pod in self.cluster.holds for pod in turn.pods):
            return None
        gang, preempts = standing.gang, self._may_preempt(standing)
        kinds = tuple((*self.desk.looks(row), standing.part_of[row]) for row in standing.waiting)
        return kinds, gang.minimum, gang.topology, gang.parts, gang.parts_needed, turn.priority, preempts

    # Above the minimum ------------------------------------------------------------------------------------------------

    def surplus(self, turn: Turn) -> Refused | None:
        """Let pods above the minimum of a gang that runs join it, one by one."""
        pods = self.cluster.pods
        if all(pods.node_names[pods.row_of[pod]] is not None for pod in turn.pods):
            return None
        standing = self._standing(turn)
        if standing.gang.problem is not None or standing.need().least:
            return None
        refused: Refused | None = None
        parts = standing.part_of
        for _, alike in groupby(standing.waiting, lambda row: (self.desk.looks(row), parts[row])):
            standing, why_not = self._join(turn, standing, list(alike))
            refused = why_not or refused
        return refused

    def _join(self, turn: Turn, standing: Standing, rows: list[int]) -> tuple[Standing, Refused | None]:
        """Let pods join that are alike: when one finds no room, neither do the others. Give the gang as it is then."""
        refused: Refused | None = None
        while rows:
            if standing.surplus <= 0:
                self._rest_waits(turn, rows, f"the gang has its {standing.gang.maximum} pods")
                break
            row, need = rows[0], standing.one_more(rows[0])
            looks = (self.desk.looks(row), standing.part_of[row], turn.gang)
            placed = self._lacks.get(looks) or self._place(turn, standing, need)
            if isinstance(placed, Lack):
                self._lacks.put(looks, placed)
                self.desk.give_up_holds(self.cluster.pods.keys[each] for each in rows)
                self._rest_waits(turn, rows, placed.message, placed.reasons)
                cures = placed.cures(self.engine.judge)
                return standing, Refused(placed.message, cures, tuple(self.cluster.events), placed.room)
            refused = placed or refused
            joined = [row]
            if placed is None and not need.prefers:
                joined += self._follow(turn, need, rows[1 : standing.surplus])
            rows = rows[len(joined) :]
            if placed is None:
                standing = replace(standing, running=(*standing.running, *joined))
        return standing, refused

    def _follow(self, turn: Turn, need: Need, rows: Sequence[int]) -> list[int]:
        """Place further pods like one that has just joined, in the same domains, until one finds no room there."""
        keys = [self.cluster.pods.keys[row] for row in rows]
        area: Area | None = None
        inner: Need | None = need
        while inner is not None:
            area = self.placer.settled(inner, area)
            inner = inner.parts[0] if inner.parts else None
        decisions = self.engine.place(keys, area, give_up=True) if keys else []
        bound = [decision for decision in decisions if decision.node is not None]
        self.desk.budget.spend(POD_TRIED * len(decisions))
        self.desk.bind(bound, gang=turn.gang)
        return list(rows[: len(bound)])

    # Notes ------------------------------------------------------------------------------------------------------------

    def _note(self, turn: Turn, standing: Standing) -> None:
        gang = standing.gang
        if gang.key not in self.notes.gangs:
            running = len(standing.running)
            self.notes.gangs[gang.key] = GangPlan(
                gang.key, gang.dialect, gang.minimum, running + len(standing.waiting), running, priority=turn.priority
            )

    def _note_success(
        self, turn: Turn, standing: Standing, found: Evictions | None = None, waits: Refused | None = None
    ) -> None:
        before = self.notes.gangs[turn.key]
        self.notes.gangs[turn.key] = replace(
            before,
            evicts=(*before.evicts, *(found.victims if found else ())),
            budgets_broken=before.budgets_broken + (found.violations if found else 0),
            domain=self._shared(standing),
            message=waits.message if waits is not None else "",
            reasons={},
        )

    def _shared(self, standing: Standing) -> dict[str, str]:
        """Give the values of those labels that all running pods of a gang share."""
        pods, topology = self.cluster.pods, standing.gang.topology
        keys = [key for key in (topology.required, *topology.preferred) if key is not None]
        running = [row for row in (*standing.running, *standing.waiting) if pods.node[row] >= 0] if keys else []
        found = {}
        for key in keys:
            values = self.placer.areas.values_of(running, key)
            if len(values) == 1 and 0 not in values:
                found[key] = self.placer.areas.name(key, values.pop())
        return found

    def _gang_refused(self, turn: Turn, standing: Standing, lack: Lack) -> Refused:
        self.notes.gangs[turn.key] = replace(self.notes.gangs[turn.key], message=lack.message, reasons=lack.reasons)
        self.desk.give_up_holds(self.cluster.pods.keys[row] for row in standing.waiting)
        self._rest_waits(turn, standing.waiting, lack.message, lack.reasons)
        return Refused(lack.message, lack.cures(self.engine.judge), tuple(self.cluster.events), lack.room)

    def _rest_waits(self, turn: Turn, rows: Iterable[int], message: str, reasons: dict[str, int] | None = None) -> None:
        """Note why those of some pods wait that are neither bound nor nominated."""
        pods, nodes = self.cluster.pods, self.cluster.nodes.count
        for row in rows:
            key = pods.keys[row]
            if pods.node_names[row] is None and key not in self.cluster.holds:
                priority = int(pods.priority[row])
                self.notes.refuse(Unschedulable(key, message, priority, nodes, reasons or {}, turn.gang))
