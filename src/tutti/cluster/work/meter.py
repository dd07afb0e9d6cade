"""The meter: work counted in units, and the rate (units) of every kind of work.

Contract: a `Meter` is an integer that only grows; code that does work adds to it: ``meter.count += RATE * n``. One
meter serves a cluster and its copies, or several clusters; a rollback counts as further edits. A unit is about 10
nanoseconds on a typical machine. `work_budget` limits counted work: a counted limit ends a search at the same step on
every run, a limit by a clock does not.

All rates are in this module, grouped by the package that does the work. The rates are approximate;
benchmarks/counted_work.py prints counted and measured time side by side. A changed rate can change plans, because
searches then end at other steps.
"""

from __future__ import annotations

SECOND = 100_000_000
"""Units per second on a typical machine, approximately."""


def work_units(seconds: float) -> int:
    """Convert seconds on a typical machine into units."""
    return round(seconds * SECOND)


class Meter:
    """A count of work units; see the module's contract."""

    __slots__ = ("count",)

    def __init__(self) -> None:
        self.count = 0

    @property
    def seconds(self) -> float:
        """The approximate duration of the counted work on a typical machine."""
        return self.count / SECOND


# cluster --------------------------------------------------------------------------------------------------------------

EDIT = 1_000
"""An edit of a cluster, or the undo of an edit."""
OBJECT = 2_000
"""An object of a newly built cluster."""

COLLECTED = 500
"""An entry of a registry that a collection gives back."""

# engine.placement -----------------------------------------------------------------------------------------------------

POD_PASS = 10_000
"""Filtering and scoring all nodes for a pod, in addition to `POD_PASS_NODE` per node."""
POD_PASS_NODE = 15
"""A node in a pass of `POD_PASS`."""
PLUGIN_PASS = 15_000
"""Running the row plugins on some rows for some pod specs, in addition to `PLUGIN_PASS_CELL` per pair."""
PLUGIN_PASS_CELL = 30
"""A pair of a row and a spec in a pass of `PLUGIN_PASS`."""

# engine.gangs ---------------------------------------------------------------------------------------------------------

GANG_POD = 1_000
"""A pod of a gang that the engine places in some order."""
GANG_AREA = 1_000
"""An area, or a combination of areas for all parts, in which a gang did not fit."""
GANG_PARTS = 20_000
"""A combination of a gang's parts that get their missing pods."""
GANG_PACKING_STEP = 1_000
"""A step of the packing search: one pod on one node, by arithmetic."""
GANG_SEARCH_STEP = 20_000
"""A step of the engine search: the nodes for a pod, or the placement of the pod on one of them."""

# engine.preemption ----------------------------------------------------------------------------------------------------

VICTIM = 1_000
"""A pod that is removed to test whether a gang then fits."""

# engine.session -------------------------------------------------------------------------------------------------------

TURN = 1_000
"""A turn of a pod or a gang in a pass over the queue."""
POD_TRIED = 1_000
"""A pod that a session tries to place, or whose failure the session explains."""
PREEMPTION_NODE = 62
"""A node that is examined for victims of a single pod."""
EXPECTED_END = 1_000
"""A running pod whose expected end a reservation reads."""

# engine.explain -------------------------------------------------------------------------------------------------------

CURE_TRIAL = 50_000
"""A trial of a cure, in addition to its search."""

# autoscalers ----------------------------------------------------------------------------------------------------------

ESTIMATOR_SHAPE = 10_000
"""Cluster Autoscaler's estimator: an equivalence group of pods, in addition to `ESTIMATOR_NODE` per node."""
ESTIMATOR_NODE = 5
"""Cluster Autoscaler's estimator: a node for an equivalence group of pods."""
KARPENTER_RUNNING_POD = 1_200
"""Karpenter's scheduler: a running pod that topologies count."""
KARPENTER_POD = 10_000
"""Karpenter's scheduler: a pending pod, in addition to `KARPENTER_DOMAIN` per domain."""
KARPENTER_DOMAIN = 20
"""Karpenter's scheduler: a topology domain of a claim, for a pending pod."""

# recommend ------------------------------------------------------------------------------------------------------------

REQUEST = 2_000_000
"""A request for a recommendation, before and after the search."""
LAYOUT = 2_000_000
"""A layout over zones, in addition to its search."""
FILL_BLOCK = 1_500
"""Greedy strategies: a block of similar pod classes, in addition to `FILL_ROW` per offering."""
FILL_ROW = 10
"""Greedy strategies: an offering that is filled with a block."""
EXCHANGE_PURCHASE = 2_000
"""Exchange: a considered purchase, with or without a forecast."""
FORECAST_CLASS = 20_000
"""Exchange: the pods of a class in a forecast, in addition to `FORECAST_CELL` per cell."""
FORECAST_CELL = 15
"""Exchange: a number of copies on a node in a forecast."""

# recommend.search.column_generation -----------------------------------------------------------------------------------

PATTERN = 2_000
"""A pattern that is added to the master problem."""
PACKING_NODE = 10_000
"""A node of a packing that becomes the best known solution."""
HEURISTIC_CLASS = 3_000
"""Filling nodes by value: a class, in addition to `HEURISTIC_CELL` per node."""
HEURISTIC_CELL = 3
"""Filling nodes by value: a class on one node."""
BOUND_WEIGHT = 6_000
"""The quick bound: a weighting of the resources, in addition to `BOUND_CELL` per cell."""
BOUND_CELL = 8
"""The quick bound: a class on a kind of node."""
ENUMERATION_CLASS = 15_000
"""Enumerating patterns: a class, in addition to `ENUMERATION_STATE` per state."""
ENUMERATION_STATE = 40
"""Enumerating patterns: a state that a class leads to."""
SOLVER = 50_000
"""HiGHS: the setup of a solver."""
SOLVER_COLUMN = 1_000
"""HiGHS: a column of an integer programme."""
LINEAR_RUN = 30_000
"""HiGHS: a run of a linear programme, in addition to its iterations."""
LINEAR_ITERATION = 2_000
"""HiGHS: an iteration of the simplex method, in addition to `LINEAR_ITERATION_ROW` per row."""
LINEAR_ITERATION_ROW = 30
"""HiGHS: a row in an iteration."""
ROOT_FIRST_CALL = 15_000
"""HiGHS: an early interrupt callback at the root (cuts only), times the square root of the number of matrix entries."""
ROOT_LATER_CALL = 50_000
"""HiGHS: a later callback at the root (also heuristics), times the square root of the number of matrix entries."""
TREE_CALL = 10_000
"""HiGHS: an interrupt callback below the root, in addition to `TREE_CALL_ENTRY` per matrix entry."""
TREE_CALL_ENTRY = 200
"""HiGHS: a matrix entry, for a callback below the root."""
