"""Buying: what all strategies that buy node by node have in common.

Contract: a `BuyingTask` says what is to be bought for; a `GreedyBuyer` is one run of it on the picture, inside
somebody's `Trial`. Pods are taken in a fixed order: by priority, then by size in units, then class by class as the
queue has them (classes that ask for the same follow each other), and within a class as the queue has them. Within a
class it is always the first that are placed.
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
    """What is to be bought for."""

    planning: PlanningCluster
    problem: Problem
    scorer: Scorer
    eligible: Bools
    """Which offerings may be bought."""
    allowed: Bools
    """Offering x class: the problem's, narrowed by the pins."""
    pods: tuple[tuple[str, ...], ...]
    """Of each class."""
    pins: Mapping[int, PinnedDomain] = {}
    budget: WorkBudget | None = None

    def is_exhausted(self) -> bool:
        """Whether the work budget is exhausted."""
        return self.budget is not None and self.budget.is_exhausted()


Run = Callable[[BuyingTask], Draft]
"""A strategy: it leaves the picture as it was."""


class GreedyBuyer:
    """See the module's contract."""

    def __init__(self, task: BuyingTask) -> None:
        self.task = task
        self.at = [0] * len(task.pods)
        """How many pods of each class are placed."""
        self.left: Ints = np.array([len(pods) for pods in task.pods], dtype=np.int64)
        self.bought: list[tuple[int, list[str]]] = []
        self.on_existing: list[tuple[str, str]] = []
        self._limits = [limit.left for limit in task.problem.limits]
        self._node: dict[str, int] = {}
        self._numbers: dict[str, int] = {}
        self._next = self._numbers

    # What may be bought -----------------------------------------------------------------------------------------------

    def open_rows(self) -> Bools:
        """Which offerings may be bought once more."""
        rows = self.task.eligible.copy()
        for limit, left in zip(self.task.problem.limits, self._limits, strict=True):
            rows &= limit.takes <= left
        return rows

    def times(self, offering: int, most: int) -> int:
        """How often an offering may be bought, up to a number."""
        for limit, left in zip(self.task.problem.limits, self._limits, strict=True):
            takes = int(limit.takes[offering])
            if takes:
                most = min(most, left // takes)
        return most

    def count(self, offering: int, times: int = 1) -> None:
        """Note in all limits that an offering was bought."""
        for place, limit in enumerate(self.task.problem.limits):
            self._limits[place] -= times * int(limit.takes[offering])

    # Nodes and pods ---------------------------------------------------------------------------------------------------

    def join(self, offering: int) -> tuple[str, Area]:
        """Put one more node of an offering into the picture; give its name and the area that it is."""
        planning, wanted = self.task.planning, self.task.problem.offerings[offering]
        self._next = dict(self._numbers)  # a name that was only tried is given again
        name = planning.name_of(wanted, self._next)
        planning.join(wanted, name)
        nodes = planning.cluster.nodes
        return name, Area.of_row(nodes.row_of[name], nodes.size)

    def keep(self, offering: int, name: str) -> None:
        """Note that a node that has joined was bought."""
        self._numbers, self._node[name] = self._next, len(self.bought)
        self.bought.append((offering, []))
        self.count(offering)

    def place_within(self, number: int, within: Area | None, most: int | None = None) -> list[Decision]:
        """Let the engine place the next pods of a class, until one fits nowhere; give the decisions for the others."""
        first = self.at[number]
        pods = self.task.pods[number][first : None if most is None else first + most]
        decisions = self.task.planning.engine.place(pods, within, give_up=True)
        return decisions[:-1] if decisions and decisions[-1].node is None else decisions

    def note(self, number: int, placed: Iterable[tuple[str, str]]) -> int:
        """Note the next pods of a class with their nodes; give how many there are."""
        count = 0
        for pod, node in placed:
            count += 1
            bought = self._node.get(node)
            if bought is None:
                self.on_existing.append((pod, node))
            else:
                self.bought[bought][1].append(pod)
        self.at[number] += count
        self.left[number] -= count
        return count

    def place(self, number: int, within: Area | None, most: int | None = None) -> int:
        """Let the engine place the next pods of a class, and note where; give how many fit."""
        decisions = self.place_within(number, within, most)
        return self.note(number, ((each.pod, each.node) for each in decisions if each.node is not None))

    def somewhere(self, number: int) -> int:
        """Let the engine place pods of a class on any node there is."""
        if not self.left[number]:
            return 0
        return self.place(number, self._area(number))

    def settle(self) -> None:
        """Place whatever fits on the nodes there are, until nothing more does."""
        placed = True
        while placed:
            placed = False
            for number in self.task.scorer.order:
                placed |= self.somewhere(number) > 0

    def _area(self, number: int) -> Area | None:
        pin = self.task.pins.get(number)
        if pin is None:
            return None
        column = self.task.planning.cluster.nodes.column(pin.key)
        digit = column.values.get(pin.value)
        return Area(column.ids == digit if digit is not None else np.zeros(len(column.ids), dtype=bool))

    # The end ----------------------------------------------------------------------------------------------------------

    def draft(self) -> Draft:
        """What came of it."""
        waiting = [pod for number, pods in enumerate(self.task.pods) for pod in pods[self.at[number] :]]
        bought = tuple(DraftNode(offering, tuple(pods)) for offering, pods in self.bought)
        return Draft(self.task.scorer.strategy.value, bought, tuple(self.on_existing), tuple(waiting))
