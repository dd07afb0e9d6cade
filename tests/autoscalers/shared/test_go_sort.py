"""Go's sort: what it really gave for lists with equal items, and that it sorts."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tutti.autoscalers.shared.go_sort import go_sort

RECORDED = (
    ("10100000101000", [6, 12, 13, 3, 4, 5, 7, 11, 1, 9, 10, 0, 8, 2]),
    (
        "0221122200220002112112001110001",
        [12, 23, 29, 14, 13, 28, 27, 0, 8, 9, 22, 26, 25, 4, 3, 24, 16, 17, 30, 19, 20, 7, 21, 18, 15, 11, 10, 6, 5, 2,
         1],
    ),
    (
        "2230132002032112020300031210121111220202113020323223213203130322",
        [21, 20, 27, 3, 16, 56, 36, 7, 8, 45, 10, 43, 18, 38, 60, 22, 32, 28, 41, 53, 40, 14, 24, 33, 13, 4, 26, 58, 30,
         31, 15, 47, 25, 63, 34, 35, 62, 37, 17, 39, 0, 12, 1, 55, 44, 9, 6, 29, 52, 49, 50, 57, 48, 46, 54, 11, 5, 51,
         2, 59, 42, 61, 19, 23],
    ),
    (
        "05a27c4916b3805a205a27c4916b3805a205a27c4916b3805a205a27c4",
        [51, 30, 34, 0, 17, 13, 47, 42, 8, 25, 20, 37, 50, 33, 3, 54, 16, 45, 28, 11, 57, 6, 40, 23, 52, 31, 35, 18, 14,
         48, 1, 43, 26, 9, 38, 55, 4, 21, 29, 46, 12, 24, 7, 41, 15, 53, 2, 19, 36, 49, 32, 10, 44, 27, 5, 39, 22, 56],
    ),
)  # fmt: skip
"""Keys, a digit each, and the order in which Go 1.26's `sort.Sort` left the items."""


@pytest.mark.parametrize(("keys", "order"), RECORDED)
def test_equal_items_end_as_in_go(keys: str, order: list[int]) -> None:
    assert go_sort(range(len(keys)), keys.__getitem__) == order


@given(st.lists(st.integers(0, 5), max_size=200) | st.lists(st.integers(), max_size=80))
def test_it_sorts(keys: list[int]) -> None:
    order = go_sort(range(len(keys)), keys.__getitem__)
    assert sorted(order) == list(range(len(keys)))
    assert [keys[place] for place in order] == sorted(keys)
    if len(keys) <= 12:
        assert order == sorted(range(len(keys)), key=keys.__getitem__), "a few are sorted by insertion: equals stay"


@pytest.mark.parametrize("length", [13, 49, 50, 51, 300, 2000])
def test_patterns_that_make_quicksort_slow(length: int) -> None:
    half = [*range(0, length, 2), *range(length - 1 | 1, 0, -2)]
    for keys in (range(length), range(length, 0, -1), [0] * length, half, [place % 3 for place in range(length)]):
        comparisons = 0

        class Counted(int):
            def __lt__(self, other: int) -> bool:
                nonlocal comparisons
                comparisons += 1
                return int(self) < int(other)

        assert go_sort(keys, Counted) == sorted(keys)
        assert comparisons < 6 * length * length.bit_length()
