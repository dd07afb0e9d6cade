"""The policy of a session: what the session may evict, how often it tries, and how long it waits.

`OFFLINE` is the policy of `tutti schedule` and of every what-if: no clock, victims vanish at once, and passes repeat
until nothing changes. `Policy()` is the policy of a live scheduler: one pass, and room is held while victims terminate.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from tutti.engine.preemption.victim_rules import VictimRules

SECOND = 1_000_000
"""A second in microseconds, the unit of time."""


class Patience(msgspec.Struct, frozen=True, kw_only=True):
    """Backoff, retry and reservation times of a live scheduler, in microseconds."""

    first_backoff: int = SECOND
    longest_backoff: int = 10 * SECOND
    victims_backoff: int = SECOND // 10
    """The backoff of a turn that only waits until its victims have left: short, because the room is held."""
    retry_after: int = 300 * SECOND
    """After this time a failed turn is tried again even without a relevant event; a turn that waits for room alone only
    if there may be room."""
    starving_after: int = 60 * SECOND
    """A turn that has waited for room for this long gets a reservation."""
    partial_for: int = 60 * SECOND
    """After this time the bound pods of a gang that runs in part, never ran whole and could not be completed, are
    evicted."""
    counted_quiet_for: int = 2 * SECOND
    """A gang whose size is only counted from its pods starts when its newest pod is this old."""
    undo_started_within: int = 0
    """Pods of such a gang that have started are evicted too if they started less than this time ago; others are left,
    because the gang may have run whole before this process began."""
    replaced_within: int = 60 * SECOND
    """A gang that was bound whole, and lost pods before they started, is left for this time while too few pods wait to
    complete it: their controllers may create others after a backoff of their own."""
    avoided_for: int = 60 * SECOND
    """For this time a pod is not bound again to a node where its binding failed."""
    reserved_for: int = 3_600 * SECOND
    """After this time a reservation passes to the next turn in the queue. Room for pods whose victims are terminating
    is held for the same time."""
    leaves_within: int = 3_600 * SECOND
    """A pod whose deletionTimestamp, which includes its grace period, is older than this is not expected to leave."""


class Policy(msgspec.Struct, frozen=True, kw_only=True):
    """See the module's docstring."""

    preemption: bool = True
    victims_allowed: VictimRules = VictimRules()
    """Which pods may be evicted at all."""
    eviction_rounds: int | None = None
    """How often a turn may evict pods without starting, before it evicts nobody until nodes have changed; None: as
    often as it likes. Another scheduler may take the room again and again."""
    own_nodes: tuple[str, str] | None = None
    """Key and value of the taint of nodes that no other scheduler uses: turns evict there as often as they like."""
    partial_first: bool = False
    """Whether gangs that run in part are completed before all other turns, whatever their priority."""
    consolidation: bool = False
    """Whether running pods may be moved to make room, before any pod is evicted."""
    victims: Literal["terminate", "vanish"] = "terminate"
    """Whether victims begin to terminate, which needs a clock, or are removed at once."""
    passes: int = 1
    """The maximum number of passes; a pass is repeated only if it may have cured an earlier failure."""
    queueing: Literal["fifo", "backfill", "reservation"] = "reservation"
    """What later turns may do while a turn waits for room; turns of higher priority always come first. `fifo`: nothing.
    `backfill`: use any room. `reservation`: use any room but that which is reserved for the first starving turn, or
    that room if they are known to end before it is needed."""
    patience: Patience | None = Patience()
    """None: no backoff and no reservations; every pending pod is tried, and no queue is kept."""
    budget: int | None = None
    """The maximum work of a session, in the meter's unit (`cluster.work.meter`); None: no limit."""


OFFLINE = Policy(victims="vanish", passes=100, patience=None)
"""Schedule all pending pods at once, until nothing changes; real clusters need far fewer than 100 passes."""
