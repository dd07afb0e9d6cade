"""Dry runs of preemption by arithmetic, for a pod that is refused only for lack of free resources.

Contract: the same candidates as dry runs one node at a time (`default_preemption`), for all nodes at once. The pods of
a node are reprieved in turns: the first pod of every node, then the second, and so on; numpy runs over the nodes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from tutti.cluster.columns import Bools, Ints, Rows
from tutti.engine.placement.evaluator import Evaluator
from tutti.engine.plugins.base import IncomingPod
from tutti.engine.plugins.node_resources_fit import shortage
from tutti.engine.preemption.disruption_budgets import Budgets

Cost = tuple[int, int, int, int, int]
"""What decides between candidates: violations, highest priority, sum of priorities, number of victims, start."""
_PRIORITY_OFFSET = 2**31


class RoomCandidates(NamedTuple):
    """The nodes on which the pod fits after evictions, each with its victims and its cost."""

    rows: Rows
    pods: Rows
    """The victims of all nodes, node by node, the most important first."""
    starts: Rows
    """Where the victims of each node start in `pods`; the last entry is the end."""
    costs: Ints
    """One column per node, in the order of `Cost`."""

    def victims(self, number: int) -> list[int]:
        """Return the victims on the node with this position in `rows`."""
        victims: list[int] = self.pods[self.starts[number] : self.starts[number + 1]].tolist()
        return victims

    def cost(self, number: int) -> Cost:
        """Return the cost of the node with this position."""
        violations, highest, total, count, start = self.costs[:, number].tolist()
        return violations, highest, total, count, start

    def cheapest(self) -> list[int]:
        """Return the positions of the nodes with the lowest cost."""
        if not len(self.rows):
            return []
        remaining = np.arange(len(self.rows))
        for values in self.costs:
            remaining = remaining[values[remaining] == values[remaining].min()]
        return remaining.tolist()


class RoomDryRuns:
    """See the module's docstring."""

    def __init__(self, evaluator: Evaluator, incoming: IncomingPod) -> None:
        cluster = self._cluster = evaluator.cluster
        requests = evaluator.resource_requests(incoming)
        self._resources = [resource for resource, _ in requests]
        self._amounts = np.array([amount for _, amount in requests], dtype=np.int64)
        self._free: Ints = cluster.nodes.alloc[self._resources] - cluster.nodes.used[self._resources]
        if incoming.held is not None:
            self._free -= incoming.held.amounts[self._resources]

    def _usage(self, pods: Rows) -> Ints:
        """Return the usage of pods, by resource and pod."""
        usage: Ints = self._cluster.usages.matrix[self._cluster.pods.usage[pods]][:, self._resources].T
        return usage

    def _freed(self, pods: Rows) -> Ints:
        """Return the amounts that are free without some pods, less the request, by resource and row."""
        free = self._free - self._amounts[:, np.newaxis]
        np.add.at(free.T, self._cluster.pods.node[pods], self._usage(pods).T)
        return free

    def rows_without_room(self, pods: Rows, rows: Rows, fail: Callable[[tuple[str, ...], int], None]) -> Rows:
        """Return which of some rows lack resources even without the pods; report the missing resources to `fail`."""
        lacking: Bools = self._freed(pods)[:, rows] < 0
        for resource, lacks in zip(self._resources, lacking, strict=True):
            if lacks.any():
                fail((shortage(self._cluster.resources.names, resource),), int(lacks.sum()))
        return rows[lacking.any(axis=0)]

    def candidates(self, pods: Rows, budgets: Budgets) -> RoomCandidates:
        """Return the candidates; `pods` are the pods of lower priority on rows that have room without them."""
        table = self._cluster.pods
        order = np.lexsort((table.order[pods], table.start[pods], -table.priority[pods], table.node[pods]))
        pods = pods[order]
        is_victim, violates = self._reprieve(pods, budgets)
        victims, violates = pods[is_victim], violates[is_victim]
        rows, starts = np.unique(table.node[victims], return_index=True)
        return RoomCandidates(
            rows.astype(np.intp), victims, np.append(starts, len(victims)), self._costs(victims, violates, starts)
        )

    def _reprieve(self, pods: Rows, budgets: Budgets) -> tuple[Bools, Bools]:
        """Return which pods are victims, and which of the pods violate a budget; pods are sorted by row."""
        table = self._cluster.pods
        rows, starts, lengths = np.unique(table.node[pods], return_index=True, return_counts=True)
        violates = self._violating(pods, starts, lengths, budgets)
        # Pods whose eviction violates a budget are reprieved first, and more important pods before others.
        order = np.lexsort((np.arange(len(pods)), ~violates, np.repeat(np.arange(len(rows)), lengths)))
        usage, free = self._usage(pods), self._freed(pods)[:, rows]
        is_victim = np.zeros(len(pods), dtype=bool)
        for turn in range(int(lengths.max(initial=0))):
            columns = np.flatnonzero(lengths > turn)
            positions = order[starts[columns] + turn]
            left = free[:, columns] - usage[:, positions]
            fits = (left >= 0).all(axis=0)
            free[:, columns[fits]] = left[:, fits]
            is_victim[positions[~fits]] = True
        if budgets and budgets.hard:  # the budgets need to allow the evictions of the victims only
            violates = self._violating(np.where(is_victim, pods, -1), starts, lengths, budgets)
        return is_victim, violates

    def _violating(self, pods: Rows, starts: Rows, lengths: Rows, budgets: Budgets) -> Bools:
        """Return whose eviction, among the pods of a row in this order, violates a budget; -1 stands for no pod."""
        violates = np.zeros(len(pods), dtype=bool)
        if budgets:
            for start, length in zip(starts.tolist(), lengths.tolist(), strict=True):
                on_row = pods[start : start + length].tolist()
                violating = budgets.violating(pod for pod in on_row if pod >= 0)
                violates[start : start + length] = [pod in violating for pod in on_row]
        return violates

    def _costs(self, victims: Rows, violates: Bools, starts: Rows) -> Ints:
        """Return the cost of each row's victims, one column per row."""
        if not len(victims):
            return np.zeros((5, 0), dtype=np.int64)
        table = self._cluster.pods
        priority, start = table.priority[victims], table.start[victims]
        lengths = np.diff(np.append(starts, len(victims)))
        highest = np.maximum.reduceat(priority, starts)
        is_highest = priority == np.repeat(highest, lengths)
        earliest = np.minimum.reduceat(np.where(is_highest, start, np.iinfo(np.int64).max), starts)
        return np.vstack((
            np.add.reduceat(violates.astype(np.int64), starts),
            highest,
            np.add.reduceat(priority + _PRIORITY_OFFSET, starts),
            lengths,
            -earliest,
        ))  # fmt: skip
