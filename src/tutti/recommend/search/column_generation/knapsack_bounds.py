"""Upper bounds on the value of a pattern: the bounds of the knapsack problem of each kind.

Contract: `surrogate_bounds` is quick and covers all kinds at once: it adds up the resources with some weights
(surrogate relaxation), fills each node with fractions of items, and takes the least over many weights. `exact_bound`
solves the knapsack problem of one kind with HiGHS; it returns a bound and the best pattern found, also when the budget
ends first.
"""

from __future__ import annotations

import highspy
import numpy as np

from tutti.cluster.columns import Floats, Ints
from tutti.cluster.work.meter import BOUND_CELL, BOUND_WEIGHT, Meter
from tutti.cluster.work.work_budget import WorkBudget
from tutti.recommend.search.column_generation.highs import new_solver, run_integer
from tutti.recommend.search.column_generation.packing_input import PackingInput, select_kinds
from tutti.recommend.search.column_generation.pattern_heuristics import max_items_alone, resource_mixes

_FINE_STEPS = 24
"""Number of additional weightings of cpu against memory."""


def surrogate_bounds(inputs: PackingInput, values: Floats, meter: Meter) -> Floats:
    """Return for each kind an upper bound on the value of a pattern."""
    resources = inputs.requests.shape[1]
    weights = resource_mixes(resources)
    fine_weights = np.zeros((_FINE_STEPS, resources))
    steps = np.linspace(0, 1, _FINE_STEPS)
    fine_weights[:, 0], fine_weights[:, 1 % resources] = steps, 1 - steps
    weights = np.vstack((weights, fine_weights))
    meter.count += len(weights) * (BOUND_WEIGHT + BOUND_CELL * inputs.allowed.size)
    max_items = np.minimum(inputs.bound_max_per_node, inputs.demand).astype(np.float64)
    item_values = np.where(inputs.allowed, np.broadcast_to(values, inputs.allowed.shape), 0.0)
    free = np.maximum(inputs.free, 1e-9)
    # Kind x class: no more than fit on an otherwise empty node.
    max_items = np.minimum(max_items[None, :], max_items_alone(inputs, inputs.bound_max_per_node))
    bound = np.full(len(inputs.free), np.inf)
    for weight in weights:
        size = (inputs.requests[None] * (weight / free)[:, None, :]).sum(axis=2)  # kind x class
        capacity = weight.sum()
        density = item_values / np.maximum(size, 1e-15)
        order = np.argsort(-density, axis=1)
        sizes = np.take_along_axis(size * max_items, order, axis=1)
        gains = np.take_along_axis(item_values * max_items, order, axis=1)
        before = np.cumsum(sizes, axis=1) - sizes
        fraction = np.clip((capacity - before) / np.maximum(sizes, 1e-15), 0, 1)
        fraction = np.where(sizes <= 0, 1.0, fraction)
        np.minimum(bound, (gains * fraction).sum(axis=1), out=bound)
    return bound * (1 + 1e-9)


def exact_bound(
    inputs: PackingInput, kind: int, values: Floats, *, budget: WorkBudget, relative_gap: float = 1e-3
) -> tuple[float, Ints | None]:
    """Return an upper bound for one kind, and the best pattern found (which obeys `max_per_node`), or None.

    The bound is within `relative_gap` of the optimum unless the budget ends first.
    """
    max_items = max_items_alone(select_kinds(inputs, [kind]), inputs.bound_max_per_node)[0]
    classes = np.flatnonzero(inputs.allowed[kind] & (values > 0) & (max_items > 0))
    if not len(classes):
        return 0.0, None
    model = new_solver(budget.meter)
    model.setOptionValue("mip_rel_gap", relative_gap)
    inf = highspy.kHighsInf
    for number in classes.tolist():
        model.addCol(-float(values[number]), 0.0, float(max_items[number]), 0, np.array([], np.int32), np.array([]))
    model.changeColsIntegrality(
        len(classes), np.arange(len(classes), dtype=np.int32), np.array([highspy.HighsVarType.kInteger] * len(classes))
    )
    for resource in range(inputs.requests.shape[1]):
        column = inputs.requests[classes, resource]
        users = np.flatnonzero(column > 0).astype(np.int32)
        scale = inputs.free[kind, resource]
        if len(users) and (column * max_items[classes]).sum() > scale:
            scale = max(scale, 1e-9)
            model.addRow(-inf, float(inputs.free[kind, resource] / scale), len(users), users, column[users] / scale)
    _add_conflicts(model, inputs, classes, max_items)
    run_integer(model, budget)
    status = model.getModelStatus()
    info = model.getInfo()
    if status == highspy.HighsModelStatus.kInfeasible:
        return float(surrogate_bounds(inputs, values, budget.meter)[kind]), None
    bound = -info.mip_dual_bound if np.isfinite(info.mip_dual_bound) else np.inf
    solution = np.array(model.getSolution().col_value)
    if len(solution) != len(classes) or info.primal_solution_status != 2:
        return bound, None
    pattern = np.zeros(len(inputs.demand), dtype=np.int64)
    pattern[classes] = np.round(solution).astype(np.int64)
    pattern = np.minimum(pattern, inputs.max_per_node)
    return bound, pattern if inputs.obeys_node_rules(pattern) and bool(inputs.fitting_kinds(pattern)[kind]) else None


def _add_conflicts(model: highspy.Highs, inputs: PackingInput, classes: Ints, max_items: Ints) -> None:
    """Add a row for two classes that cannot share a node: at most one of them has items.

    Only for classes with one item at most.
    """
    inf = highspy.kHighsInf
    single = {int(number): place for place, number in enumerate(classes) if max_items[number] == 1}
    for first, place in single.items():
        for second in np.flatnonzero(inputs.conflicts[first]).tolist():
            if second > first and second in single:
                model.addRow(-inf, 1.0, 2, np.array([place, single[second]], np.int32), np.array([1.0, 1.0]))
