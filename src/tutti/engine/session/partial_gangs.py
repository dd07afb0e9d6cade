"""Partial gangs: gangs that run in part and never ran whole are completed, or undone after a while.

A gang is partial if some, but fewer than its minimum of its pods are bound and not terminating, and it never ran whole:
a binding failed, a kubelet rejected a pod, or its scheduler stopped in between. A gang runs whole once the pods of its
minimum have started, all at one moment; it is never undone from then on. A gang whose minimum is unknown, because its
group is missing or invalid, is left alone.

Every session tries to complete partial gangs (their missing pods are the first turns). After `Patience.partial_for` the
plan evicts the bound pods of a gang that no attempt could complete: those that have a controller and have not started,
or started lately (`Patience.undo_started_within`). Other bound pods are reported, once. If the evictions are refused,
they are tried again after the same time. The time counts from the last binding of its pods, as their conditions tell
it, so that a scheduler that is restarted again and again does not wait anew each time; a gang that is seen partial for
the first time gets `_FIRST_LOOK` in any case. If all its pods were bound and some were lost before they started, the
time counts from the loss, and while fewer pods wait than the gang needs, it is `Patience.replaced_within`.

A gang that was undone is not tried again at once, whatever pods its controllers create: the pause doubles with each
time, up to `Patience.retry_after`, until the gang has run whole.

Contract: what was seen (`PartialGangs`) belongs to the queue and follows its marks; a session costs the gangs that have
changed, and the partial ones.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

import msgspec
from msgspec.structs import replace

from tutti.cluster.cluster import Cluster
from tutti.cluster.pod_updates import has_started
from tutti.engine.gangs.cluster_gangs import Gangs
from tutti.engine.gangs.gang_state import GangPhase, GangState
from tutti.engine.session.plan import PartialGang, Turn
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


class UndoPause(msgspec.Struct, frozen=True):
    """Until when a gang that was undone is not tried again."""

    rounds: int
    """How often the gang was undone since it last ran whole."""
    until: int


class PartialGangs(msgspec.Struct, frozen=True):
    """What is remembered about gangs between sessions; times are microseconds."""

    whole: dict[str, tuple[str, ...]] = {}
    """Gangs that have run whole, with the uids of the pods that ran then: a gang of which none of them runs any more is
    another gang, which may have the same name."""
    bound: dict[str, tuple[str, ...]] = {}
    """Gangs whose minimum was bound and has not started yet, with the uids of the pods that were bound then."""
    since: dict[str, int] = {}
    """Partial gangs, with the time since which each counts as partial."""
    tried: dict[str, int] = {}
    """Partial gangs that an attempt was made to complete, with the time of the first attempt."""
    undone: dict[str, Undone] = {}
    """Partial gangs that a plan has undone or reported."""
    pauses: dict[str, UndoPause] = {}
    """Gangs that were undone and have not run whole since, partial or not."""


def follow(
    seen: PartialGangs, cluster: Cluster, changed: Iterable[str], *, now: int, patience: Patience
) -> PartialGangs:
    """Return what is remembered after some gangs have changed; the same object if nothing is new."""
    gangs, since, pauses = Gangs.of(cluster), dict(seen.since), dict(seen.pauses)
    ran_whole: dict[str, tuple[str, ...]] = {}
    was_bound: dict[str, tuple[str, ...]] = {}
    """Gangs of which that is new; no pods for gangs that are no longer remembered."""
    for key in changed:
        running, known = gangs.running(key), seen.whole.get(key, ())
        uids = _uids(cluster, running)
        if not running:
            ran_whole[key] = was_bound[key] = ()
            since.pop(key, None)
            continue
        if uids == known and key not in since:
            continue  # nothing can be new, and the gang's record need not be read
        phase = gangs.state_with(key, running).phase
        if phase is GangPhase.PARTIAL and not set(known).intersection(uids):
            has_lost_pods = bool(set(seen.bound.get(key, ())).intersection(uids))
            if key not in since and not has_lost_pods and _ran_whole(cluster, gangs, key, running, now, patience):
                ran_whole[key] = uids
                continue
            ran_whole[key] = ()
            if not has_lost_pods:
                was_bound[key] = ()
            if key not in since:
                first_look = now - max(patience.partial_for - _FIRST_LOOK, 0)
                since[key] = now if has_lost_pods else max(_last_binding(cluster, running, now), first_look)
        elif phase is GangPhase.WHOLE and all(_is_confirmed(cluster.pods.objects[row]) for row in running):
            since.pop(key, None)
            started = [row for row in running if _has_started(cluster.pods.objects[row])]
            if gangs.state_with(key, started).phase is GangPhase.WHOLE:
                ran_whole[key], was_bound[key] = uids, ()
                pauses.pop(key, None)
            else:
                was_bound[key] = uids
    whole, bound = _updated(seen.whole, ran_whole), _updated(seen.bound, was_bound)
    if whole is seen.whole and bound is seen.bound and since == seen.since and pauses == seen.pauses:
        return seen
    tried = {key: time for key, time in seen.tried.items() if key in since}
    undone = {key: done for key, done in seen.undone.items() if key in since}
    return PartialGangs(whole, bound, since, tried, undone, pauses)


def _updated(known: dict[str, tuple[str, ...]], new: Mapping[str, tuple[str, ...]]) -> dict[str, tuple[str, ...]]:
    """Return the pods of gangs with the new ones, without gangs that have none; the same object if nothing is new."""
    if all(uids == known.get(key, ()) for key, uids in new.items()):
        return known
    return {key: uids for key, uids in {**known, **new}.items() if uids}


def next_undo(seen: PartialGangs, *, now: int, patience: Patience) -> int | None:
    """Return when the next partial gang is due; gangs that are due now have been looked at already."""
    waiting = [(key, since) for key, since in seen.since.items() if key not in seen.undone]
    times = [since + patience.partial_for for _, since in waiting]
    times += [since + patience.replaced_within for key, since in waiting if key in seen.bound]
    times += [done.at + patience.partial_for for done in seen.undone.values() if done.evicts]
    return min((time for time in times if time > now), default=None)


def undo(
    seen: PartialGangs,
    cluster: Cluster,
    turns: Mapping[str, Turn],
    *,
    now: int,
    patience: Patience,
    awaits_attempt: Callable[[Turn], bool],
) -> tuple[PartialGangs, list[PartialGang]]:
    """Return what is remembered, and the gangs that were not completed in time, as far as that is new or changed.

    `turns` are the pending turns by name; `awaits_attempt` says whether a turn will be tried without a change.
    """
    if not seen.since and not seen.pauses:
        return seen, []
    undone = dict(seen.undone)
    pauses = {key: pause for key, pause in seen.pauses.items() if now < pause.until + patience.retry_after}
    plans = []
    for key in sorted(key for key, since in seen.since.items() if now - since >= patience.partial_for):
        turn, last = turns.get(f"gang/{key}"), undone.get(key)
        if last is not None and last.evicts and now - last.at < patience.partial_for:
            continue
        if last is None and key not in seen.tried and turn is not None and awaits_attempt(turn):
            continue
        is_replaced = key in seen.bound and last is None and now - seen.since[key] < patience.replaced_within
        if is_replaced and _lacks_pods(cluster, key, turn):
            continue
        partial = _partial_gang(cluster, key, seen.since[key], started_after=now - patience.undo_started_within)
        if partial is None or not (last is None or partial.evicted or partial.left != last.left):
            continue
        undone[key] = Undone(now, bool(partial.evicted), partial.left)
        plans.append(partial)
        if partial.evicted:
            rounds = pauses[key].rounds + 1 if key in pauses else 1
            pause = min(patience.first_backoff << min(rounds - 1, 30), patience.retry_after)
            pauses[key] = UndoPause(rounds, now + pause)
    is_new = bool(plans) or len(pauses) < len(seen.pauses)
    return (replace(seen, undone=undone, pauses=pauses) if is_new else seen), plans


def _lacks_pods(cluster: Cluster, key: str, turn: Turn | None) -> bool:
    """Return whether fewer pods of a gang wait than the gang needs."""
    need = Gangs.of(cluster).state(key, [cluster.pod_row(pod) for pod in turn.pods] if turn is not None else ()).need()
    return len(need.all_waiting) < need.least or not need.has_enough_pods


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
    can_be_undone = [_has_controller(pod) and (is_young or not _has_start_time(pod)) for pod in pods]
    evicted = [keys[row] for row, can_be in zip(state.running, can_be_undone, strict=True) if can_be]
    left = [keys[row] for row in state.running if keys[row] not in set(evicted)]
    return PartialGang(key, len(state.running), _minimum(state), since, tuple(evicted), tuple(left))


def _minimum(state: GangState) -> int:
    return len(state.running) + state.need().least


def _ran_whole(cluster: Cluster, gangs: Gangs, key: str, running: Sequence[int], now: int, patience: Patience) -> bool:
    """Return whether the group says that the gang was bound whole, long ago, and a pod runs that is as old.

    If that was not long ago, a kubelet may have rejected a pod since, before this process began.
    """
    whole_since = gangs.gang(key).whole_since
    if whole_since is None or now - whole_since < patience.undo_started_within:
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
    return pod is not None and has_started(pod)


def _has_start_time(pod: Pod | None) -> bool:
    return pod is not None and bool(pod.status.start_time)


def _has_controller(pod: Pod | None) -> bool:
    """Return whether a controller would create a pod again."""
    return pod is not None and any(owner.controller for owner in pod.metadata.owner_references or ())
