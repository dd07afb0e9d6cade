"""Gang preemption: which pods to evict so that a whole gang fits.

Contract: a dry run; the cluster is unchanged afterwards. Victims are returned only if the gang then fits whole. With
few eviction units, the result is the set with the smallest loss (`eviction_units`) of all sets; with many, the best set
within shortlists that arithmetic proposes (`victim_proposals`). No victim of the result can stay. A work budget limits
the search.
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
from tutti.engine.gangs.cluster_gangs import Gangs
from tutti.engine.gangs.gang_state import Need
from tutti.engine.gangs.placer import GangPlacer
from tutti.engine.placement.engine import Decision
from tutti.engine.plugins.base import Area
from tutti.engine.preemption.disruption_budgets import Budgets
from tutti.engine.preemption.eviction_units import EvictionUnit, EvictionUnits, Loss
from tutti.engine.preemption.stuck_pods import is_stuck
from tutti.engine.preemption.victim_proposals import VictimProposals
from tutti.engine.preemption.victim_rules import VictimRules
from tutti.engine.preemption.victim_subsets import ranked_sets

_MAX_EXACT_UNITS = 14
"""Up to this many units, all sets are tried."""
_MAX_SHORTLIST = 8
"""Up to this many units of a shortlist, all sets are tried."""
_MAX_UNFILTERED_UNITS = 4
"""Up to this many units, sets are tried without first removing those that cannot suffice."""
_MAX_TRIES = 600
"""Largest number of sets that are tried for one gang."""
_SET_BUDGET = 4_000 * GANG_POD
"""Work budget for placing the gang with one set evicted, and for placing one moved unit again."""
_ALL_SETS_BUDGET = 200_000 * GANG_POD
"""Work budget for all sets together; placing moved units again is not included."""


class Evictions(msgspec.Struct, frozen=True):
    """The victims for a gang, and where the gang's pods go then."""

    victims: tuple[str, ...]
    """The pods to evict, the most important first."""
    decisions: tuple[Decision, ...]
    violations: int = 0
    """How many of the evictions violate a disruption budget."""
    gangs_broken: int = 0
    moves: tuple[Decision, ...] = ()
    """Where the victims go, if they are moved to other nodes instead of evicted."""
    leaving: tuple[str, ...] = ()
    """Terminating pods whose room the gang needs."""


class GangPreemption:
    """The search for the victims of one gang."""

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
        area: Area | None = None,
        rules: VictimRules | None = None,
    ) -> None:
        """Search victims for a need of a gang, or of a pod without a gang.

        With `move`, victims move to other nodes. Pods that should have left before `stuck_before` are not waited for.
        The search spends from the budget, and ends when the budget or its own limit is exhausted. With an area, the
        need is placed there only.
        """
        self._placer, self._gangs, self._need, self._area = placer, gangs, need, area
        self._preemptor, self._stuck_before, self._rules = gang or "", stuck_before, rules or VictimRules()
        self._cluster = placer.engine.cluster
        self._priority, self._move = priority, move
        self._tries_left, self._work_left = _MAX_TRIES, _ALL_SETS_BUDGET
        self._budget = WorkBudget() if budget is None else budget
        self.candidate_count = 0
        """How many units could be evicted; set by `run`."""
        self._terminating: dict[str, str | None] = {}
        """The nodes of terminating pods, by pod."""
        self._failed: list[frozenset[int]] = []
        self._placements: dict[frozenset[int], tuple[tuple[Decision, ...], tuple[Decision, ...]]] = {}
        """By evicted pods: where the gang goes, and where moved pods go, for each set that suffices."""

    def run_without_victims(self) -> Evictions | None:
        """Return a placement without victims if terminating pods make enough room; otherwise None."""
        with Trial(self._cluster):
            terminating = self._unbind_terminating()
            if not terminating or not self._fits(()):
                return None
            decisions = self._placements[frozenset()][0]
            return Evictions(
                (), decisions, leaving=self._terminating_on_nodes_of(terminating, decisions) or terminating
            )

    def run(self) -> Evictions | None:
        """Return the best victims and the resulting placement; None if no allowed set of victims suffices.

        The room of terminating pods counts as free, except with `move`: moved pods need room that is free now.
        """
        cluster, preemptor = self._cluster, self._preemptor
        with Trial(cluster):
            terminating = () if self._move else self._unbind_terminating()
            candidates = EvictionUnits(
                cluster,
                self._gangs,
                Budgets(cluster, hard=self._rules.hard_budgets),
                self._priority,
                include_equal=self._move,
                preemptor=preemptor,
                rules=self._rules,
                scheduler_name=self._placer.engine.profile.scheduler_name,
            )
            self.candidate_count = len(candidates)
            best = self._best(candidates)
            if best is None:
                return None
            evictions = self._evictions(candidates, best, terminating)
        # The gang need not wait for terminating pods if it fits beside them.
        if evictions.leaving and self._fits(best):
            return self._evictions(candidates, best, ())
        return evictions

    def _evictions(
        self, candidates: EvictionUnits, best: Sequence[EvictionUnit], terminating: tuple[str, ...]
    ) -> Evictions:
        """Return the result for the best set of units."""
        pods = self._cluster.pods
        decisions, moves = self._placements[_pods_of(best)]
        rows = candidates.rows(best)
        if self._move:
            # Some pods of a moved gang may stay on their nodes.
            moves = tuple(m for m in moves if m.node != pods.node_names[pods.row_of[m.pod]])
            moved = {move.pod for move in moves}
            rows = [row for row in rows if pods.keys[row] in moved]
        names = tuple(pods.keys[row] for row in rows)
        broken_gangs = 0 if self._move else candidates.broken_gangs(best)
        terminating = self._terminating_on_nodes_of(terminating, decisions)
        return Evictions(names, decisions, candidates.violations(best), broken_gangs, moves, terminating)

    def _terminating_on_nodes_of(self, terminating: tuple[str, ...], decisions: Sequence[Decision]) -> tuple[str, ...]:
        """Return the terminating pods on the nodes to which the gang goes."""
        nodes = {decision.node for decision in decisions}
        return tuple(key for key in terminating if self._terminating[key] in nodes)

    def _unbind_terminating(self) -> tuple[str, ...]:
        """Unbind the terminating pods, whose room becomes free without evictions; return their names."""
        pods, length = self._cluster.pods, self._cluster.pods.length
        rows = np.flatnonzero(pods.terminating[:length] & (pods.node[:length] >= 0)).tolist()
        rows = [row for row in rows if not is_stuck(self._cluster, row, self._stuck_before)]
        self._terminating = {pods.keys[row]: pods.node_names[row] for row in rows}
        for key in self._terminating:
            self._cluster.apply(Unbind(key, keep_volumes=True))
        return tuple(sorted(self._terminating))

    # Trying sets ------------------------------------------------------------------------------------------------------

    def _fits(self, units: Iterable[EvictionUnit]) -> bool:
        """Return whether the gang fits without some units; keep the placements in `_placements`."""
        cluster = self._cluster
        units = tuple(units)
        with Trial(cluster):
            for unit in units:
                for row in unit.rows:
                    cluster.apply(Unbind(cluster.pods.keys[row], keep_volumes=not self._move))
            budget = self._budget.limited_to(min(_SET_BUDGET, max(self._work_left, 0)))
            decisions = self._placer.place(self._need, budget, self._area)
            eviction_work = VICTIM * sum(len(unit.rows) for unit in units)
            self._work_left -= _SET_BUDGET - budget.remaining + eviction_work
            self._budget.spend(eviction_work)
            if decisions is None:
                return False
            moves = self._other_nodes(units) if self._move else []
            if moves is None:
                return False
            self._placements[_pods_of(units)] = tuple(decisions), tuple(moves)
            return True

    def _is_exhausted(self) -> bool:
        """Return whether the search must end."""
        return self._work_left <= 0 or self._budget.is_exhausted()

    def _other_nodes(self, units: Sequence[EvictionUnit]) -> list[Decision] | None:
        """Return other nodes for all units, or None if a unit fits nowhere."""
        moves: list[Decision] = []
        for unit in units:
            if unit.gang is None:
                need = Need("", 1, unit.rows, ())
            else:
                need = self._gangs.state(unit.gang, unit.rows).need_of_all_waiting()
            decisions = self._placer.place(need, self._budget.limited_to(_SET_BUDGET))
            if decisions is None:
                return None
            moves += decisions
        return moves

    def _suffices(self, candidates: EvictionUnits, units: Sequence[EvictionUnit]) -> bool:
        """Return whether a set suffices; subsets of an insufficient set are not tried."""
        ids = frozenset(map(id, units))
        if any(ids <= failed for failed in self._failed) or not candidates.is_allowed(units):
            return False
        self._tries_left -= 1
        if self._fits(units):
            return True
        if not self._move:
            self._failed.append(ids)
        return False

    # Choosing a set ---------------------------------------------------------------------------------------------------

    def _best(self, candidates: EvictionUnits) -> tuple[EvictionUnit, ...] | None:
        """Return the best set of units, or None."""
        if not len(candidates):
            return None
        proposals = VictimProposals(self._placer, self._need, candidates, self._area)
        if proposals.is_hopeless():
            return None
        useful_units = proposals.useful_units() if not self._move else candidates.units
        if len(useful_units) <= _MAX_EXACT_UNITS:
            best_set = self._best_of_all_sets(candidates, useful_units, proposals)
            if best_set is not None or self._tries_left > 0:
                return best_set
        best: tuple[Loss, tuple[EvictionUnit, ...]] | None = None
        for shortlist in proposals.shortlists():
            chosen = self._best_of_shortlist(candidates, shortlist, proposals)
            if chosen is not None:
                loss = candidates.loss(chosen)
                if best is None or loss < best[0]:
                    best = loss, chosen
            if self._tries_left <= 0 or self._is_exhausted():
                break
        if best is None:
            # No shortlist suffices. Evicting all units and then dropping unneeded ones finds a set if there is one.
            self._tries_left = _MAX_TRIES
            return self._best_of_shortlist(candidates, _without_single_members(useful_units), proposals)
        return best[1]

    def _best_of_shortlist(
        self, candidates: EvictionUnits, shortlist: Sequence[EvictionUnit], proposals: VictimProposals
    ) -> tuple[EvictionUnit, ...] | None:
        """Return the best set within a shortlist; of a long shortlist, a set from which no unit can be dropped."""
        if len(shortlist) <= _MAX_SHORTLIST:
            return self._best_of_all_sets(candidates, shortlist, proposals)
        if not self._suffices(candidates, shortlist):
            return None
        # Drop the most important units first; with rules between pods, try units of one domain together.
        drop_order = sorted(shortlist, key=lambda unit: candidates.loss((unit,)), reverse=True)
        if not proposals.has_no_pod_rules:
            drop_order = self._sorted_by_domain(drop_order)
        return self._without_unneeded(candidates, drop_order, list(shortlist), proposals)

    def _sorted_by_domain(self, units: Sequence[EvictionUnit]) -> list[EvictionUnit]:
        """Sort units by the domains of the anti-affinity terms involved, so that units of one domain are adjacent."""
        cluster, nodes = self._cluster, self._cluster.nodes
        rows = [*self._need.all_waiting, *(unit.rows[0] for unit in units)]
        specs = {int(cluster.pods.spec[row]): row for row in rows}.values()
        keys = sorted({term.topology_key for row in specs for term in cluster.spec_of(row).anti_affinity})
        columns = [nodes.domains(key).indices for key in keys]

        def position(unit: EvictionUnit) -> tuple[int, ...]:
            row = int(cluster.pods.node[min(unit.rows, key=cluster.pods.keys.__getitem__)])
            return *(int(column[row]) for column in columns), int(nodes.rank[row])

        return sorted(units, key=position)

    def _without_unneeded(
        self,
        candidates: EvictionUnits,
        drop_order: Sequence[EvictionUnit],
        kept: list[EvictionUnit],
        proposals: VictimProposals,
    ) -> tuple[EvictionUnit, ...] | None:
        """Return the set without unneeded units, dropping many at once if possible; None if the budget ends first."""
        pending = [list(drop_order)]
        while pending:
            dropped = pending.pop()
            if self._tries_left <= 0 or self._is_exhausted():
                return None
            dropped_ids = set(map(id, dropped))
            fewer = [unit for unit in kept if id(unit) not in dropped_ids]
            if fewer and proposals.may_suffice(fewer) and self._suffices(candidates, fewer):
                kept = fewer
            elif len(dropped) > 1:
                pending += [dropped[len(dropped) // 2 :], dropped[: len(dropped) // 2]]
        return tuple(kept)

    def _best_of_all_sets(
        self, candidates: EvictionUnits, units: Sequence[EvictionUnit], proposals: VictimProposals
    ) -> tuple[EvictionUnit, ...] | None:
        """Return the sufficient set of units with the smallest loss, trying all sets."""
        units = sorted(units, key=candidates.pod_names)
        if self._move:
            masks = np.arange(1, 1 << len(units))
        else:
            masks = proposals.possible_sets(units)
            if proposals.has_no_pod_rules:
                masks = self._sets_with_needed_pods(candidates, units, masks)
        for chosen in ranked_sets(candidates, units, masks, fewest=self._move):
            if self._tries_left <= 0 or self._is_exhausted():
                return None
            if self._suffices(candidates, chosen):
                return chosen
        return None

    def _sets_with_needed_pods(self, candidates: EvictionUnits, units: Sequence[EvictionUnit], masks: Ints) -> Ints:
        """Return the sets that contain every pod without whose eviction the gang does not fit; none if it never fits.

        Valid only for gangs without rules between pods, for which more evictions never do harm.
        """
        if len(units) <= _MAX_UNFILTERED_UNITS:
            return masks
        all_rows = {row for unit in units for row in unit.rows}
        if not self._fits([EvictionUnit(tuple(sorted(all_rows)), 0)]):
            return masks[:0]
        if len(units) <= _MAX_SHORTLIST:
            return masks
        for row in sorted(all_rows):
            units_with_row = sum(1 << bit for bit, unit in enumerate(units) if row in unit.rows)
            if (masks & units_with_row == 0).any() and not self._fits(
                [EvictionUnit(tuple(sorted(all_rows - {row})), 0)]
            ):
                masks = masks[masks & units_with_row != 0]
        return masks


def _without_single_members(units: Iterable[EvictionUnit]) -> list[EvictionUnit]:
    """Return the units without the single members of gangs that can be evicted whole."""
    units = list(units)
    gangs = {unit.gang for unit in units if unit.whole and unit.gang is not None}
    return [unit for unit in units if unit.whole or unit.gang not in gangs]


def _pods_of(units: Iterable[EvictionUnit]) -> frozenset[int]:
    """Return the pods of some units."""
    return frozenset(row for unit in units for row in unit.rows)
