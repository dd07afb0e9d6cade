"""A session: the only driver of the scheduler, from the queue to a plan.

Contract: `session(engine, queue, now, policy)` takes the turns that are due, in queue order, and returns the plan. A
session changes the engine's cluster by edits only. It also changes the queue, which follows the cluster's marks: a
rollback of the cluster undoes the whole session. A session is atomic: it returns a plan, or leaves the cluster and the
queue as they were. Times are microseconds. The policy distinguishes a live scheduler from
a what-if: with `patience` the queue is kept between sessions (`queue_passes`); without one, every pending pod is
tried until nothing changes (`passes`). A policy whose victims vanish needs no clock.
"""

from __future__ import annotations

from collections.abc import Collection

from tutti.cluster.trial import Trial
from tutti.engine.placement.engine import Engine
from tutti.engine.session.passes import Passes
from tutti.engine.session.plan import Order, Plan
from tutti.engine.session.policy import Policy
from tutti.engine.session.queue import Queue
from tutti.engine.session.queue_passes import QueuePasses


def session(
    engine: Engine,
    queue: Queue | None,
    now: int | None,
    policy: Policy,
    *,
    only: Collection[str] | None = None,
    before: Order | None = None,
) -> Plan:
    """Take the turns that are due and return the plan; `only` limits the session to these pod keys.

    `before` limits a session without patience to the turns that come before a place in the queue order.
    """
    if policy.patience is not None and before is not None:
        raise ValueError("a session with patience takes all turns that are due")
    if policy.patience is not None and (queue is None or now is None):
        raise ValueError("a session with patience needs a queue and a clock")
    if queue is not None and queue.cluster is not engine.cluster:
        raise ValueError("the queue belongs to another cluster")
    with Trial(engine.cluster) as trial:
        plan = _passes(engine, queue, now, policy, only, before).run()
        trial.keep()
        return plan


def _passes(
    engine: Engine,
    queue: Queue | None,
    now: int | None,
    policy: Policy,
    only: Collection[str] | None,
    before: Order | None,
) -> Passes:
    if policy.patience is None or queue is None or now is None:
        return Passes(engine, now, policy, only=only, before=before)
    return QueuePasses(engine, queue, now, policy, patience=policy.patience, only=only)
