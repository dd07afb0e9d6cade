"""The meter: how much was done to a picture and asked of it, counted.

Contract: one counter for a cluster and its copies, or for several clusters. It only grows; a rollback counts as further
edits. The units are rough, about 10 nanoseconds each: budgets that are counted in them end at the same place on every
run, which no clock does.
"""

from __future__ import annotations

UNIT = 1e-8
"""Seconds that a unit takes, roughly."""
EDIT = 1_000
"""An edit."""
OBJECT = 2_000
"""An object that a new cluster takes in: all of it is read for the first time."""
PASS_OVER = 10_000
"""A pod brought before all nodes, beside what each node costs."""
NODE = 15
"""A node that a pod is brought before."""
JUDGEMENT = 15_000
"""Filters and scores asked anew, beside what each answer costs."""
ANSWER = 30
"""A spec judged on a node."""


class Meter:
    """See the module's contract."""

    __slots__ = ("count",)

    def __init__(self) -> None:
        self.count = 0

    @property
    def seconds(self) -> float:
        """About how long it takes on a usual machine."""
        return UNIT * self.count
