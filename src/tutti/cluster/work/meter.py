"""The meter: work, counted in one unit; and the rates, how many units each kind of work counts.

Contract: a `Meter` is an integer that only grows; whoever does work adds to it, ``meter.count += RATE * n``. One meter
serves a cluster and its copies, or several clusters; a rollback counts as further edits. A unit is about 10 nanoseconds
of a usual machine. Limits of counted work are in `work_budget`: a limit that is counted ends a search at the same place
on every run, which a limit on a clock does not.

All rates are in this module, grouped by the package that does the work. They are rough; benchmarks/counted_work.py
prints counted beside measured time. A change of a rate can change plans, because searches then end elsewhere.
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


# cluster --------------------------------------------------------------------------------------------------------------

EDIT = 1_000
"""An edit of a cluster, or the rollback of one."""
OBJECT = 2_000
"""An object that a new cluster is built from."""

# engine.placement -----------------------------------------------------------------------------------------------------

POD_PASS = 10_000
"""Filtering and scoring all nodes for a pod, beside what each node counts."""
POD_PASS_NODE = 15
"""A node in such a pass."""
PLUGIN_PASS = 15_000
"""Running the row plugins on some rows for some pod specs, beside what each pair of them counts."""
PLUGIN_PASS_CELL = 30
"""A row and a spec in such a pass."""

# engine.gangs ---------------------------------------------------------------------------------------------------------

GANG_POD = 1_000
"""A pod of a gang that the engine places in some order."""
GANG_AREA = 1_000
"""An area, or a choice of areas for all parts, in which a gang did not fit."""
GANG_PARTS = 20_000
"""A choice of the parts of a gang that get what they lack."""
GANG_PACKING_STEP = 1_000
"""A step of the packing search: one pod on one node, by arithmetic."""
GANG_SEARCH_STEP = 20_000
"""A step of the search by the engine: the nodes for a pod, or the pod placed on one of them."""

# engine.preemption ----------------------------------------------------------------------------------------------------

VICTIM = 1_000
"""A pod that is taken away to see whether a gang then fits."""

# engine.session -------------------------------------------------------------------------------------------------------

TURN = 1_000
"""A turn of a pod or a gang in a pass over the queue."""
POD_TRIED = 1_000
"""A pod that a session tries to place, or whose failure it explains."""
PREEMPTION_NODE = 62
"""A node that is examined for victims of a single pod."""
EXPECTED_END = 1_000
"""A running pod whose expected end is looked at for a reservation."""

# engine.explain -------------------------------------------------------------------------------------------------------

CURE_TRIAL = 50_000
"""A trial of a cure, beside its search."""

# autoscalers ----------------------------------------------------------------------------------------------------------

ESTIMATOR_SHAPE = 10_000
"""Cluster Autoscaler's estimator: a shape of pods, beside what each node counts."""
ESTIMATOR_NODE = 5
"""Cluster Autoscaler's estimator: a node for a shape of pods."""
KARPENTER_RUNNING_POD = 1_200
"""Karpenter's scheduler: a running pod that is counted in topologies."""
KARPENTER_POD = 10_000
"""Karpenter's scheduler: a pending pod, beside what each domain counts."""
KARPENTER_DOMAIN = 20
"""Karpenter's scheduler: a topology domain of a claim, for a pending pod."""

# recommend ------------------------------------------------------------------------------------------------------------

REQUEST = 2_000_000
"""A request for a recommendation, before and after the search."""
LAYOUT = 2_000_000
"""A layout over zones, beside its search."""
FILL_BLOCK = 1_500
"""Greedy strategies: a block of alike classes, beside what each offering counts."""
FILL_ROW = 10
"""Greedy strategies: an offering that is filled with a block."""
EXCHANGE_PURCHASE = 2_000
"""Exchange: a purchase that is considered, forecast or not."""
FORECAST_CLASS = 20_000
"""Exchange: pods of a class in a forecast, beside what each cell counts."""
FORECAST_CELL = 15
"""Exchange: a number of copies on a node in a forecast."""

# recommend.search.column_generation -----------------------------------------------------------------------------------

PATTERN = 2_000
"""A pattern that is added to the master."""
PACKING_NODE = 10_000
"""A node of a packing that is offered as the best."""
HEURISTIC_CLASS = 3_000
"""Filling nodes by value: a class, beside what each cell counts."""
HEURISTIC_CELL = 3
"""Filling nodes by value: a class on one node."""
BOUND_WEIGHT = 6_000
"""The quick bound: a weighting of the resources, beside what each cell counts."""
BOUND_CELL = 8
"""The quick bound: a class on a kind of node."""
ENUMERATION_CLASS = 15_000
"""Listing patterns: a class, beside what each state counts."""
ENUMERATION_STATE = 40
"""Listing patterns: a state that a class leads to."""
SOLVER = 50_000
"""HiGHS: setting up a solver."""
SOLVER_COLUMN = 1_000
"""HiGHS: a column of an integer programme."""
LINEAR_RUN = 30_000
"""HiGHS: a run of a linear programme, beside its iterations."""
LINEAR_ITERATION = 2_000
"""HiGHS: an iteration of the simplex method, beside what each row counts."""
LINEAR_ITERATION_ROW = 30
"""HiGHS: a row in an iteration."""
ROOT_FIRST_CALL = 15_000
"""HiGHS: an early interrupt callback at the root (only cuts so far), times the root of the number of matrix entries."""
ROOT_LATER_CALL = 50_000
"""HiGHS: a later callback at the root (heuristics, too), times the root of the number of matrix entries."""
TREE_CALL = 10_000
"""HiGHS: an interrupt callback below the root, beside what each matrix entry counts."""
TREE_CALL_ENTRY = 200
"""HiGHS: a matrix entry, for a callback below the root."""
