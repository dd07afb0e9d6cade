"""Filling: how many pods of each class one new node takes, for all offerings at once.

Contract: the classes are taken in the order of `buying.py`, each as often as room, selectors, ports and the rules
between pods (`reach.py`) let it, beside what was taken before: what the engine would place on the node, pod by pod.
Classes in a row that look at nobody, ask for the same and may go to the same offerings are counted as one. Rows are
kept while they hold; a row is filled again when less of a class is left than it took, or when a rule says something
else.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from tutti.cluster.columns import Bools, Ints, Rows
from tutti.cluster.work.meter import FILL_BLOCK, FILL_ROW
from tutti.recommend.search.greedy.buying import BuyingTask
from tutti.recommend.search.greedy.pod_rule_limits import PodRuleLimits

_AT_ONCE = 64
"""Blocks of classes of which it is found out together whether they fit anywhere."""


class NodeFill:
    """See the module's contract."""

    def __init__(self, task: BuyingTask, reaches: Mapping[int, PodRuleLimits], ports: Bools) -> None:
        self._task, self._reaches = task, reaches
        problem = task.problem
        self._free = np.ascontiguousarray(problem.free.T)
        self._wanted = [
            [(place, int(amount)) for place, amount in enumerate(line) if amount] for line in problem.requests.tolist()
        ]
        self._allowed = np.ascontiguousarray(task.allowed.T)
        self._clash = problem.rules.host.apart & np.logical_and.outer(ports, ports)
        self._ports = ports
        self._blocks = self._alike()
        self.taken: Ints = np.zeros((len(problem.offerings), len(problem.classes)), dtype=np.int64)
        """Offering x class."""
        self.stale: Bools = np.ones(len(problem.offerings), dtype=bool)
        """Which rows are to be filled again."""
        self.caps: dict[tuple[int, int], int] = {}
        """By offering and class: what the engine was found to place there at most."""

    def refresh(self, left: Ints, open_rows: Bools) -> None:
        """Fill all rows again that do not hold any more."""
        self.stale |= (self.taken > left).any(axis=1)
        rows = np.flatnonzero(self.stale & open_rows)
        if len(rows):
            self.taken[rows] = self._filled(rows, left)
            self.stale[rows] = False

    def _filled(self, rows: Rows, left: Ints) -> Ints:
        self._task.planning.cluster.meter.count += len(self._blocks) * (FILL_BLOCK + FILL_ROW * len(rows))
        free = self._free[:, rows]
        taken = np.zeros((len(rows), len(left)), dtype=np.int64)
        for block in self._fitting(rows, free, left):
            number = block[0]
            most = self._allowed[number, rows] * left[block].sum()
            for place, amount in self._wanted[number]:
                np.minimum(most, free[place] // amount, out=most)
            if not most.any():
                continue
            self._by_rules(number, rows, taken, most)
            for place, amount in self._wanted[number]:
                free[place] -= most * amount
            if len(block) == 1:
                taken[:, number] = most
            else:  # the first classes of the block first
                each = left[block]
                taken[:, block] = np.clip(most[:, np.newaxis] - (np.cumsum(each) - each), 0, each)
        return taken

    def _fitting(self, rows: Rows, free: Ints, left: Ints) -> Iterator[list[int]]:
        """The blocks that have pods left and fit on some row; `free` may shrink meanwhile."""
        blocks = self._blocks if not self.caps else [[number] for number in self._task.scorer.order]
        waiting = [block for block in blocks if (left[block[0]] if len(block) == 1 else left[block].any())]
        heads = np.array([block[0] for block in waiting], dtype=np.intp)
        for first in range(0, len(heads), _AT_ONCE):
            some = heads[first : first + _AT_ONCE]
            # What does not fit now will not fit when there is less room.
            fits = self._allowed[some][:, rows]
            for place, amounts in enumerate(self._task.problem.requests[some].T):
                fits &= free[place] >= amounts[:, np.newaxis]
            for place in np.flatnonzero(fits.any(axis=1)).tolist():
                yield waiting[first + place]

    def _alike(self) -> list[list[int]]:
        """The classes in their order, those in a row that are counted as one together."""
        blocks: list[list[int]] = []
        requests, allowed = self._task.problem.requests, self._task.allowed
        for number in self._task.scorer.order:
            last = blocks[-1][0] if blocks else number
            if (
                blocks
                and not {number, last} & self._reaches.keys()
                and not self._ports[number]
                and not self._ports[last]
                and np.array_equal(requests[number], requests[last])
                and np.array_equal(allowed[:, number], allowed[:, last])
            ):
                blocks[-1].append(number)
            else:
                blocks.append([number])
        return blocks

    def _by_rules(self, number: int, rows: Rows, taken: Ints, most: Ints) -> None:
        """Narrow how many pods of a class rows take."""
        reach = self._reaches.get(number)
        if reach is not None:
            np.minimum(most, reach.most(taken, rows), out=most)
        if self._ports[number]:
            np.minimum(most, 1, out=most)
            most[taken[:, self._clash[number]].any(axis=1)] = 0
        if self.caps:
            for place, row in enumerate(rows.tolist()):
                cap = self.caps.get((row, number))
                if cap is not None:
                    most[place] = min(int(most[place]), cap)
