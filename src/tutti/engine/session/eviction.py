"""Carrying out what preemption has found.

Contract: the victims leave, or are moved; the newcomers are bound where the search has put them, all of them or none.
A victim is gone at once, or, with `terminating_since`, begins to terminate; in that case, and while other pods are
leaving, room is held for the newcomers. Disruption budgets shrink with every eviction. If the newcomers cannot be bound
after all, pods that were to be moved stay where they are.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec.structs import replace

from tutti.cluster.edits import Bind, Edit, Hold, Put, Release, Remove, Unbind
from tutti.cluster.trial import Trial
from tutti.engine.gangs.gang_state import Gangs
from tutti.engine.placement.engine import Decision, Engine
from tutti.engine.plugins.base import Area
from tutti.engine.preemption.disruption_budgets import Budgets
from tutti.engine.preemption.gang_preemption import Evictions
from tutti.engine.session.plan import Eviction, Nominated
from tutti.engine.session.plan_builder import PlanBuilder
from tutti.kube.objects import Condition, PodDisruptionBudget

_PREEMPTED = Condition(type="DisruptionTarget", status="True", reason="PreemptionByScheduler")
"""What kube-scheduler writes on a pod that it has evicted, and looks for before it evicts more for the same pod."""


class Evictor:
    """See the module's docstring."""

    def __init__(
        self,
        engine: Engine,
        gangs: Gangs,
        plan: PlanBuilder,
        *,
        terminating_since: str | None,
        hold_until: int | None = None,
    ) -> None:
        """`terminating_since` is when victims begin to terminate; `hold_until` is how long room is held at most."""
        self._engine, self._cluster, self._gangs, self._plan = engine, engine.cluster, gangs, plan
        self._terminating_since, self._hold_until = terminating_since, hold_until

    def carry_out(self, found: Evictions, *, by: str, gang: str | None, priority: int) -> bool:
        """Let the victims leave for a pod or a gang; return whether that is bound, and does not have to wait."""
        moves = {move.pod: move.node or "" for move in found.moves}
        minimums = self._minimums(found.victims)
        budgets: dict[str, PodDisruptionBudget] = {}
        evictions = []
        with Trial(self._cluster) as trial:
            remaining = Budgets(self._cluster)
            for victim in found.victims:
                eviction = self._eviction(victim, by, to=moves.get(victim))
                evictions.append(replace(eviction, change=self._evict(victim, remaining, budgets, moves)))
            waits = bool(found.leaving) or (bool(found.victims) and not moves and self._terminating_since is not None)
            bound = None if waits else self._bind_there(found.decisions)
            if bound is None and moves:
                return False
            for pod, node in moves.items():
                self._cluster.apply(Bind(pod, node))
            trial.keep()
        for budget in budgets.values():
            self._plan.spend_budget(budget)
        self._note_victims(evictions, moves)
        self._note_broken_gangs(minimums, by)
        self._release_weaker(found.decisions, by, priority)
        if bound is None:
            self._hold(found.decisions, gang, priority)
            return False
        for place, decision in enumerate(bound):
            victims, broken = ((), 0) if place else (found.victims, found.violations)
            self._plan.bind(decision, gang=gang, evicts=victims, budgets_broken=broken)
        return True

    def _priority(self, pod: str) -> int:
        return int(self._cluster.pods.priority[self._cluster.pod_row(pod)])

    # Victims ----------------------------------------------------------------------------------------------------------

    def _eviction(self, victim: str, by: str, *, to: str | None) -> Eviction:
        row = self._cluster.pod_row(victim)
        node, pod = self._cluster.pods.node_names[row] or "", self._cluster.pod(victim)
        priority = int(self._cluster.pods.priority[row])
        return Eviction(victim, node, by, priority, self._gangs.key_of(row), to, pod.metadata.uid)

    def _evict(
        self, victim: str, remaining: Budgets, spent: dict[str, PodDisruptionBudget], moves: dict[str, str]
    ) -> Edit | None:
        """Take a victim off its node; return what that does to its object, None if it is only moved or displaced."""
        cluster = self._cluster
        if victim in moves or self._plan.is_bound(victim):
            cluster.apply(Unbind(victim))
            return None
        pod, row = cluster.pod(victim), cluster.pod_row(victim)
        if self._terminating_since is not None and cluster.pods.terminating[row]:
            return Put(pod)  # it is leaving already
        for budget in remaining.spend(pod):
            spent[budget.key] = budget
            cluster.apply(Put(budget))
        change: Edit
        if self._terminating_since is None:
            change = Remove("Pod", victim)
        else:
            status = replace(pod.status, conditions=[*(pod.status.conditions or ()), _PREEMPTED])
            metadata = replace(pod.metadata, deletion_timestamp=self._terminating_since)
            spec = replace(pod.spec, node_name=cluster.pods.node_names[row])
            change = Put(replace(pod, metadata=metadata, spec=spec, status=status))
        cluster.apply(change)
        return change

    def _note_victims(self, evictions: Iterable[Eviction], moves: dict[str, str]) -> None:
        for eviction in evictions:
            if not self._plan.is_bound(eviction.pod):
                self._plan.evict(eviction)
            elif eviction.pod in moves:
                self._plan.rebind(eviction.pod, moves[eviction.pod])
            else:
                self._plan.displace(eviction.pod, eviction.by)

    def _minimums(self, victims: Iterable[str]) -> dict[str, int]:
        """Return the minimums of the gangs that victims are in."""
        keys = {self._gangs.key_of(self._cluster.pod_row(victim)) for victim in victims}
        return {key: self._gangs.gang(key).minimum for key in sorted(filter(None, keys))}

    def _note_broken_gangs(self, minimums: dict[str, int], by: str) -> None:
        """Note gangs that fell below their minimum; what this plan has bound of them is displaced as well."""
        for key, minimum in minimums.items():
            standing = self._gangs.standing(key, ())
            if len(standing.running) >= minimum and not standing.need().least:
                continue
            self._plan.broken_gangs[key] = by, minimum
            for pod in self._plan.bound_of(key):
                self._cluster.apply(Unbind(pod))
                self._plan.displace(pod, by)

    # Newcomers --------------------------------------------------------------------------------------------------------

    def _bind_there(self, decisions: Sequence[Decision]) -> list[Decision] | None:
        """Bind pods where the search has put them, asking each node alone as for a nominated pod; all or none."""
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
            node = decision.node or ""
            self._cluster.apply(Hold(decision.pod, node, self._hold_until, priority if gang else None))
            self._plan.nominate(Nominated(decision.pod, node, self._priority(decision.pod), gang))

    def _release_weaker(self, decisions: Iterable[Decision], by: str, priority: int) -> None:
        """Release holds of lower priority on the nodes that the newcomers take, as kube-scheduler does."""
        cluster = self._cluster
        mine = {d.pod: d.node or "" for d in decisions}
        for node in sorted(set(mine.values())):
            for other, hold in list(cluster.held_on.get(node, {}).items()):
                if other not in mine and hold.effective_priority(self._priority(other)) < priority:
                    cluster.apply(Release(other))
                    self._plan.unnominate(other, by)
