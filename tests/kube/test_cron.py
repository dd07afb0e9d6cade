"""Cron schedules, as in Karpenter."""

import pytest

from tutti.exceptions import InputError
from tutti.kube.cron import parse_cron
from tutti.kube.times import micros

HOUR = 3_600_000_000


def fires_in_window(schedule, moment, hours=8):
    now = micros(moment)
    return parse_cron(schedule).fires_between(after=now - hours * HOUR, until=now)


@pytest.mark.parametrize(
    ("schedule", "moment", "expected"),
    [
        ("0 9 * * mon-fri", "2026-11-16T09:00:00Z", True),  # a Monday, at the exact minute
        ("0 9 * * mon-fri", "2026-11-16T08:59:59Z", False),
        ("0 9 * * mon-fri", "2026-11-16T16:59:59Z", True),
        ("0 9 * * mon-fri", "2026-11-16T17:00:00Z", False),  # exactly eight hours later
        ("0 9 * * MON-FRI", "2026-11-15T12:00:00Z", False),
        ("0 20 * * *", "2026-11-16T03:00:00Z", True),  # over midnight
        ("*/20 * * * *", "2026-11-16T10:41:00Z", True),
        ("0 9 29 2 *", "2028-02-29T12:00:00Z", True),
        ("0 9 29 2 ?", "2027-03-01T12:00:00Z", False),
        ("0 9 1 * sun", "2026-11-01T10:00:00Z", True),  # both day fields match
        ("0 9 1 * sun", "2026-11-15T10:00:00Z", True),  # a Sunday is enough
        ("0 9 1 * sun", "2026-12-01T10:00:00Z", True),  # the first of the month is enough
        ("0 9 1 * sun", "2026-12-02T10:00:00Z", False),
        ("0 9 */31 * sun", "2026-12-01T10:00:00Z", True),  # a step restricts the field, a star alone does not
        ("0 9 1,15 jan,Jul *", "2026-07-15T10:00:00Z", True),
        ("@daily", "2026-11-16T07:59:00Z", True),
        ("@daily", "2026-11-16T08:00:00Z", False),
        ("@weekly", "2026-11-15T01:00:00Z", True),
    ],
)
def test_fires_between(schedule, moment, expected):
    assert fires_in_window(schedule, moment) is expected


def test_short_intervals_around_a_minute():
    assert fires_in_window("*/20 * * * *", "2026-11-16T10:41:00Z", hours=0) is False
    at = micros("2026-11-16T10:40:30Z")
    assert parse_cron("*/20 * * * *").fires_between(after=at - 60_000_000, until=at)
    assert not parse_cron("*/20 * * * *").fires_between(after=at - 20_000_000, until=at)


def test_an_interval_of_centuries_is_fast():
    assert not parse_cron("0 0 30 2 *").fires_between(after=0, until=micros("2500-01-01T00:00:00Z"))


@pytest.mark.parametrize(
    ("schedule", "never"),
    [
        ("0 0 31 2 *", True),
        ("0 0 31 4,jun *", True),
        ("0 0 29 2 *", False),
        ("0 0 31 2 mon", False),
        ("@yearly", False),
    ],
)
def test_never_fires(schedule, never):
    assert parse_cron(schedule).never_fires is never


@pytest.mark.parametrize(
    "text", ["", "0 9 * *", "0 9 * * * *", "60 * * * *", "0 24 * * *", "0 9 0 * *", "0 9 * * 7", "0 9 * * fri-mon",
             "*/0 * * * *", "0 9 * foo *", "@reboot", "-1 * * * *", "1-2-3 * * * *", "² * * * *",
             "*/" + "1" * 5000 + " * * * *", "1" * 5000 + " * * * *"],
)  # fmt: skip
def test_invalid_schedules_are_refused(text):
    with pytest.raises(InputError, match="is not a schedule"):
        parse_cron(text)
