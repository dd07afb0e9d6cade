"""Cron schedules: whether a schedule fires within a time interval.

Contract: a schedule has five fields (minute, hour, day of the month, month, day of the week), or is a shorthand such as
``@daily``. A field is ``*``, ``?``, a number, a range, a step, or a list of these; months and weekdays may be the first
three letters of their English names. Times are in UTC, as in Karpenter. If both day fields are restricted, one matching
day field is enough; if one of them is ``*``, the other decides. Any other text raises `InputError`.
"""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta

import msgspec

from tutti.exceptions import InputError

_SHORTHANDS = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
_BOUNDS = ((0, 59), (0, 23), (1, 31), (1, 12), (0, 6))
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_DAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
_NAMES: tuple[dict[str, int], ...] = (
    {},
    {},
    {},
    {name: number for number, name in enumerate(_MONTHS, 1)},
    {name: number for number, name in enumerate(_DAYS)},
)
_LONGEST_GAP = (366 * 8 + 1) * 86_400_000_000
"""Microseconds within which the rarest date, 29 February, occurs at least once, even around a century without it."""
_MAX_DIGITS = 3
"""No valid number in a schedule has more digits."""
_LEAP_YEAR = tuple(date(2000, 1, 1) + timedelta(days=number) for number in range(366))
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


class Cron(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A parsed schedule: the minutes, hours and days at which it fires."""

    minutes: frozenset[int]
    hours: frozenset[int]
    days: frozenset[int]
    months: frozenset[int]
    weekdays: frozenset[int]
    """Sunday is 0."""
    either_day_matches: bool
    """Whether a match of the day of the month or of the weekday is enough; otherwise both must match."""

    def fires_between(self, *, after: int, until: int) -> bool:
        """Whether the schedule fires later than `after` and not later than `until` (microseconds since 1970).

        The search covers at most the last eight years before `until` (every schedule that ever fires does so within
        eight years), and never a moment before 1970.
        """
        after = max(after, until - _LONGEST_GAP, -1)
        start, end = _EPOCH + after * _MICROSECOND, _EPOCH + until * _MICROSECOND
        for back in range((end.date() - start.date()).days + 1):
            day = end.date() - timedelta(days=back)
            if self._fires_on(day) and any(start < moment <= end for moment in self._moments(day)):
                return True
        return False

    @property
    def never_fires(self) -> bool:
        """Whether the calendar has no matching day, for example 31 February."""
        return not any(map(self._fires_on, _LEAP_YEAR))

    def _fires_on(self, day: date) -> bool:
        day_matches, weekday_matches = day.day in self.days, day.isoweekday() % 7 in self.weekdays
        matches = day_matches or weekday_matches if self.either_day_matches else day_matches and weekday_matches
        return matches and day.month in self.months

    def _moments(self, day: date) -> list[datetime]:
        midnight = datetime(day.year, day.month, day.day, tzinfo=UTC)
        return [midnight + timedelta(hours=hour, minutes=minute) for hour in self.hours for minute in self.minutes]


def parse_cron(text: str) -> Cron:
    """Parse a schedule; raise `InputError` for any other text."""
    fields = _SHORTHANDS.get(text, text).split()
    if len(fields) != len(_BOUNDS):
        raise _not_a_schedule(text)
    parsed = [_field(field, index, text) for index, field in enumerate(fields)]
    minutes, hours, days, months, weekdays = (numbers for numbers, _ in parsed)
    return Cron(
        minutes=minutes,
        hours=hours,
        days=days,
        months=months,
        weekdays=weekdays,
        either_day_matches=not (parsed[2][1] or parsed[4][1]),
    )


def _field(field: str, index: int, text: str) -> tuple[frozenset[int], bool]:
    """Return the numbers that a field allows, and whether the field is unrestricted (``*``, ``?``, ``*/1``)."""
    numbers: set[int] = set()
    is_any = False
    low, high = _BOUNDS[index]
    for part in field.split(","):
        span, slash, step = part.partition("/")
        if slash and not (_is_number(step) and int(step)):
            raise _not_a_schedule(text)
        first, dash, last = span.partition("-")
        if span in ("*", "?"):
            start, end = low, high
            is_any |= not slash or int(step) == 1
        else:
            start = _number(first, index, text)
            end = _number(last, index, text) if dash else high if slash else start
        if not low <= start <= end <= high:
            raise _not_a_schedule(text)
        numbers.update(range(start, end + 1, int(step) if slash else 1))
    return frozenset(numbers), is_any


def _number(text: str, index: int, schedule: str) -> int:
    if (number := _NAMES[index].get(text.lower())) is not None:
        return number
    if not _is_number(text):
        raise _not_a_schedule(schedule)
    return int(text)


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= _MAX_DIGITS


def _not_a_schedule(text: str) -> InputError:
    return InputError(f'"{text}" is not a schedule (want for example "0 9 * * mon-fri" or @daily)')
