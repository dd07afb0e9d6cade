"""HiGHS, set up the same way everywhere: quiet, one thread, deterministic, and ended by counting.

The number of threads belongs to the process: two solvers with different numbers make the second fail silently. Its own
time limit would make the answer depend on the clock. Now and then, always at the same points of its search, it asks
whether to go on; those questions are counted, those at the root of the tree as more work than those below.
"""

from __future__ import annotations

from itertools import count
from math import sqrt
from typing import Any

import highspy

from tutti.cluster.work_budget import Deadline, Effort

_SOLVER, _COLUMN = 5e-4, 1e-5
"""What it takes to set up a solver, and a column in it."""
_RUN, _ITERATION, _ROW = 3e-4, 2e-5, 3e-7
"""What a linear programme takes: for being asked, for an iteration, for a row in it."""
_FIRST, _AT_ROOT, _LATER = 30, 1.5e-4, 5e-4
"""What passes between two questions at the root, for the square root of the number of entries in the matrix: while the
first are asked it only cuts, later it also tries to round off, which takes longer."""
_BELOW, _BELOW_ENTRY = 1e-4, 2e-6
"""The same below the root: at any rate, and for every entry."""
_WORST = 600.0
"""After how many seconds HiGHS ends a run by the clock, whatever happens."""


def quiet(effort: Effort) -> highspy.Highs:
    """A solver that says nothing."""
    effort.spend(_SOLVER)
    solver = highspy.Highs()  # type: ignore[no-untyped-call]
    solver.setOptionValue("output_flag", False)
    solver.setOptionValue("threads", 1)
    solver.setOptionValue("random_seed", 1)
    return solver


def run_linear(model: highspy.Highs, deadline: Deadline) -> None:
    """Solve a linear programme to its end."""
    _run(model, deadline.effort)
    iterations = model.getInfo().simplex_iteration_count
    deadline.effort.spend(_RUN + iterations * (_ITERATION + _ROW * model.getNumRow()))


def run_whole(model: highspy.Highs, deadline: Deadline) -> None:
    """Look for whole numbers until the best are found, or the deadline is over."""
    entries, effort = model.getNumNz(), deadline.effort
    effort.spend(_COLUMN * model.getNumCol())
    below, questions = _BELOW + _BELOW_ENTRY * entries, count()

    def go_on(asked: Any) -> None:
        at_root = (_AT_ROOT if next(questions) < _FIRST else _LATER) * sqrt(entries)
        effort.spend(below if asked.data_out.mip_node_count > 0 else at_root)
        if deadline.is_over():
            asked.interrupt()

    model.cbMipInterrupt.subscribe(go_on)
    _run(model, effort)


def _run(model: highspy.Highs, effort: Effort) -> None:
    # Its clock goes on from run to run.
    model.setOptionValue("time_limit", model.getRunTime() + _WORST)
    model.run()
    effort.was_cut |= model.getModelStatus() == highspy.HighsModelStatus.kTimeLimit
