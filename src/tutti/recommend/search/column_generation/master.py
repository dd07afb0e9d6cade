"""The master problem: how often each known pattern is bought, as a linear or integer programme.

Contract: rows are the demand of every class (covered, or dropped at a penalty), the limits, and the free amounts of
existing nodes, which take items at no price. `solve` solves the linear programme and returns its dual values;
`solve_integer` solves the integer programme. Every status is checked, because HiGHS returns zeros when it fails.
"""

from __future__ import annotations

from typing import NamedTuple

import highspy
import numpy as np

from tutti.cluster.columns import Bools, Floats, Ints
from tutti.cluster.work.meter import PATTERN, Meter
from tutti.cluster.work.work_budget import WorkBudget
from tutti.recommend.search.column_generation.highs import new_solver, run_integer, run_linear
from tutti.recommend.search.column_generation.packing_input import PackingInput, Pattern

_INF = highspy.kHighsInf
_NO_ENTRIES = np.array([], dtype=np.int32), np.array([], dtype=np.float64)


class Duals(NamedTuple):
    """The dual values of the master problem, and its cost."""

    items: Floats
    """What one more item of each class would cost."""
    limits: Floats
    """What one more unit of each limit would save."""
    cost: float


class IntegerSolution(NamedTuple):
    """A solution of the integer programme."""

    counts: Ints
    """How often each pattern is bought."""
    on_existing: Ints
    """Existing node x class: how many items go there."""
    dropped: Ints
    cost: float
    bound: float


class MasterProgram:
    """See the module's contract."""

    def __init__(
        self, inputs: PackingInput, penalty: Floats, meter: Meter, *, scale: float, mandatory: Bools | None = None
    ) -> None:
        self.inputs, self.penalty, self.scale, self._meter = inputs, penalty, scale, meter
        self.mandatory = np.zeros(len(inputs.demand), dtype=bool) if mandatory is None else mandatory
        """Classes of which no item may be dropped."""
        self.patterns: list[Pattern] = []
        self.kinds: list[int] = []
        self._known: set[tuple[int, Pattern]] = set()
        self._model = self._new_model()

    def _new_model(self) -> highspy.Highs:
        """Return a model with all rows and the columns for drops and existing nodes, and without patterns."""
        inputs, model = self.inputs, new_solver(self._meter)
        classes = len(inputs.demand)
        for number in range(classes):
            model.addRow(float(inputs.demand[number]), _INF, 0, *_NO_ENTRIES)
        for left in inputs.limit_left.tolist():
            model.addRow(-_INF, float(left), 0, *_NO_ENTRIES)
        scales = np.maximum(inputs.node_free.max(axis=0, initial=1.0), 1.0)
        for node in range(len(inputs.node_free)):
            for resource in range(inputs.node_free.shape[1]):
                model.addRow(-_INF, float(inputs.node_free[node, resource] / scales[resource]), 0, *_NO_ENTRIES)
        for number in range(classes):
            model.addCol(
                float(self.penalty[number]) / self.scale,
                0.0,
                0.0 if self.mandatory[number] else _INF,
                1,
                np.array([number], np.int32),
                np.ones(1),
            )
        self._existing_columns = [
            (n, c) for n in range(len(inputs.node_free)) for c in np.flatnonzero(inputs.node_feasible[n]).tolist()
        ]
        for node, number in self._existing_columns:
            self._add_existing_column(model, node, number, scales)
        # Columns of drops and of existing nodes come before those of patterns.
        self.first_pattern_column = model.getNumCol()
        return model

    def _add_existing_column(self, model: highspy.Highs, node: int, number: int, scales: Floats) -> None:
        """Add a column for items of a class on an existing node."""
        inputs = self.inputs
        max_items = float(min(inputs.node_max[node, number], inputs.demand[number]))
        resources = np.flatnonzero(inputs.requests[number] > 0)
        first_row = len(inputs.demand) + len(inputs.limit_left) + node * inputs.node_free.shape[1]
        rows = np.concatenate(([number], first_row + resources)).astype(np.int32)
        amounts = np.concatenate(([1.0], inputs.requests[number][resources] / scales[resources]))
        model.addCol(0.0, 0.0, max_items, len(rows), rows, amounts)

    def add(self, kind: int, pattern: Pattern) -> bool:
        """Add a pattern of a kind; return whether the pattern is new."""
        if (kind, pattern) in self._known or not any(pattern):
            return False
        self._known.add((kind, pattern))
        self._meter.count += PATTERN
        self.kinds.append(kind)
        self.patterns.append(pattern)
        self._add_pattern_column(self._model, kind, pattern)
        return True

    def _add_pattern_column(self, model: highspy.Highs, kind: int, pattern: Pattern) -> None:
        """Add a column for a pattern of a kind."""
        inputs = self.inputs
        rows = [number for number, count in enumerate(pattern) if count]
        amounts = [float(pattern[number]) for number in rows]
        for limit in range(len(inputs.limit_left)):
            if inputs.limit_usage[limit, kind]:
                rows.append(len(inputs.demand) + limit)
                amounts.append(float(inputs.limit_usage[limit, kind]))
        price = float(inputs.price[kind]) / self.scale
        model.addCol(price, 0.0, _INF, len(rows), np.array(rows, np.int32), np.array(amounts))

    def solve(self, budget: WorkBudget) -> Duals | None:
        """Solve the linear programme to optimality and return its dual values; None when the solver fails."""
        model = self._model
        run_linear(model, budget)
        if model.getModelStatus() != highspy.HighsModelStatus.kOptimal:
            return None
        duals = np.array(model.getSolution().row_dual)
        classes, limits = len(self.inputs.demand), len(self.inputs.limit_left)
        items = np.maximum(duals[:classes], 0.0)
        return Duals(
            items * self.scale,
            np.maximum(-duals[classes : classes + limits], 0.0) * self.scale,
            model.getObjectiveValue() * self.scale,
        )

    def pattern_levels(self) -> Floats:
        """Return how often the last linear solution uses each pattern, as fractions."""
        return np.array(self._model.getSolution().col_value)[self.first_pattern_column :]

    def solve_integer(self, budget: WorkBudget) -> IntegerSolution | None:
        """Return the best integer solution found within the budget, or None."""
        model = self._new_model()
        for kind, pattern in zip(self.kinds, self.patterns, strict=True):
            self._add_pattern_column(model, kind, pattern)
        columns = model.getNumCol()
        model.changeColsIntegrality(
            columns, np.arange(columns, dtype=np.int32), np.array([highspy.HighsVarType.kInteger] * columns)
        )
        model.setOptionValue("mip_rel_gap", 1e-5)
        run_integer(model, budget)
        info = model.getInfo()
        if info.primal_solution_status != 2:
            return None
        values = np.round(np.array(model.getSolution().col_value)).astype(np.int64)
        classes = len(self.inputs.demand)
        on_existing = np.zeros(self.inputs.node_feasible.shape, dtype=np.int64)
        for (node, number), value in zip(
            self._existing_columns, values[classes : self.first_pattern_column], strict=True
        ):
            on_existing[node, number] = value
        counts = values[self.first_pattern_column :]
        return IntegerSolution(
            counts,
            on_existing,
            values[:classes],
            info.objective_function_value * self.scale,
            info.mip_dual_bound * self.scale,
        )
