"""Record the decisions of a session, pod by pod and gang by gang, and make the plan from them.

Contract: every pod is in at most one list of the plan. A later decision replaces an earlier one: a pod that is bound is
no longer unschedulable, and a pod that this plan bound and then displaced is unschedulable, as if never bound. An
attempt that ends early is undone here as in the cluster (`mark` and `rollback`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any, TypeVar

from msgspec.structs import replace

from tutti.cluster.cluster import Cluster
from tutti.cluster.edits import SetStart
from tutti.engine.placement.engine import Decision
from tutti.engine.reasons.visible_names import visible_preemptor
from tutti.engine.session.plan import (
    Bound,
    Eviction,
    GangPlan,
    Nominated,
    NotConsidered,
    PartialGang,
    Plan,
    Turn,
    Unschedulable,
)
from tutti.kube.objects import PodDisruptionBudget

T = TypeVar("T")
_Log = list[tuple[dict[str, Any], str, object]]
"""What was replaced, the latest last: the dict, the key, and the old value or None."""


class _LoggedDict(dict[str, T]):
    """A dict that logs what is replaced; no value is None."""

    def __init__(self, log: _Log) -> None:
        super().__init__()
        self._log = log

    def __setitem__(self, key: str, value: T) -> None:
        self._log.append((self, key, self.get(key)))
        super().__setitem__(key, value)

    def discard(self, key: str) -> T | None:
        """Remove and return a value; None if there is none."""
        value = super().pop(key, None)
        if value is not None:
            self._log.append((self, key, value))
        return value


class PlanBuilder:
    """See the module's docstring."""

    def __init__(self, cluster: Cluster, now: int | None = None) -> None:
        self._cluster, self._now = cluster, now
        self.partial_gangs: list[PartialGang] = []
        self._holds_before = dict(cluster.holds)
        self._log: _Log = []
        self._binds: _LoggedDict[Bound] = _LoggedDict(self._log)
        self._evictions: _LoggedDict[Eviction] = _LoggedDict(self._log)
        self._nominated: _LoggedDict[Nominated] = _LoggedDict(self._log)
        self._unschedulable: _LoggedDict[Unschedulable] = _LoggedDict(self._log)
        self._budgets: _LoggedDict[PodDisruptionBudget] = _LoggedDict(self._log)
        self._turns: list[Turn] = []
        self.gangs: _LoggedDict[GangPlan] = _LoggedDict(self._log)
        self.broken_gangs: _LoggedDict[tuple[str, int]] = _LoggedDict(self._log)
        """Gangs that fell below their minimum: the pod or gang that displaced them, and their former minimum, which
        some dialects count from the pods that exist."""
        self.lost_nominations: list[str] = []
        """Pods that lost the room that was held for them to a pod or gang of higher priority."""
        self.displaced_count = 0
        """The number of pods that this plan had bound, or held room for, and displaced again."""

    def mark(self) -> tuple[int, int]:
        """Return a mark for the decisions so far; an earlier mark is void."""
        self._log.clear()
        return len(self.lost_nominations), self.displaced_count

    def rollback(self, mark: tuple[int, int]) -> None:
        """Undo all decisions since the last mark."""
        while self._log:
            decisions, key, old = self._log.pop()
            if old is None:
                dict.pop(decisions, key)
            else:
                dict.__setitem__(decisions, key, old)
        del self.lost_nominations[mark[0] :]
        self.displaced_count = mark[1]

    def is_bound(self, pod: str) -> bool:
        """Return whether this plan has bound a pod."""
        return pod in self._binds

    def bound_pods_of(self, gang: str) -> list[str]:
        """Return the pods of a gang that this plan has bound."""
        return [each.pod for each in self._binds.values() if each.gang == gang]

    def record_turns(self, turns: Iterable[Turn]) -> None:
        """Record that turns are taken."""
        self._turns.extend(turns)

    def bind(
        self, decision: Decision, *, gang: str | None, evicts: tuple[str, ...] = (), budgets_broken: int = 0
    ) -> None:
        """Record that a pod is bound."""
        pods, pod = self._cluster.pods, decision.pod
        row = pods.row_of[pod]
        obj = pods.objects[row]
        uid = obj.metadata.uid if obj is not None else None
        self._unschedulable.discard(pod)
        self._nominated.discard(pod)
        self._binds[pod] = Bound(
            pod,
            decision.node or "",
            int(pods.priority[row]),
            decision.score,
            evicts,
            budgets_broken,
            gang,
            uid,
            self._now,
            decision.volumes,
        )

    def evict(self, eviction: Eviction) -> None:
        """Record that a pod is evicted or moved; `Eviction.node` stays the pod's node from before the plan."""
        previous = self._evictions.get(eviction.pod)
        self._evictions[eviction.pod] = eviction if previous is None else replace(eviction, node=previous.node)

    def record_budget(self, budget: PodDisruptionBudget) -> None:
        """Record a disruption budget as an eviction leaves it."""
        self._budgets[budget.key] = budget

    def displace(self, pod: str, preemptor: str) -> None:
        """Record that a pod which this plan had bound is pending again."""
        previous = self._binds.discard(pod)
        assert previous is not None
        for key, eviction in self._evictions.items():
            if eviction.by in (pod, previous.gang):  # the preemptor takes the room of those victims too
                self._evictions[key] = replace(eviction, by=preemptor)
        self._refuse_displaced(pod, preemptor, previous.priority, previous.gang)

    def rebind(self, move: Decision) -> None:
        """Record that a pod which this plan had bound goes to another node, with the volumes that it takes there."""
        pod = move.pod
        self._binds[pod] = replace(self._binds[pod], node=move.node or "", score=None, volumes=move.volumes)

    def remove_nomination(self, pod: str, preemptor: str) -> None:
        """Record that a pod loses the room that was held for it."""
        self.lost_nominations.append(pod)
        previous = self._nominated.discard(pod)
        if previous is not None:
            self._refuse_displaced(pod, preemptor, previous.priority, previous.gang)

    def _refuse_displaced(self, pod: str, preemptor: str, priority: int, gang: str | None) -> None:
        nodes, message = self._cluster.nodes.count, f"displaced by {visible_preemptor(preemptor, reader=pod)}"
        self._unschedulable[pod] = Unschedulable(pod, message, priority, nodes, {}, gang)
        self.displaced_count += 1

    def nominate(self, nominated: Nominated) -> None:
        """Record that room is held for a pod."""
        self._unschedulable.discard(nominated.pod)
        self._nominated[nominated.pod] = nominated

    def refuse(self, unschedulable: Unschedulable) -> None:
        """Record that a pod cannot be placed."""
        self._nominated.discard(unschedulable.pod)
        self._unschedulable[unschedulable.pod] = unschedulable

    def start_bound_pods(self) -> None:
        """Let the pods that this plan has bound start now."""
        if self._now is not None:
            for pod in self._binds:
                self._cluster.apply(SetStart(pod, self._now))

    def _has_old_nomination(self, pod: str) -> bool:
        """Return whether a pod is still nominated although no room is held: its binding was refused."""
        waits = self._unschedulable[pod].waits_for
        return waits != "victims" and bool(self._cluster.pod(pod).status.nominated_node_name)

    def plan(self, not_considered: Sequence[NotConsidered] = ()) -> Plan:
        """Return the plan."""
        placed = Counter(bound.gang for bound in self._binds.values())
        nominated = Counter(each.gang for each in self._nominated.values())
        gangs = [replace(g, placed=placed[g.gang], nominated=nominated[g.gang]) for g in self.gangs.values()]
        binds, evictions, unschedulable = self._binds.values(), self._evictions.values(), self._unschedulable.values()
        plan = Plan.of(binds, evictions, unschedulable, not_considered, self._nominated.values(), gangs)
        before, after = self._holds_before, self._cluster.holds
        return replace(
            plan,
            turns=tuple(self._turns),
            holds=tuple(hold for pod, hold in after.items() if before.get(pod) != hold),
            released=(
                *(pod for pod in before if pod not in after and pod not in self._binds),
                *(pod for pod in self._unschedulable if pod not in before and self._has_old_nomination(pod)),
            ),
            budgets=tuple(self._budgets.values()),
            partial_gangs=tuple(self.partial_gangs),
        )
