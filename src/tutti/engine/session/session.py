"""A session: the one driver of the scheduler, from the queue to a plan.

Contract: `session(engine, queue, now, policy)` takes the turns that are due, in the order of the queue, and returns the
plan. It changes the engine's cluster, by edits only, and the queue, which follows the cluster's marks: a session under
a mark is rolled back as a whole. Times are microseconds. What differs between a live scheduler and a what-if is the
policy: with patience a queue is kept between sessions (`patient_passes`), without it everything that is pending is
tried until it is settled (`passes`), and if victims vanish no clock is needed.
"""

from __future__ import annotations

from collections.abc import Collection

from tutti.engine.placement.engine import Engine
from tutti.engine.session.passes import Passes
from tutti.engine.session.patient_passes import PatientPasses
from tutti.engine.session.plan import Plan
from tutti.engine.session.policy import Policy
from tutti.engine.session.queue import Queue


def session(
    engine: Engine, queue: Queue | None, now: int | None, policy: Policy, *, only: Collection[str] | None = None
) -> Plan:
    """Take the turns that are due; `only` limits the session to some pods."""
    if policy.patience is None:
        return Passes(engine, now, policy, only=only).run()
    if queue is None or now is None:
        raise ValueError("a session with patience needs a queue and a clock")
    if queue.cluster is not engine.cluster:
        raise ValueError("the queue belongs to another cluster")
    return PatientPasses(engine, queue, now, policy, patience=policy.patience, only=only).run()
