"""Durations as text, parsed into integer microseconds.

Contract: `parse_duration` accepts Go's format ("90m", "1h30m", "1.5h", "250ms") and plain seconds ("3600", "0.5"). The
result is never negative; fractions of a microsecond are cut off. Any other text raises `InputError`.
"""

from __future__ import annotations

import re
from fractions import Fraction
from functools import lru_cache

from tutti.exceptions import InputError

_MICROSECONDS = {
    "ns": Fraction(1, 1000),
    "us": Fraction(1),
    "µs": Fraction(1),
    "ms": Fraction(1_000),
    "s": Fraction(1_000_000),
    "m": Fraction(60_000_000),
    "h": Fraction(3_600_000_000),
}
_NUMBER = r"[0-9]{1,15}(?:\.[0-9]{1,15})?"
_STEP = re.compile(rf"({_NUMBER})(ns|us|µs|ms|s|m|h)")
_SHAPE = re.compile(rf"{_NUMBER}|(?:{_STEP.pattern})+")


@lru_cache(maxsize=1 << 12)  # all pods of a Job state the same duration, in every update
def parse_duration(text: str) -> int:
    """Return the microseconds of a duration."""
    if _SHAPE.fullmatch(text) is None:
        raise InputError(f'"{text}" is not a duration (want for example 90m, 1h30m or 3600)')
    steps = _STEP.findall(text) or [(text, "s")]
    return int(sum(Fraction(number) * _MICROSECONDS[unit] for number, unit in steps))
