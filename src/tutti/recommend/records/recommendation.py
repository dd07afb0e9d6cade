"""The answer: what to buy, who goes where, who stays pending and why, what it costs and what it cannot cost less than.

Contract: frozen records in a stable order; money in nano-dollars an hour. `cli` and `serve` turn them into text.
"""

from __future__ import annotations

import msgspec

from tutti.recommend.records.down_plan import DownPlan
from tutti.recommend.records.new_nodes import NewNode, ScaleUp


class Placement(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A pending pod that finds room on a node that is there."""

    pod: str
    node: str


class LeftPod(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A pod that stays pending."""

    pod: str
    reason: str
    gang: str | None = None


class Alternative(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """What would do instead of buying: pods that could be evicted for one pod or gang."""

    who: str
    evicting: tuple[str, ...]


class PoolStatus(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Whether a pool could be bought from, and why not."""

    pool: str
    eligible: bool
    reason: str = ""


class Recommendation(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """See the module's contract."""

    strategy: str
    """What made the plan: ``optimal``, ``least-cost``, ..."""
    objective: str
    binder: str
    scale_up: tuple[ScaleUp, ...] = ()
    nodes: tuple[NewNode, ...] = ()
    on_existing: tuple[Placement, ...] = ()
    left: tuple[LeftPod, ...] = ()
    pools: tuple[PoolStatus, ...] = ()
    alternatives: tuple[Alternative, ...] = ()
    pods: int = 0
    """How many pods were pending."""
    placed: int = 0
    cost: int | None = None
    """Of all new nodes; None when some price is not known."""
    bound: int | None = None
    """No plan that places these pods can cost less; None when that is not known. In nodes for the objective nodes."""
    gap: float | None = None
    """How much of the cost a better plan could save at most: (cost - bound) / cost."""
    minimal: bool | None = None
    """Whether every bought node is needed (each was taken away and some pod became pending); None: not checked."""
    down: DownPlan | None = None
    """What can be given back once this is bought; None when nobody asked."""
    notes: tuple[str, ...] = ()
