"""Lengths of time as people write them."""

import pytest

from tutti.exceptions import InputError
from tutti.kube.durations import duration


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("90m", 5400), ("1h30m", 5400), ("1.5h", 5400), ("3600", 3600), ("0.5", 0.5), ("250ms", 0.25), ("0", 0)],
)
def test_durations(text, seconds):
    assert duration(text) == seconds * 1_000_000


def test_what_is_below_a_microsecond_is_cut_off():
    assert duration("1999ns") == 1


@pytest.mark.parametrize("text", ["", "soon", "-1h", "1d", "1h 30m", "m", "1e3", "9" * 5000])
def test_no_durations(text):
    with pytest.raises(InputError, match="is not a duration"):
        duration(text)
