"""Sorting as Go's `sort.Sort` does it: equals do not keep their order, but they always end in the same one.

Contract: pure. The order of what compares equal decides what Cluster Autoscaler removes first, so the model needs the
same one. Go sorts by pattern-defeating quicksort: up to twelve items by insertion; otherwise by a pivot from three
places (nine from fifty items on), with a try to finish by insertion when the sample looks sorted, with three swaps
drawn from the length after a bad split, and with a heap after too many of those.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from enum import Enum
from typing import Any, Generic, TypeVar

Item = TypeVar("Item")
_FEW, _MANY = 12, 50
_SWAPS_OF_A_FALL = 12
"""As many swaps as finding the middle of nine takes when they fall."""
_WORD = (1 << 64) - 1


class _Looks(Enum):
    """What the sample for a pivot makes one expect."""

    RISING = 1
    FALLING = 2
    ANYTHING = 3


def go_sort(items: Iterable[Item], key: Callable[[Item], Any]) -> list[Item]:
    """The items by rising key; items with equal keys are in the order in which Go would leave them."""
    found = list(items)
    sorter = _Sorter(found, list(map(key, found)))
    sorter.sort(0, len(sorter.items), len(sorter.items).bit_length())
    return sorter.items


class _Sorter(Generic[Item]):
    """A list under way; ranges are from `low` up to, without, `high`."""

    def __init__(self, items: list[Item], keys: list[Any]) -> None:
        self.items, self._keys = items, keys

    def sort(self, low: int, high: int, patience: int) -> None:
        """Sort a range; `patience` says how many bad splits are borne."""
        balanced = parted = True
        while high - low > _FEW:
            length = high - low
            if not patience:
                self._heap(low, high)
                return
            if not balanced:
                self._shuffle(low, high)
                patience -= 1
            pivot, looks = self._pivot(low, high)
            if looks is _Looks.FALLING:
                self.items[low:high] = self.items[low:high][::-1]
                self._keys[low:high] = self._keys[low:high][::-1]
                pivot, looks = high - 1 - (pivot - low), _Looks.RISING
            if balanced and parted and looks is _Looks.RISING and self._finish(low, high):
                return
            if low and not self._before(low - 1, pivot):  # many are equal: nothing here is less than the pivot
                low = self._part_equal(low, high, pivot)
                continue
            middle, parted = self._part(low, high, pivot)
            left, right = middle - low, high - middle
            balanced = min(left, right) >= length // 8
            if left < right:
                self.sort(low, middle, patience)
                low = middle + 1
            else:
                self.sort(middle + 1, high, patience)
                high = middle
        self._insert(low, high)

    # Small steps ------------------------------------------------------------------------------------------------------

    def _before(self, one: int, other: int) -> bool:
        return bool(self._keys[one] < self._keys[other])

    def _swap(self, one: int, other: int) -> None:
        items, keys = self.items, self._keys
        items[one], items[other] = items[other], items[one]
        keys[one], keys[other] = keys[other], keys[one]

    def _sink(self, low: int, place: int) -> None:
        """Bring an item down to where it belongs among those before it."""
        while place > low and self._before(place, place - 1):
            self._swap(place, place - 1)
            place -= 1

    def _insert(self, low: int, high: int) -> None:
        for place in range(low + 1, high):
            self._sink(low, place)

    def _heap(self, low: int, high: int) -> None:
        size = high - low
        for root in range((size - 1) // 2, -1, -1):
            self._sift(low, root, size)
        for last in range(size - 1, -1, -1):
            self._swap(low, low + last)
            self._sift(low, 0, last)

    def _sift(self, low: int, root: int, size: int) -> None:
        while (child := 2 * root + 1) < size:
            if child + 1 < size and self._before(low + child, low + child + 1):
                child += 1
            if not self._before(low + root, low + child):
                return
            self._swap(low + root, low + child)
            root = child

    # Pivots -----------------------------------------------------------------------------------------------------------

    def _pivot(self, low: int, high: int) -> tuple[int, _Looks]:
        """The place of the middle one of a sample, and what the sample looks like."""
        quarter, swaps = (high - low) // 4, 0
        sample = [low + quarter, low + 2 * quarter, low + 3 * quarter]
        if high - low >= _MANY:
            for number, place in enumerate(sample):
                sample[number], more = self._median(place - 1, place, place + 1)
                swaps += more
        middle, more = self._median(*sample)
        swaps += more
        if not swaps:
            return middle, _Looks.RISING
        return middle, _Looks.FALLING if swaps == _SWAPS_OF_A_FALL else _Looks.ANYTHING

    def _median(self, one: int, two: int, three: int) -> tuple[int, int]:
        """The place of the middle one of three, and how many swaps bring them in order."""
        swaps = 0
        if self._before(two, one):
            one, two, swaps = two, one, swaps + 1
        if self._before(three, two):
            two, three, swaps = three, two, swaps + 1
        if self._before(two, one):
            one, two, swaps = two, one, swaps + 1
        return two, swaps

    # Splits -----------------------------------------------------------------------------------------------------------

    def _part(self, low: int, high: int, pivot: int) -> tuple[int, bool]:
        """Bring those less than the pivot before it; give its place, and whether they were there already."""
        self._swap(low, pivot)
        left, right, parted = low + 1, high - 1, True
        while True:
            while left <= right and self._before(left, low):
                left += 1
            while left <= right and not self._before(right, low):
                right -= 1
            if left > right:
                break
            self._swap(left, right)
            left, right, parted = left + 1, right - 1, False
        self._swap(right, low)
        return right, parted

    def _part_equal(self, low: int, high: int, pivot: int) -> int:
        """Bring those equal to the pivot, which is the least, first; give where the others begin."""
        self._swap(low, pivot)
        left, right = low + 1, high - 1
        while True:
            while left <= right and not self._before(low, left):
                left += 1
            while left <= right and self._before(low, right):
                right -= 1
            if left > right:
                return left
            self._swap(left, right)
            left, right = left + 1, right - 1

    def _finish(self, low: int, high: int) -> bool:
        """Sort a range that is nearly sorted with a few shifts; give up if they do not do, or if it is short."""
        place, keys = low + 1, self._keys
        for _ in range(5):
            while place < high and not keys[place] < keys[place - 1]:
                place += 1
            if place == high:
                return True
            if high - low < _MANY:
                return False
            self._swap(place, place - 1)
            if place - low >= 2:
                self._sink(0, place - 1)
            if high - place >= 2:
                at = place + 1
                while at < high and self._before(at, at - 1):
                    self._swap(at, at - 1)
                    at += 1
        return False

    def _shuffle(self, low: int, high: int) -> None:
        """Swap three in the middle with others, drawn from a generator that the length alone seeds."""
        length = high - low
        middle = low + length // 4 * 2
        state, mask = length, (1 << length.bit_length()) - 1
        for place in range(middle - 1, middle + 2):
            state ^= (state << 13) & _WORD
            state ^= state >> 7
            state ^= (state << 17) & _WORD
            other = state & mask
            self._swap(place, low + (other - length if other >= length else other))
