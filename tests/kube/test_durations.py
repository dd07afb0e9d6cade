"""Durations as text."""

import pytest

from tutti.exceptions import InputError
from tutti.kube.durations import parse_duration


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("90m", 5400), ("1h30m", 5400), ("1.5h", 5400), ("3600", 3600), ("0.5", 0.5), ("250ms", 0.25), ("0", 0)],
)
def test_durations(text, seconds):
    assert parse_duration(text) == seconds * 1_000_000


def test_fractions_of_a_microsecond_are_cut_off():
    assert parse_duration("1999ns") == 1


@pytest.mark.parametrize("text", ["", "soon", "-1h", "1d", "1h 30m", "m", "1e3", "9" * 5000])
def test_invalid_durations_are_refused(text):
    with pytest.raises(InputError, match="is not a duration"):
        parse_duration(text)
