"""How a session goes: what it may evict, how often it tries, and how long it waits.

`OFFLINE` is the policy of `tutti schedule` and of every what-if: no clock, victims vanish at once, and turns are taken
again until nothing changes. `Policy()` is that of a live scheduler: one pass, victims terminate while room is held.
"""

from __future__ import annotations

from typing import Literal

import msgspec

SECOND = 1_000_000
"""A second in microseconds, the unit of time."""


class Patience(msgspec.Struct, frozen=True, kw_only=True):
    """How long a live scheduler waits, in microseconds."""

    first_backoff: int = SECOND
    longest_backoff: int = 10 * SECOND
    retry_after: int = 300 * SECOND
    """After this time a failed turn is tried again even if nothing has happened."""
    starving_after: int = 60 * SECOND
    """A turn that has waited for room for this long gets a reservation."""
    reserved_for: int = 3_600 * SECOND
    """After this time a reservation passes to the next turn in the queue. Room for pods whose victims are leaving is
    held for as long, and a pod that has been terminating for longer is no longer expected to leave."""


class Policy(msgspec.Struct, frozen=True, kw_only=True):
    """See the module's docstring."""

    preemption: bool = True
    consolidation: bool = False
    """Whether running pods may be moved to make room, before any are evicted."""
    victims: Literal["terminate", "vanish"] = "terminate"
    """Whether victims begin to terminate, which needs a clock, or are gone at once."""
    passes: int = 1
    """How often turns are taken at most while one of them may have cured another."""
    patience: Patience | None = Patience()
    """None: no backoff and no reservations; every pending pod is tried, and no queue is kept."""
    budget: int | None = None
    """How much work a session may do, in the meter's unit (`cluster.work.meter`); None: as much as it takes."""


OFFLINE = Policy(victims="vanish", passes=100, patience=None)
"""Schedule everything at once, until it is settled; 100 passes are far more than that ever takes."""
