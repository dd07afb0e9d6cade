"""Pods per node: how many pods of each class one new node takes, for all offerings at once.

Contract: classes are taken in the order of `Scorer.order`, each with as many pods as free amounts, selectors, ports and
the rules between pods (`pod_rule_limits`) allow after the classes before. The result is what the engine would place on
the node, pod by pod. Consecutive classes without rules that have the same requests and the same allowed offerings form
a block and are counted together. Rows are cached; a row is computed again when fewer pods of a class are left than the
row takes, or when a rule has changed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from tutti.cluster.columns import Bools, Ints, Rows
from tutti.cluster.work.meter import FILL_BLOCK, FILL_ROW
from tutti.recommend.search.greedy.buyer import BuyingTask
from tutti.recommend.search.greedy.pod_rule_limits import PodRuleLimits

_BATCH_SIZE = 64
"""How many blocks are checked at once whether they fit any node."""


class PodsPerNode:
    """See the module's contract."""

    def __init__(self, task: BuyingTask, rule_limits: Mapping[int, PodRuleLimits], ports: Bools) -> None:
        self._task, self._rule_limits = task, rule_limits
        problem = task.problem
        self._free = np.ascontiguousarray(problem.free.T)
        self._requested = [
            [(column, int(amount)) for column, amount in enumerate(line) if amount]
            for line in problem.requests.tolist()
        ]
        self._allowed = np.ascontiguousarray(task.allowed.T)
        self._port_conflicts = problem.rules.host.conflicts & np.logical_and.outer(ports, ports)
        self._ports = ports
        self._blocks = self._class_blocks()
        self.pods: Ints = np.zeros((len(problem.offerings), len(problem.classes)), dtype=np.int64)
        """Offering x class: how many pods one new node takes."""
        self.is_stale: Bools = np.ones(len(problem.offerings), dtype=bool)
        """Which rows must be computed again."""
        self.engine_limits: dict[tuple[int, int], int] = {}
        """By offering and class: how many pods the engine placed, where that was fewer than computed."""

    def refresh(self, left: Ints, open_rows: Bools) -> None:
        """Compute all open rows again that are stale."""
        self.is_stale |= (self.pods > left).any(axis=1)
        rows = np.flatnonzero(self.is_stale & open_rows)
        if len(rows):
            self.pods[rows] = self._pods_on_nodes(rows, left)
            self.is_stale[rows] = False

    def _pods_on_nodes(self, rows: Rows, left: Ints) -> Ints:
        """Return row x class: how many pods one new node takes."""
        self._task.planning.cluster.meter.count += len(self._blocks) * (FILL_BLOCK + FILL_ROW * len(rows))
        free = self._free[:, rows]
        pods = np.zeros((len(rows), len(left)), dtype=np.int64)
        for block in self._fitting_blocks(rows, free, left):
            number = block[0]
            max_pods = self._allowed[number, rows] * left[block].sum()
            for column, amount in self._requested[number]:
                np.minimum(max_pods, free[column] // amount, out=max_pods)
            if not max_pods.any():
                continue
            self._apply_rules(number, rows, pods, max_pods)
            for column, amount in self._requested[number]:
                free[column] -= max_pods * amount
            if len(block) == 1:
                pods[:, number] = max_pods
            else:  # the first classes of the block are served first
                left_per_class = left[block]
                pods[:, block] = np.clip(
                    max_pods[:, np.newaxis] - (np.cumsum(left_per_class) - left_per_class), 0, left_per_class
                )
        return pods

    def _fitting_blocks(self, rows: Rows, free: Ints, left: Ints) -> Iterator[list[int]]:
        """Yield the blocks that have pods left and fit some row; `free` may shrink meanwhile."""
        blocks = self._blocks if not self.engine_limits else [[number] for number in self._task.scorer.order]
        pending_blocks = [block for block in blocks if (left[block[0]] if len(block) == 1 else left[block].any())]
        block_classes = np.array([block[0] for block in pending_blocks], dtype=np.intp)
        for first in range(0, len(block_classes), _BATCH_SIZE):
            first_classes = block_classes[first : first + _BATCH_SIZE]
            # A block that does not fit now does not fit later, when less room is left.
            fits = self._allowed[first_classes][:, rows]
            for position, amounts in enumerate(self._task.problem.requests[first_classes].T):
                fits &= free[position] >= amounts[:, np.newaxis]
            for position in np.flatnonzero(fits.any(axis=1)).tolist():
                yield pending_blocks[first + position]

    def _class_blocks(self) -> list[list[int]]:
        """Return the classes in their order, as blocks that are counted together."""
        blocks: list[list[int]] = []
        requests, allowed = self._task.problem.requests, self._task.allowed
        for number in self._task.scorer.order:
            previous = blocks[-1][0] if blocks else number
            if (
                blocks
                and not {number, previous} & self._rule_limits.keys()
                and not self._ports[number]
                and not self._ports[previous]
                and np.array_equal(requests[number], requests[previous])
                and np.array_equal(allowed[:, number], allowed[:, previous])
            ):
                blocks[-1].append(number)
            else:
                blocks.append([number])
        return blocks

    def _apply_rules(self, number: int, rows: Rows, pods: Ints, max_pods: Ints) -> None:
        """Lower `max_pods` of a class by the rules between pods, ports and what the engine placed."""
        limits_of_class = self._rule_limits.get(number)
        if limits_of_class is not None:
            np.minimum(max_pods, limits_of_class.max_pods(pods, rows), out=max_pods)
        if self._ports[number]:
            np.minimum(max_pods, 1, out=max_pods)
            max_pods[pods[:, self._port_conflicts[number]].any(axis=1)] = 0
        if self.engine_limits:
            for position, row in enumerate(rows.tolist()):
                engine_limit = self.engine_limits.get((row, number))
                if engine_limit is not None:
                    max_pods[position] = min(int(max_pods[position]), engine_limit)
