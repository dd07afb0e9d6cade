"""Carry out the evictions and moves that preemption chose for a pod or a gang, the preemptor.

Contract: the victims are evicted or moved, and the preemptor's pods are bound on the nodes that preemption chose, all
of them or none. Without `terminating_since` a victim is removed at once. With it, a victim begins to terminate, and
room is held for the preemptor until its victims, and other pods that are terminating there, have left. Disruption
budgets shrink with every eviction. If the preemptor cannot be bound after moves, the moves are undone.
"""

from __future__ import annotations

from collections.abc import Container, Iterable

from msgspec.structs import replace

from tutti.cluster.edits import Bind, Edit, Evict, Hold, Put, Release, Remove, Unbind
from tutti.cluster.trial import Trial
from tutti.engine.gangs.chosen_nodes import bind_on_chosen_nodes
from tutti.engine.gangs.cluster_gangs import Gangs
from tutti.engine.placement.engine import Decision, Engine
from tutti.engine.preemption.disruption_budgets import Budgets
from tutti.engine.preemption.gang_preemption import Evictions
from tutti.engine.session.plan import Eviction, Nominated
from tutti.engine.session.plan_builder import PlanBuilder
from tutti.kube.objects import PodDisruptionBudget
from tutti.kube.times import timestamp


class Evictor:
    """See the module's docstring."""

    def __init__(
        self,
        engine: Engine,
        gangs: Gangs,
        plan: PlanBuilder,
        *,
        terminating_since: int | None,
        hold_until: int | None = None,
        hard_budgets: bool = False,
    ) -> None:
        """Make an evictor; victims begin to terminate at `terminating_since`, and holds expire at `hold_until`.

        Both are times in microseconds. Hard budgets are spent as the eviction API spends them.
        """
        self._hard_budgets = hard_budgets
        self._engine, self._cluster, self._gangs, self._plan = engine, engine.cluster, gangs, plan
        self._terminating_since, self._hold_until = terminating_since, hold_until

    def carry_out(self, evictions: Evictions, *, preemptor: str, gang: str | None, priority: int) -> bool:
        """Evict or move the victims; return whether the preemptor is bound, instead of waiting with held room.

        `preemptor` is the key of the pod or gang, and `gang` is the key again if the preemptor is a gang.
        """
        moves = {move.pod: move for move in evictions.moves}
        minimums = self._minimums(evictions.victims)
        budgets: dict[str, PodDisruptionBudget] = {}
        records = []
        with Trial(self._cluster) as trial:
            remaining = Budgets(self._cluster, hard=self._hard_budgets)
            for victim in evictions.victims:
                if self._is_leaving(victim):
                    continue
                eviction = self._eviction(victim, preemptor, to=moves[victim].node if victim in moves else None)
                records.append(replace(eviction, change=self._evict(victim, remaining, budgets, moves)))
            terminates = bool(evictions.victims) and not moves and self._terminating_since is not None
            must_wait = bool(evictions.leaving) or terminates
            chosen = [(decision.pod, decision.node or "") for decision in evictions.decisions]
            bound = None if must_wait else bind_on_chosen_nodes(self._engine, chosen)
            if moves and (bound is None or not self._bind_moved_pods(moves)):
                return False
            trial.keep()
        for budget in budgets.values():
            self._plan.record_budget(budget)
        self._record_victims(records, moves)
        self._record_broken_gangs(minimums, preemptor)
        self._release_lower_holds(evictions, preemptor, priority)
        if bound is None:
            self._hold_room(evictions.decisions, gang, priority)
            return False
        for index, decision in enumerate(bound):  # the first pod's record names all victims
            victims, violations = ((), 0) if index else (evictions.victims, evictions.violations)
            self._plan.bind(decision, gang=gang, evicts=victims, budgets_broken=violations)
        return True

    def undo(self, pod: str, *, gang: str, reason: str) -> None:
        """Evict a bound pod of a gang that was not completed, for the gang itself."""
        eviction = replace(self._eviction(pod, gang, to=None), reason=reason)
        budgets: dict[str, PodDisruptionBudget] = {}
        change = self._evict(pod, Budgets(self._cluster, hard=self._hard_budgets), budgets, {})
        for budget in budgets.values():
            self._plan.record_budget(budget)
        self._plan.evict(replace(eviction, change=change))

    def _priority(self, pod: str) -> int:
        return int(self._cluster.pods.priority[self._cluster.pod_row(pod)])

    # Victims ----------------------------------------------------------------------------------------------------------

    def _eviction(self, victim: str, preemptor: str, *, to: str | None) -> Eviction:
        row = self._cluster.pod_row(victim)
        node, pod = self._cluster.pods.node_names[row] or "", self._cluster.pod(victim)
        priority = int(self._cluster.pods.priority[row])
        return Eviction(victim, node, preemptor, priority, self._gangs.key_of(row), to, pod.metadata.uid)

    def _evict(
        self, victim: str, remaining: Budgets, changed_budgets: dict[str, PodDisruptionBudget], moves: Container[str]
    ) -> Edit | None:
        """Take a victim off its node; return the change of its object, None if it is only moved or displaced.

        Budgets that shrink are added to `changed_budgets`.
        """
        cluster = self._cluster
        if victim in moves or self._plan.is_bound(victim):
            cluster.apply(Unbind(victim))
            return None
        pod = cluster.pod(victim)
        for budget in remaining.spend(pod):
            changed_budgets[budget.key] = budget
            cluster.apply(Put(budget))
        change: Edit
        if self._terminating_since is None:
            change = Remove("Pod", victim)
        else:
            change = Evict(victim, timestamp(self._terminating_since))
        cluster.apply(change)
        return change

    def _bind_moved_pods(self, moves: dict[str, Decision]) -> bool:
        """Bind moved pods on their new nodes, and update the moves; return False if a pod cannot get its volumes.

        Volumes are chosen again: the preemptor may have taken other ones than in the search for victims.
        """
        for pod, move in moves.items():
            if not move.volumes:
                self._cluster.apply(Bind(pod, move.node or ""))
                continue
            placed = bind_on_chosen_nodes(self._engine, [(pod, move.node or "")])
            if placed is None:
                return False
            moves[pod] = placed[0]
        return True

    def _is_leaving(self, victim: str) -> bool:
        """Return whether a victim terminates already, so that the preemptor waits for it without an eviction."""
        terminates = self._cluster.pods.terminating[self._cluster.pod_row(victim)]
        return self._terminating_since is not None and bool(terminates)

    def _record_victims(self, records: Iterable[Eviction], moves: dict[str, Decision]) -> None:
        for eviction in records:
            move = moves.get(eviction.pod)
            if not self._plan.is_bound(eviction.pod):
                self._plan.evict(eviction if move is None else replace(eviction, volumes=move.volumes))
            elif move is not None:
                self._plan.rebind(move)
            else:
                self._plan.displace(eviction.pod, eviction.by)

    def _minimums(self, victims: Iterable[str]) -> dict[str, int]:
        """Return the minimums of the victims' gangs by gang key."""
        keys = {self._gangs.key_of(self._cluster.pod_row(victim)) for victim in victims}
        return {key: self._gangs.gang(key).minimum for key in sorted(filter(None, keys))}

    def _record_broken_gangs(self, minimums: dict[str, int], preemptor: str) -> None:
        """Record gangs that fell below their minimum, and displace their pods that this plan has bound."""
        for key, minimum in minimums.items():
            state = self._gangs.state(key, ())
            if state.present >= minimum and not state.is_short:
                continue
            self._plan.broken_gangs[key] = preemptor, minimum
            for pod in self._plan.bound_pods_of(key):
                self._cluster.apply(Unbind(pod))
                self._plan.displace(pod, preemptor)

    # The preemptor ----------------------------------------------------------------------------------------------------

    def _hold_room(self, decisions: Iterable[Decision], gang: str | None, priority: int) -> None:
        for decision in decisions:
            node = decision.node or ""
            self._cluster.apply(Hold(decision.pod, node, self._hold_until, priority if gang else None))
            self._plan.nominate(Nominated(decision.pod, node, self._priority(decision.pod), gang))

    def _release_lower_holds(self, evictions: Evictions, preemptor: str, priority: int) -> None:
        """Release holds of lower priority on the nodes that the preemptor takes, as kube-scheduler does.

        Where a pod only goes on waiting for pods that are leaving, nothing is taken: those holds are beside its own.
        """
        cluster, holds = self._cluster, self._cluster.holds
        node_of_pod = {d.pod: d.node or "" for d in evictions.decisions}
        is_new = bool(evictions.victims)
        nodes = {node for pod, node in node_of_pod.items() if is_new or pod not in holds or holds[pod].node != node}
        for node in sorted(nodes):
            for owner in list(cluster.held_on.get(node, ())):
                if owner not in node_of_pod and cluster.hold_index.priority_of(owner) < priority:
                    cluster.apply(Release(owner))
                    self._plan.remove_nomination(owner, preemptor)
