"""A session: the only driver of the scheduler, from the queue to a plan.

Contract: `session(engine, queue, now, policy)` takes the turns that are due, in queue order, and returns the plan. A
session changes the engine's cluster by edits only. It also changes the queue, which follows the cluster's marks: a
rollback of the cluster undoes the whole session. Times are microseconds. The policy distinguishes a live scheduler from
a what-if: with `patience` the queue is kept between sessions (`queue_passes`); without one, every pending pod is
tried until nothing changes (`passes`). A policy whose victims vanish needs no clock.
"""

from __future__ import annotations

from collections.abc import Collection

from tutti.engine.placement.engine import Engine
from tutti.engine.session.passes import Passes
from tutti.engine.session.plan import Plan
from tutti.engine.session.policy import Policy
from tutti.engine.session.queue import Queue
from tutti.engine.session.queue_passes import QueuePasses


def session(
    engine: Engine, queue: Queue | None, now: int | None, policy: Policy, *, only: Collection[str] | None = None
) -> Plan:
    """Take the turns that are due and return the plan; `only` limits the session to these pod keys."""
    if policy.patience is None:
        return Passes(engine, now, policy, only=only).run()
    if queue is None or now is None:
        raise ValueError("a session with patience needs a queue and a clock")
    if queue.cluster is not engine.cluster:
        raise ValueError("the queue belongs to another cluster")
    return QueuePasses(engine, queue, now, policy, patience=policy.patience, only=only).run()
