"""Work budgets: how much counted work a search may do.

A search that a clock ends gives another answer when the machine is busy; a search that a count ends gives the same
answer on every run. So code counts work where the work is done (`meter`). A `WorkBudget` is exhausted when its meter
has counted the budget's number of units since the budget was created.

Contract: budgets created from a budget (`share`, `limited_to`, `extended_to`) count on the same meter, so units spent
from one budget are spent from all. A budget created by `share` or `limited_to` is exhausted no later than its parent.
Only a budget created by `of_seconds` has a clock, for two cases: a machine far slower than a typical machine, and
uncounted work. The clock ends the search after `CLOCK_FACTOR` times the seconds of the budget, but not before
`CLOCK_MINIMUM` seconds; `cut_by_clock` then says that another run may end at another step.

A session limits its searches to its own budget by nesting; a session without a limit uses a budget without a limit:

    session = WorkBudget(policy.budget)  # None: no limit
    search = session.limited_to(GANG_SEARCH)
    decisions = placer.place(need, search)  # spends from both; ends when either is exhausted
    session.spend(POD_TRIED * need.least)
    if decisions is None and session.is_exhausted():
        ...  # the session's budget cut the search: None says nothing about the gang
"""

from __future__ import annotations

from collections.abc import Callable
from math import inf

from tutti.cluster.work.meter import SECOND, Meter, work_units

CLOCK_FACTOR, CLOCK_MINIMUM = 3.0, 5.0
"""A search may take this many times the seconds of its budget by the clock, and at least this many seconds."""
_UNLIMITED = 1 << 62


class _Clock:
    """The caller's clock, in seconds, and whether it ended a search; all budgets of one search share it."""

    __slots__ = ("has_cut", "read")

    def __init__(self, read: Callable[[], float]) -> None:
        self.read, self.has_cut = read, False


class WorkBudget:
    """A limit of counted work, see the module's contract. `limit` is in units; None stands for no limit."""

    __slots__ = ("_alarm", "_clock", "_end", "limit", "meter")

    def __init__(self, limit: int | None = None, *, meter: Meter | None = None) -> None:
        self.meter = Meter() if meter is None else meter
        self.limit = _UNLIMITED if limit is None else limit
        """The number of units at the start."""
        self._end = self.meter.count + self.limit
        self._clock: _Clock | None = None
        self._alarm = inf

    @classmethod
    def of_seconds(cls, seconds: float, clock: Callable[[], float]) -> WorkBudget:
        """Create a budget of some seconds of work on a typical machine, with a clock as a safeguard."""
        budget = cls(work_units(seconds))
        budget._clock = _Clock(clock)
        budget._alarm = clock() + max(CLOCK_FACTOR * seconds, CLOCK_MINIMUM)
        return budget

    # Remaining work ---------------------------------------------------------------------------------------------------

    @property
    def seconds(self) -> float:
        """The limit in seconds on a typical machine."""
        return self.limit / SECOND

    @property
    def remaining(self) -> int:
        """The number of remaining units; never below 0."""
        return 0 if self.is_exhausted() else self._end - self.meter.count

    def is_exhausted(self) -> bool:
        """Return whether no units remain, or the clock has ended the search."""
        return self.meter.count >= self._end or (self._clock is not None and self.is_exceeded_by(0))

    def is_below(self, share: float) -> bool:
        """Return whether at most a fraction of the limit remains."""
        return self.remaining <= share * self.limit

    def is_exceeded_by(self, amount: int) -> bool:
        """Return whether at least this many units beyond the limit were counted."""
        if self.meter.count >= self._end + amount:
            return True
        if self._clock is None:
            return False
        is_late = self._clock.read() >= self._alarm + CLOCK_FACTOR * amount / SECOND
        self._clock.has_cut |= is_late
        return is_late

    # Spending ---------------------------------------------------------------------------------------------------------

    def spend(self, amount: int) -> bool:
        """Count some units; return False if fewer remain: the budget is then exhausted and counts no more than it had.

        Work that is done regardless of the budget is counted on the meter directly.
        """
        meter = self.meter
        count = meter.count + amount
        if count <= self._end:
            meter.count = count
            return True
        meter.count = max(meter.count, self._end)
        return False

    # Budgets on the same meter ----------------------------------------------------------------------------------------

    def share(self, fraction: float) -> WorkBudget:
        """Create a budget of a fraction of the remaining units."""
        return self._child(round(self.remaining * fraction))

    def limited_to(self, amount: int) -> WorkBudget:
        """Return this budget if at most this many units remain, otherwise create a budget of this many units."""
        return self if self.remaining <= amount else self._child(amount)

    def extended_to(self, amount: int) -> WorkBudget:
        """Return this budget if at least this many units remain, otherwise create a budget of this many units."""
        if self.remaining >= amount:
            return self
        extended = self._child(amount)
        if self._clock is not None:
            alarm = self._clock.read() + max(CLOCK_FACTOR * amount / SECOND, CLOCK_MINIMUM)
            extended._alarm = max(alarm, self._alarm)
        return extended

    def _child(self, limit: int) -> WorkBudget:
        """Create a budget with the same alarm: the clock does not cut a part that takes longer than its share."""
        child = WorkBudget(limit, meter=self.meter)
        child._clock, child._alarm = self._clock, self._alarm
        return child

    # The clock --------------------------------------------------------------------------------------------------------

    @property
    def cut_by_clock(self) -> bool:
        """Whether the clock ended a search before its counted work was done."""
        return self._clock is not None and self._clock.has_cut

    def note_cut_by_clock(self) -> None:
        """Record that the clock of another program ended its work."""
        if self._clock is not None:
            self._clock.has_cut = True
