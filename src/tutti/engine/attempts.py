"""Attempts: placing what has its turn, and noting what became of it.

Contract: `Attempts` changes its cluster as the plan that it gathers says, and nothing else. A pod on its own is
placed, and evicts others, exactly as kube-scheduler would have it; where gangs could be its victims, they go as gangs
do. A gang gets what it needs or nothing. Whoever is evicted is gone at once, or, with `graceful`, begins to terminate
while room is held for the newcomer.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import NamedTuple

from msgspec.structs import replace

from tutti.cluster.edits import Bind, Hold, Put, Release, Remove, Unbind
from tutti.cluster.events import Event
from tutti.engine.budgets import spent_budgets
from tutti.engine.engine import Decision, Engine
from tutti.engine.failure import Failure, failure
from tutti.engine.gang import GangPlacer
from tutti.engine.gang_preempt import Evictions, GangPreemption
from tutti.engine.gang_reason import Lack, why
from tutti.engine.plan import Bound, Eviction, GangPlan, Nominated, NotConsidered, Plan, Unschedulable
from tutti.engine.plugins.base import Area, controller
from tutti.engine.standing import Gangs, Need, Standing, names_below
from tutti.engine.turns import Turn
from tutti.kube.gangs.gang import Part

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
        self.placer, self.gangs = GangPlacer(engine), Gangs(engine.cluster)
        self._options = options
        self.binds: list[Bound] = []
        self.evictions: list[Eviction] = []
        self.nominated: dict[str, Nominated] = {}
        self.unschedulable: dict[str, Unschedulable] = {}
        self.outcomes: dict[str, GangPlan] = {}
        self.work = 0
        """Steps taken so far, for whoever limits them."""
        self._failed: dict[tuple[object, ...], tuple[Failure, Refused]] = {}
        """What pods on their own were refused with since the cluster last changed."""
        self._lacks: dict[tuple[object, ...], Lack] = {}
        """What gangs lacked since the cluster last changed, by what they look like."""
        self._change = -1

    def plan(self, left_out: Iterable[NotConsidered] = ()) -> Plan:
        """Give what was gathered."""
        refused, gangs = self.unschedulable.values(), self.outcomes.values()
        return Plan.of(self.binds, self.evictions, refused, left_out, self.nominated.values(), gangs)

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
        looks = int(pods.spec[row]), cluster.label_class_of(row).number, controller(pod)
        return key if key in cluster.holds else "", looks, pod.spec.priority, pod.spec.preemption_policy

    def _forget_if_changed(self) -> None:
        if self._change != self.cluster.touched.length:
            self._change = self.cluster.touched.length
            self._failed.clear()
            self._lacks.clear()

    def _place_alike(self, kind: tuple[object, ...], todo: list[str]) -> dict[str, Refused]:
        """Place pods that cannot be told apart: when one fits nowhere, neither do those behind it."""
        size = 1
        refused: dict[str, Refused] = {}
        while todo:
            decisions = self.engine.place(todo[:size])
            self.work += len(decisions)
            self.binds += [self._bound(d) for d in decisions if d.node is not None]
            failed = [d for d in decisions if d.node is None]
            todo = [d.pod for d in failed] + todo[size:]
            size *= _GROWTH
            if failed:
                found = self._failure(failed[0])
                pod = todo.pop(0)
                waits = self._carry_out(found, by=pod, gang=None) if isinstance(found, Evictions) else found
                if isinstance(waits, Failure):
                    self._forget_if_changed()
                    self._failed[kind] = waits, self._refusal(waits)
                    return refused | self._refuse((pod, *todo), *self._failed[kind])
                if waits is not None:
                    refused[pod] = waits
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
        """Say whether gangs run that matter less than a pod, or anything does if pods may be moved."""
        pods, length = self.cluster.pods, self.cluster.pods.length
        if not self.cluster.groups.keys:
            return False
        lower = (pods.node[:length] >= 0) & (pods.group[:length] >= 0) & (pods.priority[:length] < pods.priority[row])
        return bool(lower.any())

    # Evictions --------------------------------------------------------------------------------------------------------

    def _make_room(self, need: Need, priority: int) -> Evictions | None:
        """Find whom to move or to evict."""
        self.work += 100
        if self._options.consolidation:
            found = GangPreemption(self.placer, self.gangs, need, priority=priority, move=True).run()
            if found is not None:
                return found
        return GangPreemption(self.placer, self.gangs, need, priority=priority).run()

    def _carry_out(self, found: Evictions, *, by: str, gang: str | None) -> Refused | None:
        """Evict or move the victims, and bind the newcomers or hold room for them."""
        cluster = self.cluster
        moves = {decision.pod: decision.node for decision in found.moves}
        for victim in found.victims:
            row = cluster.pod_row(victim)
            node, priority = cluster.pods.node_names[row] or "", int(cluster.pods.priority[row])
            its = self.gangs.key_of(row)
            self.evictions.append(Eviction(victim, node, by, priority, its, moves.get(victim)))
            self._leave(victim, moved=victim in moves)
        self._release_weaker(found.decisions)
        if found.leaving or (found.victims and not moves and self._options.graceful is not None):
            return self._hold_for(found, gang)
        bound = self._bind_there(found.decisions)
        if bound is None:
            return self._hold_for(found, gang)
        for place, decision in enumerate(bound):
            self.binds.append(self._bound(decision, None if place else found, gang=gang))
        for move in found.moves:
            cluster.apply(Bind(move.pod, move.node or ""))
        return None

    def _hold_for(self, found: Evictions, gang: str | None) -> Refused:
        """Hold room for newcomers until others have left."""
        cluster = self.cluster
        for decision in found.decisions:
            priority = int(cluster.pods.priority[cluster.pod_row(decision.pod)])
            cluster.apply(Hold(decision.pod, decision.node or ""))
            self.nominated[decision.pod] = Nominated(decision.pod, decision.node or "", priority, gang)
            self.unschedulable.pop(decision.pod, None)
        text = f"waits for {_listed((*found.victims, *found.leaving))} to leave"
        return Refused(text, frozenset((Event.POD_GONE,)), tuple(cluster.events))

    def _bind_there(self, decisions: Sequence[Decision]) -> list[Decision] | None:
        """Bind pods where a what-if has put them, asking each node alone as for a nominated pod; all or none."""
        cluster = self.cluster
        mark = cluster.mark()
        bound = []
        for decision in decisions:
            there = Area.of_row(cluster.node_row(decision.node or ""), cluster.nodes.size)
            again = self.engine.place([decision.pod], there)[0]
            if again.node is None:
                cluster.rollback(mark)
                return None
            bound.append(again)
        cluster.commit(mark)
        return bound

    def _release_weaker(self, decisions: Iterable[Decision]) -> None:
        """Let whoever was promised one of the nodes and matters less look elsewhere, as kube-scheduler does."""
        cluster, priorities = self.cluster, self.cluster.pods.priority
        mine = {d.pod: d.node or "" for d in decisions}
        highest = max((int(priorities[cluster.pod_row(pod)]) for pod in mine), default=0)
        for node in set(mine.values()):
            for other in list(cluster.held_on.get(node, ())):
                if other not in mine and priorities[cluster.pod_row(other)] < highest:
                    cluster.apply(Release(other))

    def _leave(self, victim: str, *, moved: bool) -> None:
        cluster = self.cluster
        pod = cluster.pod(victim)
        if moved:
            cluster.apply(Unbind(victim))
            return
        for budget in spent_budgets(cluster, pod):
            cluster.apply(Put(budget))
        if self._options.graceful is None:
            cluster.apply(Remove("Pod", victim))
        else:
            node = cluster.pods.node_names[cluster.pod_row(victim)]
            leaving = replace(pod, metadata=replace(pod.metadata, deletion_timestamp=self._options.graceful))
            cluster.apply(Put(replace(leaving, spec=replace(pod.spec, node_name=node))))

    # Gangs ------------------------------------------------------------------------------------------------------------

    def gang(self, turn: Turn) -> Refused | None:
        """Give a gang what it needs to start, or nothing."""
        standing = self._standing(turn)
        self._note(turn, standing)
        gang, need = standing.gang, standing.need()
        if gang.problem is not None:
            return self._gang_refused(turn, standing, Lack(gang.problem))
        if not need.least:
            return None
        there, wanted = len(standing.waiting), need.least
        if there < wanted:
            text = (
                f"{len(standing.running) + there} of {gang.minimum} pods are there: it waits for {wanted - there} more"
            )
            return self._gang_refused(turn, standing, Lack(text))
        self._forget_if_changed()
        looks = self._looks(turn, standing)
        known = self._lacks.get(looks) if looks is not None else None
        if known is not None:
            return self._gang_refused(turn, standing, known)
        decisions = self._placed(need)
        if decisions is not None:
            self.binds += [self._bound(d, gang=gang.key) for d in decisions]
            self._bound_gang(turn, standing, decisions)
            return None
        if self._may_preempt(standing):
            found = self._make_room(need, turn.priority)
            if found is not None:
                refused = self._carry_out(found, by=gang.key, gang=gang.key)
                self._bound_gang(turn, standing, found.decisions, found, refused)
                return refused
        self._forget_if_changed()
        lack = why(self.placer, need)
        if looks is not None:
            self._lacks[looks] = lack
        return self._gang_refused(turn, standing, lack)

    def _placed(self, need: Need) -> list[Decision] | None:
        self.work += need.least
        return self.placer.place(need)

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
        pods, gang = self.cluster.pods, standing.gang
        kinds = tuple((int(pods.spec[r]), int(pods.labels[r]), standing.part_of[r]) for r in standing.waiting)
        never = self._may_preempt(standing)
        return (kinds, gang.minimum, gang.topology, gang.parts, gang.parts_needed, turn.priority, never)

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
        most = standing.surplus
        for row in standing.waiting[:most]:
            self._forget_if_changed()
            refused = self._join(turn, row) or refused
        for row in standing.waiting[most:]:
            text = f"the gang has its {standing.gang.maximum} pods"
            self.unschedulable[self.cluster.pods.keys[row]] = self._left(row, turn, text)
        return refused

    def _join(self, turn: Turn, row: int) -> Refused | None:
        standing = self._standing(turn)
        need = one_more(standing, row)
        looks = (self._looks_of(row), standing.part_of[row], turn.gang)
        lack = self._lacks.get(looks)
        if lack is None:
            decisions = self._placed(need)
            found: Evictions | None = None
            if decisions is None and self._may_preempt(standing):
                found = self._make_room(need, turn.priority)
            if decisions is not None:
                self.binds += [self._bound(d, gang=turn.gang) for d in decisions]
                self._bound_gang(turn, standing, decisions)
                return None
            if found is not None:
                refused = self._carry_out(found, by=turn.key, gang=turn.gang)
                self._bound_gang(turn, standing, found.decisions, found, refused)
                return refused
            self._forget_if_changed()
            lack = self._lacks[looks] = why(self.placer, need)
        pod = self.cluster.pods.keys[row]
        self.unschedulable[pod] = self._left(row, turn, lack.message, lack)
        return Refused(lack.message, lack.cures(self.engine.judge), tuple(self.cluster.events), lack.room)

    def _looks_of(self, row: int) -> tuple[int, int]:
        return int(self.cluster.pods.spec[row]), int(self.cluster.pods.labels[row])

    # Notes ------------------------------------------------------------------------------------------------------------

    def _note(self, turn: Turn, standing: Standing) -> None:
        gang = standing.gang
        if gang.key not in self.outcomes:
            pods = len(standing.running) + len(standing.waiting)
            self.outcomes[gang.key] = GangPlan(
                gang.key, gang.dialect, gang.minimum, pods, len(standing.running), priority=turn.priority
            )

    def _bound_gang(
        self,
        turn: Turn,
        standing: Standing,
        decisions: Sequence[Decision],
        found: Evictions | None = None,
        refused: Refused | None = None,
    ) -> None:
        before = self.outcomes[turn.key]
        held = len(decisions) if refused is not None else 0
        evicts = (*before.evicts, *(found.victims if found else ()))
        for decision in decisions:
            self.unschedulable.pop(decision.pod, None)
        self.outcomes[turn.key] = replace(
            before,
            placed=before.placed + len(decisions) - held,
            nominated=before.nominated + held,
            evicts=evicts,
            budgets_broken=before.budgets_broken + (found.violations if found else 0),
            domain=self._shared(standing),
            message=refused.message if refused is not None else "",
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
        self.outcomes[turn.key] = replace(self.outcomes[turn.key], message=lack.message, reasons=lack.reasons)
        for row in standing.waiting:
            self._give_up_hold(self.cluster.pods.keys[row])
            self.unschedulable[self.cluster.pods.keys[row]] = self._left(row, turn, lack.message, lack)
        return Refused(lack.message, lack.cures(self.engine.judge), tuple(self.cluster.events), lack.room)

    def _give_up_hold(self, pod: str) -> None:
        """Release room that was held for a pod which turns out not to fit there: others may have it."""
        if self._options.preemption and pod in self.cluster.holds:
            self.cluster.apply(Release(pod))

    def _left(self, row: int, turn: Turn, message: str, lack: Lack | None = None) -> Unschedulable:
        pods, nodes = self.cluster.pods, self.cluster.nodes
        reasons = lack.reasons if lack is not None else {}
        return Unschedulable(pods.keys[row], message, int(pods.priority[row]), nodes.count, reasons, turn.gang)

    def _bound(self, decision: Decision, found: Evictions | None = None, *, gang: str | None = None) -> Bound:
        evicts = found.victims if found is not None else ()
        breaks = found.violations if found is not None else 0
        priority = int(self.cluster.pods.priority[self.cluster.pod_row(decision.pod)])
        self.unschedulable.pop(decision.pod, None)
        self.nominated.pop(decision.pod, None)
        return Bound(decision.pod, decision.node or "", priority, decision.score, evicts, breaks, gang)

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
            self.unschedulable[pod] = Unschedulable(pod, refusal.message, priority, decision.nodes, reasons)
            refused[pod] = refusal
        return refused


def _nobody_goes(told: Failure) -> Failure:
    """Word a refusal where a pod could be evicted, but not the gang that it is part of."""
    if told.candidate is None:
        return told
    return Failure(told.decision, after="preemption: the victims are parts of gangs that cannot go whole.")


def one_more(standing: Standing, row: int) -> Need:
    """Give the need for one more pod of a gang, where it may run."""
    gang, part = standing.gang, standing.part_of[row]
    inner: Need | None = None
    for each in reversed(_path(gang.parts, part)):
        below = {each.name, *names_below(each)}
        running = tuple(r for r in standing.running if standing.part_of[r] in below)
        if inner is None:
            inner = Need(each.name, 1, (row,), running, each.topology)
        else:
            inner = Need(each.name, 0, (), running, each.topology, (inner,), 1)
    if inner is None:
        return Need(gang.key, 1, (row,), standing.running, gang.topology)
    return Need(gang.key, 0, (), standing.running, gang.topology, (inner,), 1)


def _path(parts: Iterable[Part], name: str) -> list[Part]:
    """Give the parts from the outermost to the one of a name; none when there is no such part."""
    for part in parts:
        if part.name == name:
            return [part]
        below = _path(part.parts, name)
        if below:
            return [part, *below]
    return []


def _listed(pods: Sequence[str]) -> str:
    return ", ".join(pods[:3]) + (f" and {len(pods) - 3} more" if len(pods) > 3 else "")
