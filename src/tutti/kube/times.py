"""RFC 3339 timestamps as integer microseconds since 1970, and back.

Contract: `micros` accepts only the forms that Kubernetes writes ("2024-05-01T12:00:00Z", with a fraction, with an
offset) and cuts off digits beyond microseconds. `timestamp(micros(text))` is the same moment in UTC, without a fraction
if the fraction is zero. This module never reads a clock.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from functools import lru_cache

from tutti.exceptions import InputError

_SHAPE = re.compile(
    r"([0-9]{4})-([0-9]{2})-([0-9]{2})T([0-9]{2}):([0-9]{2}):([0-9]{2})(?:[.,]([0-9]+))?"
    r"(?:Z|([+-])([0-9]{2}):([0-9]{2}))"
)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


@lru_cache(maxsize=1 << 16)
def micros(text: str) -> int:
    """Return the microseconds since 1970 of a timestamp; raise `InputError` for any other text."""
    shape = _SHAPE.fullmatch(text)
    if shape is None:
        raise _not_a_time(text)
    year, month, day, hour, minute, second = (int(shape[i]) for i in range(1, 7))
    try:
        moment = datetime(year, month, day, hour, minute, second, tzinfo=UTC)
    except ValueError:
        raise _not_a_time(text) from None
    fraction = int((shape[7] or "0").ljust(6, "0")[:6])
    return (moment - _EPOCH) // _MICROSECOND + fraction - _offset(shape, text) * 1_000_000


def timestamp(microseconds: int) -> str:
    """Return the UTC timestamp of microseconds since 1970."""
    seconds, fraction = divmod(microseconds, 1_000_000)
    moment = _EPOCH + timedelta(seconds=seconds)
    text = moment.isoformat().removesuffix("+00:00")
    return f"{text}.{fraction:06d}Z" if fraction else f"{text}Z"


def _offset(shape: re.Match[str], text: str) -> int:
    """Return the UTC offset of a timestamp in seconds."""
    if not shape[8]:
        return 0
    hours, minutes = int(shape[9]), int(shape[10])
    if hours > 24 or minutes >= 60:
        raise _not_a_time(text)
    seconds = hours * 3600 + minutes * 60
    return -seconds if shape[8] == "-" else seconds


def _not_a_time(text: str) -> InputError:
    return InputError(f'"{text}" is not a time (want for example 2024-05-01T12:00:00Z)')
