"""A walk: from a purchase to cheaper ones on which a scheduler still places everybody.

Contract: pure but for the clock; the picture is left as it was. Steps are taken by forecasts (`forecast`): some
nodes go, and none or the fewest of one other offering that do come instead. Where nothing of the kind is left, two
offerings give nodes at once, or a node of another one comes with the step. Replays confirm where the walk has come to,
the oftener the more forecasts were wrong: what it ends with was replayed, and is the outcome that it was given or
better by rank. Nothing is left to chance; ties go to the first.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from itertools import chain, combinations

from tutti.recommend.replay.binding import BoundPurchase
from tutti.recommend.replay.kube_scheduler_binder import KubeSchedulerBinder
from tutti.recommend.search.exchange.neighbours import Neighbours, Purchase, key_of

Rank = Callable[[BoundPurchase], tuple[float, ...]]
_FEW = (1, 2)
"""How many nodes of each of two offerings go at once."""


class LocalSearch:
    """See the module's contract; `sound` is the best outcome so far."""

    def __init__(self, binding: KubeSchedulerBinder, steps: Neighbours, rank: Rank, sound: BoundPurchase) -> None:
        self._binding, self._steps, self._rank, self.sound = binding, steps, rank, sound
        self._sound_at = Counter(offering for _, offering in sound.nodes)
        self._at = self._sound_at
        self._ahead: list[Purchase] = []
        """Purchases that are cheaper than the outcome and not yet confirmed, each cheaper than the one before."""
        self._patience = 1
        """After how many of them they are confirmed."""

    def go(self, start: Purchase, *, wide: bool) -> None:
        """Walk until nothing is found any more, or it is late; `wide` looks at more than one offering at once."""
        steps, self._at = self._steps, start
        while not steps.must_stop():
            before = self._at
            for rests in self._one_offering():
                self._step(rests, near=True)
            if self._at == before and wide:
                for rests in chain(self._one_offering(), self._two_offerings()):
                    self._step(rests, near=False)
                    if self._at != before:
                        break
            if self._at == before:
                break
        self._confirm()

    @property
    def sound_at(self) -> Purchase:
        """The purchase of the best outcome."""
        return self._sound_at

    def _one_offering(self) -> Iterator[list[Purchase]]:
        """What stays when nodes of one offering go, all or half of them and so on, of the purchase as it then is."""
        for offering in self._dearest_first():
            count, rests = self._at[offering], list[Purchase]()
            while count:
                rests.append(self._at - Counter({offering: count}))
                count //= 2
            if rests:
                yield rests

    def _two_offerings(self) -> Iterator[list[Purchase]]:
        """What stays when nodes of two offerings go, or nodes of one and another one comes."""
        kinds = self._dearest_first()
        for one, other in combinations(kinds, 2):
            yield [self._at - Counter({one: first, other: second}) for first in _FEW for second in _FEW]
        for gone in kinds:
            counts = sorted({min(count, self._at[gone]) for count in (1, 2, 4)})
            for more in kinds:
                if more != gone:
                    yield [self._at - Counter({gone: count}) + Counter({more: 1}) for count in counts]

    def _dearest_first(self) -> list[int]:
        prices, at = self._steps.prices, self._at
        return sorted((each for each in at if at[each]), key=lambda each: (-prices[each] * at[each], each))

    def _step(self, rests: list[Purchase], *, near: bool) -> None:
        found = None if self._steps.must_stop() else self._steps.step(self._at, rests, near=near)
        if found is None:
            return
        self._at = found
        if self._steps.cost(found) < self._steps.cost(self._sound_at):
            self._ahead.append(found)
        if len(self._ahead) >= self._patience:
            self._confirm()

    def _confirm(self) -> None:
        """Replay the purchase that was come to; if it does not do, go back to the last that does."""
        if not self._ahead:
            return
        good, bad = -1, len(self._ahead)
        place = bad - 1
        while bad - good > 1:
            bought = sorted(self._ahead[place].elements())
            again = self._binding.replay(self.sound.maker, bought)
            if self._rank(again) < self._rank(self.sound):
                good, self.sound, self._sound_at = place, again, self._ahead[place]
            else:
                bad = place
                self._steps.refuted.add(key_of(self._ahead[place]))
            place = (good + bad) // 2
            if self._steps.must_stop():
                break
        if good == len(self._ahead) - 1:
            self._patience *= 2
        else:
            self._patience, self._at = 1, self._sound_at
        self._ahead = []
