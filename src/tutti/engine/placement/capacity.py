"""How many more copies of a pod fit, per node and per domain: arithmetic on columns.

Contract: a count is never lower than the number of copies that truly fit. Node plugins (selectors, taints) and free
resources are counted, less the room that is held for other pods of at least the same priority; rules between pods
(affinity, spreading) are not. Counts are kept per spec class and updated from the log of touched rows, so a repeated
query costs only what has changed.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from tutti.cluster.columns import Bools, Ints, Rows
from tutti.cluster.indexes.holds import HeldRoom
from tutti.engine.placement.evaluator import Evaluator
from tutti.engine.plugins.base import IncomingPod, Selection
from tutti.engine.plugins.verdict import Reason

NO_LIMIT = 1 << 30
"""The count for a pod that requests nothing."""
_MAX_SINGLE_ROWS = 8
"""Up to this many rows, plain integers are faster than columns."""
_MAX_SPECS = 2_000
"""Largest number of specs whose counts are kept."""


class _CopyCounts:
    """The counts of one spec class."""

    def __init__(self) -> None:
        self.column: Ints = np.zeros(0, dtype=np.int64)
        self.log_position = self.generation = -1
        self.domain_sums: dict[str, tuple[int, Ints]] = {}
        """By label key: the node log position of the sums, and the sums by domain number."""


class Capacity:
    """Counts copies of pods that fit (see the module's contract)."""

    def __init__(self, evaluator: Evaluator) -> None:
        self._evaluator = evaluator
        self._counts: dict[int, _CopyCounts] = {}
        self._specs_generation = evaluator.cluster.specs.generation

    def copies(self, incoming: IncomingPod, *, count_holds: bool = True) -> Ints:
        """Return for each row the number of copies that fit; without `count_holds`, held room counts as free."""
        column = self._synced_counts(incoming).column
        held = self._held_room(incoming) if count_holds else None
        if held is None:
            return column
        column = column.copy()
        column[held.rows] = self._copies_beside(incoming, held)
        return column

    def free(self, pods: Iterable[IncomingPod]) -> Ints:
        """Return the free amounts of every row, by resource and row, less the room that is held for others.

        Of several pods, the one with the highest priority counts, from which the least room is held.
        """
        first = max(pods, key=lambda incoming: incoming.pod.spec.priority or 0)
        nodes, held = self._evaluator.cluster.nodes, self._held_room(first)
        free: Ints = nodes.alloc - nodes.used
        return free if held is None else np.subtract(free, held.amounts, out=free)

    def _held_room(self, incoming: IncomingPod) -> HeldRoom | None:
        """Return the room held for others; pods of the same group may use each other's room."""
        cluster, pod = self._evaluator.cluster, incoming.pod
        if not cluster.holds:
            return None
        group = int(cluster.pods.group[incoming.row])
        return cluster.hold_index.room(pod.spec.priority or 0, owner=pod.key, group=group)

    def _copies_beside(self, incoming: IncomingPod, held: HeldRoom) -> Ints:
        """Return the number of copies that fit each row with holds."""
        nodes, rows = self._evaluator.cluster.nodes, held.rows
        free = nodes.alloc[:, rows] - nodes.used[:, rows] - held.amounts[:, rows]
        return self.copies_with_free(incoming, free, rows)

    def copies_by_domain(self, incoming: IncomingPod, key: str) -> Ints:
        """Return the number of copies that fit in each domain of a label, numbered as in `Domains`.

        Number 0 stands for the nodes without the label.
        """
        counts = self._synced_counts(incoming)
        domains = self._evaluator.cluster.nodes.domains(key)
        version = self._evaluator.cluster.nodes.touched.length
        entry = counts.domain_sums.get(key)
        if entry is None or entry[0] != version:
            domain_sums = sum_by(domains.indices, counts.column, len(domains.nodes_in))
            entry = counts.domain_sums[key] = (version, domain_sums)
        held = self._held_room(incoming)
        if held is None:
            return entry[1]
        sums: Ints = entry[1].copy()
        delta = self._copies_beside(incoming, held) - counts.column[held.rows]
        np.add.at(sums, domains.indices[held.rows], delta)
        return sums

    def _synced_counts(self, incoming: IncomingPod) -> _CopyCounts:
        """Return the counts of the pod's spec class, updated to the current state of the cluster."""
        cluster = self._evaluator.cluster
        node_cache = self._evaluator.row_cache(incoming).node_cache
        node_cache.sync()
        counts = self._counts.get(incoming.spec.number)
        if counts is None:
            if self._specs_generation != cluster.specs.generation:
                self._specs_generation, live = cluster.specs.generation, cluster.specs.classes
                self._counts = {number: known for number, known in self._counts.items() if number in live}
            if len(self._counts) >= _MAX_SPECS:
                self._counts.clear()
            counts = self._counts[incoming.spec.number] = _CopyCounts()
        if counts.log_position == cluster.touched.length and counts.generation == node_cache.generation:
            return counts
        rows = cluster.touched.since(counts.log_position)
        if counts.generation != node_cache.generation or 2 * len(rows) > len(counts.column):
            counts.column = self._copies_now(incoming, slice(None))
            counts.domain_sums.clear()
        elif len(rows) <= _MAX_SINGLE_ROWS:
            self._update_few(incoming, counts, set(rows.tolist()))
        else:
            rows = np.unique(rows)
            self._update(counts, rows, self._copies_now(incoming, rows))
        counts.log_position, counts.generation = cluster.touched.length, node_cache.generation
        return counts

    def _update_few(self, incoming: IncomingPod, counts: _CopyCounts, rows: set[int]) -> None:
        """Update a few rows in plain integers, which is faster than columns."""
        nodes = self._evaluator.cluster.nodes
        node_cache = self._evaluator.row_cache(incoming).node_cache
        requests = self._evaluator.resource_requests(incoming)
        if node_cache.only_nodes is not None or incoming.spec.ports:
            some_rows = np.array(sorted(rows))
            self._update(counts, some_rows, self._copies_now(incoming, some_rows))
            return
        column, version = counts.column, nodes.touched.length
        domain_sums = []
        for key, (log_position, by_domain) in list(counts.domain_sums.items()):
            if log_position == version:
                domain_sums.append((nodes.domains(key).indices, by_domain))
            else:
                del counts.domain_sums[key]
        for row in rows:
            if node_cache.base_keys[row] < 0:
                new_count = 0
            else:
                free = (nodes.alloc[:, row] - nodes.used[:, row]).tolist()
                fits = min([free[resource] // amount for resource, amount in requests], default=NO_LIMIT)
                new_count = max(fits, 0)
            delta = new_count - column[row]
            column[row] = new_count
            for digits, by_domain in domain_sums:
                by_domain[digits[row]] += delta

    def _update(self, counts: _CopyCounts, rows: Rows, new_counts: Ints) -> None:
        delta = new_counts - counts.column[rows]
        counts.column[rows] = new_counts
        version = self._evaluator.cluster.nodes.touched.length
        for key, (log_position, domain_sums) in list(counts.domain_sums.items()):
            if log_position == version:
                np.add.at(domain_sums, self._evaluator.cluster.nodes.domains(key).indices[rows], delta)
            else:
                del counts.domain_sums[key]

    def _copies_now(self, incoming: IncomingPod, rows: Selection) -> Ints:
        nodes = self._evaluator.cluster.nodes
        return self.copies_with_free(incoming, nodes.alloc[:, rows] - nodes.used[:, rows], rows)

    def copies_with_free(self, incoming: IncomingPod, free: Ints, rows: Selection) -> Ints:
        """Return the number of copies that would fit some rows with these free amounts (one column per row)."""
        most = np.where(self.nodes_accept(incoming, rows), 1 if incoming.spec.ports else NO_LIMIT, 0)
        for resource, amount in self._evaluator.resource_requests(incoming):
            np.minimum(most, free[resource] // amount, out=most)
        return np.maximum(most, 0, out=most)

    def largest_share(self, incoming: IncomingPod) -> float:
        """Return the largest share of the largest node that the pod requests of any resource."""
        nodes = self._evaluator.cluster.nodes
        most = nodes.alloc[:, : nodes.length].max(axis=1, initial=1).tolist()
        requests = self._evaluator.resource_requests(incoming)
        return max((amount / most[resource] for resource, amount in requests), default=0.0)

    def nodes_accept(self, incoming: IncomingPod, rows: Selection) -> Bools:
        """Return for some rows whether the node plugins accept the pod, free resources aside."""
        node_cache, nodes = self._evaluator.row_cache(incoming).node_cache, self._evaluator.cluster.nodes
        node_cache.sync()
        accepted: Bools = node_cache.base_keys[rows] >= 0
        if isinstance(node_cache.only_nodes, Reason):
            return np.zeros(len(accepted), dtype=bool)
        if node_cache.only_nodes is not None:
            is_named = np.zeros(nodes.size, dtype=bool)
            is_named[[row for row in map(nodes.row_of.get, node_cache.only_nodes) if row is not None]] = True
            accepted = accepted & is_named[rows]
        return accepted


def sum_by(digits: Rows, values: Ints, length: int) -> Ints:
    """Return the sums of values by domain number."""
    if length == 1:
        return np.array([values.sum()])
    sums = np.zeros(length, dtype=np.int64)
    np.add.at(sums, digits, values)
    return sums
