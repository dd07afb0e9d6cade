"""HiGHS, set up the same way everywhere: quiet, one thread, deterministic.

The number of threads belongs to the process: two solvers with different numbers make the second fail silently.
"""

from __future__ import annotations

import highspy


def quiet(seconds: float) -> highspy.Highs:
    """A solver that says nothing and stops after some seconds."""
    solver = highspy.Highs()  # type: ignore[no-untyped-call]
    solver.setOptionValue("output_flag", False)
    solver.setOptionValue("threads", 1)
    solver.setOptionValue("random_seed", 1)
    solver.setOptionValue("time_limit", max(seconds, 0.01))
    return solver
