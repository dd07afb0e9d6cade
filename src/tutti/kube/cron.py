"""Cron schedules: whether one has come within a stretch of time.

Contract: five fields (minute, hour, day of the month, month, day of the week), each ``*``, ``?``, numbers, ranges,
steps and lists of these, months and days also by their English three letters; or a word such as ``@daily``. All in UTC,
as Karpenter reads them. Where both days are told, either will do; where one of them is ``*`` the other decides.
Anything else raises `InputError`.
"""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta

import msgspec

from tutti.exceptions import InputError

_WORDS = {
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
_LONGEST = (366 * 8 + 1) * 86_400_000_000
"""In this time the rarest date there is, the 29th of February, has come once, even around a century's end."""
_DIGITS = 3
"""No number in a schedule has more."""
_LEAP_YEAR = tuple(date(2000, 1, 1) + timedelta(days=number) for number in range(366))
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


class Cron(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A schedule that has been read."""

    minutes: frozenset[int]
    hours: frozenset[int]
    days: frozenset[int]
    months: frozenset[int]
    weekdays: frozenset[int]
    """Sunday is 0."""
    either_day: bool
    """Whether one of the two kinds of days is enough."""

    def has_come(self, *, after: int, until: int) -> bool:
        """Whether it has come after one moment and not later than another, both in microseconds since 1970.

        No more than eight years are looked at, within which it comes if it ever does, and nothing before 1970.
        """
        after = max(after, until - _LONGEST, -1)
        start, end = _EPOCH + after * _MICROSECOND, _EPOCH + until * _MICROSECOND
        for back in range((end.date() - start.date()).days + 1):
            day = end.date() - timedelta(days=back)
            if self._is_day(day) and any(start < moment <= end for moment in self._moments(day)):
                return True
        return False

    @property
    def never_comes(self) -> bool:
        """Whether there is no such day, as the 31st of February."""
        return not any(map(self._is_day, _LEAP_YEAR))

    def _is_day(self, day: date) -> bool:
        of_month, of_week = day.day in self.days, day.isoweekday() % 7 in self.weekdays
        fits = of_month or of_week if self.either_day else of_month and of_week
        return fits and day.month in self.months

    def _moments(self, day: date) -> list[datetime]:
        midnight = datetime(day.year, day.month, day.day, tzinfo=UTC)
        return [midnight + timedelta(hours=hour, minutes=minute) for hour in self.hours for minute in self.minutes]


def parse_cron(text: str) -> Cron:
    """Read a schedule."""
    fields = _WORDS.get(text, text).split()
    if len(fields) != len(_BOUNDS):
        raise _not_a_schedule(text)
    read = [_field(field, place, text) for place, field in enumerate(fields)]
    minutes, hours, days, months, weekdays = (numbers for numbers, _ in read)
    return Cron(
        minutes=minutes,
        hours=hours,
        days=days,
        months=months,
        weekdays=weekdays,
        either_day=not (read[2][1] or read[4][1]),
    )


def _field(field: str, place: int, text: str) -> tuple[frozenset[int], bool]:
    """The numbers that a field stands for, and whether it stands for all because nobody chose."""
    numbers: set[int] = set()
    is_any = False
    low, high = _BOUNDS[place]
    for part in field.split(","):
        span, slash, step = part.partition("/")
        if slash and not (_is_number(step) and int(step)):
            raise _not_a_schedule(text)
        first, dash, last = span.partition("-")
        if span in ("*", "?"):
            start, end = low, high
            is_any |= not slash or int(step) == 1
        else:
            start = _number(first, place, text)
            end = _number(last, place, text) if dash else high if slash else start
        if not low <= start <= end <= high:
            raise _not_a_schedule(text)
        numbers.update(range(start, end + 1, int(step) if slash else 1))
    return frozenset(numbers), is_any


def _number(text: str, place: int, whole: str) -> int:
    if (named := _NAMES[place].get(text.lower())) is not None:
        return named
    if not _is_number(text):
        raise _not_a_schedule(whole)
    return int(text)


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= _DIGITS


def _not_a_schedule(text: str) -> InputError:
    return InputError(f'"{text}" is not a schedule (want for example "0 9 * * mon-fri" or @daily)')
