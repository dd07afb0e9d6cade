"""The recommendation: nodes to buy, a node for each pod, pods that stay pending with the reason, the cost and its
bound.

Contract: frozen records in a stable order; money in nano-dollars an hour. `present` and `wire` turn them into text.
"""

from __future__ import annotations

import msgspec

from tutti.recommend.records.down_plan import DownPlan
from tutti.recommend.records.new_nodes import NewNode, ScaleUp


class Placement(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A pending pod that goes to an existing node."""

    pod: str
    node: str


class LeftPod(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A pod that stays pending."""

    pod: str
    reason: str
    gang: str | None = None


class Alternative(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """An alternative to buying: pods that could be evicted for one pod or gang."""

    who: str
    evicting: tuple[str, ...]


class PoolStatus(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Whether nodes of a pool can be bought, and why not."""

    pool: str
    eligible: bool
    reason: str = ""


class Recommendation(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """The whole answer; see the module's contract."""

    strategy: str
    """The strategy that made the plan: ``optimal``, ``least-cost``, ..."""
    objective: str
    binder: str
    scale_up: tuple[ScaleUp, ...] = ()
    nodes: tuple[NewNode, ...] = ()
    on_existing: tuple[Placement, ...] = ()
    left: tuple[LeftPod, ...] = ()
    pools: tuple[PoolStatus, ...] = ()
    alternatives: tuple[Alternative, ...] = ()
    pods: int = 0
    """The number of pods that were pending."""
    placed: int = 0
    cost: int | None = None
    """The price of all new nodes; None if a price is not known."""
    bound: int | None = None
    """The least cost of any plan that places these pods (a number of nodes for the objective nodes); None if not known.
    """
    gap: float | None = None
    """The share of the cost that a better plan could save at most: (cost - bound) / cost."""
    minimal: bool | None = None
    """Whether every new node is needed (without each of them a pod becomes pending); None if not checked."""
    down: DownPlan | None = None
    """The nodes that can be removed after the purchase; None if the request does not ask for a scale-down."""
    notes: tuple[str, ...] = ()
