"""How much a node can be worth at most: bounds that hold for every pattern.

Contract: `surrogate` is quick and for all kinds at once: the resources are added up with some weights, and the node is
filled with fractions; the least over many weights is a bound. `exact` asks HiGHS about one kind; it gives a bound and
the best pattern that it found, also when time is short.
"""

from __future__ import annotations

import highspy
import numpy as np

from tutti.cluster.columns import Floats, Ints
from tutti.cluster.work.meter import BOUND_CELL, BOUND_WEIGHT, Meter
from tutti.cluster.work.work_budget import WorkBudget
from tutti.recommend.search.column_generation.highs import quiet, run_whole
from tutti.recommend.search.column_generation.packing_input import PackingInput, only
from tutti.recommend.search.column_generation.pattern_heuristics import alone, mixes

_FINE = 24


def surrogate(flat: PackingInput, values: Floats, meter: Meter) -> Floats:
    """An upper bound for each kind on the value of a pattern."""
    resources = flat.requests.shape[1]
    weights = mixes(resources)
    fine = np.zeros((_FINE, resources))
    angle = np.linspace(0, 1, _FINE)
    fine[:, 0], fine[:, 1 % resources] = angle, 1 - angle
    weights = np.vstack((weights, fine))
    meter.count += len(weights) * (BOUND_WEIGHT + BOUND_CELL * flat.allowed.size)
    limit = np.minimum(flat.bound_most, flat.demand).astype(np.float64)
    worth = np.where(flat.allowed, np.broadcast_to(values, flat.allowed.shape), 0.0)
    free = np.maximum(flat.free, 1e-9)
    limit = np.minimum(limit[None, :], alone(flat, flat.bound_most))  # kind x class: no more than fit alone
    bound = np.full(len(flat.free), np.inf)
    for weight in weights:
        size = (flat.requests[None] * (weight / free)[:, None, :]).sum(axis=2)  # kind x class
        capacity = weight.sum()
        density = worth / np.maximum(size, 1e-15)
        order = np.argsort(-density, axis=1)
        sizes = np.take_along_axis(size * limit, order, axis=1)
        gains = np.take_along_axis(worth * limit, order, axis=1)
        before = np.cumsum(sizes, axis=1) - sizes
        part = np.clip((capacity - before) / np.maximum(sizes, 1e-15), 0, 1)
        part = np.where(sizes <= 0, 1.0, part)
        np.minimum(bound, (gains * part).sum(axis=1), out=bound)
    return bound * (1 + 1e-9)


def exact(
    flat: PackingInput, kind: int, values: Floats, *, budget: WorkBudget, near: float = 1e-3
) -> tuple[float, Ints | None]:
    """An upper bound for one kind, as `near` as that to the truth, and the best pattern (by `most`) found."""
    limit = alone(only(flat, [kind]), flat.bound_most)[0]
    classes = np.flatnonzero(flat.allowed[kind] & (values > 0) & (limit > 0))
    if not len(classes):
        return 0.0, None
    model = quiet(budget.meter)
    model.setOptionValue("mip_rel_gap", near)
    inf = highspy.kHighsInf
    for number in classes.tolist():
        model.addCol(-float(values[number]), 0.0, float(limit[number]), 0, np.array([], np.int32), np.array([]))
    model.changeColsIntegrality(
        len(classes), np.arange(len(classes), dtype=np.int32), np.array([highspy.HighsVarType.kInteger] * len(classes))
    )
    for resource in range(flat.requests.shape[1]):
        column = flat.requests[classes, resource]
        there = np.flatnonzero(column > 0).astype(np.int32)
        scale = flat.free[kind, resource]
        if len(there) and (column * limit[classes]).sum() > scale:
            scale = max(scale, 1e-9)
            model.addRow(-inf, float(flat.free[kind, resource] / scale), len(there), there, column[there] / scale)
    _conflicts(model, flat, classes, limit)
    run_whole(model, budget)
    status = model.getModelStatus()
    info = model.getInfo()
    if status == highspy.HighsModelStatus.kInfeasible:
        return float(surrogate(flat, values, budget.meter)[kind]), None
    bound = -info.mip_dual_bound if np.isfinite(info.mip_dual_bound) else np.inf
    solution = np.array(model.getSolution().col_value)
    if len(solution) != len(classes) or info.primal_solution_status != 2:
        return bound, None
    pattern = np.zeros(len(flat.demand), dtype=np.int64)
    pattern[classes] = np.round(solution).astype(np.int64)
    pattern = np.minimum(pattern, flat.most)
    return bound, pattern if flat.obeys(pattern) and bool(flat.fits(pattern)[kind]) else None


def _conflicts(model: highspy.Highs, flat: PackingInput, classes: Ints, limit: Ints) -> None:
    """Classes that cannot share a node: at most one of the two has items. Only where a class has one item at most."""
    inf = highspy.kHighsInf
    single = {int(number): place for place, number in enumerate(classes) if limit[number] == 1}
    for one, place in single.items():
        for other in np.flatnonzero(flat.apart[one]).tolist():
            if other > one and other in single:
                model.addRow(-inf, 1.0, 2, np.array([place, single[other]], np.int32), np.array([1.0, 1.0]))
