"""kube-scheduler binds: the nodes are bought, and kube-scheduler places the pods by its own scores.

Contract: see `binding`. kube-scheduler's scores spread pods, so large pods may stay pending although the purchase has
room for all pods. `buy_until_placed` adds nodes until every pod of the draft is placed; `drop_spare_nodes` then removes
nodes that are not needed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from itertools import combinations_with_replacement, product
from math import comb, prod

import numpy as np

from tutti.cluster.columns import Floats
from tutti.cluster.trial import Trial
from tutti.cluster.work.work_budget import WorkBudget
from tutti.engine.session.schedule import schedule
from tutti.recommend.problem.search_context import Progress
from tutti.recommend.records.draft import Draft
from tutti.recommend.records.scale_ups import scale_up_key
from tutti.recommend.replay.binding import MAX_EXTRA_PURCHASES, BoundPurchase, DraftBinder

_STEPS = 60_000
"""Steps of the search for all purchases between two costs."""


class KubeSchedulerBinder(DraftBinder):
    """Replays purchases with kube-scheduler as the binder; see the module's contract."""

    def buy_until_placed(self, draft: Draft, purchase: BoundPurchase, progress: Progress) -> BoundPurchase:
        """Add nodes to a draft until kube-scheduler places every pod that the draft places."""
        wanted = {pod for pod, _ in draft.on_existing}.union(*(each.pods for each in draft.nodes))
        numbers = [each.offering for each in draft.nodes]
        missing, times = len(wanted) + 1, 1
        more: list[int] | None = None
        for _ in range(MAX_EXTRA_PURCHASES):
            left = [pod for pod in self.planning.pending if pod in wanted and pod not in purchase.node_of_pod]
            if not left or progress.is_far_over_budget():
                break
            times = times * 2 if 2 * len(left) > missing else 1  # after too little progress, buy in larger steps
            missing = len(left)
            if more is None:
                purchase, more = self._replay_and_buy(draft.maker, numbers, wanted)
            more = self._within_limits(numbers, more * times)
            if not more:
                break
            numbers += more
            purchase, more = self._replay_and_buy(draft.maker, numbers, wanted)
        return purchase

    def is_within_limits(self, numbers: Sequence[int]) -> bool:
        """Return whether limits allow a purchase, given as numbers of offerings."""
        return len(self._within_limits((), numbers)) == len(numbers)

    def _within_limits(self, numbers: Sequence[int], more: Sequence[int]) -> list[int]:
        """Return as many of some further nodes as limits allow, after the nodes bought so far."""
        left = [row.left - sum(int(row.takes[offering]) for offering in numbers) for row in self.problem.limits]
        chosen = []
        for offering in more:
            takes = [int(row.takes[offering]) for row in self.problem.limits]
            if all(amount <= rest for amount, rest in zip(takes, left, strict=True)):
                left = [rest - amount for amount, rest in zip(takes, left, strict=True)]
                chosen.append(offering)
        return chosen

    def replay(self, maker: str, numbers: Sequence[int]) -> BoundPurchase:
        """Return the purchase after kube-scheduler has placed all pending pods."""
        return self._replay_and_buy(maker, numbers, frozenset())[0]

    def _replay_and_buy(
        self, maker: str, numbers: Sequence[int], wanted: Collection[str]
    ) -> tuple[BoundPurchase, list[int]]:
        """Return the purchase after scheduling, and the offerings to buy for pods of `wanted` that are left."""
        with Trial(self.planning.cluster):
            nodes = self._join_and_schedule(numbers)
            purchase = self.bound_purchase(maker, nodes, None)
            missing = [pod for pod in purchase.left if pod in wanted]
            more = self.buy(self.after_purchase(nodes), missing).nodes if missing else ()
            return purchase, [each.offering for each in more]

    def _join_and_schedule(self, numbers: Sequence[int]) -> list[tuple[str, int]]:
        """Join the nodes in scale-up order, so that equal purchases give equal node names; then schedule."""
        chosen = sorted(numbers, key=lambda number: scale_up_key(self.problem.offerings[number]))
        names = self.planning.join_all([self.problem.offerings[number] for number in chosen])
        schedule(self.planning.cluster, self.pods, self.planning.profile, preemption=False)
        return list(zip(names, chosen, strict=True))

    def drop_spare_nodes(self, purchase: BoundPurchase, budget: WorkBudget) -> BoundPurchase:
        """Remove nodes while kube-scheduler still places every pod: offering by offering, the most expensive first."""
        numbers, wanted = [offering for _, offering in purchase.nodes], purchase.node_of_pod.keys()
        prices = {offering: self.problem.offerings[offering].price or 0 for offering in numbers}
        counts = Counter(numbers)
        used = set(purchase.node_of_pod.values())
        busy = Counter(offering for name, offering in purchase.nodes if name in used)
        if busy != counts:  # try first without the empty nodes
            smaller = self.replay(purchase.maker, sorted(busy.elements()))
            if wanted <= smaller.node_of_pod.keys():
                counts, purchase = busy, smaller
        changed = True
        while changed:
            changed = False
            for offering in sorted(counts, key=lambda each: (-prices[each], each)):
                step = counts[offering]  # start with all nodes of the offering, then halve
                while step and counts[offering]:
                    if budget.is_exhausted():
                        return purchase
                    step = min(step, counts[offering])
                    fewer = Counter(counts)
                    fewer[offering] -= step
                    smaller = self.replay(purchase.maker, sorted(fewer.elements()))
                    if wanted <= smaller.node_of_pod.keys():
                        counts, purchase, changed = fewer, smaller, True
                    else:
                        step //= 2
        return purchase._replace(minimal=True)


def purchases_between(prices: Floats, least: float, most: float, *, limit: int) -> list[tuple[int, ...]] | None:
    """Return all purchases with a cost in [least, most), the cheapest first; None if there are more than `limit`."""
    numbers_by_price: dict[float, list[int]] = {}
    for number in np.flatnonzero(prices > 0).tolist():
        numbers_by_price.setdefault(float(prices[number]), []).append(number)
    values = sorted(numbers_by_price, reverse=True)
    purchases: list[tuple[float, int, tuple[int, ...]]] = []
    for counts in _sums_between(values, least, most):
        if counts is None:
            return None
        pairs = list(zip(values, counts, strict=True))
        if (
            len(purchases) + prod(comb(len(numbers_by_price[value]) + times - 1, times) for value, times in pairs)
            > limit
        ):
            return None  # decided before the purchases are listed, because the list may exceed memory
        cost = sum(value * times for value, times in pairs)
        combinations = [combinations_with_replacement(numbers_by_price[value], times) for value, times in pairs]
        for combination in product(*combinations):
            numbers = tuple(number for part in combination for number in part)
            purchases.append((cost, len(numbers), numbers))
    return [numbers for *_, numbers in sorted(purchases)]


def _sums_between(values: Sequence[float], least: float, most: float) -> Iterator[tuple[int, ...] | None]:
    """Yield how often each value is taken so that the sum is in [least, most); end with None after too many steps."""
    todo: list[tuple[float, tuple[int, ...]]] = [(0.0, ())]
    steps = 0
    while todo:
        cost, counts = todo.pop()
        if len(counts) == len(values):
            if cost >= least:
                yield counts
            continue
        value = values[len(counts)]
        steps += int((most - cost) / value) + 1
        if steps > _STEPS:
            yield None
            return
        todo += [
            (cost + times * value, (*counts, times))
            for times in range(int((most - cost) / value) + 1)
            if cost + times * value < most
        ]
