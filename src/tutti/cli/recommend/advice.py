"""A recommendation as a ScalingAdvice object of gardener/scaling-advisor, for `tutti recommend -o advice`.

Contract: `advice_text` returns the object as YAML. An advice needs a ScalingConstraint; without one `check_constraint`
raises a usage error.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from tutti.present.tables import structured

if TYPE_CHECKING:
    from tutti.recommend.records.recommendation import Recommendation
    from tutti.recommend.records.request import Request
    from tutti.wire.scaling_advisor.schema import ConstraintText


def check_constraint(constraint: ConstraintText | None) -> ConstraintText:
    """Return the constraint, or raise a usage error if there is none."""
    if constraint is None:
        wanted = "a planner request, or a ScalingConstraint with -f or --pools"
        raise click.UsageError(f"-o advice answers gardener/scaling-advisor: want {wanted}.")
    return constraint


def advice_text(answer: Recommendation, request: Request, *, constraint: ConstraintText | None) -> str:
    """Return the advice for a constraint as YAML."""
    from tutti.wire.scaling_advisor.response import scaling_advice

    return structured(scaling_advice(answer, request, constraint=check_constraint(constraint)), "yaml")
