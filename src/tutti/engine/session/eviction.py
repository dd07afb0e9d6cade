"""Making way: carrying out what preemption has found.

Contract: the victims go, or are moved; the newcomers are bound where the what-if has put them, all of them or none.
Whoever is evicted is gone at once, or, with `graceful`, begins to terminate; then, and while others are leaving, room
is held for the newcomers. Budgets shrink with every eviction. If the newcomers cannot be bound after all, pods that
were to be moved stay where they are.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec.structs import replace

from tutti.cluster.edits import Bind, Hold, Put, Release, Remove, Unbind
from tutti.cluster.trial import Trial
from tutti.engine.gangs.gang_state import Gangs
from tutti.engine.placement.engine import Decision, Engine
from tutti.engine.plugins.base import Area
from tutti.engine.preemption.disruption_budgets import Budgets
from tutti.engine.preemption.gang_preemption import Evictions
from tutti.engine.session.plan import Bound, Eviction, Nominated
from tutti.engine.session.plan_builder import Notes
from tutti.kube.objects import Condition

_PREEMPTED = Condition(type="DisruptionTarget", status="True", reason="PreemptionByScheduler")
"""What kube-scheduler writes on a pod that it has evicted, and looks for before it evicts more for the same pod."""


class MakingWay:
    """See the module's contract."""

    def __init__(
        self, engine: Engine, gangs: Gangs, notes: Notes, *, graceful: str | None, until: int | None = None
    ) -> None:
        """`graceful` is when victims begin to terminate; `until` is how long room is held at most."""
        self._engine, self._cluster, self._gangs, self._notes = engine, engine.cluster, gangs, notes
        self._graceful, self._until = graceful, until

    def carry_out(self, found: Evictions, *, by: str, gang: str | None, priority: int) -> bool:
        """Let the victims make way for a pod or a gang; say whether it is bound, and does not have to wait."""
        moves = {move.pod: move.node or "" for move in found.moves}
        minimums = self._minimums(found.victims)
        evictions = [self._eviction(victim, by, to=moves.get(victim)) for victim in found.victims]
        with Trial(self._cluster) as trial:
            budgets = Budgets(self._cluster)
            for victim in found.victims:
                self._go(victim, budgets, moved=victim in moves)
            waits = bool(found.leaving) or (bool(found.victims) and not moves and self._graceful is not None)
            bound = None if waits else self._bind_there(found.decisions)
            if bound is None and moves:
                return False
            for pod, node in moves.items():
                self._cluster.apply(Bind(pod, node))
            trial.keep()
        self._note_victims(evictions, moves)
        self._mark_broken(minimums, by)
        self._release_weaker(found.decisions, by, priority)
        if bound is None:
            self._hold(found.decisions, gang, priority)
            return False
        for place, decision in enumerate(bound):
            victims, broken = ((), 0) if place else (found.victims, found.violations)
            mine = self._priority(decision.pod)
            self._notes.bind(Bound(decision.pod, decision.node or "", mine, decision.score, victims, broken, gang))
        return True

    def _priority(self, pod: str) -> int:
        return int(self._cluster.pods.priority[self._cluster.pod_row(pod)])

    # Those who go -----------------------------------------------------------------------------------------------------

    def _eviction(self, victim: str, by: str, *, to: str | None) -> Eviction:
        row = self._cluster.pod_row(victim)
        node = self._cluster.pods.node_names[row] or ""
        return Eviction(victim, node, by, int(self._cluster.pods.priority[row]), self._gangs.key_of(row), to)

    def _go(self, victim: str, budgets: Budgets, *, moved: bool) -> None:
        cluster = self._cluster
        if moved or self._notes.is_bound(victim):
            cluster.apply(Unbind(victim))
            return
        pod, row = cluster.pod(victim), cluster.pod_row(victim)
        if self._graceful is not None and cluster.pods.terminating[row]:
            return  # it goes anyway
        for budget in budgets.spend(pod):
            cluster.apply(Put(budget))
        if self._graceful is None:
            cluster.apply(Remove("Pod", victim))
        else:
            status = replace(pod.status, conditions=[*(pod.status.conditions or ()), _PREEMPTED])
            metadata = replace(pod.metadata, deletion_timestamp=self._graceful)
            spec = replace(pod.spec, node_name=cluster.pods.node_names[row])
            cluster.apply(Put(replace(pod, metadata=metadata, spec=spec, status=status)))

    def _note_victims(self, evictions: Iterable[Eviction], moves: dict[str, str]) -> None:
        for eviction in evictions:
            if not self._notes.is_bound(eviction.pod):
                self._notes.evict(eviction)
            elif eviction.pod in moves:
                self._notes.rebind(eviction.pod, moves[eviction.pod])
            else:
                self._notes.displace(eviction.pod, eviction.by)

    def _minimums(self, victims: Iterable[str]) -> dict[str, int]:
        """Give the minimums of the gangs that victims are in."""
        keys = {self._gangs.key_of(self._cluster.pod_row(victim)) for victim in victims}
        return {key: self._gangs.gang(key).minimum for key in sorted(filter(None, keys))}

    def _mark_broken(self, minimums: dict[str, int], by: str) -> None:
        """Note gangs that fell below their minimum; what this plan has bound of them makes way as well."""
        for key, minimum in minimums.items():
            standing = self._gangs.standing(key, ())
            if len(standing.running) >= minimum and not standing.need().least:
                continue
            self._notes.made_way[key] = by, minimum
            for pod in self._notes.bound_of(key):
                self._cluster.apply(Unbind(pod))
                self._notes.displace(pod, by)

    # Those who come ---------------------------------------------------------------------------------------------------

    def _bind_there(self, decisions: Sequence[Decision]) -> list[Decision] | None:
        """Bind pods where a what-if has put them, asking each node alone as for a nominated pod; all or none."""
        cluster = self._cluster
        bound = []
        with Trial(cluster) as trial:
            for decision in decisions:
                there = Area.of_row(cluster.node_row(decision.node or ""), cluster.nodes.size)
                again = self._engine.place([decision.pod], there)[0]
                if again.node is None:
                    return None
                bound.append(again)
            trial.keep()
        return bound

    def _hold(self, decisions: Iterable[Decision], gang: str | None, priority: int) -> None:
        for decision in decisions:
            self._cluster.apply(Hold(decision.pod, decision.node or "", self._until, priority if gang else None))
            mine = self._priority(decision.pod)
            self._notes.nominate(Nominated(decision.pod, decision.node or "", mine, gang))

    def _release_weaker(self, decisions: Iterable[Decision], by: str, priority: int) -> None:
        """Let whoever was promised one of the nodes and matters less look elsewhere, as kube-scheduler does."""
        cluster = self._cluster
        mine = {d.pod: d.node or "" for d in decisions}
        for node in sorted(set(mine.values())):
            for other, hold in list(cluster.held_on.get(node, {}).items()):
                if other not in mine and hold.rank(self._priority(other)) < priority:
                    cluster.apply(Release(other))
                    self._notes.unnominate(other, by)
