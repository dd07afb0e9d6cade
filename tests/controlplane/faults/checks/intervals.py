"""Intervals of time: sorted, disjoint pairs of start and end.

Contract: pure functions; every result is sorted, disjoint and without empty intervals. Inputs other than those of
`merged` must be so as well.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

Interval = tuple[float, float]


def merged(intervals: Iterable[Interval]) -> list[Interval]:
    """Return the union of intervals in any order."""
    result: list[Interval] = []
    for start, end in sorted(intervals):
        if end <= start:
            continue
        if result and start <= result[-1][1]:
            result[-1] = (result[-1][0], max(result[-1][1], end))
        else:
            result.append((start, end))
    return result


def intersected(left: Sequence[Interval], right: Sequence[Interval]) -> list[Interval]:
    """Return the times that are in both."""
    result: list[Interval] = []
    i = j = 0
    while i < len(left) and j < len(right):
        start, end = max(left[i][0], right[j][0]), min(left[i][1], right[j][1])
        if start < end:
            result.append((start, end))
        if left[i][1] < right[j][1]:
            i += 1
        else:
            j += 1
    return result


def without(intervals: Sequence[Interval], removed: Sequence[Interval]) -> list[Interval]:
    """Return the times of `intervals` that are not in `removed`."""
    result: list[Interval] = []
    for start, end in intervals:
        for hole_start, hole_end in removed:
            if hole_end <= start or hole_start >= end:
                continue
            if start < hole_start:
                result.append((start, hole_start))
            start = max(start, hole_end)
        if start < end:
            result.append((start, end))
    return result


def total(intervals: Iterable[Interval]) -> float:
    """Return the sum of the lengths."""
    return sum(end - start for start, end in intervals)
