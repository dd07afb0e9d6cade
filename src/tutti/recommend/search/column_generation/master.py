"""The master: which patterns to buy how often, as a linear programme over the patterns known so far.

Contract: rows are the demand of every class (covered or dropped at a penalty), the limits, and the room on nodes that
are there (an item may go there for nothing, as a fraction). `solve` gives the duals; `whole` asks for whole numbers.
Every status is checked: HiGHS answers zeros when it has failed.
"""

from __future__ import annotations

from typing import NamedTuple

import highspy
import numpy as np

from tutti.cluster.columns import Bools, Floats, Ints
from tutti.cluster.work.meter import PATTERN, Meter
from tutti.cluster.work.work_budget import WorkBudget
from tutti.recommend.search.column_generation.highs import quiet, run_linear, run_whole
from tutti.recommend.search.column_generation.packing_input import PackingInput, Pattern

_INF = highspy.kHighsInf
_NONE = np.array([], dtype=np.int32), np.array([], dtype=np.float64)


class Duals(NamedTuple):
    """What one more item of each class would cost, what each limit is worth; and the cost of it all."""

    items: Floats
    limits: Floats
    cost: float


class IntegerSolution(NamedTuple):
    """A solution in whole numbers."""

    times: Ints
    """How often each pattern is bought."""
    moved: Ints
    """Existing node x class: how many items go there."""
    dropped: Ints
    cost: float
    bound: float


class MasterProgram:
    """See the module's contract."""

    def __init__(
        self, flat: PackingInput, penalty: Floats, meter: Meter, *, scale: float, firm: Bools | None = None
    ) -> None:
        self.flat, self.penalty, self.scale, self._meter = flat, penalty, scale, meter
        self.firm = np.zeros(len(flat.demand), dtype=bool) if firm is None else firm
        """Classes of which nothing may be dropped."""
        self.patterns: list[Pattern] = []
        self.kinds: list[int] = []
        self._known: set[tuple[int, Pattern]] = set()
        self._model = self._new()

    def _new(self) -> highspy.Highs:
        """A model with the rows, the drops and the room, and no patterns."""
        flat, model = self.flat, quiet(self._meter)
        classes = len(flat.demand)
        for number in range(classes):
            model.addRow(float(flat.demand[number]), _INF, 0, *_NONE)
        for left in flat.left.tolist():
            model.addRow(-_INF, float(left), 0, *_NONE)
        units = np.maximum(flat.room.max(axis=0, initial=1.0), 1.0)
        for node in range(len(flat.room)):
            for resource in range(flat.room.shape[1]):
                model.addRow(-_INF, float(flat.room[node, resource] / units[resource]), 0, *_NONE)
        for number in range(classes):
            model.addCol(
                float(self.penalty[number]) / self.scale,
                0.0,
                0.0 if self.firm[number] else _INF,
                1,
                np.array([number], np.int32),
                np.ones(1),
            )
        self._moves = [(n, c) for n in range(len(flat.room)) for c in np.flatnonzero(flat.welcome[n]).tolist()]
        for node, number in self._moves:
            self._add_move(model, node, number, units)
        self.first = model.getNumCol()
        return model

    def _add_move(self, model: highspy.Highs, node: int, number: int, units: Floats) -> None:
        flat = self.flat
        most = float(min(flat.room_most[node, number], flat.demand[number]))
        there = np.flatnonzero(flat.requests[number] > 0)
        base = len(flat.demand) + len(flat.left) + node * flat.room.shape[1]
        rows = np.concatenate(([number], base + there)).astype(np.int32)
        amounts = np.concatenate(([1.0], flat.requests[number][there] / units[there]))
        model.addCol(0.0, 0.0, most, len(rows), rows, amounts)

    def add(self, kind: int, pattern: Pattern) -> bool:
        """Take in a pattern of a kind; say whether it is new."""
        if (kind, pattern) in self._known or not any(pattern):
            return False
        self._known.add((kind, pattern))
        self._meter.count += PATTERN
        self.kinds.append(kind)
        self.patterns.append(pattern)
        self._append(self._model, kind, pattern)
        return True

    def _append(self, model: highspy.Highs, kind: int, pattern: Pattern) -> None:
        flat = self.flat
        rows = [number for number, count in enumerate(pattern) if count]
        amounts = [float(pattern[number]) for number in rows]
        for limit in range(len(flat.left)):
            if flat.takes[limit, kind]:
                rows.append(len(flat.demand) + limit)
                amounts.append(float(flat.takes[limit, kind]))
        price = float(flat.price[kind]) / self.scale
        model.addCol(price, 0.0, _INF, len(rows), np.array(rows, np.int32), np.array(amounts))

    def solve(self, budget: WorkBudget) -> Duals | None:
        """The linear programme's duals; None when the solver fails. It is solved to its end, and the work counted."""
        model = self._model
        run_linear(model, budget)
        if model.getModelStatus() != highspy.HighsModelStatus.kOptimal:
            return None
        duals = np.array(model.getSolution().row_dual)
        classes, limits = len(self.flat.demand), len(self.flat.left)
        items = np.maximum(duals[:classes], 0.0)
        return Duals(
            items * self.scale,
            np.maximum(-duals[classes : classes + limits], 0.0) * self.scale,
            model.getObjectiveValue() * self.scale,
        )

    def levels(self) -> Floats:
        """How often each pattern is used in the last solution, in fractions."""
        return np.array(self._model.getSolution().col_value)[self.first :]

    def whole(self, budget: WorkBudget) -> IntegerSolution | None:
        """The best solution in whole numbers that is found in time."""
        model = self._new()
        for kind, pattern in zip(self.kinds, self.patterns, strict=True):
            self._append(model, kind, pattern)
        columns = model.getNumCol()
        model.changeColsIntegrality(
            columns, np.arange(columns, dtype=np.int32), np.array([highspy.HighsVarType.kInteger] * columns)
        )
        model.setOptionValue("mip_rel_gap", 1e-5)
        run_whole(model, budget)
        info = model.getInfo()
        if info.primal_solution_status != 2:
            return None
        values = np.round(np.array(model.getSolution().col_value)).astype(np.int64)
        classes = len(self.flat.demand)
        moved = np.zeros(self.flat.welcome.shape, dtype=np.int64)
        for (node, number), value in zip(self._moves, values[classes : self.first], strict=True):
            moved[node, number] = value
        times = values[self.first :]
        return IntegerSolution(
            times, moved, values[:classes], info.objective_function_value * self.scale, info.mip_dual_bound * self.scale
        )
