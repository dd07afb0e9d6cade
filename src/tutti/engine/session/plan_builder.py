"""The plan while it is made: decisions noted pod by pod and gang by gang.

Contract: every pod stands in one list at most. A later decision replaces an earlier one: a pod that is bound is no
longer refused, and one that was bound in this plan and is displaced waits again, as if it had never been bound.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from msgspec.structs import replace

from tutti.cluster.cluster import Cluster
from tutti.engine.placement.engine import Decision
from tutti.engine.session.plan import (
    Bound,
    Eviction,
    GangPlan,
    Nominated,
    NotConsidered,
    Plan,
    Turn,
    Unschedulable,
)
from tutti.kube.objects import PodDisruptionBudget


class PlanBuilder:
    """See the module's docstring."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._holds_before = dict(cluster.holds)
        self._binds: dict[str, Bound] = {}
        self._evictions: dict[str, Eviction] = {}
        self._nominated: dict[str, Nominated] = {}
        self._refused: dict[str, Unschedulable] = {}
        self._budgets: dict[str, PodDisruptionBudget] = {}
        self._turns: list[Turn] = []
        self.gangs: dict[str, GangPlan] = {}
        self.broken_gangs: dict[str, tuple[str, int]] = {}
        """Gangs that fell below their minimum: the pod or gang that displaced them, and their former minimum, which
        some dialects count from the pods that exist."""
        self.displaced = 0
        """How many pods that this plan had bound, or held room for, were displaced again."""

    def is_bound(self, pod: str) -> bool:
        """Return whether this plan has bound a pod."""
        return pod in self._binds

    def bound_of(self, gang: str) -> list[str]:
        """Return the pods of a gang that this plan has bound."""
        return [each.pod for each in self._binds.values() if each.gang == gang]

    def take(self, turns: Iterable[Turn]) -> None:
        """Note that turns are taken."""
        self._turns.extend(turns)

    def bind(
        self, decision: Decision, *, gang: str | None, evicts: tuple[str, ...] = (), budgets_broken: int = 0
    ) -> None:
        """Note that a pod is bound."""
        pods, pod = self._cluster.pods, decision.pod
        row = pods.row_of[pod]
        obj = pods.objects[row]
        uid = obj.metadata.uid if obj is not None else None
        self._refused.pop(pod, None)
        self._nominated.pop(pod, None)
        self._binds[pod] = Bound(
            pod,
            decision.node or "",
            int(pods.priority[row]),
            decision.score,
            evicts,
            budgets_broken,
            gang,
            uid,
            decision.volumes,
        )

    def evict(self, eviction: Eviction) -> None:
        """Note that a pod has to go, or is moved; its node is the one on which it was before the plan."""
        before = self._evictions.get(eviction.pod)
        self._evictions[eviction.pod] = eviction if before is None else replace(eviction, node=before.node)

    def spend_budget(self, budget: PodDisruptionBudget) -> None:
        """Note a disruption budget as an eviction leaves it."""
        self._budgets[budget.key] = budget

    def displace(self, pod: str, by: str) -> None:
        """Note that a pod which was bound in this plan waits again."""
        before = self._binds.pop(pod)
        for key, eviction in self._evictions.items():
            if eviction.by in (pod, before.gang):  # the room of those victims goes to the newcomer as well
                self._evictions[key] = replace(eviction, by=by)
        self._refuse_displaced(pod, by, before.priority, before.gang)

    def rebind(self, pod: str, node: str) -> None:
        """Note that a pod which was bound in this plan goes to another node."""
        self._binds[pod] = replace(self._binds[pod], node=node, score=None)

    def unnominate(self, pod: str, by: str) -> None:
        """Note that a pod for which room was held has to look elsewhere."""
        before = self._nominated.pop(pod, None)
        if before is not None:
            self._refuse_displaced(pod, by, before.priority, before.gang)

    def _refuse_displaced(self, pod: str, by: str, priority: int, gang: str | None) -> None:
        nodes = self._cluster.nodes.count
        self._refused[pod] = Unschedulable(pod, f"makes way for {by}", priority, nodes, {}, gang)
        self.displaced += 1

    def nominate(self, nominated: Nominated) -> None:
        """Note that room is held for a pod."""
        self._refused.pop(nominated.pod, None)
        self._nominated[nominated.pod] = nominated

    def refuse(self, refused: Unschedulable) -> None:
        """Note that a pod cannot be placed."""
        self._nominated.pop(refused.pod, None)
        self._refused[refused.pod] = refused

    def plan(self, not_considered: Sequence[NotConsidered] = ()) -> Plan:
        """Return the plan."""
        placed = Counter(bound.gang for bound in self._binds.values())
        held = Counter(nominated.gang for nominated in self._nominated.values())
        gangs = [replace(g, placed=placed[g.gang], nominated=held[g.gang]) for g in self.gangs.values()]
        binds, evictions, refused = self._binds.values(), self._evictions.values(), self._refused.values()
        plan = Plan.of(binds, evictions, refused, not_considered, self._nominated.values(), gangs)
        before, after = self._holds_before, self._cluster.holds
        return replace(
            plan,
            turns=tuple(self._turns),
            holds=tuple(hold for pod, hold in after.items() if before.get(pod) != hold),
            released=tuple(pod for pod in before if pod not in after and pod not in self._binds),
            budgets=tuple(self._budgets.values()),
        )
