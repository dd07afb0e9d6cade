"""Making way: carrying out what preemption has found.

Contract: the victims go, or are moved; the newcomers are bound where the what-if has put them, all of them or none.
Whoever is evicted is gone at once, or, with `graceful`, begins to terminate; then, and while others are leaving, room
is held for the newcomers. Budgets shrink with every eviction.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec.structs import replace

from tutti.cluster.edits import Bind, Hold, Put, Release, Remove, Unbind
from tutti.engine.budgets import spent_budgets
from tutti.engine.engine import Decision, Engine
from tutti.engine.gang_preempt import Evictions
from tutti.engine.notes import Notes
from tutti.engine.plan import Bound, Eviction, Nominated
from tutti.engine.plugins.base import Area
from tutti.engine.standing import Gangs
from tutti.kube.objects import Condition

_PREEMPTED = Condition(type="DisruptionTarget", status="True", reason="PreemptionByScheduler")
"""What kube-scheduler writes on a pod that it has evicted, and looks for before it evicts more for the same pod."""


class MakingWay:
    """See the module's contract."""

    def __init__(self, engine: Engine, gangs: Gangs, notes: Notes, *, graceful: str | None) -> None:
        self._engine, self._cluster, self._gangs, self._notes = engine, engine.cluster, gangs, notes
        self._graceful = graceful

    def carry_out(self, found: Evictions, *, by: str, gang: str | None) -> bool:
        """Let the victims make way for a pod or a gang; say whether it is bound, and does not have to wait."""
        moves = {decision.pod: decision.node for decision in found.moves}
        minimums = self._minimums(found.victims)
        for victim in found.victims:
            self._go(victim, by, to=moves.get(victim))
        self._mark_broken(minimums, by)
        self._release_weaker(found.decisions)
        waits = bool(found.leaving) or (bool(found.victims) and not moves and self._graceful is not None)
        bound = None if waits else self._bind_there(found.decisions)
        if bound is None:
            for decision in found.decisions:
                self._cluster.apply(Hold(decision.pod, decision.node or ""))
                priority = self._priority(decision.pod)
                self._notes.nominate(Nominated(decision.pod, decision.node or "", priority, gang))
            return False
        for place, decision in enumerate(bound):
            victims, broken = ((), 0) if place else (found.victims, found.violations)
            priority = self._priority(decision.pod)
            self._notes.bind(Bound(decision.pod, decision.node or "", priority, decision.score, victims, broken, gang))
        for move in found.moves:
            self._cluster.apply(Bind(move.pod, move.node or ""))
        return True

    def _priority(self, pod: str) -> int:
        return int(self._cluster.pods.priority[self._cluster.pod_row(pod)])

    # Those who go -----------------------------------------------------------------------------------------------------

    def _go(self, victim: str, by: str, *, to: str | None) -> None:
        cluster, notes = self._cluster, self._notes
        if notes.is_bound(victim):
            cluster.apply(Unbind(victim))
            notes.displace(victim, by)
            return
        row = cluster.pod_row(victim)
        if self._graceful is not None and cluster.pods.terminating[row]:
            return  # it goes anyway
        node = cluster.pods.node_names[row] or ""
        notes.evict(Eviction(victim, node, by, int(cluster.pods.priority[row]), self._gangs.key_of(row), to))
        if to is not None:
            cluster.apply(Unbind(victim))
            return
        pod = cluster.pod(victim)
        for budget in spent_budgets(cluster, pod):
            cluster.apply(Put(budget))
        if self._graceful is None:
            cluster.apply(Remove("Pod", victim))
        else:
            status = replace(pod.status, conditions=[*(pod.status.conditions or ()), _PREEMPTED])
            metadata = replace(pod.metadata, deletion_timestamp=self._graceful)
            cluster.apply(Put(replace(pod, metadata=metadata, spec=replace(pod.spec, node_name=node), status=status)))

    def _minimums(self, victims: Iterable[str]) -> dict[str, int]:
        """Give the minimums of the gangs that victims are in."""
        keys = {self._gangs.key_of(self._cluster.pod_row(victim)) for victim in victims}
        return {key: self._gangs.gang(key).minimum for key in sorted(filter(None, keys))}

    def _mark_broken(self, minimums: dict[str, int], by: str) -> None:
        """Note gangs that fell below their minimum; what this plan has bound of them makes way as well."""
        cluster = self._cluster
        for key, minimum in minimums.items():
            if len(self._gangs.standing(key, ()).running) >= minimum:
                continue
            self._notes.made_way[key] = by, minimums[key]
            for pod in self._notes.bound_of(key):
                cluster.apply(Unbind(pod))
                self._notes.displace(pod, by)

    # Those who come ---------------------------------------------------------------------------------------------------

    def _bind_there(self, decisions: Sequence[Decision]) -> list[Decision] | None:
        """Bind pods where a what-if has put them, asking each node alone as for a nominated pod; all or none."""
        cluster = self._cluster
        mark = cluster.mark()
        bound = []
        for decision in decisions:
            there = Area.of_row(cluster.node_row(decision.node or ""), cluster.nodes.size)
            again = self._engine.place([decision.pod], there)[0]
            if again.node is None:
                cluster.rollback(mark)
                return None
            bound.append(again)
        cluster.commit(mark)
        return bound

    def _release_weaker(self, decisions: Iterable[Decision]) -> None:
        """Let whoever was promised one of the nodes and matters less look elsewhere, as kube-scheduler does."""
        cluster = self._cluster
        mine = {d.pod: d.node or "" for d in decisions}
        highest = max(map(self._priority, mine), default=0)
        for node in set(mine.values()):
            for other in list(cluster.held_on.get(node, ())):
                if other not in mine and self._priority(other) < highest:
                    cluster.apply(Release(other))
