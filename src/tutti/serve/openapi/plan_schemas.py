"""The answer of ``POST /v1/plans`` as types: the planner's response of gardener/scaling-advisor.

Contract: as in `answers`: nothing is made from these, and they are closed.
"""

from __future__ import annotations

import msgspec


class _Part(msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """A part of an answer."""


class RequestRef(_Part, frozen=True, omit_defaults=True):
    """The request that is answered, by the ids that it brought."""

    id: str
    correlation_id: str = msgspec.field(default="", name="correlationID")


class ScaleOutItem(_Part, frozen=True):
    """So many nodes more of a template, in a zone."""

    pool_name: str
    template_name: str
    instance_type: str
    region: str
    availability_zone: str
    current_replicas: int
    delta: int


class ScaleOutPlan(_Part, frozen=True):
    """What to buy, and the pods that stay pending."""

    unsatisfied_pod_names: list[str]
    items: list[ScaleOutItem]


class ScaleInItem(_Part, frozen=True):
    """A node that can go."""

    pool_name: str
    template_name: str
    instance_type: str
    region: str
    availability_zone: str
    node_name: str


class ScaleInPlan(_Part, frozen=True):
    """What can go."""

    items: list[ScaleInItem]


class PlannerResponse(_Part, frozen=True, omit_defaults=True):
    """The response of scaling-advisor's planner: plans, or an error."""

    request_ref: RequestRef = msgspec.field(name="RequestRef")
    error: str = ""
    labels: dict[str, str] = {}
    """Among them what the planner has to remark (`sa.gardener.cloud/notes`)."""
    scale_out_plan: ScaleOutPlan | None = None
    scale_in_plan: ScaleInPlan | None = None
    """There if it was asked for, and some node can go."""
    id: str = ""
