"""Place a gang: all pods that it needs, or none.

Contract: `GangPlacer.place` binds the pods of a need and returns the decisions, or leaves the cluster unchanged. Pods
for which room is held are tried there first (`chosen_nodes`), by every caller: the attempt of a gang, its preemption
and its cures. Areas come in the order of `areas`; `area_search` places the pods within an area. Parts with a topology
are placed one after the other; if a later part fails, the earlier part moves on to its next best area. If no such
sequence succeeds, areas are chosen for all parts first, and all parts are then placed together.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import combinations

from tutti.cluster.trial import Trial
from tutti.cluster.work.meter import GANG_AREA, GANG_PARTS, GANG_POD
from tutti.cluster.work.work_budget import WorkBudget
from tutti.engine.gangs.area_search import AlikePods, AreaSearch, GroupDemand
from tutti.engine.gangs.areas import Areas, mandatory_needs
from tutti.engine.gangs.chosen_nodes import place_on_held_nodes
from tutti.engine.gangs.gang_state import Need
from tutti.engine.placement.capacity import Capacity
from tutti.engine.placement.engine import Decision, Engine
from tutti.engine.plugins.attached_cache import AttachedCache
from tutti.engine.plugins.base import Area

GANG_SEARCH = 20_000 * GANG_POD
"""Work budget for one gang, unless the caller passes a budget."""

PlaceRest = Callable[[], list[Decision] | None]
"""Places the remaining pods after a step; returns None if that fails."""
AreaOfPart = dict[str, Area | None]
"""The chosen areas, by name of the part."""


class GangPlacer:
    """Places gangs of one engine's cluster (see the module's contract)."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.capacity = Capacity(engine.evaluator)
        self.areas = Areas(engine.evaluator, self.capacity)
        self._area_search = AreaSearch(engine, self.capacity)
        self._budget = WorkBudget(GANG_SEARCH)

    @staticmethod
    def of(engine: Engine) -> GangPlacer:
        """Return the placer of an engine, with its cached counts."""
        return _PLACERS.of(engine)

    def place(self, need: Need, budget: WorkBudget | None = None, area: Area | None = None) -> list[Decision] | None:
        """Bind the pods of a need and return the decisions, or None; search until the budget is exhausted."""
        if not need.has_enough_pods or not self._has_room(need, area):
            return None
        held = place_on_held_nodes(self.engine, self.areas, need, area)
        if held is not None:
            return held
        self._budget = WorkBudget(GANG_SEARCH) if budget is None else budget
        decisions = self._place_in_some_area(need, area, _no_rest)
        return self._place_jointly(need, area) if decisions is None and need.parts else decisions

    def _has_room(self, need: Need, area: Area | None) -> bool:
        """Return by arithmetic whether every part with a required topology has a domain with enough room."""
        for part in mandatory_needs(need):
            key = part.topology.required
            if key is not None and part is not need and not (self.areas.room_by_domain(part, key, area)[1:] >= 0).any():
                return False
        return True

    # Areas and parts --------------------------------------------------------------------------------------------------

    def _place_in_some_area(self, need: Need, outer: Area | None, place_rest: PlaceRest) -> list[Decision] | None:
        """Place a need in one of its areas, and then the remaining pods."""
        for area in self.areas.candidates(need, outer):
            decisions = self._place_in_area(need, area, place_rest)
            if decisions is not None:
                return decisions
            if not self._budget.spend(GANG_AREA):
                break
        return None

    def _place_in_area(self, need: Need, area: Area | None, place_rest: PlaceRest) -> list[Decision] | None:
        """Place a need in one area, with each choice of the parts that must reach their minimum."""
        for chosen_parts in _choices(need):
            constrained_parts = [part for part in chosen_parts if not _is_unconstrained(part)]
            constrained_parts.sort(key=lambda part: -part.least)
            decisions = self._place_constrained_parts(constrained_parts, chosen_parts, need, area, place_rest)
            if decisions is not None or not self._budget.spend(GANG_PARTS):
                return decisions
        return None

    def _place_constrained_parts(
        self,
        parts: Sequence[Need],
        chosen_parts: Sequence[Need],
        need: Need,
        area: Area | None,
        place_rest: PlaceRest,
    ) -> list[Decision] | None:
        """Place the parts with a topology one after the other, then all other pods together."""
        if not parts:
            return self._place_demand(self._demand(need, area, chosen_parts, {}), place_rest)

        def place_other_parts() -> list[Decision] | None:
            return self._place_constrained_parts(parts[1:], chosen_parts, need, area, place_rest)

        return self._place_in_some_area(parts[0], area, place_other_parts)

    def _place_demand(self, demand: GroupDemand, place_rest: PlaceRest) -> list[Decision] | None:
        """Place the pods of a demand and then the remaining pods; undo both if either fails."""
        with Trial(self.engine.cluster) as trial:
            decisions = self._area_search.place(demand, self._budget)
            rest = place_rest() if decisions is not None else None
            if decisions is None or rest is None:
                return None
            trial.keep()
            return decisions + rest

    def _place_jointly(self, need: Need, outer: Area | None) -> list[Decision] | None:
        """Choose an area for every part first, then place all parts together."""
        for area in self.areas.candidates(need, outer):
            for chosen_parts in _choices(need):
                for areas in self._area_choices((*chosen_parts, *_contributing_parts(need, chosen_parts)), area):
                    if not self._budget.spend(GANG_AREA):
                        return None
                    decisions = self._place_demand(self._demand(need, area, chosen_parts, areas), _no_rest)
                    if decisions is not None:
                        return decisions
        return None

    def _area_choices(self, parts: Sequence[Need], area: Area | None) -> Iterator[AreaOfPart]:
        """Yield every combination of areas for parts and the parts within them."""
        if not parts:
            yield {}
            return
        first, *rest = parts
        for first_area in self.areas.candidates(first, area):
            for inner_parts in _choices(first):
                for inner_areas in self._area_choices(inner_parts, first_area):
                    for rest_areas in self._area_choices(rest, area):
                        yield {first.name: first_area, **inner_areas, **rest_areas}

    # Demands ----------------------------------------------------------------------------------------------------------

    def _demand(self, need: Need, area: Area | None, chosen_parts: Sequence[Need], areas: AreaOfPart) -> GroupDemand:
        """Return the demand for the pods that a need still misses; pods of parts that are placed stay in place."""
        demand = GroupDemand()
        if not need.parts:
            group = demand.add_group(need.missing)
            demand.alike_pods += [AlikePods(kind, area, (group,)) for kind in self.areas.kinds(need.waiting)]
            return demand
        self._add_to_demand(demand, need, area, (), areas, chosen_parts)
        return demand

    def _add_to_demand(
        self,
        demand: GroupDemand,
        need: Need,
        area: Area | None,
        outer_groups: tuple[int, ...],
        areas: AreaOfPart,
        chosen_parts: Sequence[Need],
    ) -> None:
        """Add the groups of a need and of its parts to a demand."""
        nodes = self.engine.cluster.pods.node
        placed = sum(1 for row in need.all_waiting if nodes[row] >= 0)
        groups = (demand.add_group(need.missing - placed), *outer_groups)
        waiting = tuple(row for row in need.waiting if nodes[row] < 0)
        demand.alike_pods += [AlikePods(kind, area, groups) for kind in self.areas.kinds(waiting)]
        for part in need.parts:
            part_area = areas[part.name] if part.name in areas else self.current_area(part, area)
            part_need = part if part in chosen_parts else _without_minimum(part)
            inner_parts = next(_choices(part_need), ())
            self._add_to_demand(demand, part_need, part_area, groups, areas, inner_parts)

    def current_area(self, part: Need, area: Area | None) -> Area | None:
        """Return the area in which a part has pods by now; without such pods, the domain with the most room."""
        key = part.topology.required
        if key is None:
            return area
        return self.areas.domain(key, self.areas.current_domain(part, key, area), area)


_PLACERS: AttachedCache[Engine, GangPlacer] = AttachedCache(GangPlacer)


def _choices(need: Need) -> Iterator[tuple[Need, ...]]:
    """Yield the possible choices of parts that must reach their minimum."""
    incomplete = [part for part in need.parts if part.least]
    return combinations(incomplete, need.parts_needed)


def _contributing_parts(need: Need, chosen_parts: Sequence[Need]) -> list[Need]:
    """Return the parts with a topology that need no pods themselves, but whose waiting pods the gang needs."""
    if need.missing <= sum(part.least for part in chosen_parts):
        return []
    others = (part for part in need.parts if part not in chosen_parts)
    return [_without_minimum(part) for part in others if part.waiting and not _is_unconstrained(part)]


def _without_minimum(part: Need) -> Need:
    """Return a part that need not reach its minimum; its pods may still count for the gang."""
    return Need(part.name, 0, part.waiting, part.running, part.topology, tuple(map(_without_minimum, part.parts)), 0)


def _is_unconstrained(part: Need) -> bool:
    """Return whether a part and all parts within it have no topology and need all of their parts."""
    if part.topology.required is not None or part.topology.preferred or not part.needs_every_part:
        return False
    return all(map(_is_unconstrained, part.parts))


def _no_rest() -> list[Decision]:
    """Place nothing: no pods remain."""
    return []
