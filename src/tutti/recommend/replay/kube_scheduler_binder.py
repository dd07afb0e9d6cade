"""kube-scheduler binds: the nodes are bought, and it places the pods as it likes.

Contract: see `binding`. Its scores spread pods, so that a purchase on which everybody would fit may leave large pods
waiting. `mended` buys more until everybody whom the draft places is placed; `spared` gives back what is then too much.
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
from tutti.recommend.records.scale_ups import in_order
from tutti.recommend.replay.binding import MENDS, Binding, BoundPurchase

_STEPS = 60_000
"""How far the search for all purchases between two costs goes."""


class KubeSchedulerBinder(Binding):
    """See the module's contract."""

    def mended(self, draft: Draft, outcome: BoundPurchase, progress: Progress) -> BoundPurchase:
        """Buy more than a draft does until the scheduler places everybody whom the draft places."""
        wanted = {pod for pod, _ in draft.on_existing}.union(*(each.pods for each in draft.bought))
        bought = [each.offering for each in draft.bought]
        missing, times = len(wanted) + 1, 1
        more: list[int] | None = None
        for _ in range(MENDS):
            left = [pod for pod in self.planning.pending if pod in wanted and pod not in outcome.where]
            if not left or progress.is_far_over_budget():
                break
            times = times * 2 if 2 * len(left) > missing else 1  # what helps too little is bought in larger steps
            missing = len(left)
            if more is None:
                outcome, more = self._replayed(draft.maker, bought, wanted)
            more = self._affordable(bought, more * times)
            if not more:
                break
            bought += more
            outcome, more = self._replayed(draft.maker, bought, wanted)
        return outcome

    def is_affordable(self, bought: Sequence[int]) -> bool:
        """Whether limits allow a purchase."""
        return len(self._affordable((), bought)) == len(bought)

    def _affordable(self, bought: Sequence[int], more: Sequence[int]) -> list[int]:
        """As many of some further nodes as limits allow."""
        left = [row.left - sum(int(row.takes[offering]) for offering in bought) for row in self.problem.limits]
        chosen = []
        for offering in more:
            takes = [int(row.takes[offering]) for row in self.problem.limits]
            if all(amount <= rest for amount, rest in zip(takes, left, strict=True)):
                left = [rest - amount for amount, rest in zip(takes, left, strict=True)]
                chosen.append(offering)
        return chosen

    def replay(self, maker: str, bought: Sequence[int]) -> BoundPurchase:
        """Buy nodes, and let the scheduler place all pods that wait."""
        return self._replayed(maker, bought, frozenset())[0]

    def _replayed(self, maker: str, bought: Sequence[int], wanted: Collection[str]) -> tuple[BoundPurchase, list[int]]:
        """What the scheduler makes of a purchase, and what to buy, as things then are, for those who lack a node."""
        with Trial(self.planning.cluster):
            nodes = self._scheduled(bought)
            outcome = self.outcome(maker, nodes, None)
            missing = [pod for pod in outcome.left if pod in wanted]
            more = self.buy(self.rest(nodes), missing).bought if missing else ()
            return outcome, [each.offering for each in more]

    def _scheduled(self, bought: Sequence[int]) -> list[tuple[str, int]]:
        """Let nodes join in the order in which they are merged, so that names say the same everywhere; schedule."""
        chosen = sorted(bought, key=lambda number: in_order(self.problem.offerings[number]))
        names = self.planning.join_all([self.problem.offerings[number] for number in chosen])
        schedule(self.planning.cluster, self.pods, self.planning.profile, preemption=False)
        return list(zip(names, chosen, strict=True))

    def spared(self, outcome: BoundPurchase, budget: WorkBudget) -> BoundPurchase:
        """Buy less as long as the scheduler still places everybody: of every offering, the dearest first."""
        bought, wanted = [offering for _, offering in outcome.nodes], outcome.where.keys()
        prices = {offering: self.problem.offerings[offering].price or 0 for offering in bought}
        counts = Counter(bought)
        used = set(outcome.where.values())
        busy = Counter(offering for name, offering in outcome.nodes if name in used)
        if busy != counts:  # what is empty is the first to go
            again = self.replay(outcome.maker, sorted(busy.elements()))
            if wanted <= again.where.keys():
                counts, outcome = busy, again
        changed = True
        while changed:
            changed = False
            for offering in sorted(counts, key=lambda each: (-prices[each], each)):
                step = counts[offering]  # more than half of a large number first, then less and less
                while step and counts[offering]:
                    if budget.is_exhausted():
                        return outcome
                    step = min(step, counts[offering])
                    fewer = Counter(counts)
                    fewer[offering] -= step
                    again = self.replay(outcome.maker, sorted(fewer.elements()))
                    if wanted <= again.where.keys():
                        counts, outcome, changed = fewer, again, True
                    else:
                        step //= 2
        return outcome._replace(minimal=True)


def purchases_between(prices: Floats, least: float, most: float, *, limit: int) -> list[tuple[int, ...]] | None:
    """All purchases that cost at least and less than this, the cheapest first; None when there are too many."""
    like: dict[float, list[int]] = {}
    for number in np.flatnonzero(prices > 0).tolist():
        like.setdefault(float(prices[number]), []).append(number)
    values = sorted(like, reverse=True)
    found: list[tuple[float, int, tuple[int, ...]]] = []
    for counts in _sums_between(values, least, most):
        if counts is None:
            return None
        pairs = list(zip(values, counts, strict=True))
        if len(found) + prod(comb(len(like[value]) + times - 1, times) for value, times in pairs) > limit:
            return None  # said beforehand: written out, so many may not even fit into memory
        cost = sum(value * times for value, times in pairs)
        ways = [combinations_with_replacement(like[value], times) for value, times in pairs]
        for way in product(*ways):
            bought = tuple(number for part in way for number in part)
            found.append((cost, len(bought), bought))
    return [bought for *_, bought in sorted(found)]


def _sums_between(values: Sequence[float], least: float, most: float) -> Iterator[tuple[int, ...] | None]:
    """How often each value may be taken so that the sum is within; ends with None when the search takes too long."""
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
