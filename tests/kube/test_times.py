"""Timestamps to microseconds and back."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tutti.exceptions import InputError
from tutti.kube.times import micros, timestamp


@given(st.datetimes(timezones=st.just(UTC)))
def test_a_formatted_timestamp_parses_to_the_same_moment(moment):
    expected = (moment - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)
    assert micros(timestamp(expected)) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1970-01-01T00:00:01Z", 1_000_000),
        ("1970-01-01T00:00:00.000001999Z", 1),
        ("1970-01-01T01:00:00+01:00", 0),
        ("1969-12-31T23:30:00-00:30", 0),
        ("2024-02-29T00:00:00Z", 1709164800_000_000),
    ],
)
def test_fractions_and_offsets(text, expected):
    assert micros(text) == expected


@pytest.mark.parametrize(
    "text", ["", "yesterday", "2024-05-01", "2024-05-01T12:00:00", "2023-02-29T00:00:00Z", "2024-05-01T12:00:00+01:99"]
)
def test_other_text_is_refused(text):
    with pytest.raises(InputError, match="is not a time"):
        micros(text)
