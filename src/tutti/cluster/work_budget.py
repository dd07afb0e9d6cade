"""Effort: how much a search may take, counted instead of timed.

What a clock cuts depends on what else the machine does at that moment; what a count cuts is the same on every run. So
work is counted where it is done, in seconds of a usual machine, and a `Deadline` is over when so much work is done. The
clock is there for the worst: a machine that is far slower than usual, or work that nobody counted.

Contract: `Effort` only grows. What a deadline says depends on the work alone, until the clock has run `PATIENCE` times
as long as the work should take, and `AT_LEAST` so long; once that has decided anything, `was_cut` says that another run
may end elsewhere. The rates, here and where work is done, are rough: benchmarks/effort.py prints how they do.
"""

from __future__ import annotations

from collections.abc import Callable

from tutti.cluster.meter import Meter

PATIENCE, AT_LEAST = 3.0, 5.0
"""How many times as long as counted a search may take by the clock, and how many seconds it may have at any rate."""


class Effort:
    """Work that was done so far, in seconds."""

    def __init__(self) -> None:
        self._spent = 0.0
        self.meter = Meter()
        """For clusters, which count their own."""
        self.was_cut = False
        """Whether the clock ended something before its work was done."""

    def spend(self, seconds: float) -> None:
        """Count some work."""
        self._spent += seconds

    @property
    def done(self) -> float:
        """All work so far."""
        return self._spent + self.meter.seconds


class Deadline:
    """When to come to an end. The clock, in seconds, is the caller's."""

    def __init__(self, clock: Callable[[], float], seconds: float, *, effort: Effort | None = None) -> None:
        self._clock, self.seconds = clock, seconds
        self.effort = effort or Effort()
        self._end = self.effort.done + seconds
        self._alarm = clock() + max(PATIENCE * seconds, AT_LEAST)

    @property
    def left(self) -> float:
        """How many seconds of work are left; never below 0."""
        return 0.0 if self.is_over() else self._end - self.effort.done

    def is_late(self, share: float) -> bool:
        """Whether no more than a share of it is left."""
        return self.left <= share * self.seconds

    def is_over(self) -> bool:
        """Whether enough was done."""
        return self.is_past(0.0)

    def is_past(self, seconds: float) -> bool:
        """Whether so many seconds of work were done since it was over."""
        if self.effort.done >= self._end + seconds:
            return True
        late = self._clock() >= self._alarm + PATIENCE * seconds
        self.effort.was_cut |= late
        return late

    def at_least(self, seconds: float) -> Deadline:
        """This deadline, or one in some seconds if that is later."""
        if self.left >= seconds:
            return self
        later = Deadline(self._clock, seconds, effort=self.effort)
        later._alarm = max(later._alarm, self._alarm)
        return later

    def within(self, seconds: float) -> Deadline:
        """This deadline, or one in some seconds if that is sooner."""
        return self if self.left <= seconds else self._sooner(seconds)

    def part(self, share: float) -> Deadline:
        """A deadline after a share of what is left."""
        return self._sooner(self.left * share)

    def _sooner(self, seconds: float) -> Deadline:
        sooner = Deadline(self._clock, seconds, effort=self.effort)
        sooner._alarm = self._alarm  # a part that takes longer than it should is no reason to cut it
        return sooner


def meter_of(deadline: Deadline | None) -> Meter | None:
    """What counts work on clusters, where somebody wants it counted."""
    return deadline.effort.meter if deadline is not None else None
