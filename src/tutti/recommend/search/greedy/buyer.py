"""The buyer: the state that all greedy strategies share.

Contract: a `BuyingTask` says which pods to buy for; a `GreedyBuyer` is one run of the task on the planning cluster,
inside a `Trial` of the caller. Pods are placed in a fixed order: by priority, then by size, then class by class in the
order of the queue (classes with the same requests follow each other), and within a class in the order of the queue.
Within a class the first pods are always placed first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

import numpy as np

from tutti.cluster.columns import Bools, Ints
from tutti.cluster.work.work_budget import WorkBudget
from tutti.engine.placement.engine import Decision
from tutti.engine.plugins.base import Area
from tutti.market.planning_cluster import PlanningCluster
from tutti.recommend.problem.problem import Problem
from tutti.recommend.problem.scores import Scorer
from tutti.recommend.records.draft import Draft, DraftNode


class PinnedDomain(NamedTuple):
    """The only domain in which the pods of a class may run."""

    key: str
    value: str


class BuyingTask(NamedTuple):
    """The pods to buy for, and the offerings that can be bought."""

    planning: PlanningCluster
    problem: Problem
    scorer: Scorer
    eligible: Bools
    """Which offerings can be bought."""
    allowed: Bools
    """Offering x class: `Problem.allowed`, restricted to the pinned domains."""
    pods: tuple[tuple[str, ...], ...]
    """The pods of each class to buy for."""
    pins: Mapping[int, PinnedDomain] = {}
    """The pinned domain of a class, by class number."""
    budget: WorkBudget | None = None

    def is_exhausted(self) -> bool:
        """Return whether the work budget is exhausted."""
        return self.budget is not None and self.budget.is_exhausted()


StrategyRun = Callable[[BuyingTask], Draft]
"""A greedy strategy: makes a draft of a task, and leaves the planning cluster as it was."""


class GreedyBuyer:
    """See the module's contract."""

    def __init__(self, task: BuyingTask) -> None:
        self.task = task
        self.placed_counts = [0] * len(task.pods)
        """How many pods of each class are placed."""
        self.left: Ints = np.array([len(pods) for pods in task.pods], dtype=np.int64)
        """How many pods of each class are not placed."""
        self.bought: list[tuple[int, list[str]]] = []
        """The bought nodes: the number of the offering, and the pods."""
        self.on_existing: list[tuple[str, str]] = []
        self._limits_left = [limit.left for limit in task.problem.limits]
        self._bought_number: dict[str, int] = {}
        self._name_numbers: dict[str, int] = {}
        self._next_name_numbers = self._name_numbers

    # Limits -----------------------------------------------------------------------------------------------------------

    def open_rows(self) -> Bools:
        """Return which offerings can be bought once more."""
        rows = self.task.eligible.copy()
        for limit, left in zip(self.task.problem.limits, self._limits_left, strict=True):
            rows &= limit.takes <= left
        return rows

    def affordable_count(self, offering: int, max_count: int) -> int:
        """Return how often limits allow an offering to be bought, at most `max_count`."""
        for limit, left in zip(self.task.problem.limits, self._limits_left, strict=True):
            usage = int(limit.takes[offering])
            if usage:
                max_count = min(max_count, left // usage)
        return max_count

    def count_purchase(self, offering: int, count: int = 1) -> None:
        """Subtract purchases of an offering from all limits."""
        for place, limit in enumerate(self.task.problem.limits):
            self._limits_left[place] -= count * int(limit.takes[offering])

    # Nodes and pods ---------------------------------------------------------------------------------------------------

    def join(self, offering: int) -> tuple[str, Area]:
        """Let one more node of an offering join the planning cluster; return its name, and its area."""
        planning, offering_record = self.task.planning, self.task.problem.offerings[offering]
        self._next_name_numbers = dict(self._name_numbers)  # the name of a node that is rolled back is used again
        name = planning.name_of(offering_record, self._next_name_numbers)
        planning.join(offering_record, name)
        nodes = planning.cluster.nodes
        return name, Area.of_row(nodes.row_of[name], nodes.size)

    def confirm_node(self, offering: int, name: str) -> None:
        """Record that a node that has joined is bought."""
        self._name_numbers, self._bought_number[name] = self._next_name_numbers, len(self.bought)
        self.bought.append((offering, []))
        self.count_purchase(offering)

    def place_within(self, number: int, within: Area | None, max_count: int | None = None) -> list[Decision]:
        """Let the engine place the next pods of a class until one does not fit; return the decisions of placed pods."""
        first = self.placed_counts[number]
        pods = self.task.pods[number][first : None if max_count is None else first + max_count]
        decisions = self.task.planning.engine.place(pods, within, give_up=True)
        return decisions[:-1] if decisions and decisions[-1].node is None else decisions

    def record(self, number: int, placed: Iterable[tuple[str, str]]) -> int:
        """Record the next pods of a class with their nodes; return how many pods."""
        placed_count = 0
        for pod, node in placed:
            placed_count += 1
            bought = self._bought_number.get(node)
            if bought is None:
                self.on_existing.append((pod, node))
            else:
                self.bought[bought][1].append(pod)
        self.placed_counts[number] += placed_count
        self.left[number] -= placed_count
        return placed_count

    def place_and_record(self, number: int, within: Area | None, max_count: int | None = None) -> int:
        """Let the engine place the next pods of a class, and record them; return how many fit."""
        decisions = self.place_within(number, within, max_count)
        return self.record(number, ((each.pod, each.node) for each in decisions if each.node is not None))

    def place_anywhere(self, number: int) -> int:
        """Let the engine place pods of a class on any node of the planning cluster; return how many fit."""
        if not self.left[number]:
            return 0
        return self.place_and_record(number, self._pinned_area(number))

    def place_on_nodes(self) -> None:
        """Place all pods that fit on the nodes of the planning cluster, until no more pod fits."""
        has_progress = True
        while has_progress:
            has_progress = False
            for number in self.task.scorer.order:
                has_progress |= self.place_anywhere(number) > 0

    def _pinned_area(self, number: int) -> Area | None:
        """Return the nodes of the pinned domain of a class; None without a pin."""
        pin = self.task.pins.get(number)
        if pin is None:
            return None
        column = self.task.planning.cluster.nodes.column(pin.key)
        label_id = column.values.get(pin.value)
        return Area(column.ids == label_id if label_id is not None else np.zeros(len(column.ids), dtype=bool))

    # Result -----------------------------------------------------------------------------------------------------------

    def draft(self) -> Draft:
        """Return the draft of this run."""
        unplaced = [pod for number, pods in enumerate(self.task.pods) for pod in pods[self.placed_counts[number] :]]
        bought = tuple(DraftNode(offering, tuple(pods)) for offering, pods in self.bought)
        return Draft(self.task.scorer.strategy.value, bought, tuple(self.on_existing), tuple(unplaced))
