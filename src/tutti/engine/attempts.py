"""Attempts: placing what has its turn.

Contract: `Attempts` changes its cluster as its notes say, and nothing else. A pod on its own is placed, and evicts
others, exactly as kube-scheduler would have it; where gangs could be its victims, they go as gangs do. A gang gets
what it needs or nothing; pods above its minimum join it one by one. What fails is not tried again for others that look
the same until the cluster changes.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import NamedTuple

from msgspec.structs import replace

from tutti.cluster.edits import Release
from tutti.cluster.events import Event
from tutti.engine.engine import Decision, Engine
from tutti.engine.failure import Failure, failure
from tutti.engine.gang import GangPlacer
from tutti.engine.gang_preempt import Evictions, GangPreemption
from tutti.engine.gang_reason import Lack, why
from tutti.engine.make_way import MakingWay
from tutti.engine.notes import Notes
from tutti.engine.plan import Bound, GangPlan, Unschedulable
from tutti.engine.plugins.base import Area, controller
from tutti.engine.standing import Gangs, Need, Standing
from tutti.engine.turns import Turn

_GROWTH = 16
"""How much larger the next attempt with like pods is: one tells whether they fit at all."""


class Options(NamedTuple):
    """How a pass is made."""

    preemption: bool = True
    consolidation: bool = False
    """Whether running pods may be moved to make room, before any are evicted."""
    graceful: str | None = None
    """The time at which victims begin to terminate; None when they are gone at once."""


class Refused(NamedTuple):
    """Why a turn failed, and what may cure it."""

    message: str
    cures: frozenset[Event]
    events: tuple[int, ...]
    """How often each event had happened by then."""
    room: bool = False
    """Whether it lacks nothing but room."""

    def is_cured(self, events: Sequence[int]) -> bool:
        """Say whether something has happened since that may cure it."""
        return any(events[cure] != self.events[cure] for cure in self.cures)


class Attempts:
    """See the module's contract."""

    def __init__(self, engine: Engine, options: Options) -> None:
        self.engine, self.cluster = engine, engine.cluster
        self.placer, self.gangs, self.notes = GangPlacer(engine), Gangs(engine.cluster), Notes(engine.cluster)
        self._options = options
        self._making_way = MakingWay(engine, self.gangs, self.notes, graceful=options.graceful)
        self.work = 0
        """Steps taken so far, for whoever limits them."""
        self._failed: dict[tuple[object, ...], tuple[Failure, Refused]] = {}
        """What pods on their own were refused with since the cluster last changed."""
        self._lacks: dict[tuple[object, ...], Lack] = {}
        """What gangs lacked since the cluster last changed, by what they look like."""
        self._change = -1

    def _forget_if_changed(self) -> None:
        if self._change != self.cluster.touched.length:
            self._change = self.cluster.touched.length
            self._failed.clear()
            self._lacks.clear()

    # Pods on their own ------------------------------------------------------------------------------------------------

    def solos(self, pods: Sequence[str]) -> dict[str, Refused]:
        """Try pods on their own in this order; give those that were refused."""
        refused: dict[str, Refused] = {}
        for kind, alike in groupby(pods, self._kind):
            self._forget_if_changed()
            known = self._failed.get(kind)
            if known is None:
                refused |= self._place_alike(kind, list(alike))
            else:
                refused |= self._refuse(alike, *known)
        return refused

    def _kind(self, key: str) -> tuple[object, ...]:
        """Give what tells a pod from others."""
        cluster, pods = self.cluster, self.cluster.pods
        row, pod = cluster.pod_row(key), cluster.pod(key)
        looks = int(pods.spec[row]), cluster.census.label_class_of(row).number, controller(pod)
        return key if key in cluster.holds else "", looks, pod.spec.priority, pod.spec.preemption_policy

    def _place_alike(self, kind: tuple[object, ...], todo: list[str]) -> dict[str, Refused]:
        """Place pods that cannot be told apart: when one fits nowhere, neither do those behind it."""
        size = 1
        refused: dict[str, Refused] = {}
        while todo:
            decisions = self.engine.place(todo[:size])
            self.work += len(decisions)
            self._bind(d for d in decisions if d.node is not None)
            failed = [d for d in decisions if d.node is None]
            todo = [d.pod for d in failed] + todo[size:]
            size *= _GROWTH
            if failed:
                found = self._failure(failed[0])
                pod = todo.pop(0)
                if isinstance(found, Failure):
                    self._forget_if_changed()
                    self._failed[kind] = found, self._refusal(found)
                    return refused | self._refuse((pod, *todo), *self._failed[kind])
                if not self._making_way.carry_out(found, by=pod, gang=None):
                    refused[pod] = self._waits(found)
                size = 1
        return refused

    def _failure(self, decision: Decision) -> Failure | Evictions:
        """Look for room for a pod on its own; gangs that would have to go for it go as gangs do."""
        cluster = self.cluster
        row = cluster.pod_row(decision.pod)
        if not self._options.preemption:
            return Failure(decision)
        never = cluster.pod(decision.pod).spec.preemption_policy == "Never"
        if not never and self.engine.profile.preempts and (self._options.consolidation or self._gangs_below(row)):
            found = self._make_room(Need(decision.pod, 1, (row,), ()), int(cluster.pods.priority[row]))
            return found if found is not None else _nobody_goes(failure(self.engine, decision))
        told = failure(self.engine, decision)
        if told.candidate is None:
            return told
        there = Decision(decision.pod, told.candidate.node, nodes=decision.nodes)
        return Evictions(told.candidate.victims, (there,), told.candidate.violations)

    def _gangs_below(self, row: int) -> bool:
        """Say whether gangs run that matter less than a pod."""
        pods, length = self.cluster.pods, self.cluster.pods.length
        if not self.cluster.groups.keys:
            return False
        lower = (pods.node[:length] >= 0) & (pods.group[:length] >= 0) & (pods.priority[:length] < pods.priority[row])
        return bool(lower.any())

    def _make_room(self, need: Need, priority: int) -> Evictions | None:
        """Find whom to move or to evict."""
        self.work += 100
        search = GangPreemption(self.placer, self.gangs, need, priority=priority)
        found = search.leaving()
        if found is None and self._options.consolidation:
            found = GangPreemption(self.placer, self.gangs, need, priority=priority, move=True).run()
        return found if found is not None else search.run()

    def _waits(self, found: Evictions) -> Refused:
        text = f"waits for {_listed((*found.victims, *found.leaving))} to leave"
        return Refused(text, frozenset((Event.POD_GONE,)), tuple(self.cluster.events))

    def _refusal(self, found: Failure) -> Refused:
        """Say what may cure a failure."""
        decision = found.decision
        plugins = {decision.refused.plugin} if decision.refused is not None else decision.plugins
        cures = self.engine.judge.cures(plugins) if plugins else frozenset(Event)
        return Refused(found.message, cures, tuple(self.cluster.events), plugins == {"NodeResourcesFit"})

    def _refuse(self, pods: Iterable[str], found: Failure, refusal: Refused) -> dict[str, Refused]:
        """Note pods that fail for one reason."""
        decision, table = found.decision, self.cluster.pods
        reasons = decision.reasons
        if decision.refused is not None:
            reasons = dict.fromkeys(decision.refused.messages, decision.nodes)
        reasons = dict(sorted(reasons.items()))
        refused = {}
        for pod in pods:
            if found.eligible:
                self._give_up_hold(pod)
            priority = int(table.priority[table.row_of[pod]])
            self.notes.refuse(Unschedulable(pod, refusal.message, priority, decision.nodes, reasons))
            refused[pod] = refusal
        return refused

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
        self._forget_if_changed()
        looks = self._looks(turn, standing)
        known = self._lacks.get(looks) if looks is not None else None
        if known is not None:
            return self._gang_refused(turn, standing, known)
        placed = self._place(turn, standing, need)
        if placed is None:
            return None
        if isinstance(placed, Lack):
            if looks is not None:
                self._lacks[looks] = placed
            return self._gang_refused(turn, standing, placed)
        self._rest_waits(turn, standing, f"its gang {placed.message}")
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
        self.work += need.least
        decisions = self.placer.place(need)
        if decisions is not None:
            self._bind(decisions, gang=turn.gang)
            self._give_up_holds(standing.waiting)
            self._note_success(turn, standing)
            return None
        if self._may_preempt(standing):
            found = self._make_room(need, turn.priority)
            if found is not None:
                bound = self._making_way.carry_out(found, by=turn.key, gang=turn.gang)
                waits = None if bound else self._waits(found)
                self._note_success(turn, standing, found, waits)
                return waits
        self._forget_if_changed()
        return why(self.placer, need)

    def _standing(self, turn: Turn) -> Standing:
        assert turn.gang is not None
        pods = self.cluster.pods
        waiting = [row for row in map(self.cluster.pod_row, turn.pods) if pods.node_names[row] is None]
        return self.gangs.standing(turn.gang, waiting)

    def _may_preempt(self, standing: Standing) -> bool:
        if not self._options.preemption or not self.engine.profile.preempts or standing.gang.preempts is False:
            return False
        pods = [self.cluster.pods.objects[row] for row in standing.waiting]
        return all(pod is not None and pod.spec.preemption_policy != "Never" for pod in pods)

    def _looks(self, turn: Turn, standing: Standing) -> tuple[object, ...] | None:
        """Give what tells a gang from others of which no pod runs yet; None for one that is like no other."""
        if standing.running or any(pod in self.cluster.holds for pod in turn.pods):
            return None
        gang = standing.gang
        kinds = tuple((*self._looks_of(row), standing.part_of[row]) for row in standing.waiting)
        preempts = self._may_preempt(standing)
        return (
            kinds,
            gang.minimum,
            gang.topology,
            gang.parts,
            gang.parts_needed,
            turn.priority,
            preempts,
        )

    def _looks_of(self, row: int) -> tuple[int, int]:
        return int(self.cluster.pods.spec[row]), int(self.cluster.pods.labels[row])

    # Above the minimum ------------------------------------------------------------------------------------------------

    def surplus(self, turn: Turn) -> Refused | None:
        """Let pods above the minimum of a gang that runs join it, one by one."""
        pods = self.cluster.pods
        if all(pods.node_names[pods.row_of[pod]] is not None for pod in turn.pods):
            return None
        standing = self._standing(turn)
        if standing.gang.problem is not None or standing.need().least:
            return None
        most = standing.surplus
        refused: Refused | None = None
        for _, alike in groupby(standing.waiting[:most], lambda row: (self._looks_of(row), standing.part_of[row])):
            refused = self._join(turn, list(alike)) or refused
        self._rest_waits(turn, standing, f"the gang has its {standing.gang.maximum} pods", rows=standing.waiting[most:])
        return refused

    def _join(self, turn: Turn, rows: list[int]) -> Refused | None:
        """Let pods join that are alike: when one finds no room, neither do the others."""
        refused: Refused | None = None
        while rows:
            standing = self._standing(turn)
            row = rows[0]
            need = standing.one_more(row)
            self._forget_if_changed()
            looks = (self._looks_of(row), standing.part_of[row], turn.gang)
            lack = self._lacks.get(looks)
            placed = lack if lack is not None else self._place(turn, standing, need)
            if isinstance(placed, Lack):
                self._lacks[looks] = placed
                self._give_up_holds(rows)
                self._rest_waits(turn, standing, placed.message, rows=rows, reasons=placed.reasons)
                return Refused(placed.message, placed.cures(self.engine.judge), tuple(self.cluster.events), placed.room)
            refused = placed or refused
            rows = rows[1:]
            if placed is None and not need.prefers:
                rows = self._follow(turn, need, rows)
        return refused

    def _follow(self, turn: Turn, need: Need, rows: list[int]) -> list[int]:
        """Place further pods like one that has just joined, in the same domains; give those that find no room there."""
        keys = [self.cluster.pods.keys[row] for row in rows]
        area: Area | None = None
        inner: Need | None = need
        while inner is not None:
            area = self.placer.settled(inner, area)
            inner = inner.parts[0] if inner.parts else None
        decisions = self.engine.place(keys, area, give_up=True)
        bound = [decision for decision in decisions if decision.node is not None]
        self.work += len(decisions)
        self._bind(bound, gang=turn.gang)
        return rows[len(bound) :]

    # Notes ------------------------------------------------------------------------------------------------------------

    def _bind(self, decisions: Iterable[Decision], gang: str | None = None) -> None:
        pods = self.cluster.pods
        for decision in decisions:
            priority = int(pods.priority[pods.row_of[decision.pod]])
            self.notes.bind(Bound(decision.pod, decision.node or "", priority, decision.score, gang=gang))

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
        pods = self.cluster.pods
        running = [row for row in (*standing.running, *standing.waiting) if pods.node[row] >= 0]
        topology = standing.gang.topology
        found = {}
        for key in filter(None, (topology.required, *topology.preferred)):
            values = self.placer.areas.values_of(running, key)
            if len(values) == 1 and 0 not in values:
                found[key] = self.placer.areas.name(key, values.pop())
        return found

    def _gang_refused(self, turn: Turn, standing: Standing, lack: Lack) -> Refused:
        self.notes.gangs[turn.key] = replace(self.notes.gangs[turn.key], message=lack.message, reasons=lack.reasons)
        self._give_up_holds(standing.waiting)
        self._rest_waits(turn, standing, lack.message, reasons=lack.reasons)
        return Refused(lack.message, lack.cures(self.engine.judge), tuple(self.cluster.events), lack.room)

    def _rest_waits(
        self,
        turn: Turn,
        standing: Standing,
        message: str,
        *,
        rows: Iterable[int] | None = None,
        reasons: dict[str, int] | None = None,
    ) -> None:
        """Note why the pods of a gang that are neither bound nor nominated wait."""
        pods, nodes = self.cluster.pods, self.cluster.nodes.count
        for row in standing.waiting if rows is None else rows:
            key = pods.keys[row]
            if pods.node_names[row] is None and key not in self.cluster.holds:
                priority = int(pods.priority[row])
                self.notes.refuse(Unschedulable(key, message, priority, nodes, reasons or {}, turn.gang))

    def _give_up_holds(self, rows: Iterable[int]) -> None:
        for row in rows:
            self._give_up_hold(self.cluster.pods.keys[row])

    def _give_up_hold(self, pod: str) -> None:
        """Release room that was held for a pod which turns out not to fit there: others may have it."""
        if self._options.preemption and pod in self.cluster.holds:
            self.cluster.apply(Release(pod))


def _nobody_goes(told: Failure) -> Failure:
    """Word a refusal where a pod could be evicted, but not the gang that it is part of."""
    if told.candidate is None:
        return told
    return Failure(told.decision, after="preemption: the victims are parts of gangs that cannot go whole.")


def _listed(pods: Sequence[str]) -> str:
    return ", ".join(pods[:3]) + (f" and {len(pods) - 3} more" if len(pods) > 3 else "")
