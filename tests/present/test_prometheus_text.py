"""Metrics as text, as a Prometheus server reads them."""

from __future__ import annotations

from tutti.present.prometheus_text import HistogramCounts, exponential_bounds, family, histogram


def test_a_family_has_a_head_and_a_line_for_each_sample() -> None:
    samples = [({"queue": "active"}, 3), ({"queue": 'a"b\\c\nd'}, 0.25), ({}, 2.0)]
    assert list(family("pods", "gauge", "Pods.", samples)) == [
        "# HELP pods Pods.",
        "# TYPE pods gauge",
        'pods{queue="active"} 3',
        'pods{queue="a\\"b\\\\c\\nd"} 0.25',
        "pods 2",
    ]


def test_buckets_of_a_histogram_are_cumulative_and_contain_their_upper_ends() -> None:
    seen = HistogramCounts((0.1, 1))
    seen.observe(0.1)
    seen.observe(0.5, times=2)
    seen.observe(7)
    assert list(histogram("seconds", "Times.", [({"kind": "x"}, seen)]))[2:] == [
        'seconds_bucket{kind="x",le="0.1"} 1',
        'seconds_bucket{kind="x",le="1"} 3',
        'seconds_bucket{kind="x",le="+Inf"} 4',
        'seconds_sum{kind="x"} 8.100000',
        'seconds_count{kind="x"} 4',
    ]


def test_exponential_bounds_are_those_of_kube_scheduler() -> None:
    assert exponential_bounds(0.001, 2, 5) == (0.001, 0.002, 0.004, 0.008, 0.016)
    assert exponential_bounds(1, 2, 7) == (1, 2, 4, 8, 16, 32, 64)
    assert str(exponential_bounds(0.01, 2, 20)[-1]) == "5242.88"
