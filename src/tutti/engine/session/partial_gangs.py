"""Partial gangs: gangs that run in part and never ran whole are completed, or undone after a while.

A gang is partial if some, but fewer than its minimum of its pods are bound and not terminating, and it never had its
minimum at once: a binding failed, or its scheduler stopped in between. Every session tries to complete it (its missing
pods are the first turn). After `Patience.partial_for` the plan evicts its bound pods that have a controller and have
not started, or started lately (`Patience.undo_started_within`); other bound pods are reported, once. If the evictions
are refused, they are tried again after the same time. The time counts from the last binding of its pods, as their
conditions tell it, so that a scheduler that is restarted again and again does not wait anew each time; a gang that is
seen partial for the first time gets `_FIRST_LOOK` in any case. A gang that once ran whole is never undone; pods whose
bindings are not confirmed yet do not make a gang whole. A gang whose minimum is unknown, because its group is missing
or invalid, is left alone.

Contract: what was seen (`PartialGangs`) belongs to the queue and follows its marks; a session costs the gangs that have
changed, and the partial ones.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec
from msgspec.structs import replace

from tutti.cluster.cluster import Cluster
from tutti.engine.gangs.cluster_gangs import Gangs
from tutti.engine.gangs.gang_state import GangPhase, GangState
from tutti.engine.session.plan import PartialGang
from tutti.engine.session.policy import SECOND, Patience
from tutti.engine.session.queue_order import creation_time
from tutti.kube.objects import Pod
from tutti.kube.times import micros

_FIRST_LOOK = SECOND
"""How long the undoing of a partial gang waits at least after the gang was first seen, in microseconds."""


class Undone(msgspec.Struct, frozen=True):
    """What the last plan did with a partial gang that was not completed in time."""

    at: int
    evicts: bool
    left: tuple[str, ...]


class PartialGangs(msgspec.Struct, frozen=True):
    """What is remembered about gangs between sessions."""

    whole: dict[str, tuple[str, ...]] = {}
    """Gangs that have run whole, with the uids of the pods that ran then: a gang of which none of them runs any more is
    another gang, which may have the same name."""
    since: dict[str, int] = {}
    """Partial gangs, with the time since which each counts as partial, in microseconds."""
    undone: dict[str, Undone] = {}
    """Partial gangs that a plan has undone or reported."""


def follow(seen: PartialGangs, cluster: Cluster, changed: Iterable[str], *, now: int, partial_for: int) -> PartialGangs:
    """Return what is remembered after some gangs have changed; the same object if nothing is new."""
    gangs, since = Gangs.of(cluster), dict(seen.since)
    ran_whole: dict[str, tuple[str, ...]] = {}
    """Gangs of which that is new; no pods for gangs that are no longer remembered."""
    for key in changed:
        running, known = gangs.running(key), seen.whole.get(key, ())
        uids = _uids(cluster, running)
        if not running:
            ran_whole[key] = ()
            since.pop(key, None)
            continue
        if uids == known and key not in since:
            continue  # nothing can be new, and the gang's record need not be read
        phase = gangs.state_with(key, running).phase
        if phase is GangPhase.PARTIAL and key not in since and _ran_whole(cluster, gangs, key, running):
            ran_whole[key] = uids
        elif phase is GangPhase.PARTIAL:
            if not set(known).intersection(uids):
                ran_whole[key] = ()
                if key not in since:
                    since[key] = max(_last_binding(cluster, running, now), now - max(partial_for - _FIRST_LOOK, 0))
        elif phase is GangPhase.WHOLE and all(_is_confirmed(cluster.pods.objects[row]) for row in running):
            ran_whole[key] = uids
            since.pop(key, None)
    ran_whole = {key: uids for key, uids in ran_whole.items() if uids != seen.whole.get(key, ())}
    if not ran_whole and since == seen.since:
        return seen
    whole = {key: uids for key, uids in {**seen.whole, **ran_whole}.items() if uids} if ran_whole else seen.whole
    undone = {key: done for key, done in seen.undone.items() if key in since}
    return PartialGangs(whole, since, undone)


def next_undo(seen: PartialGangs, *, now: int, partial_for: int) -> int | None:
    """Return when the next partial gang is due; gangs that are due now have been looked at already."""
    times = [since + partial_for for key, since in seen.since.items() if key not in seen.undone]
    times += [done.at + partial_for for done in seen.undone.values() if done.evicts]
    return min((time for time in times if time > now), default=None)


def undo(
    seen: PartialGangs, cluster: Cluster, *, now: int, patience: Patience
) -> tuple[PartialGangs, list[PartialGang]]:
    """Return what is remembered, and the gangs that were not completed in time, as far as that is new or changed."""
    partial_for, started_after = patience.partial_for, now - patience.undo_started_within
    undone = dict(seen.undone)
    plans = []
    for key in sorted(key for key, since in seen.since.items() if now - since >= partial_for):
        partial = _partial_gang(cluster, key, seen.since[key], started_after=started_after)
        last = undone.get(key)
        if partial is None or (last is not None and last.evicts and now - last.at < partial_for):
            continue
        if last is None or partial.evicted or partial.left != last.left:
            undone[key] = Undone(now, bool(partial.evicted), partial.left)
            plans.append(partial)
    return (replace(seen, undone=undone) if plans else seen), plans


def _partial_gang(cluster: Cluster, key: str, since: int, *, started_after: int) -> PartialGang | None:
    """Return a partial gang with the pods that are evicted and those that stay.

    A pod that has started is evicted only if all of them started after a time: the gang may have run whole otherwise.

    None if the bindings that complete the gang are under way, or its minimum is unknown.
    """
    state = Gangs.of(cluster).state(key, ())
    if state.phase is not GangPhase.PARTIAL:
        return None
    keys = cluster.pods.keys
    pods = [cluster.pods.objects[row] for row in state.running]
    starts = [micros(pod.status.start_time) for pod in pods if pod is not None and pod.status.start_time]
    is_young = bool(starts) and min(starts) > started_after
    can_be_undone = [_has_controller(pod) and (is_young or not _has_started(pod)) for pod in pods]
    evicted = [keys[row] for row, can_be in zip(state.running, can_be_undone, strict=True) if can_be]
    left = [keys[row] for row in state.running if keys[row] not in set(evicted)]
    return PartialGang(key, len(state.running), _minimum(state), since, tuple(evicted), tuple(left))


def _minimum(state: GangState) -> int:
    return len(state.running) + state.need().least


def _ran_whole(cluster: Cluster, gangs: Gangs, key: str, running: Sequence[int]) -> bool:
    """Return whether the group says that the gang ran whole, and a pod runs that is as old."""
    whole_since = gangs.gang(key).whole_since
    if whole_since is None:
        return False
    pods = (cluster.pods.objects[row] for row in running)
    return any(pod is not None and creation_time(pod) <= whole_since for pod in pods)


def _last_binding(cluster: Cluster, running: Sequence[int], now: int) -> int:
    """Return when the last of some running pods was bound; `now` if one does not say so."""
    last = 0
    for row in running:
        pod = cluster.pods.objects[row]
        conditions = (pod.status.conditions if pod is not None else None) or ()
        bound = next((each for each in conditions if each.type == "PodScheduled" and each.status == "True"), None)
        if bound is None or not bound.last_transition_time:
            return now
        last = max(last, micros(bound.last_transition_time) + SECOND)  # the API server writes whole seconds
    return min(last, now)


def _uids(cluster: Cluster, rows: Iterable[int]) -> tuple[str, ...]:
    """Return the uids of pods, or the key of a pod without a uid."""
    pods = (cluster.pods.objects[row] for row in rows)
    return tuple(sorted(pod.metadata.uid or pod.key for pod in pods if pod is not None))


def _is_confirmed(pod: Pod | None) -> bool:
    """Return whether the object of a pod names its node."""
    return pod is not None and bool(pod.spec.node_name)


def _has_started(pod: Pod | None) -> bool:
    return pod is not None and bool(pod.status.start_time)


def _has_controller(pod: Pod | None) -> bool:
    """Return whether a controller would create a pod again."""
    return pod is not None and any(owner.controller for owner in pod.metadata.owner_references or ())
