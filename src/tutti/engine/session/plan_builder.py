"""Notes: what has been decided so far, pod by pod and gang by gang, until it is a plan.

Contract: every pod stands in one list at most. What is decided later takes the place of what was decided before: a pod
that is bound is no longer refused, and one that was bound in this plan and has to make way waits again, as if it had
never been.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from msgspec.structs import replace

from tutti.cluster.cluster import Cluster
from tutti.engine.session.plan import Bound, Eviction, GangPlan, Nominated, NotConsidered, Plan, Unschedulable


class Notes:
    """See the module's contract."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._binds: dict[str, Bound] = {}
        self._evictions: dict[str, Eviction] = {}
        self._nominated: dict[str, Nominated] = {}
        self._refused: dict[str, Unschedulable] = {}
        self.gangs: dict[str, GangPlan] = {}
        self.made_way: dict[str, tuple[str, int]] = {}
        """Gangs that do not go on, for whom, and what their minimum was: some count it from the pods that are there."""
        self.displaced = 0
        """How many pods that were bound in this plan, or had room held for them, had to make way."""

    def is_bound(self, pod: str) -> bool:
        """Say whether this plan has bound a pod."""
        return pod in self._binds

    def bound_of(self, gang: str) -> list[str]:
        """Give the pods of a gang that this plan has bound."""
        return [each.pod for each in self._binds.values() if each.gang == gang]

    def bind(self, bound: Bound) -> None:
        """Note that a pod is bound."""
        self._refused.pop(bound.pod, None)
        self._nominated.pop(bound.pod, None)
        self._binds[bound.pod] = bound

    def evict(self, eviction: Eviction) -> None:
        """Note that a pod has to go, or is moved; its node is the one on which it was before the plan."""
        before = self._evictions.get(eviction.pod)
        self._evictions[eviction.pod] = eviction if before is None else replace(eviction, node=before.node)

    def displace(self, pod: str, by: str) -> None:
        """Note that a pod which was bound in this plan waits again."""
        before = self._binds.pop(pod)
        for key, eviction in self._evictions.items():
            if eviction.by in (pod, before.gang):  # whoever comes now has the room of those, too
                self._evictions[key] = replace(eviction, by=by)
        nodes = self._cluster.nodes.count
        self._refused[pod] = Unschedulable(pod, f"makes way for {by}", before.priority, nodes, {}, before.gang)
        self.displaced += 1

    def rebind(self, pod: str, node: str) -> None:
        """Note that a pod which was bound in this plan goes to another node."""
        self._binds[pod] = replace(self._binds[pod], node=node, score=None)

    def unnominate(self, pod: str, by: str) -> None:
        """Note that a pod for which room was held has to look elsewhere."""
        before = self._nominated.pop(pod, None)
        if before is not None:
            nodes = self._cluster.nodes.count
            self._refused[pod] = Unschedulable(pod, f"makes way for {by}", before.priority, nodes, {}, before.gang)
            self.displaced += 1

    def nominate(self, nominated: Nominated) -> None:
        """Note that room is held for a pod."""
        self._refused.pop(nominated.pod, None)
        self._nominated[nominated.pod] = nominated

    def refuse(self, refused: Unschedulable) -> None:
        """Note that a pod cannot be placed."""
        self._nominated.pop(refused.pod, None)
        self._refused[refused.pod] = refused

    def plan(self, left_out: Iterable[NotConsidered] = ()) -> Plan:
        """Give what was noted."""
        placed = Counter(bound.gang for bound in self._binds.values())
        held = Counter(nominated.gang for nominated in self._nominated.values())
        gangs = [replace(g, placed=placed[g.gang], nominated=held[g.gang]) for g in self.gangs.values()]
        binds, evictions, refused = self._binds.values(), self._evictions.values(), self._refused.values()
        return Plan.of(binds, evictions, refused, left_out, self._nominated.values(), gangs)
