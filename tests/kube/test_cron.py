"""Cron schedules, as Karpenter reads them."""

import pytest

from tutti.exceptions import InputError
from tutti.kube.cron import parse_cron
from tutti.kube.times import micros

HOUR = 3_600_000_000


def open_at(schedule, moment, hours=8):
    now = micros(moment)
    return parse_cron(schedule).has_come(after=now - hours * HOUR, until=now)


@pytest.mark.parametrize(
    ("schedule", "moment", "expected"),
    [
        ("0 9 * * mon-fri", "2026-11-16T09:00:00Z", True),  # a Monday, and the very minute
        ("0 9 * * mon-fri", "2026-11-16T08:59:59Z", False),
        ("0 9 * * mon-fri", "2026-11-16T16:59:59Z", True),
        ("0 9 * * mon-fri", "2026-11-16T17:00:00Z", False),  # eight hours later it is over
        ("0 9 * * MON-FRI", "2026-11-15T12:00:00Z", False),
        ("0 20 * * *", "2026-11-16T03:00:00Z", True),  # over midnight
        ("*/20 * * * *", "2026-11-16T10:41:00Z", True),
        ("0 9 29 2 *", "2028-02-29T12:00:00Z", True),
        ("0 9 29 2 ?", "2027-03-01T12:00:00Z", False),
        ("0 9 1 * sun", "2026-11-01T10:00:00Z", True),  # both
        ("0 9 1 * sun", "2026-11-15T10:00:00Z", True),  # either: a Sunday
        ("0 9 1 * sun", "2026-12-01T10:00:00Z", True),  # either: the first
        ("0 9 1 * sun", "2026-12-02T10:00:00Z", False),
        ("0 9 */31 * sun", "2026-12-01T10:00:00Z", True),  # steps are a choice, a star alone is none
        ("0 9 1,15 jan,Jul *", "2026-07-15T10:00:00Z", True),
        ("@daily", "2026-11-16T07:59:00Z", True),
        ("@daily", "2026-11-16T08:00:00Z", False),
        ("@weekly", "2026-11-15T01:00:00Z", True),
    ],
)
def test_whether_it_has_come(schedule, moment, expected):
    assert open_at(schedule, moment) is expected


def test_a_minute_is_a_minute():
    assert open_at("*/20 * * * *", "2026-11-16T10:41:00Z", hours=0) is False
    at = micros("2026-11-16T10:40:30Z")
    assert parse_cron("*/20 * * * *").has_come(after=at - 60_000_000, until=at)
    assert not parse_cron("*/20 * * * *").has_come(after=at - 20_000_000, until=at)


def test_a_stretch_of_centuries_is_soon_looked_through():
    assert not parse_cron("0 0 30 2 *").has_come(after=0, until=micros("2500-01-01T00:00:00Z"))


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
def test_whether_it_ever_comes(schedule, never):
    assert parse_cron(schedule).never_comes is never


@pytest.mark.parametrize(
    "text", ["", "0 9 * *", "0 9 * * * *", "60 * * * *", "0 24 * * *", "0 9 0 * *", "0 9 * * 7", "0 9 * * fri-mon",
             "*/0 * * * *", "0 9 * foo *", "@reboot", "-1 * * * *", "1-2-3 * * * *", "² * * * *",
             "*/" + "1" * 5000 + " * * * *", "1" * 5000 + " * * * *"],
)  # fmt: skip
def test_what_is_no_schedule(text):
    with pytest.raises(InputError, match="is not a schedule"):
        parse_cron(text)
