"""The meter: work, counted in one unit.

Contract: a `Meter` is an integer that only grows; whoever does work adds to it. One meter serves a cluster and its
copies, or several clusters; a rollback counts as further edits. A unit is about 10 nanoseconds of a usual machine. How
many units a piece of work counts is in `work_rates`, limits of counted work are in `work_budget`. A limit that is
counted ends a search at the same place on every run, which a limit on a clock does not.
"""

from __future__ import annotations

SECOND = 100_000_000
"""Units that a usual machine does in a second, roughly."""


def work_units(seconds: float) -> int:
    """Convert seconds of a usual machine into units."""
    return round(seconds * SECOND)


class Meter:
    """See the module's contract."""

    __slots__ = ("count",)

    def __init__(self) -> None:
        self.count = 0

    @property
    def seconds(self) -> float:
        """About how long the counted work takes on a usual machine."""
        return self.count / SECOND
