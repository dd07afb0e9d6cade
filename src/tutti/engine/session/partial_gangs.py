"""Partial gangs: gangs that run in part and never ran whole are completed, or undone after a while.

A gang is partial if some, but fewer than its minimum of its pods are bound and not terminating, and it never had its
minimum at once: a binding failed, or its scheduler stopped in between. A gang whose declaration is invalid has no known
minimum and is not partial. Every session tries to complete it (its missing
pods are a turn like any other). After `Patience.partial_for` the plan evicts its bound pods that have a controller and
have not started; other bound pods are reported. A gang that once ran whole is never undone.

Contract: what was seen (`PartialGangs`) belongs to the queue and follows its marks; a session costs the gangs that have
changed, and the partial ones.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from tutti.cluster.cluster import Cluster
from tutti.engine.gangs.gang_state import GangPhase, Gangs, GangState
from tutti.engine.session.plan import PartialGang
from tutti.kube.objects import Pod


class PartialGangs(msgspec.Struct, frozen=True):
    """What is remembered about gangs between sessions."""

    whole: frozenset[str] = frozenset()
    """Gangs with pods that have run whole."""
    since: dict[str, int] = {}
    """Partial gangs, with the time at which each was first seen, in microseconds."""


def follow(seen: PartialGangs, cluster: Cluster, changed: Iterable[str], *, now: int) -> PartialGangs:
    """Return what is remembered after some gangs have changed; the same object if nothing is new."""
    gangs, whole, since = Gangs.of(cluster), set(seen.whole), dict(seen.since)
    for key in changed:
        state = gangs.state(key, ())
        phase = state.phase
        if phase is not GangPhase.PARTIAL:
            since.pop(key, None)
        elif key not in whole:
            since.setdefault(key, now)
        if phase is GangPhase.WHOLE:
            whole.add(key)
        elif not state.running:
            whole.discard(key)
    if whole == seen.whole and since == seen.since:
        return seen
    return PartialGangs(frozenset(whole), since)


def overdue(seen: PartialGangs, *, now: int, partial_for: int) -> list[str]:
    """Return the gangs that have been partial for too long, sorted."""
    return sorted(key for key, since in seen.since.items() if now - since >= partial_for)


def partial_gang(cluster: Cluster, key: str, since: int) -> PartialGang:
    """Return a partial gang with the pods that are evicted and those that stay."""
    state = Gangs.of(cluster).state(key, ())
    keys = cluster.pods.keys
    evicted = [keys[row] for row in state.running if _can_be_undone(cluster.pods.objects[row])]
    left = [keys[row] for row in state.running if keys[row] not in set(evicted)]
    return PartialGang(key, len(state.running), _minimum(state), since, tuple(evicted), tuple(left))


def _minimum(state: GangState) -> int:
    return len(state.running) + state.need().least


def _can_be_undone(pod: Pod | None) -> bool:
    """Return whether a pod has not started, and a controller would create it again."""
    if pod is None or pod.status.start_time:
        return False
    return any(owner.controller for owner in pod.metadata.owner_references or ())
