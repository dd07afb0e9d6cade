"""HiGHS, set up the same way everywhere: quiet, one thread, deterministic, and stopped by counted work.

The number of threads is a setting of the process: a second solver with another number fails silently. The time limit of
HiGHS would make the answer depend on the clock. HiGHS calls back at fixed points of its search; each callback counts as
work (more at the root of the search tree than below it), and interrupts HiGHS when the budget is exhausted.
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
"""Callbacks at the root up to which HiGHS only adds cuts; later callbacks follow heuristics, which take longer."""
_TIME_LIMIT = 600.0
"""Seconds after which HiGHS stops a run by its own clock, as a last resort."""


def new_solver(meter: Meter) -> highspy.Highs:
    """Return a solver that prints nothing and uses one thread."""
    meter.count += SOLVER
    solver = highspy.Highs()  # type: ignore[no-untyped-call]
    solver.setOptionValue("output_flag", False)
    solver.setOptionValue("threads", 1)
    solver.setOptionValue("random_seed", 1)
    return solver


def run_linear(model: highspy.Highs, budget: WorkBudget) -> None:
    """Solve a linear programme to optimality, and count the work."""
    _run(model, budget)
    iterations = model.getInfo().simplex_iteration_count
    budget.meter.count += LINEAR_RUN + iterations * (LINEAR_ITERATION + LINEAR_ITERATION_ROW * model.getNumRow())


def run_integer(model: highspy.Highs, budget: WorkBudget) -> None:
    """Solve an integer programme until the optimum is found, or the budget is exhausted."""
    entries, meter = model.getNumNz(), budget.meter
    meter.count += SOLVER_COLUMN * model.getNumCol()
    root_rates = [round(rate * sqrt(entries)) for rate in (ROOT_FIRST_CALL, ROOT_LATER_CALL)]
    tree_rate, calls = TREE_CALL + TREE_CALL_ENTRY * entries, count()

    def count_and_check(event: Any) -> None:
        is_later = next(calls) >= _FIRST_CALLS
        meter.count += tree_rate if event.data_out.mip_node_count > 0 else root_rates[is_later]
        if budget.is_exhausted():
            event.interrupt()

    model.cbMipInterrupt.subscribe(count_and_check)
    _run(model, budget)


def _run(model: highspy.Highs, budget: WorkBudget) -> None:
    """Run HiGHS, and note if its own clock stopped it."""
    # The clock of HiGHS adds up the runs of one solver.
    model.setOptionValue("time_limit", model.getRunTime() + _TIME_LIMIT)
    model.run()
    if model.getModelStatus() == highspy.HighsModelStatus.kTimeLimit:
        budget.note_cut_by_clock()
