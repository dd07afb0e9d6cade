"""The response of a scaling recommender (Tutti's or the original) as a client reads it.

Contract: unlike in `response`, all fields are optional and have defaults.
"""

from __future__ import annotations

import msgspec


class RecommenderScaleUp(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """Nodes to add to one pool in one zone."""

    zone: str = ""
    node_pool_name: str = ""
    increment_by: int = 1
    instance_type: str = ""
    node_names: list[str] = []


class RecommenderPlan(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """Nodes to add, and the names of nodes to remove."""

    scale_up: list[RecommenderScaleUp] = []
    scale_down: list[str] = []


class RecommenderAnswer(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The whole response."""

    recommendation: RecommenderPlan = RecommenderPlan()
    run_time: str = ""
    error: str = ""
