"""Placing a gang: all that it needs, or nothing.

Contract: `GangPlacer.place` either binds what a need asks for and gives the decisions, or leaves the cluster as it was.
Areas are tried in the order of `areas.py`. In an area pods are placed one by one as the engine would; if one is left
over, in other orders; then by search. All of it is limited by work, not by time, so that results repeat. Parts with a
label of their own are placed one after the other, each in the next best of its areas when a later one fails.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import combinations

import numpy as np

from tutti.cluster.edits import Bind
from tutti.engine.areas import Areas, Kind
from tutti.engine.capacity import Capacity
from tutti.engine.engine import Decision, Engine
from tutti.engine.packing import Item, Pool, Work, pack
from tutti.engine.plugins.base import Area
from tutti.engine.standing import Need
from tutti.engine.verdict import Reason

WORK = 20_000
"""Steps of search for one gang, unless said otherwise."""
_PACK_ROWS = 256
"""Rows up to which packing is searched: beyond, one order or another has found a way if there is one."""
_ASK = 20
"""Steps that asking the engine once counts for."""


Then = Callable[[], list[Decision] | None]
"""What is to be placed after something else; None when it cannot be."""


class Team:
    """Pods of which some are needed together in an area."""

    __slots__ = ("area", "count", "kinds")

    def __init__(self, kinds: Sequence[Kind], count: int, area: Area | None) -> None:
        self.kinds, self.count, self.area = kinds, count, area

    @property
    def rows(self) -> list[int]:
        """The rows of all pods."""
        return [row for kind in self.kinds for row in kind.rows]


class GangPlacer:
    """See the module's contract."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.capacity = Capacity(engine.judge)
        self.areas = Areas(engine.judge, self.capacity)
        self._work = Work(WORK)

    def place(self, need: Need, work: Work | None = None, within: Area | None = None) -> list[Decision] | None:
        """Bind what is needed, or nothing."""
        if need.least > _waiting(need):
            return None
        self._work = work if work is not None else Work(WORK)
        found = self._somewhere(need, within, _nothing_more)
        return self._jointly(need, within) if found is None and need.parts else found

    # Areas and parts --------------------------------------------------------------------------------------------------

    def _somewhere(self, need: Need, within: Area | None, then: Then) -> list[Decision] | None:
        """Meet a need in one of its areas, and then do what comes after it."""
        for area in self.areas.of(need, within):
            found = self._inside(need, area, then)
            if found is not None:
                return found
            if not self._work.spend():
                break
        return None

    def _inside(self, need: Need, area: Area | None, then: Then) -> list[Decision] | None:
        lacking = [part for part in need.parts if part.least]
        if not lacking:
            return self._bound([self._team(need, area)], need, area, then)
        for chosen in combinations(lacking, need.parts_needed):
            teams = [self._team(leaf, area) for part in chosen if _is_loose(part) for leaf in _flat(part)]
            tied = sorted((part for part in chosen if not _is_loose(part)), key=lambda part: -part.least)
            found = self._tied(tied, [team for team in teams if team.count], need, area, then)
            if found is not None:
                return found
        return None

    def _tied(
        self, tied: Sequence[Need], teams: list[Team], need: Need, area: Area | None, then: Then
    ) -> list[Decision] | None:
        """Place the parts that are bound to labels one after the other, then the others together."""
        if tied:
            return self._somewhere(tied[0], area, lambda: self._tied(tied[1:], teams, need, area, then))
        own = self._team(need, area)
        return self._bound([*teams, own] if own.count else teams, need, area, then)

    def _team(self, need: Need, area: Area | None) -> Team:
        return Team(self.areas.kinds(need.waiting), min(need.count, len(need.waiting)), area)

    def _bound(self, teams: list[Team], need: Need, area: Area | None, then: Then) -> list[Decision] | None:
        """Place teams, and what the whole lacks beyond its parts; undo it when what comes after fails."""
        cluster = self.engine.cluster
        mark = cluster.mark()
        decisions = self._place_teams(teams)
        extra = self._extra(need, area) if decisions is not None else None
        rest = then() if extra is not None else None
        if decisions is None or extra is None or rest is None:
            cluster.rollback(mark)
            return None
        cluster.commit(mark)
        return decisions + extra + rest

    def _extra(self, need: Need, area: Area | None) -> list[Decision] | None:
        """Place further pods of any part until the whole reaches its minimum."""
        missing = need.count - len(need.waiting)
        if missing <= 0:
            return []
        decisions = []
        for part in need.parts:
            for leaf in _flat(part):
                for row in leaf.waiting:
                    if missing and self.engine.cluster.pods.node_names[row] is None:
                        decision = self.place_one(row, [need, part, leaf], area)
                        if decision.node is not None:
                            decisions.append(decision)
                            missing -= 1
        return None if missing else decisions

    def place_one(self, row: int, needs: Sequence[Need], within: Area | None = None) -> Decision:
        """Bind one more pod of a gang, near to those of its members that run by now."""
        area, pods = within, self.engine.cluster.pods
        for need in needs:
            key = need.topology.required
            if key is not None:
                running = [r for r in (*need.running, *_all_waiting(need)) if pods.node[r] >= 0]
                values = self.areas.values_of(running, key)
                if len(values) == 1:
                    area = self.areas.domain(key, values.pop(), area)
        return self.engine.place([pods.keys[row]], area)[0]

    # Teams ------------------------------------------------------------------------------------------------------------

    def _place_teams(self, teams: Sequence[Team]) -> list[Decision] | None:
        """Place as many pods of each team as it needs; the caller undoes what is left of a failure."""
        if not teams:
            return []
        if len(teams) == 1 and len(teams[0].kinds) == 1:
            team = teams[0]
            pods = [self.engine.cluster.pods.keys[row] for row in team.kinds[0].rows[: team.count]]
            self._work.spend(len(pods))
            mark = self.engine.cluster.mark()
            decisions = self.engine.place(pods, team.area)
            if all(d.node is not None for d in decisions):
                self.engine.cluster.commit(mark)
                return decisions
            self.engine.cluster.rollback(mark)
            if self._is_plain(teams):
                return None
        else:
            decided = self._in_some_order(teams)
            if decided is not None:
                return decided
        return self._packed(teams) if self._is_plain(teams) else self._searched(teams)

    def _is_plain(self, teams: Sequence[Team]) -> bool:
        """Say whether no pod of the teams looks at other pods, so that room and nodes are all that counts."""
        return all(
            not any(kind.asked.concerned) and not kind.asked.spec.ports and not self.engine.cluster.held_on
            for team in teams
            for kind in team.kinds
        )

    def _in_some_order(self, teams: Sequence[Team]) -> list[Decision] | None:
        """Place pod by pod: as they come, the largest first, those with the fewest nodes first."""
        cluster = self.engine.cluster
        tried = set()
        for order in (_as_they_come, self._largest_first, self._rarest_first):
            kinds = order([(team, kind) for team in teams for kind in team.kinds])
            key = tuple(id(kind) for _, kind in kinds)
            if key in tried:
                continue
            tried.add(key)
            mark = cluster.mark()
            decisions = self._one_order(kinds)
            if decisions is not None:
                cluster.commit(mark)
                return decisions
            cluster.rollback(mark)
        return None

    def _one_order(self, kinds: Sequence[tuple[Team, Kind]]) -> list[Decision] | None:
        left = {id(team): team.count for team, _ in kinds}
        spare = {id(team): len(team.rows) - team.count for team, _ in kinds}
        decisions = []
        keys = self.engine.cluster.pods.keys
        for team, kind in kinds:
            todo = [keys[row] for row in kind.rows[: left[id(team)]]]
            self._work.spend(len(todo))
            placed = [d for d in self.engine.place(todo, team.area) if d.node is not None]
            decisions += placed
            left[id(team)] -= len(placed)
            spare[id(team)] -= len(kind.rows) - len(placed)
            if left[id(team)] and spare[id(team)] < 0:
                return None
        return decisions if not any(left.values()) else None

    def _largest_first(self, kinds: Sequence[tuple[Team, Kind]]) -> list[tuple[Team, Kind]]:
        cluster = self.engine.cluster
        most = np.maximum(cluster.nodes.alloc[:, : cluster.nodes.length].max(axis=1), 1)

        def size(kind: Kind) -> float:
            return max((a / most[p] for p, a in self.engine.judge.room_wanted(kind.asked)), default=0.0)

        return sorted(kinds, key=lambda pair: -size(pair[1]))

    def _rarest_first(self, kinds: Sequence[tuple[Team, Kind]]) -> list[tuple[Team, Kind]]:
        def room(team: Team, kind: Kind) -> int:
            copies = self.capacity.copies(kind.asked)
            return int((copies if team.area is None else copies[team.area.rows]).sum())

        return sorted(kinds, key=lambda pair: room(*pair))

    # Search -----------------------------------------------------------------------------------------------------------

    def _packed(self, teams: Sequence[Team]) -> list[Decision] | None:
        """Search by arithmetic, for pods that do not look at each other."""
        judge, cluster = self.engine.judge, self.engine.cluster
        wants = [dict(judge.room_wanted(kind.asked)) for team in teams for kind in team.kinds]
        places = sorted({place for want in wants for place in want})
        pools, rows = [], set()
        for team in teams:
            items = []
            for kind in team.kinds:
                copies = self.capacity.copies(kind.asked)
                inside = np.flatnonzero(copies) if team.area is None else team.area.rows[copies[team.area.rows] > 0]
                want = dict(judge.room_wanted(kind.asked))
                amounts = tuple(want.get(place, 0) for place in places)
                items.append(Item(len(kind.rows), amounts, tuple(inside.tolist())))
                rows.update(inside.tolist())
            pools.append(Pool(tuple(items), team.count))
        if len(rows) > _PACK_ROWS:
            return None
        free = {row: (cluster.nodes.alloc[places, row] - cluster.nodes.used[places, row]).tolist() for row in rows}
        found = pack(pools, free, self._work)
        if found is None:
            return None
        decisions = []
        for team, items_placed in zip(teams, found, strict=True):
            for kind, placed in zip(team.kinds, items_placed, strict=True):
                for row, node in zip(kind.rows, placed, strict=False):
                    decisions.append(self._bind(row, node))
        return decisions

    def _bind(self, row: int, node: int) -> Decision:
        cluster = self.engine.cluster
        key, name = cluster.pods.keys[row], cluster.nodes.names[node]
        cluster.apply(Bind(key, name))
        return Decision(key, name, nodes=cluster.nodes.count)

    def _searched(self, teams: Sequence[Team]) -> list[Decision] | None:
        """Search by asking the engine, for pods that look at each other: then the order matters too."""
        search = _Search(self.engine, teams, self._work)
        return search.decisions() if search.run() else None

    def _jointly(self, need: Need, within: Area | None) -> list[Decision] | None:
        """Choose an area for every part first, then place all parts together."""
        cluster = self.engine.cluster
        for teams in self._choices(need, within):
            if not self._work.spend():
                return None
            mark = cluster.mark()
            decisions = self._place_teams([team for team in teams if team.count])
            if decisions is not None:
                extra = self._extra(need, within)
                if extra is not None:
                    cluster.commit(mark)
                    return decisions + extra
            cluster.rollback(mark)
        return None

    def _choices(self, need: Need, within: Area | None) -> Iterator[list[Team]]:
        lacking = [part for part in need.parts if part.least]
        for area in self.areas.of(need, within):
            own = self._team(need, area)
            for chosen in combinations(lacking, need.parts_needed):
                for teams in self._product(chosen, area):
                    yield [own, *teams]

    def _product(self, parts: Sequence[Need], area: Area | None) -> Iterator[list[Team]]:
        if not parts:
            yield []
            return
        for first in self._choices(parts[0], area):
            for rest in self._product(parts[1:], area):
                yield first + rest


class _Search:
    """Trying every pod on every node that the engine allows, in every order of kinds; no state is tried twice."""

    def __init__(self, engine: Engine, teams: Sequence[Team], work: Work) -> None:
        self._engine, self._work = engine, work
        self._kinds = [(t, kind) for t, team in enumerate(teams) for kind in team.kinds]
        self._teams = teams
        self._left = [team.count for team in teams]
        self._taken = [0] * len(self._kinds)
        self._placed: list[tuple[int, Decision]] = []
        self._seen: set[tuple[tuple[int, str], ...]] = set()

    def decisions(self) -> list[Decision]:
        """Give what was found."""
        return [decision for _, decision in self._placed]

    def run(self) -> bool:
        """Place one more pod, and all that are left after it."""
        if not any(self._left):
            return True
        state = tuple(sorted((number, d.node or "") for number, d in self._placed))
        if state in self._seen:
            return False
        self._seen.add(state)
        for number, (team, kind) in enumerate(self._kinds):
            if self._left[team] and self._taken[number] < len(kind.rows) and self._kind(number, team, kind):
                return True
            if self._work.left <= 0:
                return False
        return False

    def _kind(self, number: int, team: int, kind: Kind) -> bool:
        engine, cluster = self._engine, self._engine.cluster
        key = cluster.pods.keys[kind.rows[self._taken[number]]]
        for node in self._nodes(kind.rows[self._taken[number]], self._teams[team].area):
            if not self._work.spend(_ASK):
                return False
            mask = np.zeros(cluster.nodes.size, dtype=bool)
            mask[node] = True
            mark = cluster.mark()
            decision = engine.place([key], Area(mask))[0]
            if decision.node is not None:
                self._left[team] -= 1
                self._taken[number] += 1
                self._placed.append((number, decision))
                if self.run():
                    cluster.commit(mark)
                    return True
                self._placed.pop()
                self._taken[number] -= 1
                self._left[team] += 1
            cluster.rollback(mark)
        return False

    def _nodes(self, row: int, area: Area | None) -> list[int]:
        """Give the nodes that could take a pod now."""
        asked = self._engine.judge.ask(row, area)
        self._work.spend(_ASK)
        if self._engine.stopped(asked) is not None:
            return []
        filtered = self._engine.judge.filter(asked)
        if isinstance(filtered, Reason):
            return []
        return np.flatnonzero(filtered.feasible).tolist()


def _as_they_come(kinds: list[tuple[Team, Kind]]) -> list[tuple[Team, Kind]]:
    return kinds


def _is_loose(part: Need) -> bool:
    """Say whether a part, with all parts of it, is bound to no label and needs all of its parts."""
    topology = part.topology
    whole = part.parts_needed == sum(1 for each in part.parts if each.least)
    return topology.required is None and not topology.preferred and whole and all(map(_is_loose, part.parts))


def _flat(need: Need) -> Iterator[Need]:
    """Give a need and those of its parts, each with its own pods."""
    if need.waiting:
        yield need
    for part in need.parts:
        yield from _flat(part)


def _all_waiting(need: Need) -> Iterator[int]:
    for leaf in _flat(need):
        yield from leaf.waiting


def _waiting(need: Need) -> int:
    return sum(1 for _ in _all_waiting(need))


def _nothing_more() -> list[Decision]:
    return []
