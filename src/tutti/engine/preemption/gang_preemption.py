"""Whole-gang preemption: whom to evict so that a gang fits entirely.

Contract: a what-if; the cluster is as before afterwards. Victims are given only if the gang then fits whole, and are
the least loss (`victims.py`) among all sets while there are few units; among many, among those made of a shortlist,
which proposals by arithmetic have filled. A set is never larger than it needs to be. A work budget limits the search.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec
import numpy as np

from tutti.cluster.columns import Ints
from tutti.cluster.edits import Unbind
from tutti.cluster.trial import Trial
from tutti.cluster.work.meter import GANG_POD, VICTIM
from tutti.cluster.work.work_budget import WorkBudget
from tutti.engine.gangs.gang_state import Gangs, Need
from tutti.engine.gangs.placer import GangPlacer
from tutti.engine.placement.engine import Decision
from tutti.engine.preemption.disruption_budgets import Budgets
from tutti.engine.preemption.victim_proposals import VictimProposals
from tutti.engine.preemption.victim_subsets import ranked_sets
from tutti.engine.preemption.victims import EvictionUnit, EvictionUnits, Loss
from tutti.kube.times import micros

_EXACT = 14
"""Units of which all sets are tried."""
_SHORT = 8
"""Units of a shortlist."""
_FEW = 4
"""Units of which all sets are tried without much ado."""
_TRIES = 600
"""Sets that are tried in earnest for one gang."""
_SET_SEARCH = 4_000 * GANG_POD
"""Work for the search with one set evicted, and for the search for another place of one moved unit."""
_ALL_SETS = 200_000 * GANG_POD
"""Work for all sets together; other places of moved units are not included."""


class Evictions(msgspec.Struct, frozen=True):
    """Who has to go, and where the gang goes then."""

    victims: tuple[str, ...]
    """The pods to evict, the most important first."""
    decisions: tuple[Decision, ...]
    violations: int = 0
    """How many of the evictions break a disruption budget."""
    gangs_broken: int = 0
    moves: tuple[Decision, ...] = ()
    """Where the victims go, if they are moved and not killed."""
    leaving: tuple[str, ...] = ()
    """Pods that are terminating already and whose room is needed."""


class GangPreemption:
    """The search for one gang."""

    def __init__(
        self,
        placer: GangPlacer,
        gangs: Gangs,
        need: Need,
        *,
        priority: int,
        gang: str | None = None,
        move: bool = False,
        stuck_before: int | None = None,
        budget: WorkBudget | None = None,
    ) -> None:
        """Search for a need of a gang, or of a pod on its own.

        Pods that began to terminate before `stuck_before` are not waited for. The search spends from the budget and
        ends with it, or earlier, when its own limit is reached.
        """
        self._placer, self._gangs, self._need = placer, gangs, need
        self._whom, self._stuck_before = gang or "", stuck_before
        self._cluster = placer.engine.cluster
        self._priority, self._move = priority, move
        self._tries, self._remaining = _TRIES, _ALL_SETS
        self._budget = WorkBudget() if budget is None else budget
        self.weaker = 0
        """How many units it could have evicted, had that been enough."""
        self._leaving: dict[str, str | None] = {}
        """Pods that are terminating, and where they are."""
        self._failed: list[frozenset[int]] = []
        self._after: dict[frozenset[int], tuple[tuple[Decision, ...], tuple[Decision, ...]]] = {}
        """Where the gang goes, and whoever is moved, without each set of pods that is enough."""

    def leaving(self) -> Evictions | None:
        """Say whether pods that are leaving make room enough: then nobody need be a victim."""
        with Trial(self._cluster):
            leaving = self._without_leaving()
            if not leaving or not self._fits(()):
                return None
            found = self._after[frozenset()][0]
            return Evictions((), found, leaving=self._in_the_way(leaving, found) or leaving)

    def run(self) -> Evictions | None:
        """Find the best victims, the room of leaving pods counted; whoever is moved needs a place that is free now."""
        cluster, whom = self._cluster, self._whom
        with Trial(cluster):
            leaving = () if self._move else self._without_leaving()
            victims = EvictionUnits(cluster, self._gangs, Budgets(cluster), self._priority, equals=self._move, but=whom)
            self.weaker = len(victims)
            best = self._best(victims)
            if best is None:
                return None
            found = self._evictions(victims, best, leaving)
        # Those who are leaving need not be waited for if there is room beside them.
        if found.leaving and self._fits(best):
            return self._evictions(victims, best, ())
        return found

    def _evictions(self, victims: EvictionUnits, best: Sequence[EvictionUnit], leaving: tuple[str, ...]) -> Evictions:
        pods = self._cluster.pods
        decisions, moves = self._after[_pods_of(best)]
        rows = victims.rows(best)
        if self._move:
            # Of a gang that is moved, some pods may stay where they are.
            moves = tuple(m for m in moves if m.node != pods.node_names[pods.row_of[m.pod]])
            moved = {move.pod for move in moves}
            rows = [row for row in rows if pods.keys[row] in moved]
        names = tuple(pods.keys[row] for row in rows)
        broken = 0 if self._move else victims.broken(best)
        leaving = self._in_the_way(leaving, decisions)
        return Evictions(names, decisions, victims.violations(best), broken, moves, leaving)

    def _in_the_way(self, leaving: tuple[str, ...], decisions: Sequence[Decision]) -> tuple[str, ...]:
        """Give those of the leaving pods that are still on the nodes to which the gang goes."""
        nodes = {decision.node for decision in decisions}
        return tuple(key for key in leaving if self._leaving[key] in nodes)

    def _without_leaving(self) -> tuple[str, ...]:
        """Take the pods away that are terminating: their room comes by itself."""
        pods, length = self._cluster.pods, self._cluster.pods.length
        rows = np.flatnonzero(pods.terminating[:length] & (pods.node[:length] >= 0)).tolist()
        if self._stuck_before is not None:
            rows = [row for row in rows if self._began(row) >= self._stuck_before]
        self._leaving = {pods.keys[row]: pods.node_names[row] for row in rows}
        for key in self._leaving:
            self._cluster.apply(Unbind(key))
        return tuple(sorted(self._leaving))

    def _began(self, row: int) -> int:
        """Say when a pod began to terminate."""
        pod = self._cluster.pods.objects[row]
        return micros(pod.metadata.deletion_timestamp or "") if pod is not None else 0

    # Trying -----------------------------------------------------------------------------------------------------------

    def _fits(self, units: Iterable[EvictionUnit]) -> bool:
        """Say whether the gang fits without some units; what it looks like then is kept."""
        cluster = self._cluster
        units = tuple(units)
        with Trial(cluster):
            for unit in units:
                for row in unit.rows:
                    cluster.apply(Unbind(cluster.pods.keys[row]))
            budget = self._budget.limited_to(min(_SET_SEARCH, max(self._remaining, 0)))
            found = self._placer.place(self._need, budget)
            evicted = VICTIM * sum(len(unit.rows) for unit in units)
            self._remaining -= _SET_SEARCH - budget.remaining + evicted
            self._budget.spend(evicted)
            if found is None:
                return False
            moves = self._moved(units) if self._move else []
            if moves is None:
                return False
            self._after[_pods_of(units)] = tuple(found), tuple(moves)
            return True

    def _is_exhausted(self) -> bool:
        return self._remaining <= 0 or self._budget.is_exhausted()

    def _moved(self, units: Sequence[EvictionUnit]) -> list[Decision] | None:
        """Give all units another place, each on another node than before, or none."""
        moves: list[Decision] = []
        for unit in units:
            if unit.gang is None:
                again = Need("", 1, unit.rows, ())
            else:
                again = self._gangs.standing(unit.gang, unit.rows).everyone()
            found = self._placer.place(again, self._budget.limited_to(_SET_SEARCH))
            if found is None:
                return None
            moves += found
        return moves

    def _tried(self, victims: EvictionUnits, units: Sequence[EvictionUnit]) -> bool:
        """Try a set; sets within one that was not enough are not tried."""
        ids = frozenset(map(id, units))
        if any(ids <= failed for failed in self._failed) or not victims.is_allowed(units):
            return False
        self._tries -= 1
        if self._fits(units):
            return True
        if not self._move:
            self._failed.append(ids)
        return False

    # Choosing ---------------------------------------------------------------------------------------------------------

    def _best(self, victims: EvictionUnits) -> tuple[EvictionUnit, ...] | None:
        if not len(victims):
            return None
        proposals = VictimProposals(self._placer, self._need, victims)
        if proposals.hopeless():
            return None
        useful = proposals.useful() if not self._move else victims.units
        if len(useful) <= _EXACT:
            least = self._least_of(victims, useful, proposals)
            if least is not None or self._tries > 0:
                return least
        best: tuple[Loss, tuple[EvictionUnit, ...]] | None = None
        for proposed in proposals.proposed():
            found = self._improved(victims, proposed, proposals)
            if found is not None:
                loss = victims.loss(found)
                if best is None or loss < best[0]:
                    best = loss, found
            if self._tries <= 0 or self._is_exhausted():
                break
        if best is None:
            # No guess was right. Evicting everybody and sparing whom it can spare finds a way if there is one.
            self._tries = _TRIES
            return self._improved(victims, _whole(useful), proposals)
        return best[1]

    def _improved(
        self, victims: EvictionUnits, shortlist: Sequence[EvictionUnit], proposals: VictimProposals
    ) -> tuple[EvictionUnit, ...] | None:
        """Find the best set among a shortlist; where that is too long, one from which nobody can be spared."""
        if len(shortlist) <= _SHORT:
            return self._least_of(victims, shortlist, proposals)
        if not self._tried(victims, shortlist):
            return None
        # Whoever matters most is spared first; or whoever is in another place, where places matter.
        in_turn = sorted(shortlist, key=lambda unit: victims.loss((unit,)), reverse=True)
        if not proposals.plain:
            in_turn = self._by_place(in_turn)
        return self._spared(victims, in_turn, list(shortlist), proposals)

    def _by_place(self, units: Sequence[EvictionUnit]) -> list[EvictionUnit]:
        """Sort units by the domains in which they may keep others away, so that those of one stand together."""
        cluster, nodes = self._cluster, self._cluster.nodes
        rows = [*self._need.everybody, *(unit.rows[0] for unit in units)]
        specs = {int(cluster.pods.spec[row]): row for row in rows}.values()
        keys = sorted({term.topology_key for row in specs for term in cluster.spec_of(row).anti_affinity})
        columns = [nodes.domains(key).indices for key in keys]

        def place(unit: EvictionUnit) -> tuple[int, ...]:
            row = int(cluster.pods.node[min(unit.rows, key=cluster.pods.keys.__getitem__)])
            return *(int(column[row]) for column in columns), int(nodes.rank[row])

        return sorted(units, key=place)

    def _spared(
        self,
        victims: EvictionUnits,
        in_turn: Sequence[EvictionUnit],
        kept: list[EvictionUnit],
        proposals: VictimProposals,
    ) -> tuple[EvictionUnit, ...] | None:
        """Spare as many units as possible, many at once if it can; None when the budget is exhausted before that."""
        todo = [list(in_turn)]
        while todo:
            some = todo.pop()
            if self._tries <= 0 or self._is_exhausted():
                return None
            spared = set(map(id, some))
            fewer = [unit for unit in kept if id(unit) not in spared]
            if fewer and proposals.enough(fewer) and self._tried(victims, fewer):
                kept = fewer
            elif len(some) > 1:
                todo += [some[len(some) // 2 :], some[: len(some) // 2]]
        return tuple(kept)

    def _least_of(
        self, victims: EvictionUnits, units: Sequence[EvictionUnit], proposals: VictimProposals
    ) -> tuple[EvictionUnit, ...] | None:
        """Try all sets of units, the least loss first."""
        units = sorted(units, key=victims.names)
        if self._move:
            masks = np.arange(1, 1 << len(units))
        else:
            masks = proposals.enough_sets(units)
            if proposals.plain:
                masks = self._with_the_needed(victims, units, masks)
        for chosen in ranked_sets(victims, units, masks, fewest=self._move):
            if self._tries <= 0 or self._is_exhausted():
                return None
            if self._tried(victims, chosen):
                return chosen
        return None

    def _with_the_needed(self, victims: EvictionUnits, units: Sequence[EvictionUnit], masks: Ints) -> Ints:
        """Leave out the sets that lack a pod without whose eviction nothing fits; all of them, if nothing does.

        Only for gangs that look at nobody else: for those more evictions never do harm.
        """
        if len(units) <= _FEW:
            return masks
        every = {row for unit in units for row in unit.rows}
        if not self._fits([EvictionUnit(tuple(sorted(every)), 0)]):
            return masks[:0]
        if len(units) <= _SHORT:
            return masks
        for row in sorted(every):
            holding = sum(1 << bit for bit, unit in enumerate(units) if row in unit.rows)
            if (masks & holding == 0).any() and not self._fits([EvictionUnit(tuple(sorted(every - {row})), 0)]):
                masks = masks[masks & holding != 0]
        return masks


def _whole(units: Iterable[EvictionUnit]) -> list[EvictionUnit]:
    """Leave out the single members of gangs that can go whole."""
    units = list(units)
    gangs = {unit.gang for unit in units if unit.whole and unit.gang is not None}
    return [unit for unit in units if unit.whole or unit.gang not in gangs]


def _pods_of(units: Iterable[EvictionUnit]) -> frozenset[int]:
    return frozenset(row for unit in units for row in unit.rows)
