"""The answers as types: what the OpenAPI document says of them, and what tests hold them to.

Contract: nothing is made from these; answers are written by `tutti.recommend.wire` in the worker. They are closed: a
test fails when an answer has a key that is not here.
"""

from __future__ import annotations

import msgspec


class _Part(msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """A part of an answer."""


class GardenerScaleUp(_Part, frozen=True):
    """So many nodes more of a pool in a zone."""

    zone: str
    node_pool_name: str
    increment_by: int
    instance_type: str
    node_names: list[str]


class GardenerPlan(_Part, frozen=True):
    """What to buy, and the names of the nodes that can go."""

    scale_up: list[GardenerScaleUp]
    scale_down: list[str]


class GardenerPod(_Part, frozen=True, rename="pascal"):
    """A pod that stays pending."""

    namespace: str
    name: str


class RecommendationResponse(_Part, frozen=True):
    """The answer of Gardener's scaling recommender; `error` is empty when there is a plan."""

    recommendation: GardenerPlan
    unscheduled_pods: list[GardenerPod]
    run_time: str
    error: str


class Money(_Part, frozen=True):
    """A price; null stands for one that is not known."""

    per_hour: float
    per_month: float
    currency: str


class Bound(_Part, frozen=True, omit_defaults=True):
    """A price, or a number of nodes where nodes are counted."""

    per_hour: float | None = None
    per_month: float | None = None
    currency: str | None = None
    nodes: int | None = None


class ScaleUp(_Part, frozen=True):
    """So many nodes more of a pool, in a zone, of a type."""

    node_pool: str
    zone: str
    instance_type: str
    capacity_type: str
    increment_by: int
    node_names: list[str]
    price_per_hour: float | None
    price_per_month: float | None


class NewNode(_Part, frozen=True):
    """A node that the plan buys, and the pods that it takes."""

    name: str
    node_pool: str
    zone: str
    instance_type: str
    capacity_type: str
    price_per_hour: float | None
    price_per_month: float | None
    pods: list[str]


class Place(_Part, frozen=True):
    """A pod and its node."""

    pod: str
    node: str


class Pending(_Part, frozen=True):
    """A pod that stays pending, and why."""

    pod: str
    reason: str
    gang: str | None


class PoolState(_Part, frozen=True):
    """Whether a pool could be bought from."""

    node_pool: str
    eligible: bool
    reason: str


class Eviction(_Part, frozen=True):
    """What would do instead of buying."""

    who: str = msgspec.field(name="for")
    evicting: list[str]


class Counts(_Part, frozen=True):
    """How many pods waited and got a place, and how many nodes are new."""

    pending: int
    placed: int
    on_existing: int
    on_new: int
    new_nodes: int


class Removal(_Part, frozen=True):
    """A node that can go."""

    node: str
    node_pool: str
    zone: str
    instance_type: str
    capacity_type: str
    price_per_hour: float | None
    reason: str
    utilization: float
    moves: int
    unneeded_seconds_left: int


class Stay(_Part, frozen=True):
    """A node that must stay, and why."""

    node: str
    node_pool: str
    reason: str
    message: str
    pod: str | None
    utilization: float | None


class Move(_Part, frozen=True):
    """A pod that leaves its node for another."""

    pod: str
    source: str = msgspec.field(name="from")
    target: str = msgspec.field(name="to")


class Step(_Part, frozen=True):
    """What is done at once."""

    add: list[str]
    move: list[Move]
    remove: list[str]
    grace_seconds: int


class DownCounts(_Part, frozen=True):
    """How many nodes go, come and stay, and how many pods move."""

    remove: int
    replace_by: int
    stay: int
    moves: int
    steps: int


class ScaleDown(_Part, frozen=True):
    """What can be given back once the rest is bought: there if it was asked for."""

    remove: list[Removal]
    replace_by: list[ScaleUp]
    stay: list[Stay]
    steps: list[Step]
    counts: DownCounts
    purchase: Money | None
    before: Money | None
    after: Money | None
    saving: Money | None
    churn: float | None
    payback_hours: float | None
    notes: list[str]


class RecommendationAnswer(_Part, frozen=True):
    """The whole plan: what to buy, who goes where, who waits and why, what it costs and cannot cost less than."""

    scale_up: list[ScaleUp]
    nodes: list[NewNode]
    on_existing: list[Place]
    pending: list[Pending]
    pools: list[PoolState]
    alternatives: list[Eviction]
    counts: Counts
    cost: Money | None
    bound: Bound | None
    gap: float | None
    minimal: bool | None
    objective: str
    strategy: str
    binder: str
    holds: list[Place]
    notes: list[str]
    scale_down: ScaleDown | None = None
