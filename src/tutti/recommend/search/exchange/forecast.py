"""A forecast: whom kube-scheduler would place on each of some purchases, in numbers.

Contract: pure; the picture is left as it was. It follows the scheduler's default scores (the emptiest node, the most
balanced one, ties to the first name) over whole runs of like pods, and for many purchases side by side, which takes a
small part of the time of replays.
Pods that only look at room are forecast as the engine places them; of the rules between pods it knows those against
sharing a node and spreads over one label, and it takes gangs pod by pod. It guides a search and promises nothing: what
counts is the replay.
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
from tutti.recommend.search.exchange.forecast_nodes import REAL, SCORED, ForecastColumns, ForecastNodes

_HUNDRED = 100.0
_LEVELS = 64
"""How many copies on one node are looked at in one go, at most."""
_MANY = 1 << 20
"""More than there are nodes in a purchase, or pods on a node."""
_KEYS = _MANY << 10
"""More than the key of any node."""


class Forecast:
    """See the module's contract; `offerings` are the numbers of those that may be bought."""

    def __init__(self, planning: PlanningCluster, problem: Problem, offerings: Iterable[int]) -> None:
        self._problem, self._columns = problem, ForecastColumns(planning, problem, offerings)
        cluster, numbers = planning.cluster, problem.of_pod
        self._meter = cluster.meter
        pods = [numbers[pod] for pod in planning.pending if pod in numbers]
        self.runs = [(number, sum(1 for _ in same)) for number, same in groupby(pods)]
        """The queue, as runs of like pods."""
        rows = [cluster.pod_row(each.pods[0]) for each in problem.classes]
        usage = cluster.usages.matrix[cluster.pods.usage[rows]]
        self._real = usage[:, REAL].astype(np.float64)
        self._scored = usage[:, SCORED].astype(np.float64)
        self._spreads: dict[int, DomainRule] = {}
        known: dict[str, set[str]] = {}
        for rule in problem.rules.domains:
            if rule.kind is RuleKind.SPREAD and rule.holder not in self._spreads:
                self._spreads[rule.holder] = rule
                known.setdefault(rule.key, set()).update(rule.counts)
        self._values = {key: self._columns.labels(key, values) for key, values in known.items()}

    def left(self, bought: Sequence[int]) -> Ints:
        """How many pods of each class find no place."""
        left: Ints = self.left_of([bought])[0]
        return left

    def left_of(self, purchases: Sequence[Sequence[int]]) -> Ints:
        """Purchase x class: how many pods find no place."""
        return self._run(purchases, None)

    def fit(self, purchases: Sequence[Sequence[int]], allowed: Ints) -> Bools:
        """Which purchases leave no more pods of any class than is allowed."""
        found: Bools = np.logical_and.reduce(self._run(purchases, allowed) <= allowed, axis=1)
        return found

    def _run(self, purchases: Sequence[Sequence[int]], allowed: Ints | None) -> Ints:
        """Purchase x class: how many pods find no place; who leaves more than is allowed is not looked at further."""
        nodes = self._columns.nodes(purchases)
        left = np.zeros((len(purchases), len(self._problem.classes)), dtype=np.int64)
        alive: Bools = np.ones(len(purchases), dtype=bool)
        for number, count in self.runs:
            wanted = np.where(alive, count, 0)
            while wanted.any():
                placed = self._place(nodes, number, wanted)
                left[:, number] += np.where(placed == 0, wanted, 0)
                wanted = np.where(placed == 0, 0, wanted - placed)
            if allowed is not None and (failed := alive & (left[:, number] > allowed[number])).any():
                alive &= ~failed
                if not alive.any():
                    break
                nodes = nodes.of_some(alive)
        return left

    def _place(self, nodes: ForecastNodes, number: int, wanted: Ints) -> Ints:
        """Place so many pods of a class for each purchase, as far as is known where they go; give how many that are."""
        copies = self._copies(nodes, number)
        rows = np.flatnonzero((copies > 0) & (wanted[nodes.of] > 0))
        if not len(rows):
            return np.zeros_like(wanted)
        copies, of = copies[rows], nodes.of[rows]
        fewest = np.bincount(of, minlength=len(wanted))
        levels = int(min(copies.max() + 1, 2 + 2 * (-(-wanted // np.maximum(fewest, 1))).max(), _LEVELS))
        self._meter.count += FORECAST_CLASS + FORECAST_CELL * len(rows) * levels
        falling = self._falling(nodes, number, rows, copies, levels=levels)
        cells = np.flatnonzero(falling >= 0)
        at = cells % len(rows)
        order = np.argsort((of[at] + 1) * _KEYS - falling[cells], kind="stable")
        cells, at = cells[order], at[order]
        mine = of[at]
        rule = self._spreads.get(number)
        if rule is not None:
            chosen = self._spread(nodes, rule, mine, rows[at], wanted=wanted)
            cells, at, mine = cells[chosen], at[chosen], mine[chosen]
        counts = np.bincount(mine, minlength=len(wanted))
        place = np.arange(len(mine)) - (np.cumsum(counts) - counts)[mine]
        # Behind the last level of a node that has been taken up, the order is not known.
        last = np.flatnonzero(cells >= (levels - 1) * len(rows))
        ends = np.full(len(wanted), np.iinfo(np.int64).max)
        ends[mine[last][::-1]] = place[last][::-1]
        chosen = np.flatnonzero((place < wanted[mine]) & (place <= ends[mine]))
        taken = np.bincount(at[chosen], minlength=len(rows))
        rows, taken = rows[taken > 0], taken[taken > 0]
        nodes.free[rows] -= taken[:, None] * self._problem.requests[number]
        nodes.real[:, rows] += taken * self._real[number][:, None]
        nodes.scored[:, rows] += taken * self._scored[number][:, None]
        if nodes.held.shape[1]:
            nodes.held[rows, number] += taken
        return np.bincount(mine[chosen], minlength=len(wanted))

    def _copies(self, nodes: ForecastNodes, number: int) -> Ints:
        """How many pods of a class each node would take."""
        requests, host = self._problem.requests[number], self._problem.rules.host
        copies: Ints = np.where(nodes.allowed[:, number], _MANY, 0)
        for resource in np.flatnonzero(requests).tolist():
            np.minimum(copies, nodes.free[:, resource] // requests[resource], out=copies)
        if nodes.held.shape[1]:
            if not host.skewed[number]:
                copies = np.minimum(copies, host.most[number] - nodes.held[:, number])
            others = host.apart[number].copy()
            others[number] = False
            if others.any():
                copies = np.where(nodes.held[:, others].any(axis=1), 0, copies)
        return copies

    def _falling(self, nodes: ForecastNodes, number: int, rows: Rows, copies: Ints, *, levels: int) -> Ints:
        """The key of each node after 0, 1, 2 ... copies, level by level, as a running minimum; -1 where none fits."""
        capacity = nodes.capacity[:, None, rows]
        steps = np.arange(levels + 1, dtype=np.float64)[None, :, None]
        left = (capacity - nodes.scored[:, None, rows]) * _HUNDRED
        left = left - steps[:, 1:] * (_HUNDRED * self._scored[number][:, None, None])
        np.maximum(left, 0.0, out=left)
        left /= capacity
        np.floor(left, out=left)
        least = (left[0] + left[1]).astype(np.int64) >> 1
        parts = nodes.real[:, None, rows] + steps * self._real[number][:, None, None]
        parts /= capacity
        np.minimum(parts, 1.0, out=parts)
        whole = ((1.0 - np.abs(parts[0] - parts[1]) * 0.5) * _HUNDRED).astype(np.int64)
        scores = least + ((whole[1:] - whole[:-1] + 150) >> 1)
        keys = scores * _MANY + nodes.rank[rows]
        keys[np.arange(levels)[:, None] >= copies] = -1
        falling: Ints = np.minimum.accumulate(keys, axis=0).ravel()
        return falling

    def _spread(self, nodes: ForecastNodes, rule: DomainRule, mine: Ints, rows: Rows, *, wanted: Ints) -> Ints:
        """Those of the next places of each purchase that a spread lets pods take, in order."""
        codes, names = self._values[rule.key]
        mine_and_code = (nodes.of, codes[nodes.kinds])
        held = np.zeros((len(wanted), len(names)), dtype=np.int64) + [rule.counts.get(name, 0) for name in names]
        np.add.at(held, mine_and_code, nodes.held[:, rule.matched].sum(axis=1))
        there = np.zeros(held.shape, dtype=bool) | [name in rule.counts for name in names]
        there[mine_and_code] = True
        groups = mine * len(names) + codes[nodes.kinds[rows]]
        order = np.argsort(groups, kind="stable")
        ends = np.searchsorted(groups[order], np.arange(held.size + 1)).tolist()
        chosen: list[int] = []
        for of, count in enumerate(wanted.tolist()):
            counts = {domain: int(held[of, domain]) for domain in np.flatnonzero(there[of]).tolist()}
            firsts = {domain: of * len(names) + domain for domain in counts}
            queues = {
                domain: order[ends[first] : min(ends[first + 1], ends[first] + count)].tolist()
                for domain, first in firsts.items()
            }
            chosen += _in_turn(rule, counts, queues, count)
        return np.array(chosen, dtype=np.intp)


def _in_turn(rule: DomainRule, counts: dict[int, int], queues: dict[int, list[int]], count: int) -> list[int]:
    """Take the first places in the order of their numbers, each from a domain that a spread allows."""
    heads = dict.fromkeys(queues, 0)
    chosen: list[int] = []
    step = 1 if rule.matched[rule.holder] else 0
    while len(chosen) < count:
        most = rule.skew - step + (min(counts.values()) if len(counts) >= rule.min_domains else 0)
        ready = [
            (queue[heads[it]], it) for it, queue in queues.items() if heads[it] < len(queue) and counts[it] <= most
        ]
        if not ready:
            break
        place, domain = min(ready)
        chosen.append(place)
        counts[domain] += step
        heads[domain] += 1
    return chosen
