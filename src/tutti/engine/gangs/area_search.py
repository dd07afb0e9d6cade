"""Place pods of several groups in their areas, all that the groups need or none.

Contract: `AreaSearch.place` binds as many pods as every group of a `GroupDemand` needs and no other pods, or leaves the
cluster unchanged. It places pods one by one as the engine would; if that fails, in other orders; then by search. A work
budget limits all of it, so results repeat.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np

from tutti.cluster.edits import Bind
from tutti.cluster.trial import Trial
from tutti.cluster.work.meter import GANG_POD, GANG_SEARCH_STEP
from tutti.cluster.work.work_budget import WorkBudget
from tutti.engine.gangs.areas import PodKind
from tutti.engine.gangs.pod_packing import PackedPods, pack
from tutti.engine.placement.capacity import Capacity
from tutti.engine.placement.engine import Decision, Engine
from tutti.engine.plugins.base import Area
from tutti.engine.plugins.verdict import AttemptError, Reason

_MAX_PACKED_ROWS = 256
"""Largest number of rows for a search by arithmetic: with more, some order of pods succeeds if a placement exists.
"""
_MAX_PACKED_PODS, _MAX_SEARCHED_PODS = 400, 200
"""Largest numbers of pods for a search by arithmetic and for a search with the engine: one recursion level per pod."""


class AlikePods(NamedTuple):
    """Pods of one kind, the area to which they may go, and the groups in which they count (innermost first)."""

    kind: PodKind
    area: Area | None
    groups: tuple[int, ...]


class GroupDemand:
    """Groups of pods to place together, and how many pods each group needs."""

    def __init__(self) -> None:
        self.missing: list[int] = []
        """By group number: how many pods the group needs; a group within another group comes after it."""
        self.alike_pods: list[AlikePods] = []

    def add_group(self, count: int) -> int:
        """Add a group and return its number."""
        self.missing.append(max(count, 0))
        return len(self.missing) - 1

    def pods_in(self, group: int) -> int:
        """Return how many pods count in a group."""
        return sum(len(alike.kind.rows) for alike in self.alike_pods if group in alike.groups)

    def needed_pods(self) -> list[AlikePods]:
        """Return the pods that count in a group that needs pods."""
        return [alike for alike in self.alike_pods if any(self.missing[group] for group in alike.groups)]


class AreaSearch:
    """Binds the pods of a `GroupDemand` (see the module's contract)."""

    def __init__(self, engine: Engine, capacity: Capacity) -> None:
        self._engine, self._cluster, self._capacity = engine, engine.cluster, capacity

    def place(self, demand: GroupDemand, budget: WorkBudget) -> list[Decision] | None:
        """Bind the pods that the groups need, and return the decisions; None if that fails."""
        alike_pods = demand.needed_pods()
        if not alike_pods:
            return [] if not any(demand.missing) else None
        if any(count > demand.pods_in(group) for group, count in enumerate(demand.missing)):
            return None
        if len(alike_pods) == 1:
            decisions = self._try(partial(self._place_one_kind, alike_pods[0], max(demand.missing), budget))
            if decisions is not None or self._needs_only_resources(alike_pods):
                return decisions
        else:
            decisions = self._place_in_some_order(demand, alike_pods, budget)
            if decisions is not None:
                return decisions
        if self._needs_only_resources(alike_pods):
            return self._place_packed(demand, alike_pods, budget)
        if sum(len(alike.kind.rows) for alike in alike_pods) > _MAX_SEARCHED_PODS:
            return None
        search = _PlacementSearch(self._engine, demand, alike_pods, budget)
        return search.decisions() if search.run() else None

    def _try(self, placement: Callable[[], list[Decision] | None]) -> list[Decision] | None:
        """Run a placement; roll its edits back if it fails."""
        with Trial(self._cluster) as trial:
            decisions = placement()
            if decisions is not None:
                trial.keep()
            return decisions

    def _place_one_kind(self, alike: AlikePods, count: int, budget: WorkBudget) -> list[Decision] | None:
        """Bind pods of a single kind."""
        if count > len(alike.kind.rows):
            return None
        budget.spend(GANG_POD * count)
        keys = [self._cluster.pods.keys[row] for row in alike.kind.rows[:count]]
        decisions = self._engine.place(keys, alike.area, give_up=True)
        return decisions if decisions[-1].node is not None else None

    def _needs_only_resources(self, alike_pods: Sequence[AlikePods]) -> bool:
        """Return whether only nodes and free resources decide: no rules between pods and no host ports."""
        return not any(
            any(alike.kind.incoming.applicable_plugins) or alike.kind.incoming.spec.ports for alike in alike_pods
        )

    # One by one -------------------------------------------------------------------------------------------------------

    def _place_in_some_order(
        self, demand: GroupDemand, alike_pods: list[AlikePods], budget: WorkBudget
    ) -> list[Decision] | None:
        """Bind pods one by one: in the given order, then the largest first, then those with the least room first."""
        tried: list[list[AlikePods]] = []
        for sort in (list, self._largest_first, self._least_room_first):
            in_order = sort(alike_pods)
            if in_order not in tried:
                tried.append(in_order)
                decisions = self._try(partial(self._place_in_order, demand, in_order, budget))
                if decisions is not None:
                    return decisions
        return None

    def _place_in_order(
        self, demand: GroupDemand, alike_pods: Sequence[AlikePods], budget: WorkBudget
    ) -> list[Decision] | None:
        """Bind pods in this order until each group has enough, inner groups first."""
        missing, next_pod = list(demand.missing), dict.fromkeys(range(len(alike_pods)), 0)
        keys = self._cluster.pods.keys
        decisions: list[Decision] = []
        for group in reversed(range(len(missing))):
            for number, alike in enumerate(alike_pods):
                if missing[group] <= 0:
                    break
                if group not in alike.groups:
                    continue
                first = next_pod[number]
                todo = [keys[row] for row in alike.kind.rows[first : first + missing[group]]]
                budget.spend(GANG_POD * len(todo))
                placed = [d for d in self._engine.place(todo, alike.area, give_up=True) if d.node is not None]
                # If one pod of a kind does not fit, no other pod of that kind does.
                next_pod[number] = first + len(todo) if len(placed) == len(todo) else len(alike.kind.rows)
                decisions += placed
                for counted_group in alike.groups:
                    missing[counted_group] -= len(placed)
            if missing[group] > 0:
                return None
        return decisions

    def _largest_first(self, alike_pods: Sequence[AlikePods]) -> list[AlikePods]:
        return sorted(alike_pods, key=lambda alike: -self._capacity.largest_share(alike.kind.incoming))

    def _least_room_first(self, alike_pods: Sequence[AlikePods]) -> list[AlikePods]:
        def room(alike: AlikePods) -> int:
            copies = self._capacity.copies(alike.kind.incoming)
            return int((copies if alike.area is None else copies[alike.area.rows]).sum())

        return sorted(alike_pods, key=room)

    # Search -----------------------------------------------------------------------------------------------------------

    def _place_packed(
        self, demand: GroupDemand, alike_pods: Sequence[AlikePods], budget: WorkBudget
    ) -> list[Decision] | None:
        """Search a packing by arithmetic, for pods without rules between them."""
        evaluator, nodes = self._engine.evaluator, self._cluster.nodes
        requests = [dict(evaluator.resource_requests(alike.kind.incoming)) for alike in alike_pods]
        resources = sorted({resource for request in requests for resource in request})
        items: list[PackedPods] = []
        rows: set[int] = set()
        for alike, request in zip(alike_pods, requests, strict=True):
            copies = self._capacity.copies(alike.kind.incoming)
            area_rows = np.flatnonzero(copies) if alike.area is None else alike.area.rows[copies[alike.area.rows] > 0]
            area_rows = area_rows[np.argsort(nodes.rank[area_rows])]
            amounts = tuple(request.get(resource, 0) for resource in resources)
            items.append(PackedPods(len(alike.kind.rows), amounts, tuple(area_rows.tolist()), alike.groups))
            rows.update(items[-1].rows)
        if len(rows) > _MAX_PACKED_ROWS or sum(item.pods for item in items) > _MAX_PACKED_PODS:
            return None
        free = {row: self._free_amounts(row, resources, alike_pods) for row in rows}
        placements = pack(items, demand.missing, free, budget)
        if placements is None:
            return None
        decisions = []
        for alike, placed in zip(alike_pods, placements, strict=True):
            for row, node in zip(alike.kind.rows, placed, strict=False):
                key, name = self._cluster.pods.keys[row], nodes.names[node]
                self._cluster.apply(Bind(key, name))
                decisions.append(Decision(key, name, nodes=nodes.count))
        return decisions

    def _free_amounts(self, node_row: int, resources: list[int], alike_pods: Sequence[AlikePods]) -> list[int]:
        """Return the free amounts on a node, less the room held for other pods of at least the same priority."""
        nodes, pods = self._cluster.nodes, self._cluster.pods
        free = nodes.alloc[resources, node_row] - nodes.used[resources, node_row]
        own_keys = {pods.keys[row] for alike in alike_pods for row in alike.kind.rows}
        priority = min(int(pods.priority[row]) for alike in alike_pods for row in alike.kind.rows)
        for owner in self._cluster.held_on.get(nodes.names[node_row], ()):
            if owner not in own_keys and self._cluster.hold_index.priority_of(owner) >= priority:
                free = free - self._cluster.hold_index.amounts_of(owner)[resources]
        listed: list[int] = free.tolist()
        return listed


class _PlacementSearch:
    """Search that tries every pod on every feasible node, in every order of kinds; no state is tried twice."""

    def __init__(
        self, engine: Engine, demand: GroupDemand, alike_pods: Sequence[AlikePods], budget: WorkBudget
    ) -> None:
        self._engine, self._alike_pods, self._budget = engine, alike_pods, budget
        self._missing = list(demand.missing)
        self._placed_counts = [0] * len(alike_pods)
        self._placed: list[tuple[int, Decision]] = []
        self._tried_states: set[tuple[tuple[int, str], ...]] = set()

    def decisions(self) -> list[Decision]:
        """Return the placement that was found."""
        return [decision for _, decision in self._placed]

    def run(self) -> bool:
        """Place one more pod and then all remaining pods; return whether that succeeds."""
        if max(self._missing) <= 0:
            return True
        state = tuple(sorted((number, d.node or "") for number, d in self._placed))
        if state in self._tried_states:
            return False
        self._tried_states.add(state)
        for number, alike in enumerate(self._alike_pods):
            is_needed = any(self._missing[group] > 0 for group in alike.groups)
            if is_needed and self._placed_counts[number] < len(alike.kind.rows) and self._place_next(number, alike):
                return True
            if self._budget.is_exhausted():
                return False
        return False

    def _place_next(self, number: int, alike: AlikePods) -> bool:
        """Try the next pod of a kind on each feasible node."""
        engine, cluster = self._engine, self._engine.cluster
        row = alike.kind.rows[self._placed_counts[number]]
        for node in self._feasible_rows(row, alike.area):
            if not self._budget.spend(GANG_SEARCH_STEP):
                return False
            with Trial(cluster) as trial:
                single_node = Area.of_row(node, cluster.nodes.size)
                decision = engine.place([cluster.pods.keys[row]], single_node, give_up=True)[0]
                if decision.node is not None:
                    self._count_placed(number, alike, 1)
                    self._placed.append((number, decision))
                    if self.run():
                        trial.keep()
                        return True
                    self._placed.pop()
                    self._count_placed(number, alike, -1)
        return False

    def _count_placed(self, number: int, alike: AlikePods, pods: int) -> None:
        self._placed_counts[number] += pods
        for group in alike.groups:
            self._missing[group] -= pods

    def _feasible_rows(self, row: int, area: Area | None) -> list[int]:
        """Return the rows on which a pod is feasible now, sorted by node name."""
        incoming = self._engine.evaluator.incoming_pod(row, area)
        self._budget.spend(GANG_SEARCH_STEP)
        if self._engine.early_decision(incoming) is not None:
            return []
        try:
            filtered = self._engine.evaluator.filter(incoming)
        except AttemptError:
            return []
        if isinstance(filtered, Reason):
            return []
        rows = np.flatnonzero(filtered.feasible)
        by_name: list[int] = rows[np.argsort(self._engine.cluster.nodes.rank[rows])].tolist()
        return by_name
