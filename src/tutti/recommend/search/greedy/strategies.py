"""The greedy strategies: node by node, the best one first, in class space.

Contract: the plan of `tests/support/literal_greedy.py`, found without trials. What a node of each offering would take
is counted for all offerings at once (`node_fill`), and only the winner joins the planning cluster, where its pods are
bound. The engine places pods with volumes and has the last word: where it places fewer pods than were counted, the
count is corrected and the winner chosen anew. A winner is bought again while it provably stays the winner: while every
class has at least as many pods left as any offering would take, and no pending pod has a rule about the placed pods.
Where no pending pod has rules about other pods, the planning cluster is not touched. It is left as it was.
"""

from __future__ import annotations

import numpy as np

from tutti.cluster.columns import Bools, Ints
from tutti.cluster.edits import Bind
from tutti.cluster.trial import Trial
from tutti.cluster.work.work_budget import WorkBudget
from tutti.market.planning_cluster import PlanningCluster
from tutti.recommend.problem.problem import Problem
from tutti.recommend.problem.scores import Scorer
from tutti.recommend.records.draft import Draft
from tutti.recommend.records.request import RecommendOptions, Strategy
from tutti.recommend.search.greedy.buying import BuyingTask, GreedyBuyer
from tutti.recommend.search.greedy.gang_buying import buy_whole
from tutti.recommend.search.greedy.node_fill import NodeFill
from tutti.recommend.search.greedy.pod_rule_limits import reaches_of
from tutti.recommend.search.greedy.rule_domains import RuleDomains


def greedy(
    planning: PlanningCluster,
    problem: Problem,
    options: RecommendOptions,
    strategy: Strategy = Strategy.LEAST_COST,
    *,
    eligible: Bools,
    budget: WorkBudget | None = None,
) -> Draft:
    """Buy node by node; gangs whole or not at all."""
    scorer = Scorer(problem, strategy, options.weights)
    return buy_whole(planning, problem, scorer, _run, eligible=eligible, budget=budget)


def _run(task: BuyingTask) -> Draft:
    with Trial(task.planning.cluster):
        buying = GreedyBuyer(task)
        buying.settle()
        if buying.left.any():
            _Greedy(buying).run()
        return buying.draft()


class _Greedy:
    """One run, after everything that fits on the nodes that are there is placed."""

    def __init__(self, buying: GreedyBuyer) -> None:
        self._buying, self._task = buying, buying.task
        self._cluster = self._task.planning.cluster
        ground = RuleDomains(self._task.planning, self._task.problem)
        self._reaches = reaches_of(ground)
        self._order = np.array(self._task.scorer.order, dtype=np.intp)
        self._looking = np.array(list(self._reaches), dtype=np.intp)
        self._watches = np.array([each.watches for each in self._reaches.values()], dtype=bool)
        """Looking class x class."""
        self._by_engine: Bools = np.array([bool(incoming.spec.volumes) for incoming in ground.incoming], dtype=bool)
        """Classes whose pods the engine places."""
        ports: Bools = np.array([bool(incoming.spec.ports) for incoming in ground.incoming], dtype=bool)
        self._fill = NodeFill(self._task, self._reaches, ports)
        self._in_planning = bool(buying.left[self._looking].any() or buying.left[self._by_engine].any())

    def run(self) -> None:
        """Buy until nothing waits, nothing that may be bought takes a pod, or time is up."""
        buying, fill = self._buying, self._fill
        while buying.left.any() and not self._task.is_exhausted():
            open_rows = buying.open_rows()
            fill.refresh(buying.left, open_rows)
            best = self._task.scorer.best(fill.taken, open_rows)
            if best is None:
                break
            if self._in_planning:
                self._buy(best)
            else:
                self._buy_plain(best)

    # Outside the picture ----------------------------------------------------------------------------------------------

    def _buy_plain(self, offering: int) -> None:
        """Buy an offering as often as it stays the winner, by numbers alone."""
        buying = self._buying
        taken = self._fill.taken[offering]
        times = self._times(offering, taken)
        classes = self._taken(taken)
        slices = [(self._task.pods[number], buying.at[number], count) for number, count in classes]
        for time in range(times):
            pods = [pod for mine, at, count in slices for pod in mine[at + time * count : at + (time + 1) * count]]
            buying.bought.append((offering, pods))
        for number, count in classes:
            buying.at[number] += times * count
        buying.left -= times * taken
        buying.count(offering, times)

    def _times(self, offering: int, taken: Ints) -> int:
        """How often an offering is bought before any row could change."""
        mine = taken > 0
        highest = self._fill.taken.max(axis=0)[mine]
        times = 1 + int(((self._buying.left[mine] - highest) // taken[mine]).min())
        return max(self._buying.times(offering, times), 1)

    # In the picture ---------------------------------------------------------------------------------------------------

    def _buy(self, offering: int) -> None:
        """Buy a node of an offering and put it into the picture with its pods; then see who fits elsewhere."""
        fill, taken = self._fill, self._fill.taken[offering].copy()
        touched = self._watching(taken > 0)
        touched |= {n for n, reach in self._reaches.items() if self._buying.left[n] and reach.is_touched_by(offering)}
        for _ in range(1 if touched or fill.caps else self._times(offering, taken)):
            wrong = self._put(offering, taken)
            if wrong is not None:
                number, fits = wrong
                fill.caps[offering, number] = fits
                fill.stale[offering] = True
                return
        for row, _ in fill.caps:
            fill.stale[row] = True
        fill.caps.clear()
        touched |= self._settle(touched)
        for number in touched:
            if self._buying.left[number]:
                fill.stale |= self._reaches[number].read()

    def _put(self, offering: int, taken: Ints) -> tuple[int, int] | None:
        """Let a node join and place its pods; undo it and give class and number where fewer fit than were counted."""
        buying, cluster = self._buying, self._cluster
        placed: list[tuple[int, list[tuple[str, str]]]] = []
        with Trial(cluster) as trial:
            name, area = buying.join(offering)
            for number, count in self._taken(taken):
                if self._by_engine[number]:
                    decisions = buying.place_within(number, area, count)
                    if len(decisions) < count:
                        return number, len(decisions)
                    placed.append((number, [(each.pod, name) for each in decisions]))
                else:
                    at = buying.at[number]
                    pods = self._task.pods[number][at : at + count]
                    for pod in pods:
                        cluster.apply(Bind(pod, name))
                    placed.append((number, [(pod, name) for pod in pods]))
            trial.keep()
        buying.keep(offering, name)
        for number, pairs in placed:
            buying.note(number, pairs)
        return None

    def _taken(self, taken: Ints) -> list[tuple[int, int]]:
        """The classes of which pods are taken, in their order, with how many."""
        numbers = self._order[taken[self._order] > 0]
        return list(zip(numbers.tolist(), taken[numbers].tolist(), strict=True))

    def _settle(self, touched: set[int]) -> set[int]:
        """Place pods that now fit on some node; give the classes for which that matters."""
        more: set[int] = set()
        todo = {number for number in touched if self._reaches[number].opens}
        while todo:
            for number in self._task.scorer.order:
                if number not in todo:
                    continue
                todo.discard(number)
                if self._buying.somewhere(number):
                    watching = self._watching(np.arange(len(self._buying.left)) == number)
                    more |= watching
                    todo |= {each for each in watching if each != number and self._reaches[each].opens}
        return more

    def _watching(self, placed: Bools) -> set[int]:
        """The classes with pods left that look at some that were placed."""
        if not len(self._looking):
            return set()
        watching = self._looking[(self._watches & placed).any(axis=1)]
        return set(watching[self._buying.left[watching] > 0].tolist())
