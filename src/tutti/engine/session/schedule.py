"""Scheduling: every pending pod of a cluster into one plan.

Contract: pure but for the cluster it is given, which stands as the plan leaves it afterwards (mark it before and roll
it back after for a what-if). Turns are taken in order (`turns.py`), and again while what one of them did may cure
another: what comes out is settled. A pod that fits nowhere has others evicted as DefaultPreemption would, a gang as
`gang_preempt.py` says: the victims go, their budgets shrink, and the newcomer takes its place at once. Victims do not
come back as pending pods: that is their controllers' work. Messages about pods on their own are those of kube-
scheduler, to the letter.
"""

from __future__ import annotations

from collections.abc import Iterable

from tutti.cluster.cluster import Cluster
from tutti.cluster.meter import TURN
from tutti.engine.placement.engine import Engine
from tutti.engine.placement.profile import Profile
from tutti.engine.session.attempts import Attempts
from tutti.engine.session.context import Options, Refused
from tutti.engine.session.plan import Plan
from tutti.engine.session.turns import Turn, turns

_PASSES = 100
"""How often turns are taken at most: far more than it takes until nothing changes."""


def schedule(
    cluster: Cluster,
    pods: Iterable[str] | None = None,
    profile: Profile | None = None,
    *,
    preemption: bool = True,
    consolidation: bool = False,
) -> Plan:
    """Place the pending pods (all of them if none are named), and say why the rest cannot be placed."""
    engine = Engine(cluster, profile)
    attempts = Attempts(engine, Options(preemption=preemption, consolidation=consolidation))
    wanted = None if pods is None else set(pods)
    failed: dict[str, Refused] = {}
    todo, left_out = turns(cluster, attempts.gangs, _waiting(cluster, wanted), profile=engine.profile)
    for _ in range(_PASSES):
        cluster.meter.count += TURN * len(todo)
        displaced = attempts.notes.displaced
        for turn in todo:
            failed.pop(turn.name, None)
        failed |= _one_pass(attempts, todo)
        cured = any(why.is_cured(cluster.events) for why in failed.values())
        if not cured and attempts.notes.displaced == displaced:
            break
        every, _ = turns(cluster, attempts.gangs, _waiting(cluster, wanted), profile=engine.profile)
        todo = [turn for turn in every if turn.name not in failed or failed[turn.name].is_cured(cluster.events)]
    return attempts.notes.plan(left_out)


def _waiting(cluster: Cluster, wanted: set[str] | None) -> list[str]:
    waiting = pending(cluster)
    return waiting if wanted is None else [key for key in waiting if key in wanted]


def pending(cluster: Cluster) -> list[str]:
    """All pods without a node."""
    pods = cluster.pods
    return [key for key, row in pods.row_of.items() if pods.node_names[row] is None]


def _one_pass(attempts: Attempts, todo: list[Turn]) -> dict[str, Refused]:
    """Take all turns once; give why some failed."""
    failed: dict[str, Refused] = {}
    alone: list[str] = []
    for turn in [*todo, None]:
        if turn is not None and turn.gang is None:
            alone += turn.pods
            continue
        if alone:
            failed |= attempts.solos(alone)
            alone = []
        if turn is not None:
            why = attempts.surplus(turn) if turn.surplus else attempts.gang(turn)
            if why is not None:
                failed[turn.name] = why
    return failed
