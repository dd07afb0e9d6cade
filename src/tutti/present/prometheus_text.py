"""Metrics in Prometheus' text format: counters, gauges and histograms as lines.

Contract: pure. A family is the HELP and TYPE lines with one line for each sample, in the order in which samples are
given; a family without samples has only its head. Label values are escaped.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Literal

CONTENT_TYPE = "text/plain; version=0.0.4"
Labels = Mapping[str, str]


def family(
    name: str, kind: Literal["counter", "gauge"], about: str, samples: Iterable[tuple[Labels, float]]
) -> Iterator[str]:
    """Yield the lines of a counter or a gauge."""
    yield from _head(name, kind, about)
    for labels, value in samples:
        yield f"{name}{_braces(labels)} {_number(value)}"


class HistogramCounts:
    """The observations of one histogram, by bucket; `bounds` are the upper ends of the buckets."""

    __slots__ = ("bounds", "counts", "nanos")

    def __init__(self, bounds: Sequence[float]) -> None:
        self.bounds = bounds
        self.counts = [0] * (len(bounds) + 1)
        self.nanos = 0
        """The sum of all observations in billionths, so that many small ones do not get lost."""

    def observe(self, value: float, times: int = 1) -> None:
        """Count a value."""
        self.counts[bisect_left(self.bounds, value)] += times
        self.nanos += round(value * 1e9) * times


def histogram(name: str, about: str, series: Iterable[tuple[Labels, HistogramCounts]]) -> Iterator[str]:
    """Yield the lines of a histogram."""
    yield from _head(name, "histogram", about)
    for labels, seen in series:
        total = 0
        for bound, count in zip((*seen.bounds, "+Inf"), seen.counts, strict=True):
            total += count
            yield f"{name}_bucket{_braces({**labels, 'le': str(bound)})} {total}"
        yield f"{name}_sum{_braces(labels)} {seen.nanos / 1e9:.6f}"
        yield f"{name}_count{_braces(labels)} {total}"


def exponential_bounds(first: float, factor: float, count: int) -> tuple[float, ...]:
    """Return upper ends of buckets, each a multiple of the one before, as Prometheus' client for Go makes them."""
    bounds, bound = [], first
    for _ in range(count):
        bounds.append(int(bound) if bound == int(bound) else round(bound, 9))
        bound *= factor
    return tuple(bounds)


def _head(name: str, kind: str, about: str) -> Iterator[str]:
    yield f"# HELP {name} {about}"
    yield f"# TYPE {name} {kind}"


def _braces(labels: Labels) -> str:
    if not labels:
        return ""
    return "{" + ",".join(f'{name}="{_escaped(value)}"' for name, value in labels.items()) + "}"


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')


def _number(value: float) -> str:
    return str(value) if isinstance(value, int) else f"{value:.6f}".rstrip("0").rstrip(".")
