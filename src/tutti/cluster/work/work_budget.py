"""Work budgets: how much work a search may do, counted instead of timed.

A search that a clock ends gives another answer when the machine is busy; a search that a count ends gives the same
answer on every run. So work is counted where it is done (`meter`), and a `WorkBudget` is exhausted when
its meter has counted a number of units more than when the budget was made.

Contract: budgets that are made from a budget (`share`, `limited_to`, `extended_to`) count on the same meter, so units
that are spent from one are spent from all. A budget made by `share` or `limited_to` is exhausted no later than the
budget that it was made from. Only a budget made by `of_seconds` has a clock, for the worst: a machine that is far
slower than usual, or work that nobody counted. The clock ends the search when `CLOCK_FACTOR` times the seconds of the
budget have passed, but not before `CLOCK_MINIMUM` seconds; `cut_by_clock` then says that another run may end elsewhere.

A session whose searches must end with its own budget nests them; a budget without a limit serves where there is none:

    session = WorkBudget(policy.budget)  # None: no limit
    search = session.limited_to(GANG_SEARCH)
    decisions = placer.place(need, search)  # spends from both; ends when either is exhausted
    session.spend(POD_TRIED * need.least)
    if decisions is None and session.is_exhausted():
        ...  # the search was cut by the session's budget: "no" says nothing about the gang
"""

from __future__ import annotations

from collections.abc import Callable
from math import inf

from tutti.cluster.work.meter import SECOND, Meter, work_units

CLOCK_FACTOR, CLOCK_MINIMUM = 3.0, 5.0
"""A search may take so many times the seconds of its budget by the clock, and at least so many seconds."""
_UNLIMITED = 1 << 62


class _Clock:
    """The caller's clock, in seconds, with a note whether it ended a search; all budgets of one search share it."""

    __slots__ = ("has_cut", "read")

    def __init__(self, read: Callable[[], float]) -> None:
        self.read, self.has_cut = read, False


class WorkBudget:
    """See the module's contract. `limit` is in units, None stands for no limit."""

    __slots__ = ("_alarm", "_clock", "_end", "limit", "meter")

    def __init__(self, limit: int | None = None, *, meter: Meter | None = None) -> None:
        self.meter = Meter() if meter is None else meter
        self.limit = _UNLIMITED if limit is None else limit
        """How many units the budget had at its start."""
        self._end = self.meter.count + self.limit
        self._clock: _Clock | None = None
        self._alarm = inf

    @classmethod
    def of_seconds(cls, seconds: float, clock: Callable[[], float]) -> WorkBudget:
        """Make a budget of so many seconds of work on a usual machine, with a clock for the worst."""
        budget = cls(work_units(seconds))
        budget._clock = _Clock(clock)
        budget._alarm = clock() + max(CLOCK_FACTOR * seconds, CLOCK_MINIMUM)
        return budget

    # How much there is ------------------------------------------------------------------------------------------------

    @property
    def seconds(self) -> float:
        """The limit in seconds of a usual machine."""
        return self.limit / SECOND

    @property
    def remaining(self) -> int:
        """How many units remain; never below 0."""
        return 0 if self.is_exhausted() else self._end - self.meter.count

    def is_exhausted(self) -> bool:
        """Whether nothing remains."""
        return self.meter.count >= self._end or (self._clock is not None and self.is_exceeded_by(0))

    def is_below(self, share: float) -> bool:
        """Whether no more than a share of the limit remains."""
        return self.remaining <= share * self.limit

    def is_exceeded_by(self, amount: int) -> bool:
        """Whether at least so many units were counted beyond the limit."""
        if self.meter.count >= self._end + amount:
            return True
        if self._clock is None:
            return False
        is_late = self._clock.read() >= self._alarm + CLOCK_FACTOR * amount / SECOND
        self._clock.has_cut |= is_late
        return is_late

    # Spending ---------------------------------------------------------------------------------------------------------

    def spend(self, amount: int) -> bool:
        """Count some units; False when fewer remain: the budget is exhausted then, and counts no more than it had.

        Work that is done whatever remains is counted on the meter itself.
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
        """Make a budget of a fraction of what remains."""
        return self._of(round(self.remaining * fraction))

    def limited_to(self, amount: int) -> WorkBudget:
        """Give this budget if no more units remain than this, otherwise one of so many units."""
        return self if self.remaining <= amount else self._of(amount)

    def extended_to(self, amount: int) -> WorkBudget:
        """Give this budget if at least so many units remain, otherwise one of so many units."""
        if self.remaining >= amount:
            return self
        extended = self._of(amount)
        if self._clock is not None:
            alarm = self._clock.read() + max(CLOCK_FACTOR * amount / SECOND, CLOCK_MINIMUM)
            extended._alarm = max(alarm, self._alarm)
        return extended

    def _of(self, limit: int) -> WorkBudget:
        """Make a budget with the same alarm: a part that takes longer than it should is no reason to cut it."""
        made = WorkBudget(limit, meter=self.meter)
        made._clock, made._alarm = self._clock, self._alarm
        return made

    # The clock --------------------------------------------------------------------------------------------------------

    @property
    def cut_by_clock(self) -> bool:
        """Whether a clock ended something before its counted work was done."""
        return self._clock is not None and self._clock.has_cut

    def note_cut_by_clock(self) -> None:
        """Note that another program's clock ended its work."""
        if self._clock is not None:
            self._clock.has_cut = True


def meter_of(budget: WorkBudget | None) -> Meter | None:
    """The meter of a budget, where there is one."""
    return budget.meter if budget is not None else None
