"""A forecast: which pods kube-scheduler would place on each of some purchases, in numbers.

Contract: pure; the planning cluster is left as it was. The forecast computes kube-scheduler's default scores (least
allocated, most balanced, ties to the first name) for whole runs of identical pods and for many purchases at once, which
costs a small part of the time of replays. Pods without rules about other pods are forecast exactly as the engine places
them. Of the rules between pods, the forecast knows conflicts within a node and spreads over one label; it places gangs
pod by pod. The forecast only guides the search: the replay decides.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby

import numpy as np

from tutti.cluster.columns import Bools, Ints, Rows
from tutti.cluster.work.meter import FORECAST_CELL, FORECAST_CLASS
from tutti.market.planning_cluster import PlanningCluster
from tutti.recommend.problem.pod_rules import DomainRule, RuleKind
from tutti.recommend.problem.problem import Problem
from tutti.recommend.search.exchange.forecast_nodes import NONZERO_REQUESTED, REQUESTED, ForecastColumns, ForecastNodes

_MAX_SCORE = 100.0
_MAX_COPIES = 64
"""How many copies of a pod on one node are scored at once, at most."""
_BIG = 1 << 20
"""More than the nodes of a purchase, or the pods of a node."""
_KEY_RANGE = _BIG << 10
"""More than the score key of any node."""


class Forecast:
    """See the module's contract; `offerings` are the numbers of the offerings that may be bought."""

    def __init__(self, planning: PlanningCluster, problem: Problem, offerings: Iterable[int]) -> None:
        self._problem, self._columns = problem, ForecastColumns(planning, problem, offerings)
        cluster, numbers = planning.cluster, problem.class_of_pod
        self._meter = cluster.meter
        pods = [numbers[pod] for pod in planning.pending if pod in numbers]
        self.runs = [(number, sum(1 for _ in same)) for number, same in groupby(pods)]
        """The queue as runs of identical pods: class and count."""
        rows = [cluster.pod_row(each.pods[0]) for each in problem.classes]
        usage = cluster.usages.matrix[cluster.pods.usage[rows]]
        self._requested = usage[:, REQUESTED].astype(np.float64)
        self._nonzero_requested = usage[:, NONZERO_REQUESTED].astype(np.float64)
        self._spreads: dict[int, DomainRule] = {}
        values_by_key: dict[str, set[str]] = {}
        for rule in problem.rules.domains:
            if rule.kind is RuleKind.SPREAD and rule.holder not in self._spreads:
                self._spreads[rule.holder] = rule
                values_by_key.setdefault(rule.key, set()).update(rule.counts)
        self._label_values = {key: self._columns.labels(key, values) for key, values in values_by_key.items()}

    def unplaced(self, bought: Sequence[int]) -> Ints:
        """Return how many pods of each class one purchase leaves unplaced."""
        unplaced: Ints = self.unplaced_counts([bought])[0]
        return unplaced

    def unplaced_counts(self, purchases: Sequence[Sequence[int]]) -> Ints:
        """Return purchase x class: how many pods are unplaced."""
        return self._run(purchases, None)

    def are_feasible(self, purchases: Sequence[Sequence[int]], allowed: Ints) -> Bools:
        """Return which purchases leave no more pods of any class unplaced than allowed."""
        feasible: Bools = np.logical_and.reduce(self._run(purchases, allowed) <= allowed, axis=1)
        return feasible

    def _run(self, purchases: Sequence[Sequence[int]], allowed: Ints | None) -> Ints:
        """Return purchase x class: how many pods are unplaced.

        With `allowed`, a purchase that leaves more pods of a class is not forecast further.
        """
        nodes = self._columns.nodes(purchases)
        unplaced = np.zeros((len(purchases), len(self._problem.classes)), dtype=np.int64)
        is_active: Bools = np.ones(len(purchases), dtype=bool)
        for number, count in self.runs:
            pending = np.where(is_active, count, 0)
            while pending.any():
                placed = self._place(nodes, number, pending)
                unplaced[:, number] += np.where(placed == 0, pending, 0)
                pending = np.where(placed == 0, 0, pending - placed)
            if allowed is not None and (failed := is_active & (unplaced[:, number] > allowed[number])).any():
                is_active &= ~failed
                if not is_active.any():
                    break
                nodes = nodes.select_purchases(is_active)
        return unplaced

    def _place(self, nodes: ForecastNodes, number: int, pending: Ints) -> Ints:
        """Place up to `pending` pods of a class for each purchase, as far as their order is known; return how many."""
        copies = self._copies(nodes, number)
        rows = np.flatnonzero((copies > 0) & (pending[nodes.purchase_of] > 0))
        if not len(rows):
            return np.zeros_like(pending)
        copies, purchase_of = copies[rows], nodes.purchase_of[rows]
        node_counts = np.bincount(purchase_of, minlength=len(pending))
        max_copies = int(min(copies.max() + 1, 2 + 2 * (-(-pending // np.maximum(node_counts, 1))).max(), _MAX_COPIES))
        self._meter.count += FORECAST_CLASS + FORECAST_CELL * len(rows) * max_copies
        score_keys = self._score_keys(nodes, number, rows, copies, max_copies=max_copies)
        cells = np.flatnonzero(score_keys >= 0)
        node_of_cell = cells % len(rows)
        order = np.argsort((purchase_of[node_of_cell] + 1) * _KEY_RANGE - score_keys[cells], kind="stable")
        cells, node_of_cell = cells[order], node_of_cell[order]
        purchase_of_cell = purchase_of[node_of_cell]
        rule = self._spreads.get(number)
        if rule is not None:
            chosen = self._allow_by_spread(nodes, rule, purchase_of_cell, rows[node_of_cell], pending=pending)
            cells, node_of_cell, purchase_of_cell = cells[chosen], node_of_cell[chosen], purchase_of_cell[chosen]
        counts = np.bincount(purchase_of_cell, minlength=len(pending))
        position = np.arange(len(purchase_of_cell)) - (np.cumsum(counts) - counts)[purchase_of_cell]
        # The order is not known after a node's last scored copy.
        last = np.flatnonzero(cells >= (max_copies - 1) * len(rows))
        last_known = np.full(len(pending), np.iinfo(np.int64).max)
        last_known[purchase_of_cell[last][::-1]] = position[last][::-1]
        chosen = np.flatnonzero((position < pending[purchase_of_cell]) & (position <= last_known[purchase_of_cell]))
        taken = np.bincount(node_of_cell[chosen], minlength=len(rows))
        rows, taken = rows[taken > 0], taken[taken > 0]
        nodes.free[rows] -= taken[:, None] * self._problem.requests[number]
        nodes.requested[:, rows] += taken * self._requested[number][:, None]
        nodes.nonzero_requested[:, rows] += taken * self._nonzero_requested[number][:, None]
        if nodes.placed_counts.shape[1]:
            nodes.placed_counts[rows, number] += taken
        return np.bincount(purchase_of_cell[chosen], minlength=len(pending))

    def _copies(self, nodes: ForecastNodes, number: int) -> Ints:
        """Return how many pods of a class each node takes."""
        requests, host = self._problem.requests[number], self._problem.rules.host
        copies: Ints = np.where(nodes.allowed[:, number], _BIG, 0)
        for resource in np.flatnonzero(requests).tolist():
            np.minimum(copies, nodes.free[:, resource] // requests[resource], out=copies)
        if nodes.placed_counts.shape[1]:
            if not host.has_spread[number]:
                copies = np.minimum(copies, host.max_per_node[number] - nodes.placed_counts[:, number])
            conflicting = host.conflicts[number].copy()
            conflicting[number] = False
            if conflicting.any():
                copies = np.where(nodes.placed_counts[:, conflicting].any(axis=1), 0, copies)
        return copies

    def _score_keys(self, nodes: ForecastNodes, number: int, rows: Rows, copies: Ints, *, max_copies: int) -> Ints:
        """Return the score key of each node after 0, 1, 2 ... copies, as a running minimum; -1 where no copy fits."""
        capacity = nodes.capacity[:, None, rows]
        steps = np.arange(max_copies + 1, dtype=np.float64)[None, :, None]
        free_scores = (capacity - nodes.nonzero_requested[:, None, rows]) * _MAX_SCORE
        free_scores = free_scores - steps[:, 1:] * (_MAX_SCORE * self._nonzero_requested[number][:, None, None])
        np.maximum(free_scores, 0.0, out=free_scores)
        free_scores /= capacity
        np.floor(free_scores, out=free_scores)
        least_allocated = (free_scores[0] + free_scores[1]).astype(np.int64) >> 1
        used_shares = nodes.requested[:, None, rows] + steps * self._requested[number][:, None, None]
        used_shares /= capacity
        np.minimum(used_shares, 1.0, out=used_shares)
        balance_scores = ((1.0 - np.abs(used_shares[0] - used_shares[1]) * 0.5) * _MAX_SCORE).astype(np.int64)
        scores = least_allocated + ((balance_scores[1:] - balance_scores[:-1] + 150) >> 1)
        keys = scores * _BIG + nodes.name_rank[rows]
        keys[np.arange(max_copies)[:, None] >= copies] = -1
        score_keys: Ints = np.minimum.accumulate(keys, axis=0).ravel()
        return score_keys

    def _allow_by_spread(
        self, nodes: ForecastNodes, rule: DomainRule, purchase_of_cell: Ints, rows: Rows, *, pending: Ints
    ) -> Ints:
        """Return the cells of each purchase that a spread rule lets pods take, in order."""
        domain_of_template, names = self._label_values[rule.key]
        purchase_and_domain = (nodes.purchase_of, domain_of_template[nodes.template_rows])
        matched_pods = np.zeros((len(pending), len(names)), dtype=np.int64) + [
            rule.counts.get(name, 0) for name in names
        ]
        np.add.at(matched_pods, purchase_and_domain, nodes.placed_counts[:, rule.matched].sum(axis=1))
        has_nodes = np.zeros(matched_pods.shape, dtype=bool) | [name in rule.counts for name in names]
        has_nodes[purchase_and_domain] = True
        groups = purchase_of_cell * len(names) + domain_of_template[nodes.template_rows[rows]]
        order = np.argsort(groups, kind="stable")
        ends = np.searchsorted(groups[order], np.arange(matched_pods.size + 1)).tolist()
        chosen: list[int] = []
        for purchase, count in enumerate(pending.tolist()):
            counts = {
                domain: int(matched_pods[purchase, domain]) for domain in np.flatnonzero(has_nodes[purchase]).tolist()
            }
            firsts = {domain: purchase * len(names) + domain for domain in counts}
            queues = {
                domain: order[ends[first] : min(ends[first + 1], ends[first] + count)].tolist()
                for domain, first in firsts.items()
            }
            chosen += _take_by_spread(rule, counts, queues, count)
        return np.array(chosen, dtype=np.intp)


def _take_by_spread(rule: DomainRule, counts: dict[int, int], queues: dict[int, list[int]], count: int) -> list[int]:
    """Return the first cells in the order of their numbers, each from a domain that the spread rule allows."""
    heads = dict.fromkeys(queues, 0)
    chosen: list[int] = []
    increment = 1 if rule.matched[rule.holder] else 0
    while len(chosen) < count:
        max_count = rule.skew - increment + (min(counts.values()) if len(counts) >= rule.min_domains else 0)
        candidates = [
            (queue[heads[domain]], domain)
            for domain, queue in queues.items()
            if heads[domain] < len(queue) and counts[domain] <= max_count
        ]
        if not candidates:
            break
        cell, domain = min(candidates)
        chosen.append(cell)
        counts[domain] += increment
        heads[domain] += 1
    return chosen
