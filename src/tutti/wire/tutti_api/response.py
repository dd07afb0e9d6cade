"""The answer of ``POST /v1/recommendations`` and of ``tutti recommend -o json``: its types.

Contract: msgspec encodes these types as they are, and the OpenAPI document has their schemas, where names have no
``Api``. An answer always has the same keys in the same order; `scaleDown` alone is absent unless the request asks for
it. Money is in dollars (or the currency that the answer names), times are in seconds, and null means unknown.
"""

from __future__ import annotations

import msgspec


class _Part(msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True, gc=False):
    """A part of an answer."""


class ApiMoney(_Part, frozen=True):
    """An amount by the hour and by the month."""

    per_hour: float
    per_month: float
    currency: str


class ApiBound(_Part, frozen=True, omit_defaults=True):
    """A lower bound: an amount of money, or a number of nodes if the objective is the number of nodes."""

    per_hour: float | None = None
    per_month: float | None = None
    currency: str | None = None
    nodes: int | None = None


class ApiScaleUp(_Part, frozen=True):
    """New nodes of one pool, zone and instance type."""

    node_pool: str
    zone: str
    instance_type: str
    capacity_type: str
    increment_by: int
    node_names: tuple[str, ...]
    price_per_hour: float | None
    price_per_month: float | None


class ApiNewNode(_Part, frozen=True):
    """A node to buy, and the pods that it takes."""

    name: str
    node_pool: str
    zone: str
    instance_type: str
    capacity_type: str
    price_per_hour: float | None
    price_per_month: float | None
    pods: tuple[str, ...]


class ApiPlace(_Part, frozen=True):
    """A pod and its node."""

    pod: str
    node: str


class ApiPending(_Part, frozen=True):
    """A pod that stays pending, and why."""

    pod: str
    reason: str
    gang: str | None


class ApiPoolState(_Part, frozen=True):
    """Whether the recommender can buy from a pool, and why not."""

    node_pool: str
    eligible: bool
    reason: str


class ApiEviction(_Part, frozen=True):
    """Pods whose eviction would make the purchase for one pod or gang unnecessary."""

    pod_or_gang: str = msgspec.field(name="for")
    evicting: tuple[str, ...]


class ApiCounts(_Part, frozen=True):
    """Numbers of pending and placed pods and of new nodes."""

    pending: int
    placed: int
    on_existing: int
    on_new: int
    new_nodes: int


class ApiRemoval(_Part, frozen=True):
    """A node to remove."""

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


class ApiStay(_Part, frozen=True):
    """A node that must stay, and why."""

    node: str
    node_pool: str
    reason: str
    message: str
    pod: str | None
    utilization: float | None


class ApiMove(_Part, frozen=True):
    """A pod that moves from one node to another."""

    pod: str
    source: str = msgspec.field(name="from")
    target: str = msgspec.field(name="to")


class ApiStep(_Part, frozen=True):
    """Actions of a scale-down that happen together."""

    add: tuple[str, ...]
    move: tuple[ApiMove, ...]
    remove: tuple[str, ...]
    grace_seconds: int


class ApiDownCounts(_Part, frozen=True):
    """Numbers of nodes to remove, to buy as replacements and to keep, of moves and of steps."""

    remove: int
    replace_by: int
    stay: int
    moves: int
    steps: int


class ApiScaleDown(_Part, frozen=True):
    """Nodes to remove after the purchase for pending pods, and the steps to get there."""

    remove: tuple[ApiRemoval, ...]
    replace_by: tuple[ApiScaleUp, ...]
    stay: tuple[ApiStay, ...]
    steps: tuple[ApiStep, ...]
    counts: ApiDownCounts
    purchase: ApiMoney | None
    before: ApiMoney | None
    after: ApiMoney | None
    saving: ApiMoney | None
    churn: float | None
    payback_hours: float | None
    notes: tuple[str, ...]


class RecommendationAnswer(_Part, frozen=True, omit_defaults=True):
    """The whole plan.

    `bound` is a cost that no plan for these pods can go below. `holds` has the node of each pod if Tutti binds the
    pods; another scheduler chooses nodes itself, and `holds` is empty.
    """

    scale_up: tuple[ApiScaleUp, ...]
    nodes: tuple[ApiNewNode, ...]
    on_existing: tuple[ApiPlace, ...]
    pending: tuple[ApiPending, ...]
    pools: tuple[ApiPoolState, ...]
    alternatives: tuple[ApiEviction, ...]
    counts: ApiCounts
    cost: ApiMoney | None
    bound: ApiBound | None
    gap: float | None
    minimal: bool | None
    objective: str
    strategy: str
    binder: str
    holds: tuple[ApiPlace, ...]
    notes: tuple[str, ...]
    scale_down: ApiScaleDown | None = None


class ApiProblem(_Part, frozen=True):
    """Why a request has no plan."""

    error: str
    object: str = ""
    """The object that has the problem, if known."""
    field: str = ""
    """The field of the object or of the request."""
    request_id: str = ""
    """The id of the request in the server's log."""
