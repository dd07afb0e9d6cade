"""Local search: from a purchase to cheaper purchases on which kube-scheduler still places the same pods.

Contract: pure; stops at the work budget; the planning cluster is left as it was. A move removes some nodes, and adds
none or the fewest nodes of one other offering that suffice; forecasts (`forecast`) decide. When no such move is left, a
wide search removes nodes of two offerings at once, or adds a node of another offering too. Replays confirm the
purchase, more often the more forecasts were wrong: `best` is the given outcome or a replayed outcome with a better
rank. The search is deterministic; ties go to the first.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from itertools import chain, combinations

from tutti.recommend.replay.binding import BoundPurchase
from tutti.recommend.replay.kube_scheduler_binder import KubeSchedulerBinder
from tutti.recommend.search.exchange.neighbours import Neighbours, NodeCounts, key_of

Rank = Callable[[BoundPurchase], tuple[float, ...]]
"""How good an outcome is; the least is best."""
_PAIR_COUNTS = (1, 2)
"""How many nodes of each of two offerings are removed at once."""


class LocalSearch:
    """See the module's contract; `best` is the best outcome so far."""

    def __init__(self, binding: KubeSchedulerBinder, neighbours: Neighbours, rank: Rank, best: BoundPurchase) -> None:
        self._binding, self._neighbours, self._rank, self.best = binding, neighbours, rank, best
        self._best_purchase = Counter(offering for _, offering in best.nodes)
        self._current = self._best_purchase
        self._unconfirmed: list[NodeCounts] = []
        """Purchases cheaper than the best outcome that are not replayed yet, each cheaper than the one before."""
        self._confirm_after = 1
        """How many unconfirmed purchases lead to a replay."""

    def run(self, start: NodeCounts, *, wide: bool) -> None:
        """Search from a purchase until no move is found or the budget ends; `wide` also changes two offerings."""
        neighbours, self._current = self._neighbours, start
        while not neighbours.must_stop():
            previous = self._current
            for remainders in self._without_one_offering():
                self._move(remainders, same_domain=True)
            if self._current == previous and wide:
                for remainders in chain(self._without_one_offering(), self._without_two_offerings()):
                    self._move(remainders, same_domain=False)
                    if self._current != previous:
                        break
            if self._current == previous:
                break
        self._confirm()

    @property
    def best_purchase(self) -> NodeCounts:
        """The purchase of the best outcome."""
        return self._best_purchase

    def _without_one_offering(self) -> Iterator[list[NodeCounts]]:
        """Yield what remains of the current purchase without all, half, a quarter ... of the nodes of one offering."""
        for offering in self._offerings_dearest_first():
            count, remainders = self._current[offering], list[NodeCounts]()
            while count:
                remainders.append(self._current - Counter({offering: count}))
                count //= 2
            if remainders:
                yield remainders

    def _without_two_offerings(self) -> Iterator[list[NodeCounts]]:
        """Yield what remains without nodes of two offerings, or without nodes of one and with one more of another."""
        offerings = self._offerings_dearest_first()
        for first, second in combinations(offerings, 2):
            yield [
                self._current - Counter({first: first_count, second: second_count})
                for first_count in _PAIR_COUNTS
                for second_count in _PAIR_COUNTS
            ]
        for removed in offerings:
            counts = sorted({min(count, self._current[removed]) for count in (1, 2, 4)})
            for added in offerings:
                if added != removed:
                    yield [self._current - Counter({removed: count}) + Counter({added: 1}) for count in counts]

    def _offerings_dearest_first(self) -> list[int]:
        """Return the offerings of the current purchase by total price, the dearest first."""
        prices, current = self._neighbours.prices, self._current
        return sorted(
            (each for each in current if current[each]), key=lambda each: (-prices[each] * current[each], each)
        )

    def _move(self, remainders: list[NodeCounts], *, same_domain: bool) -> None:
        """Move to the cheapest neighbour, if there is one, and confirm when enough moves are unconfirmed."""
        found = (
            None
            if self._neighbours.must_stop()
            else self._neighbours.cheapest_neighbour(self._current, remainders, same_domain=same_domain)
        )
        if found is None:
            return
        self._current = found
        if self._neighbours.cost(found) < self._neighbours.cost(self._best_purchase):
            self._unconfirmed.append(found)
        if len(self._unconfirmed) >= self._confirm_after:
            self._confirm()

    def _confirm(self) -> None:
        """Replay the last unconfirmed purchase; if it fails, find the last one that succeeds by binary search."""
        if not self._unconfirmed:
            return
        confirmed, refuted = -1, len(self._unconfirmed)
        place = refuted - 1
        while refuted - confirmed > 1:
            bought = sorted(self._unconfirmed[place].elements())
            outcome = self._binding.replay(self.best.maker, bought)
            if self._rank(outcome) < self._rank(self.best):
                confirmed, self.best, self._best_purchase = place, outcome, self._unconfirmed[place]
            else:
                refuted = place
                self._neighbours.refuted.add(key_of(self._unconfirmed[place]))
            place = (confirmed + refuted) // 2
            if self._neighbours.must_stop():
                break
        if confirmed == len(self._unconfirmed) - 1:
            self._confirm_after *= 2
        else:
            self._confirm_after, self._current = 1, self._best_purchase
        self._unconfirmed = []
