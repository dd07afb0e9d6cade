"""The response of a scaling recommender as a client reads it: this one's, or the original's.

Contract: lenient where `response` is strict: fields that a recommender leaves out have defaults.
"""

from __future__ import annotations

import msgspec


class RecommenderScaleUp(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """So many nodes to add."""

    zone: str = ""
    node_pool_name: str = ""
    increment_by: int = 1
    instance_type: str = ""
    node_names: list[str] = []


class RecommenderPlan(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """What to add, and the names of nodes that can go."""

    scale_up: list[RecommenderScaleUp] = []
    scale_down: list[str] = []


class RecommenderAnswer(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The whole response."""

    recommendation: RecommenderPlan = RecommenderPlan()
    run_time: str = ""
    error: str = ""
