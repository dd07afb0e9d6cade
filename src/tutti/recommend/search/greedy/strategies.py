"""The greedy strategies: buy node by node, the best offering first, with counts per class.

Contract: the same plan as `tests/support/literal_greedy.py`, without a trial of every offering. `pods_per_node` counts
what a node of each offering would take, for all offerings at once; only the winner joins the planning cluster, where
its pods are bound. The engine places pods with volumes and decides in the end: where it places fewer pods than counted,
the count is corrected and the winner is chosen again. A winner is bought repeatedly while it provably stays the winner:
while every class has at least as many pods left as any offering would take, and no pending pod has a rule about the
placed pods. When no pending pod has a rule about other pods, or a volume, the planning cluster is not touched. The
planning cluster is left as it was.
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
from tutti.recommend.search.greedy.buyer import BuyingTask, GreedyBuyer
from tutti.recommend.search.greedy.pod_rule_limits import read_rule_limits
from tutti.recommend.search.greedy.pods_per_node import PodsPerNode
from tutti.recommend.search.greedy.rule_domains import RuleDomains
from tutti.recommend.search.greedy.whole_gangs import buy_whole_gangs


def greedy_draft(
    planning: PlanningCluster,
    problem: Problem,
    options: RecommendOptions,
    strategy: Strategy = Strategy.LEAST_COST,
    *,
    eligible: Bools,
    budget: WorkBudget | None = None,
) -> Draft:
    """Buy node by node, for each gang whole or not at all; return the draft."""
    scorer = Scorer(problem, strategy, options.weights)
    return buy_whole_gangs(planning, problem, scorer, _run, eligible=eligible, budget=budget)


def _run(task: BuyingTask) -> Draft:
    """Run a greedy strategy on a task, inside a trial."""
    with Trial(task.planning.cluster):
        buyer = GreedyBuyer(task)
        buyer.place_on_nodes()
        if buyer.left.any():
            _GreedyRun(buyer).run()
        return buyer.draft()


class _GreedyRun:
    """One run, after all pods that fit on existing nodes are placed."""

    def __init__(self, buyer: GreedyBuyer) -> None:
        self._buyer, self._task = buyer, buyer.task
        self._cluster = self._task.planning.cluster
        domains = RuleDomains(self._task.planning, self._task.problem)
        self._rule_limits = read_rule_limits(domains)
        self._order = np.array(self._task.scorer.order, dtype=np.intp)
        self._rule_classes = np.array(list(self._rule_limits), dtype=np.intp)
        self._depends_on = np.array([each.depends_on for each in self._rule_limits.values()], dtype=bool)
        """Class with rules x class: whose pods change the limits of the class with rules."""
        self._placed_by_engine: Bools = np.array(
            [bool(incoming.spec.volumes) for incoming in domains.incoming], dtype=bool
        )
        """Classes whose pods the engine places: pods with volumes."""
        ports: Bools = np.array([bool(incoming.spec.ports) for incoming in domains.incoming], dtype=bool)
        self._per_node = PodsPerNode(self._task, self._rule_limits, ports)
        self._needs_planning = bool(buyer.left[self._rule_classes].any() or buyer.left[self._placed_by_engine].any())

    def run(self) -> None:
        """Buy until no pod is left, no open offering takes a pod, or the budget is exhausted."""
        buyer, per_node = self._buyer, self._per_node
        while buyer.left.any() and not self._task.is_exhausted():
            open_rows = buyer.open_rows()
            per_node.refresh(buyer.left, open_rows)
            best = self._task.scorer.best_offering(per_node.pods, open_rows)
            if best is None:
                break
            if self._needs_planning:
                self._buy_and_place(best)
            else:
                self._buy_by_numbers(best)

    # Without the planning cluster -------------------------------------------------------------------------------------

    def _buy_by_numbers(self, offering: int) -> None:
        """Buy an offering as often as it stays the winner, without the planning cluster."""
        buyer = self._buyer
        pods_per_class = self._per_node.pods[offering]
        count = self._repeat_count(offering, pods_per_class)
        classes = self._classes_taken(pods_per_class)
        slices = [
            (self._task.pods[number], buyer.placed_counts[number], class_count) for number, class_count in classes
        ]
        for copy in range(count):
            pods = [
                pod
                for class_pods, first, class_count in slices
                for pod in class_pods[first + copy * class_count : first + (copy + 1) * class_count]
            ]
            buyer.bought.append((offering, pods))
        for number, class_count in classes:
            buyer.placed_counts[number] += count * class_count
        buyer.left -= count * pods_per_class
        buyer.count_purchase(offering, count)

    def _repeat_count(self, offering: int, pods_per_class: Ints) -> int:
        """Return how often an offering can be bought before any row of counts could change."""
        is_taken = pods_per_class > 0
        highest = self._per_node.pods.max(axis=0)[is_taken]
        count = 1 + int(((self._buyer.left[is_taken] - highest) // pods_per_class[is_taken]).min())
        return max(self._buyer.affordable_count(offering, count), 1)

    # On the planning cluster ------------------------------------------------------------------------------------------

    def _buy_and_place(self, offering: int) -> None:
        """Buy a node on the planning cluster and place its pods; then place pods that now fit on other nodes."""
        per_node, pods_per_class = self._per_node, self._per_node.pods[offering].copy()
        affected = self._dependent_classes(pods_per_class > 0)
        affected |= {
            n for n, limits in self._rule_limits.items() if self._buyer.left[n] and limits.is_affected_by_node(offering)
        }
        for _ in range(1 if affected or per_node.engine_limits else self._repeat_count(offering, pods_per_class)):
            overcounted = self._join_and_place(offering, pods_per_class)
            if overcounted is not None:
                number, fitting = overcounted
                per_node.engine_limits[offering, number] = fitting
                per_node.is_stale[offering] = True
                return
        for row, _ in per_node.engine_limits:
            per_node.is_stale[row] = True
        per_node.engine_limits.clear()
        affected |= self._place_affected(affected)
        for number in affected:
            if self._buyer.left[number]:
                per_node.is_stale |= self._rule_limits[number].refresh()

    def _join_and_place(self, offering: int, pods_per_class: Ints) -> tuple[int, int] | None:
        """Let a node join and place its pods; if fewer fit than counted, undo it and return class and number."""
        buyer, cluster = self._buyer, self._cluster
        placed: list[tuple[int, list[tuple[str, str]]]] = []
        with Trial(cluster) as trial:
            name, area = buyer.join(offering)
            for number, count in self._classes_taken(pods_per_class):
                if self._placed_by_engine[number]:
                    decisions = buyer.place_within(number, area, count)
                    if len(decisions) < count:
                        return number, len(decisions)
                    placed.append((number, [(each.pod, name) for each in decisions]))
                else:
                    first = buyer.placed_counts[number]
                    pods = self._task.pods[number][first : first + count]
                    for pod in pods:
                        cluster.apply(Bind(pod, name))
                    placed.append((number, [(pod, name) for pod in pods]))
            trial.keep()
        buyer.confirm_node(offering, name)
        for number, pairs in placed:
            buyer.record(number, pairs)
        return None

    def _classes_taken(self, pods_per_class: Ints) -> list[tuple[int, int]]:
        """Return the classes of which a node takes pods, in order, with the number of pods."""
        numbers = self._order[pods_per_class[self._order] > 0]
        return list(zip(numbers.tolist(), pods_per_class[numbers].tolist(), strict=True))

    def _place_affected(self, affected: set[int]) -> set[int]:
        """Place pods of affected classes that now fit on some node; return the classes whose limits that changes."""
        further: set[int] = set()
        pending_classes = {number for number in affected if self._rule_limits[number].can_open}
        while pending_classes:
            for number in self._task.scorer.order:
                if number not in pending_classes:
                    continue
                pending_classes.discard(number)
                if self._buyer.place_anywhere(number):
                    dependent = self._dependent_classes(np.arange(len(self._buyer.left)) == number)
                    further |= dependent
                    pending_classes |= {
                        each for each in dependent if each != number and self._rule_limits[each].can_open
                    }
        return further

    def _dependent_classes(self, placed: Bools) -> set[int]:
        """Return the classes with pods left whose limits depend on placed classes."""
        if not len(self._rule_classes):
            return set()
        dependent = self._rule_classes[(self._depends_on & placed).any(axis=1)]
        return set(dependent[self._buyer.left[dependent] > 0].tolist())
