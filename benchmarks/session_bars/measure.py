"""A line of the table, and times with a limit.

Contract: all times are CPU seconds of the thread, so that other programs on the machine do not count; `process_time`
would be coarse while the alarm is set. `Stopwatch.run` never takes much longer than its limit: the alarm interrupts the
work, whose cluster is then not usable any more. With a profile, only the work that is timed is profiled.
"""

from __future__ import annotations

import cProfile
import gc
import signal
import time
from collections.abc import Callable
from types import FrameType
from typing import NamedTuple, TypeVar

Result = TypeVar("Result")


class Line(NamedTuple):
    """One line of the table; `met` is None where there is no bar."""

    what: str
    bar: str = ""
    measured: str = ""
    met: bool | None = None
    outcome: str = ""


class LimitReachedError(BaseException):
    """The time limit of a row is over; not an `Exception`, so that no handler of the engine catches it."""


class Stopwatch:
    """Takes times; `limit` is the number of seconds after which work is interrupted."""

    def __init__(self, limit: float, *, quick: bool = False, profile: cProfile.Profile | None = None) -> None:
        self.limit, self.quick, self._profile = limit, quick, profile
        self.interrupted_after = 0.0
        """The seconds for which the timed work had run when the limit interrupted it."""

    def size(self, full: int, quick: int) -> int:
        """Return the size of an input: the full size, or that of a smoke test."""
        return quick if self.quick else full

    def time(self, work: Callable[[], Result]) -> tuple[float, Result]:
        """Return the seconds that some work takes, and its result."""
        if self._profile is not None:
            self._profile.enable()
        begin = time.thread_time()
        try:
            result = work()
            took = time.thread_time() - begin
        except BaseException:
            self.interrupted_after = time.thread_time() - begin
            raise
        finally:
            if self._profile is not None:
                self._profile.disable()
        return took, result

    def run(self, work: Callable[[], Result], limit: float | None = None) -> Result | None:
        """Return the result of some work; None if the limit (by default that of the stopwatch) interrupts it."""
        is_over = False

        def interrupt(_signal: int, _frame: FrameType | None) -> None:
            nonlocal is_over
            is_over = True
            raise LimitReachedError

        previous = signal.signal(signal.SIGPROF, interrupt)
        signal.setitimer(signal.ITIMER_PROF, limit or self.limit)
        try:
            return work()
        except LimitReachedError:
            return None
        except Exception:
            if not is_over:  # a rollback may fail after the interruption of an edit
                raise
            return None
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)
            signal.signal(signal.SIGPROF, previous)


def settle_memory() -> None:
    """Collect garbage, and exempt everything that is left from later collections, as `tutti` does after loading."""
    gc.unfreeze()
    gc.collect()
    gc.freeze()
