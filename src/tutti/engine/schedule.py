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
from tutti.engine.attempts import Attempts, Options, Refused
from tutti.engine.engine import Engine
from tutti.engine.plan import Plan
from tutti.engine.profile import Profile
from tutti.engine.turns import Turn, turns


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
    waiting = pending(cluster) if pods is None else list(pods)
    todo, left_out = turns(cluster, attempts.gangs, waiting, profile=engine.profile)
    done = -1
    while todo and done < len(attempts.binds) + len(attempts.evictions):
        done = len(attempts.binds) + len(attempts.evictions)
        todo = _again(cluster, todo, _one_pass(attempts, todo))
    return attempts.plan(left_out)


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


def _again(cluster: Cluster, todo: list[Turn], failed: dict[str, Refused]) -> list[Turn]:
    """Give the turns that failed and that something which happened since may cure."""
    again = []
    cured = set()
    for turn in todo:
        found = failed.get(turn.name)
        if found is not None and found.is_cured(cluster.events):
            again.append(turn)
            cured.add(turn.gang)
    # What a gang has above its minimum waits for the minimum.
    more = [turn for turn in todo if turn.surplus and turn.gang in cured and turn not in again]
    return sorted((*again, *more))
