"""Go's `sort.Sort`: an unstable sort whose result for equal keys is deterministic.

Contract: pure. Cluster Autoscaler and Karpenter process items with equal keys in the order in which Go's sort leaves
them, so the models need the same order. The code follows Go's pattern-defeating quicksort (`sort/zsortinterface.go`)
function by function: insertion sort up to 12 items, a median of three as pivot (Tukey's ninther from 50 items on),
partial insertion sort when the pivot sample is in order, three swaps after an unbalanced partition, and heap sort after
too many unbalanced partitions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from enum import Enum
from typing import Any, Generic, TypeVar

Item = TypeVar("Item")
_MAX_INSERTION, _SHORTEST_NINTHER = 12, 50
_MAX_SWAPS = 12
"""The number of swaps that a ninther needs when all nine items are in decreasing order."""
_UINT64_MAX = (1 << 64) - 1


class _SortedHint(Enum):
    """The order of the items in the sample for a pivot."""

    INCREASING = 1
    DECREASING = 2
    UNKNOWN = 3


def go_sort(items: Iterable[Item], key: Callable[[Item], Any]) -> list[Item]:
    """Return the items by increasing key; items with equal keys are in the order in which Go leaves them."""
    copied = list(items)
    sorter = _Sorter(copied, list(map(key, copied)))
    sorter.pdqsort(0, len(sorter.items), len(sorter.items).bit_length())
    return sorter.items


class _Sorter(Generic[Item]):
    """A list that is sorted in place; ranges include `low` and exclude `high`."""

    def __init__(self, items: list[Item], keys: list[Any]) -> None:
        self.items, self._keys = items, keys

    def pdqsort(self, low: int, high: int, limit: int) -> None:
        """Sort a range; after `limit` unbalanced partitions, use heap sort."""
        was_balanced = was_partitioned = True
        while high - low > _MAX_INSERTION:
            length = high - low
            if not limit:
                self._heap_sort(low, high)
                return
            if not was_balanced:
                self._break_patterns(low, high)
                limit -= 1
            pivot, hint = self._choose_pivot(low, high)
            if hint is _SortedHint.DECREASING:
                self.items[low:high] = self.items[low:high][::-1]
                self._keys[low:high] = self._keys[low:high][::-1]
                pivot, hint = high - 1 - (pivot - low), _SortedHint.INCREASING
            in_order = was_balanced and was_partitioned and hint is _SortedHint.INCREASING
            if in_order and self._partial_insertion_sort(low, high):
                return
            if low and not self._less(low - 1, pivot):  # the range has no item less than the pivot: many are equal
                low = self._partition_equal(low, high, pivot)
                continue
            middle, was_partitioned = self._partition(low, high, pivot)
            left, right = middle - low, high - middle
            was_balanced = min(left, right) >= length // 8
            if left < right:
                self.pdqsort(low, middle, limit)
                low = middle + 1
            else:
                self.pdqsort(middle + 1, high, limit)
                high = middle
        self._insertion_sort(low, high)

    # Insertion sort and heap sort -------------------------------------------------------------------------------------

    def _less(self, one: int, other: int) -> bool:
        return bool(self._keys[one] < self._keys[other])

    def _swap(self, one: int, other: int) -> None:
        items, keys = self.items, self._keys
        items[one], items[other] = items[other], items[one]
        keys[one], keys[other] = keys[other], keys[one]

    def _shift_left(self, low: int, index: int) -> None:
        """Move an item left, at most to `low`, until the item before it is not greater."""
        while index > low and self._less(index, index - 1):
            self._swap(index, index - 1)
            index -= 1

    def _insertion_sort(self, low: int, high: int) -> None:
        for index in range(low + 1, high):
            self._shift_left(low, index)

    def _heap_sort(self, low: int, high: int) -> None:
        size = high - low
        for root in range((size - 1) // 2, -1, -1):
            self._sift_down(low, root, size)
        for last in range(size - 1, -1, -1):
            self._swap(low, low + last)
            self._sift_down(low, 0, last)

    def _sift_down(self, low: int, root: int, size: int) -> None:
        while (child := 2 * root + 1) < size:
            if child + 1 < size and self._less(low + child, low + child + 1):
                child += 1
            if not self._less(low + root, low + child):
                return
            self._swap(low + root, low + child)
            root = child

    # Pivots -----------------------------------------------------------------------------------------------------------

    def _choose_pivot(self, low: int, high: int) -> tuple[int, _SortedHint]:
        """Return the index of the pivot, the median of a sample, and the order of the sample."""
        quarter, swaps = (high - low) // 4, 0
        sample = [low + quarter, low + 2 * quarter, low + 3 * quarter]
        if high - low >= _SHORTEST_NINTHER:
            for number, index in enumerate(sample):
                sample[number], more = self._median(index - 1, index, index + 1)
                swaps += more
        middle, more = self._median(*sample)
        swaps += more
        if not swaps:
            return middle, _SortedHint.INCREASING
        return middle, _SortedHint.DECREASING if swaps == _MAX_SWAPS else _SortedHint.UNKNOWN

    def _median(self, one: int, two: int, three: int) -> tuple[int, int]:
        """Return the index of the median of three items, and how many swaps of indices were needed."""
        swaps = 0
        if self._less(two, one):
            one, two, swaps = two, one, swaps + 1
        if self._less(three, two):
            two, three, swaps = three, two, swaps + 1
        if self._less(two, one):
            one, two, swaps = two, one, swaps + 1
        return two, swaps

    # Partitions -------------------------------------------------------------------------------------------------------

    def _partition(self, low: int, high: int, pivot: int) -> tuple[int, bool]:
        """Move items less than the pivot before it; return its new index, and whether the range was partitioned."""
        self._swap(low, pivot)
        left, right, was_partitioned = low + 1, high - 1, True
        while True:
            while left <= right and self._less(left, low):
                left += 1
            while left <= right and not self._less(right, low):
                right -= 1
            if left > right:
                break
            self._swap(left, right)
            left, right, was_partitioned = left + 1, right - 1, False
        self._swap(right, low)
        return right, was_partitioned

    def _partition_equal(self, low: int, high: int, pivot: int) -> int:
        """Move items equal to the pivot, the least item, to the front; return the index of the first greater item."""
        self._swap(low, pivot)
        left, right = low + 1, high - 1
        while True:
            while left <= right and not self._less(low, left):
                left += 1
            while left <= right and self._less(low, right):
                right -= 1
            if left > right:
                return left
            self._swap(left, right)
            left, right = left + 1, right - 1

    def _partial_insertion_sort(self, low: int, high: int) -> bool:
        """Sort a nearly sorted range with at most five corrections; return whether the range is sorted afterwards."""
        index, keys = low + 1, self._keys
        for _ in range(5):
            while index < high and not keys[index] < keys[index - 1]:
                index += 1
            if index == high:
                return True
            if high - low < _SHORTEST_NINTHER:
                return False
            self._swap(index, index - 1)
            if index - low >= 2:
                self._shift_left(0, index - 1)  # to 0, not to `low`, as Go does
            if high - index >= 2:
                right = index + 1
                while right < high and self._less(right, right - 1):
                    self._swap(right, right - 1)
                    right += 1
        return False

    def _break_patterns(self, low: int, high: int) -> None:
        """Swap three items in the middle with pseudo-random ones; the length of the range is the seed (xorshift)."""
        length = high - low
        middle = low + length // 4 * 2
        state, mask = length, (1 << length.bit_length()) - 1
        for index in range(middle - 1, middle + 2):
            state ^= (state << 13) & _UINT64_MAX
            state ^= state >> 7
            state ^= (state << 17) & _UINT64_MAX
            other = state & mask
            self._swap(index, low + (other - length if other >= length else other))
