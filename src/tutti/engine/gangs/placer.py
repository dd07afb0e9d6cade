"""Placing a gang: all that it needs, or nothing.

Contract: `GangPlacer.place` either binds what a need asks for and gives the decisions, or leaves the cluster as it was.
Areas are tried in the order of `areas.py`, and what goes into one is placed as `call.py` says. Parts that are bound to
labels are placed one after the other, each in the next best of its areas when a later one fails; if that leads nowhere,
areas are chosen for all parts first, and the parts are then placed together.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import combinations

from tutti.cluster.trial import Trial
from tutti.cluster.work.meter import GANG_AREA, GANG_PARTS, GANG_POD
from tutti.cluster.work.work_budget import WorkBudget
from tutti.engine.gangs.area_search import AlikePods, AreaSearch, GroupDemand
from tutti.engine.gangs.areas import Areas, lacking
from tutti.engine.gangs.gang_state import Need
from tutti.engine.placement.capacity import Capacity
from tutti.engine.placement.engine import Decision, Engine
from tutti.engine.plugins.attached_cache import AttachedCache
from tutti.engine.plugins.base import Area

GANG_SEARCH = 20_000 * GANG_POD
"""Work for one gang, unless the caller brings a budget."""

Then = Callable[[], list[Decision] | None]
"""What is to be placed after something else; None when it cannot be."""
Chosen = dict[str, Area | None]
"""The areas of parts, by their names."""


class GangPlacer:
    """See the module's contract."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.capacity = Capacity(engine.evaluator)
        self.areas = Areas(engine.evaluator, self.capacity)
        self._caller = AreaSearch(engine, self.capacity)
        self._budget = WorkBudget(GANG_SEARCH)

    @staticmethod
    def of(engine: Engine) -> GangPlacer:
        """The placer of an engine; what it has counted before is still known."""
        return _PLACERS.of(engine)

    def place(self, need: Need, budget: WorkBudget | None = None, within: Area | None = None) -> list[Decision] | None:
        """Bind what is needed, or nothing; search while the budget lasts."""
        if not need.has_pods or not self._has_room(need, within):
            return None
        self._budget = WorkBudget(GANG_SEARCH) if budget is None else budget
        found = self._somewhere(need, within, _nothing_more)
        return self._jointly(need, within) if found is None and need.parts else found

    def _has_room(self, need: Need, within: Area | None) -> bool:
        """Say by arithmetic whether every part that is bound to a label has a domain with room enough."""
        for part in lacking(need):
            key = part.topology.required
            if key is not None and part is not need and not (self.areas.room(part, key, within)[1:] >= 0).any():
                return False
        return True

    # Areas and parts --------------------------------------------------------------------------------------------------

    def _somewhere(self, need: Need, within: Area | None, then: Then) -> list[Decision] | None:
        """Meet a need in one of its areas, and then do what comes after it."""
        for area in self.areas.of(need, within):
            found = self._inside(need, area, then)
            if found is not None:
                return found
            if not self._budget.spend(GANG_AREA):
                break
        return None

    def _inside(self, need: Need, area: Area | None, then: Then) -> list[Decision] | None:
        for chosen in _choices(need):
            tied = sorted((part for part in chosen if not _is_loose(part)), key=lambda part: -part.least)
            found = self._tied(tied, chosen, need, area, then)
            if found is not None or not self._budget.spend(GANG_PARTS):
                return found
        return None

    def _tied(
        self, tied: Sequence[Need], chosen: Sequence[Need], need: Need, area: Area | None, then: Then
    ) -> list[Decision] | None:
        """Place the parts that are bound to labels one after the other, then everything else together."""
        if tied:
            return self._somewhere(tied[0], area, lambda: self._tied(tied[1:], chosen, need, area, then))
        return self._called(self._call(need, area, chosen, {}), then)

    def _called(self, call: GroupDemand, then: Then) -> list[Decision] | None:
        """Answer a call; undo it when what comes after fails."""
        with Trial(self.engine.cluster) as trial:
            decisions = self._caller.answer(call, self._budget)
            rest = then() if decisions is not None else None
            if decisions is None or rest is None:
                return None
            trial.keep()
            return decisions + rest

    def _jointly(self, need: Need, within: Area | None) -> list[Decision] | None:
        """Choose an area for every part first, then place all parts together."""
        for area in self.areas.of(need, within):
            for chosen in _choices(need):
                for areas in self._chosen_areas((*chosen, *_helpers(need, chosen)), area):
                    if not self._budget.spend(GANG_AREA):
                        return None
                    found = self._called(self._call(need, area, chosen, areas), _nothing_more)
                    if found is not None:
                        return found
        return None

    def _chosen_areas(self, parts: Sequence[Need], area: Area | None) -> Iterator[Chosen]:
        """Give every way to choose areas for parts, and for the parts of those."""
        if not parts:
            yield {}
            return
        first, *rest = parts
        for mine in self.areas.of(first, area):
            for inner in _choices(first):
                for below in self._chosen_areas(inner, mine):
                    for others in self._chosen_areas(rest, area):
                        yield {first.name: mine, **below, **others}

    # Calls ------------------------------------------------------------------------------------------------------------

    def _call(self, need: Need, area: Area | None, chosen: Sequence[Need], areas: Chosen) -> GroupDemand:
        """Make a call of what a need still lacks; pods of parts that are placed already stay where they are."""
        call = GroupDemand()
        if not need.parts:
            group = call.group(need.lack)
            call.slots += [AlikePods(kind, area, (group,)) for kind in self.areas.kinds(need.waiting)]
            return call
        self._add(call, need, area, (), areas, chosen)
        return call

    def _add(
        self,
        call: GroupDemand,
        need: Need,
        area: Area | None,
        outer: tuple[int, ...],
        areas: Chosen,
        chosen: Sequence[Need],
    ) -> None:
        nodes = self.engine.cluster.pods.node
        placed = sum(1 for row in need.everybody if nodes[row] >= 0)
        groups = (call.group(need.lack - placed), *outer)
        waiting = tuple(row for row in need.waiting if nodes[row] < 0)
        call.slots += [AlikePods(kind, area, groups) for kind in self.areas.kinds(waiting)]
        for part in need.parts:
            inside = areas[part.name] if part.name in areas else self.settled(part, area)
            wanted = part if part in chosen else _without_lack(part)
            inner = next(_choices(wanted), ())
            self._add(call, wanted, inside, groups, areas, inner)

    def settled(self, part: Need, area: Area | None) -> Area | None:
        """Give the area in which a part is by now; where it has no pod yet, the one with the most room."""
        key = part.topology.required
        if key is None:
            return area
        return self.areas.domain(key, self.areas.settled(part, key, area), area)


_PLACERS: AttachedCache[Engine, GangPlacer] = AttachedCache(GangPlacer)


def _choices(need: Need) -> Iterator[tuple[Need, ...]]:
    """Give the ways to choose those of the parts that lack something which are to get it."""
    lacking = [part for part in need.parts if part.least]
    return combinations(lacking, need.parts_needed)


def _helpers(need: Need, chosen: Sequence[Need]) -> list[Need]:
    """Give the parts that lack nothing themselves, but whose pods the whole needs, if they are bound to labels."""
    if need.lack <= sum(part.least for part in chosen):
        return []
    return [_without_lack(part) for part in need.parts if part not in chosen and part.waiting and not _is_loose(part)]


def _without_lack(part: Need) -> Need:
    """Give a part that need not reach its minimum: its pods may still count for the whole."""
    return Need(part.name, 0, part.waiting, part.running, part.topology, tuple(map(_without_lack, part.parts)), 0)


def _is_loose(part: Need) -> bool:
    """Say whether a part, with all parts of it, is bound to no label and needs all of its parts."""
    topology = part.topology
    return topology.required is None and not topology.preferred and part.takes_all and all(map(_is_loose, part.parts))


def _nothing_more() -> list[Decision]:
    return []
