"""HiGHS, set up the same way everywhere: quiet, one thread, deterministic, and ended by counted work.

The number of threads belongs to the process: two solvers with different numbers make the second fail silently. The time
limit of HiGHS would make the answer depend on the clock. HiGHS calls back at fixed points of its search; each callback
counts as work, at the root of the tree as more than below it, and interrupts HiGHS when the budget is exhausted.
"""

from __future__ import annotations

from itertools import count
from math import sqrt
from typing import Any

import highspy

from tutti.cluster.work.meter import (
    LINEAR_ITERATION,
    LINEAR_ITERATION_ROW,
    LINEAR_RUN,
    ROOT_FIRST_CALL,
    ROOT_LATER_CALL,
    SOLVER,
    SOLVER_COLUMN,
    TREE_CALL,
    TREE_CALL_ENTRY,
    Meter,
)
from tutti.cluster.work.work_budget import WorkBudget

_FIRST_CALLS = 30
"""Callbacks at the root up to which HiGHS only adds cuts; later ones come after heuristics, which take longer."""
_WORST = 600.0
"""Seconds after which HiGHS ends a run by its own clock."""


def quiet(meter: Meter) -> highspy.Highs:
    """Make a solver that prints nothing."""
    meter.count += SOLVER
    solver = highspy.Highs()  # type: ignore[no-untyped-call]
    solver.setOptionValue("output_flag", False)
    solver.setOptionValue("threads", 1)
    solver.setOptionValue("random_seed", 1)
    return solver


def run_linear(model: highspy.Highs, budget: WorkBudget) -> None:
    """Solve a linear programme to its end."""
    _run(model, budget)
    iterations = model.getInfo().simplex_iteration_count
    budget.meter.count += LINEAR_RUN + iterations * (LINEAR_ITERATION + LINEAR_ITERATION_ROW * model.getNumRow())


def run_whole(model: highspy.Highs, budget: WorkBudget) -> None:
    """Solve an integer programme until the optimum is found, or the budget is exhausted."""
    entries, meter = model.getNumNz(), budget.meter
    meter.count += SOLVER_COLUMN * model.getNumCol()
    at_root = [round(rate * sqrt(entries)) for rate in (ROOT_FIRST_CALL, ROOT_LATER_CALL)]
    in_tree, calls = TREE_CALL + TREE_CALL_ENTRY * entries, count()

    def count_and_check(event: Any) -> None:
        is_later = next(calls) >= _FIRST_CALLS
        meter.count += in_tree if event.data_out.mip_node_count > 0 else at_root[is_later]
        if budget.is_exhausted():
            event.interrupt()

    model.cbMipInterrupt.subscribe(count_and_check)
    _run(model, budget)


def _run(model: highspy.Highs, budget: WorkBudget) -> None:
    # The clock of HiGHS goes on from run to run.
    model.setOptionValue("time_limit", model.getRunTime() + _WORST)
    model.run()
    if model.getModelStatus() == highspy.HighsModelStatus.kTimeLimit:
        budget.note_cut_by_clock()
