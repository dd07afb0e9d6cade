"""A call: pods of which each of some groups needs so many, and where they may go. And how it is answered.

Contract: `AreaSearch.answer` binds enough pods for every group and nobody else, or leaves the cluster as it was. Pods
are placed one by one as the engine would; if that is not enough, in other orders; then by search. All of it is limited
by a work budget, so that results repeat.
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

_PACK_ROWS = 256
"""Rows up to which packing is searched: beyond, one order or another has found a way if there is one."""
_PACK_PODS, _SEARCH_PODS = 400, 200
"""Pods up to which there is a search, by arithmetic and by asking: each step of it goes one deeper."""


class AlikePods(NamedTuple):
    """Pods of one kind, where they may go, and the groups in which they count, the innermost first."""

    kind: PodKind
    area: Area | None
    groups: tuple[int, ...]


class GroupDemand:
    """What is to be placed together."""

    def __init__(self) -> None:
        self.lacks: list[int] = []
        """How many pods each group needs; a group within another comes after it."""
        self.slots: list[AlikePods] = []

    def group(self, lack: int) -> int:
        """Add a group."""
        self.lacks.append(max(lack, 0))
        return len(self.lacks) - 1

    def pods_in(self, group: int) -> int:
        """Give how many pods count in a group."""
        return sum(len(slot.kind.rows) for slot in self.slots if group in slot.groups)

    def useful(self) -> list[AlikePods]:
        """Give the pods that some group needs."""
        return [slot for slot in self.slots if any(self.lacks[group] for group in slot.groups)]


class AreaSearch:
    """See the module's contract."""

    def __init__(self, engine: Engine, capacity: Capacity) -> None:
        self._engine, self._cluster, self._capacity = engine, engine.cluster, capacity

    def answer(self, call: GroupDemand, budget: WorkBudget) -> list[Decision] | None:
        """Bind what is called for, or nothing."""
        slots = call.useful()
        if not slots:
            return [] if not any(call.lacks) else None
        if any(lack > call.pods_in(group) for group, lack in enumerate(call.lacks)):
            return None
        if len(slots) == 1:
            decided = self._attempt(partial(self._alike, slots[0], max(call.lacks), budget))
            if decided is not None or self._is_plain(slots):
                return decided
        else:
            decided = self._in_some_order(call, slots, budget)
            if decided is not None:
                return decided
        if self._is_plain(slots):
            return self._packed(call, slots, budget)
        if sum(len(slot.kind.rows) for slot in slots) > _SEARCH_PODS:
            return None
        search = _Search(self._engine, call, slots, budget)
        return search.decisions() if search.run() else None

    def _attempt(self, attempt: Callable[[], list[Decision] | None]) -> list[Decision] | None:
        with Trial(self._cluster) as trial:
            found = attempt()
            if found is not None:
                trial.keep()
            return found

    def _alike(self, slot: AlikePods, count: int, budget: WorkBudget) -> list[Decision] | None:
        if count > len(slot.kind.rows):
            return None
        budget.spend(GANG_POD * count)
        keys = [self._cluster.pods.keys[row] for row in slot.kind.rows[:count]]
        decisions = self._engine.place(keys, slot.area, give_up=True)
        return decisions if decisions[-1].node is not None else None

    def _is_plain(self, slots: Sequence[AlikePods]) -> bool:
        """Say whether no pod looks at other pods, so that room and nodes are all that counts."""
        return not any(any(slot.kind.incoming.applicable_plugins) or slot.kind.incoming.spec.ports for slot in slots)

    # One by one -------------------------------------------------------------------------------------------------------

    def _in_some_order(self, call: GroupDemand, slots: list[AlikePods], budget: WorkBudget) -> list[Decision] | None:
        """Place pod by pod: as they come, the largest first, those with the fewest nodes first."""
        tried: list[list[AlikePods]] = []
        for order in (list, self._largest_first, self._rarest_first):
            in_order = order(slots)
            if in_order not in tried:
                tried.append(in_order)
                found = self._attempt(partial(self._one_order, call, in_order, budget))
                if found is not None:
                    return found
        return None

    def _one_order(self, call: GroupDemand, slots: Sequence[AlikePods], budget: WorkBudget) -> list[Decision] | None:
        """Give each group what it lacks, the inner ones first, from pods in this order."""
        lacks, next_of = list(call.lacks), dict.fromkeys(range(len(slots)), 0)
        keys = self._cluster.pods.keys
        decisions: list[Decision] = []
        for group in reversed(range(len(lacks))):
            for number, slot in enumerate(slots):
                if lacks[group] <= 0:
                    break
                if group not in slot.groups:
                    continue
                first = next_of[number]
                todo = [keys[row] for row in slot.kind.rows[first : first + lacks[group]]]
                budget.spend(GANG_POD * len(todo))
                placed = [d for d in self._engine.place(todo, slot.area, give_up=True) if d.node is not None]
                # When one of a kind does not fit, neither do the others.
                next_of[number] = first + len(todo) if len(placed) == len(todo) else len(slot.kind.rows)
                decisions += placed
                for each in slot.groups:
                    lacks[each] -= len(placed)
            if lacks[group] > 0:
                return None
        return decisions

    def _largest_first(self, slots: Sequence[AlikePods]) -> list[AlikePods]:
        return sorted(slots, key=lambda slot: -self._capacity.share(slot.kind.incoming))

    def _rarest_first(self, slots: Sequence[AlikePods]) -> list[AlikePods]:
        def room(slot: AlikePods) -> int:
            copies = self._capacity.copies(slot.kind.incoming)
            return int((copies if slot.area is None else copies[slot.area.rows]).sum())

        return sorted(slots, key=room)

    # Search -----------------------------------------------------------------------------------------------------------

    def _packed(self, call: GroupDemand, slots: Sequence[AlikePods], budget: WorkBudget) -> list[Decision] | None:
        """Search by arithmetic, for pods that do not look at each other."""
        evaluator, nodes = self._engine.evaluator, self._cluster.nodes
        wants = [dict(evaluator.room_wanted(slot.kind.incoming)) for slot in slots]
        places = sorted({place for want in wants for place in want})
        items: list[PackedPods] = []
        rows: set[int] = set()
        for slot, want in zip(slots, wants, strict=True):
            copies = self._capacity.copies(slot.kind.incoming)
            inside = np.flatnonzero(copies) if slot.area is None else slot.area.rows[copies[slot.area.rows] > 0]
            inside = inside[np.argsort(nodes.rank[inside])]
            amounts = tuple(want.get(place, 0) for place in places)
            items.append(PackedPods(len(slot.kind.rows), amounts, tuple(inside.tolist()), slot.groups))
            rows.update(items[-1].rows)
        if len(rows) > _PACK_ROWS or sum(item.pods for item in items) > _PACK_PODS:
            return None
        free = {row: self._free(row, places, slots) for row in rows}
        found = pack(items, call.lacks, free, budget)
        if found is None:
            return None
        decisions = []
        for slot, placed in zip(slots, found, strict=True):
            for row, node in zip(slot.kind.rows, placed, strict=False):
                key, name = self._cluster.pods.keys[row], nodes.names[node]
                self._cluster.apply(Bind(key, name))
                decisions.append(Decision(key, name, nodes=nodes.count))
        return decisions

    def _free(self, row: int, places: list[int], slots: Sequence[AlikePods]) -> list[int]:
        """Give what is free on a node, without what is held there for others that matter as much."""
        nodes, pods = self._cluster.nodes, self._cluster.pods
        free = nodes.alloc[places, row] - nodes.used[places, row]
        held = self._cluster.held_on.get(nodes.names[row])
        if held:
            mine = {pods.keys[each] for slot in slots for each in slot.kind.rows}
            priority = min(int(pods.priority[each]) for slot in slots for each in slot.kind.rows)
            for key, hold in held.items():
                other = pods.row_of[key]
                if key not in mine and hold.effective_priority(int(pods.priority[other])) >= priority:
                    free = free - self._cluster.usages.matrix[pods.usage[other], places]
        listed: list[int] = free.tolist()
        return listed


class _Search:
    """Trying every pod on every node that the engine allows, in every order of kinds; no state is tried twice."""

    def __init__(self, engine: Engine, call: GroupDemand, slots: Sequence[AlikePods], budget: WorkBudget) -> None:
        self._engine, self._slots, self._budget = engine, slots, budget
        self._lacks = list(call.lacks)
        self._taken = [0] * len(slots)
        self._placed: list[tuple[int, Decision]] = []
        self._seen: set[tuple[tuple[int, str], ...]] = set()

    def decisions(self) -> list[Decision]:
        """Give what was found."""
        return [decision for _, decision in self._placed]

    def run(self) -> bool:
        """Place one more pod, and all that are left after it."""
        if max(self._lacks) <= 0:
            return True
        state = tuple(sorted((number, d.node or "") for number, d in self._placed))
        if state in self._seen:
            return False
        self._seen.add(state)
        for number, slot in enumerate(self._slots):
            wanted = any(self._lacks[group] > 0 for group in slot.groups)
            if wanted and self._taken[number] < len(slot.kind.rows) and self._next_of(number, slot):
                return True
            if self._budget.is_exhausted():
                return False
        return False

    def _next_of(self, number: int, slot: AlikePods) -> bool:
        engine, cluster = self._engine, self._engine.cluster
        row = slot.kind.rows[self._taken[number]]
        for node in self._nodes(row, slot.area):
            if not self._budget.spend(GANG_SEARCH_STEP):
                return False
            with Trial(cluster) as trial:
                there = Area.of_row(node, cluster.nodes.size)
                decision = engine.place([cluster.pods.keys[row]], there, give_up=True)[0]
                if decision.node is not None:
                    self._count(number, slot, 1)
                    self._placed.append((number, decision))
                    if self.run():
                        trial.keep()
                        return True
                    self._placed.pop()
                    self._count(number, slot, -1)
        return False

    def _count(self, number: int, slot: AlikePods, pods: int) -> None:
        self._taken[number] += pods
        for group in slot.groups:
            self._lacks[group] -= pods

    def _nodes(self, row: int, area: Area | None) -> list[int]:
        """Give the nodes that could take a pod now."""
        incoming = self._engine.evaluator.incoming_pod(row, area)
        self._budget.spend(GANG_SEARCH_STEP)
        if self._engine.stopped(incoming) is not None:
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
