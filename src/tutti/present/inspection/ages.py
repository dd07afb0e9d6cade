"""Times as people read them, seen from the moment of a state: ages, and times until something.

Contract: pure; durations are written as kubectl writes them: 90s, 5m30s, 45m, 3h10m, 2d4h.
"""

from __future__ import annotations

from tutti.kube.times import micros
from tutti.present.tables import NONE

_SECOND = 1_000_000


def human_duration(seconds: float) -> str:
    """Return a duration with as many units as matter, as kubectl does."""
    whole = max(int(seconds), 0)
    minutes, hours, days = whole // 60, whole // 3600, whole // 86400
    if whole < 120:
        return f"{whole}s"
    if minutes < 10:
        return f"{minutes}m{whole % 60}s" if whole % 60 else f"{minutes}m"
    if minutes < 180:
        return f"{minutes}m"
    if hours < 8:
        return f"{hours}h{minutes % 60}m" if minutes % 60 else f"{hours}h"
    if hours < 48:
        return f"{hours}h"
    return f"{days}d{hours % 24}h" if days < 8 and hours % 24 else f"{days}d"


def age(now: str, then: str | None) -> str:
    """Return how long ago a time was."""
    return NONE if then is None else human_duration((micros(now) - micros(then)) / _SECOND)


def until(now: str, then: str | None) -> str:
    """Return in how much time a time comes; ``now`` if it has come."""
    if then is None:
        return NONE
    left = (micros(then) - micros(now)) / _SECOND
    return human_duration(max(left, 1)) if left > 0 else "now"
